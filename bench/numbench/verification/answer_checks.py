"""Is every item of a run answered, exactly once per sample?"""

from __future__ import annotations

from collections import Counter
from collections.abc import Iterator

from numbench.journal import iter_responses
from numbench.records import request_id
from numbench.scoring import ScoredRun
from numbench.scoring.completeness import completeness
from numbench.verification.findings import Finding, error, ok, warning

_MAX_EXAMPLES = 3


def check_answers(scored: ScoredRun) -> Iterator[Finding]:
    """Yield an error for missing, failed, repeated and unrelated responses, or that all is well."""
    expected = {
        request_id(row.item.id, row.sample) for rows in scored.rows.values() for row in rows
    }
    answers: Counter[str] = Counter()
    for response in iter_responses(scored.path):
        answers[response.request_id] += response.error is None
    unanswered = sorted(key for key in expected if not answers[key])
    repeated = sorted(key for key, count in answers.items() if count > 1)
    unrelated = sorted(answers.keys() - expected)
    if unanswered:
        yield error(
            "answers",
            f"{len(unanswered):,} of {len(expected):,} samples have no answer "
            f"({_examples(unanswered)}); resume the run with its command",
        )
    if repeated:
        yield error(
            "answers",
            f"responses.jsonl: {len(repeated):,} samples have several answers "
            f"({_examples(repeated)}); submit the run as it was written",
        )
    if unrelated:
        yield error(
            "answers",
            f"responses.jsonl: {len(unrelated):,} responses to items that the run does not ask "
            f"({_examples(unrelated)})",
        )
    if not (unanswered or repeated or unrelated):
        yield ok("answers", f"{len(expected):,} samples, each answered once")


def check_completeness(scored: ScoredRun, require_complete: bool) -> Iterator[Finding]:
    """Yield whether a run answers its whole dataset: an error if that is required."""
    known = completeness(scored)
    if known.is_complete:
        yield ok("complete", f"{known} samples of the dataset are answered")
        return
    judge = error if require_complete else warning
    asked = sum(len(rows) for rows in scored.rows.values())
    way_out = (
        "run all tasks without --limit" if asked < known.total else "resume it with its command"
    )
    yield judge(
        "complete",
        f"{known} samples of the dataset are answered: leaderboards do not rank the run; {way_out}",
    )


def _examples(keys: list[str]) -> str:
    shown = ", ".join(keys[:_MAX_EXAMPLES])
    return f"{shown}, …" if len(keys) > _MAX_EXAMPLES else shown
