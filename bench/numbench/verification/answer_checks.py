"""Are the items of a run answered, once per sample?"""

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
    """Yield which responses are missing, failed, repeated or unrelated, or that all is well.

    Missing and failed ones are only a warning in a run that answers 99% of each task that it asks.
    """
    expected = {
        request_id(row.item.id, row.sample) for rows in scored.rows.values() for row in rows
    }
    answers: Counter[str] = Counter()
    for response in iter_responses(scored.path):
        answers[response.request_id] += response.error is None
    unanswered = sorted(
        request_id(row.item.id, row.sample)
        for rows in scored.rows.values()
        for row in rows
        if not row.is_answered
    )
    repeated = sorted(key for key, count in answers.items() if count > 1)
    unrelated = sorted(answers.keys() - expected)
    if unanswered:
        asked = {task: [row.item.id for row in rows] for task, rows in scored.rows.items()}
        judge = warning if completeness(scored, asked).is_complete else error
        yield judge(
            "answers",
            f"{len(unanswered):,} of {len(expected):,} samples have no answer "
            f"({_examples(unanswered)}); {_way_to_answers(scored)}",
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
    yield judge(
        "complete",
        f"{known} samples of the dataset are answered: leaderboards do not rank the run; "
        f"{_way_to_all_items(scored, known.total)}",
    )


def _way_to_all_items(scored: ScoredRun, total: int) -> str:
    if scored.info.shard is not None:
        return "join the shards with `numbench merge`"
    if sum(len(rows) for rows in scored.rows.values()) < total:
        return "run all tasks without --limit"
    return _way_to_answers(scored)


def _way_to_answers(scored: ScoredRun) -> str:
    """Say what requests the missing answers; resuming leaves out permanent failures."""
    rows = (row for of_task in scored.rows.values() for row in of_task if not row.is_answered)
    failures = [row.response and row.response.error for row in rows]
    if all(failure and failure.kind == "item" for failure in failures):
        return "run its command with --retry error"
    return "resume the run with its command"


def _examples(keys: list[str]) -> str:
    shown = ", ".join(keys[:_MAX_EXAMPLES])
    return f"{shown}, …" if len(keys) > _MAX_EXAMPLES else shown
