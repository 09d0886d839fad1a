"""Verification of run folders: is everything there, unchanged, and plausible?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from enum import Enum
from pathlib import Path
from typing import NamedTuple

from numbench.dataset.audit import audit
from numbench.dataset.store import RELEASED_DATASETS, Dataset, dataset_hash, released_dataset
from numbench.errors import BadInput
from numbench.forensics.answers import numeric_answers, read_questions
from numbench.forensics.findings import find
from numbench.journal import find_runs, iter_responses, read_info
from numbench.journal_repair import verify_run
from numbench.memory_test.outcome import find_outcomes
from numbench.records import Response, RunInfo, request_id
from numbench.scoring import ScoredItem, ScoredRun, score_run
from numbench.scoring.completeness import completeness
from numbench.scoring.tool_mentions import find_tool_mentions
from numbench.tasks.prompts import bundled_sets, changed_prompts, load_prompt_set

_MAX_EXAMPLES = 3

_SPARE_TOKENS = 16
"""Tokens around a text, such as its start and end."""


class Severity(Enum):
    """ok: the check passed. warning: a person should look. error: the run is not valid."""

    OK = "ok"
    WARNING = "warning"
    ERROR = "error"


class Finding(NamedTuple):
    """The result of one check. check: its short name. text: what, where, and what to do."""

    severity: Severity
    check: str
    text: str


class Verification(NamedTuple):
    """The findings about one run folder."""

    path: Path
    findings: tuple[Finding, ...]

    @property
    def is_valid(self) -> bool:
        """Whether there is no error. Warnings do not make a run invalid."""
        return all(finding.severity is not Severity.ERROR for finding in self.findings)

    def as_json(self) -> dict[str, object]:
        """Return the object that `numbench verify --json` prints for the run."""
        return {
            "run": self.path.as_posix(),
            "valid": self.is_valid,
            "findings": [
                {"severity": severity.value, "check": check, "text": text}
                for severity, check, text in self.findings
            ],
        }


def verify(
    runs: Sequence[Path],
    on_progress: Callable[[str], None] = lambda message: None,
    require_complete: bool = False,
) -> list[Verification]:
    """Check run folders, and return the findings about each of them. Writes nothing.

    runs: folders that are runs or contain some. require_complete: whether a run is invalid
    unless it answers every item of its dataset. Raises BadInput if there is no run.
    """
    folders = list(dict.fromkeys(folder for path in runs for folder in find_runs([path])))
    findings: dict[Path, list[Finding]] = {}
    scored_runs = []
    for number, folder in enumerate(folders, 1):
        on_progress(f"verifying run {number} of {len(folders)}: {folder}")
        findings[folder] = list(_check_files(folder))
        if findings[folder][0].severity is Severity.ERROR:
            continue
        try:
            scored = score_run(folder, dataset=_trusted_dataset(read_info(folder)))
            findings[folder] += _check_scored(scored, require_complete)
            scored_runs.append(scored)
        except BadInput as fault:
            findings[folder].append(_error("content", str(fault)))
    for outcome in find_outcomes(scored_runs):
        is_equivalent = outcome.verdict == "equivalent"
        text = f"verdict: {outcome.verdict}" if outcome.verdict else f"no verdict: {outcome.reason}"
        for folder in folders:
            if folder.parent == outcome.folder:
                findings[folder].append((_ok if is_equivalent else _warning)("memory test", text))
    return [Verification(folder, tuple(findings[folder])) for folder in folders]


def _ok(check: str, text: str) -> Finding:
    return Finding(Severity.OK, check, text)


def _warning(check: str, text: str) -> Finding:
    return Finding(Severity.WARNING, check, text)


def _error(check: str, text: str) -> Finding:
    return Finding(Severity.ERROR, check, text)


def _check_files(folder: Path) -> Iterator[Finding]:
    state = verify_run(folder)
    for damage in state.damage:
        item = f" (item {damage.item_id})" if damage.item_id else ""
        yield _error(
            "journal",
            f"{damage.path}, line {damage.line}{item}: {damage.reason}; "
            "`numbench verify --repair` keeps the readable lines",
        )
    if not state.damage:
        yield _ok("journal", f"{state.responses:,} responses, every line is readable")


def _check_scored(scored: ScoredRun, require_complete: bool) -> Iterator[Finding]:
    is_measurement = scored.info.horizon is not None
    if not is_measurement:
        yield from _check_dataset(scored)
    yield _check_prompts(scored.info)
    yield from _check_answers(scored)
    if not is_measurement:
        yield _check_completeness(scored, require_complete)
    yield from _check_responses(scored)
    if not is_measurement:
        yield from _check_computations(scored)


def _trusted_dataset(info: RunInfo) -> Dataset | None:
    """Return the package's own copy of a released dataset; None for any other dataset.

    A folder beside the run could claim the hash of a released dataset.
    """
    names = {sha256: name for name, sha256 in RELEASED_DATASETS.items()}
    name = names.get(info.dataset.sha256) if info.horizon is None else None
    return released_dataset(name) if name else None


def _check_dataset(scored: ScoredRun) -> Iterator[Finding]:
    """Yield whether the dataset is a released one, or else whether it is intact and correct."""
    dataset, ref, info = scored.dataset, scored.info.dataset, scored.info
    label = f"{ref.name}@{ref.sha256[:6]}"
    released = RELEASED_DATASETS.get(ref.name)
    if released == ref.sha256:
        yield _ok("dataset", f"{label} is the released dataset")
    elif released is not None:
        yield _error(
            "dataset",
            f"run.json: {label} is not the released {ref.name} ({released[:6]}); give a dataset "
            "of your own another name",
        )
    elif dataset_hash(dataset.manifest.files) != dataset.manifest.sha256:
        yield _error(
            "dataset",
            f"{dataset.path / 'manifest.json'}: sha256 is not the hash of its files; restore it",
        )
    else:
        yield _warning("dataset", f"{label} is not a released dataset; its questions are its own")
        yield from _check_labels(dataset)
    if missing := [task for task in dataset.tasks if task not in scored.rows]:
        yield _warning("dataset", f"no results for {', '.join(missing)}: the run has no mean rank")
    if info.limit is not None or info.shard is not None:
        part = "a shard" if info.shard else f"--limit {info.limit}"
        yield _warning("dataset", f"the run asks only a part of the questions ({part})")


def _check_labels(dataset: Dataset) -> Iterator[Finding]:
    result = audit(dataset.path)
    wrong = [errors for errors in result.wrong.values() if errors]
    for errors in wrong:
        label = errors[0].label
        yield _error(
            "labels",
            f"{label.location}: the answer is not exact ({len(errors)} such labels of "
            f"{label.task}); `numbench audit` lists them",
        )
    if not wrong:
        yield _ok("labels", f"{sum(result.checked.values()):,} answers recomputed, all exact")


def _check_prompts(info: RunInfo) -> Finding:
    """Return whether the prompts are bundled ones with the recorded hashes."""
    if info.source == "imported":
        return _warning("prompts", "imported run: how the model was asked is not recorded")
    if info.prompt.name not in bundled_sets():
        return _warning("prompts", f"prompt set {info.prompt.label} is not a bundled one")
    known = load_prompt_set(info.prompt.name).ref(info.tasks)
    if changed := changed_prompts(known, info.prompt):
        return _error(
            "prompts",
            f"run.json: the prompts of {', '.join(changed)} are not those of the bundled set "
            f"{info.prompt.name!r}; run again, or name another prompt set with --prompts",
        )
    return _ok("prompts", f"{info.prompt.label} has the hashes of the bundled set")


def _check_answers(scored: ScoredRun) -> Iterator[Finding]:
    """Yield which responses are missing, failed, repeated or unrelated, or that all is well.

    Missing and failed ones are only a warning in a run that answers 99% of each task that it asks.
    """
    rows = _all_rows(scored)
    expected = {request_id(row.item.id, row.sample) for row in rows}
    latest: dict[str, Response] = {}
    retried: set[str] = set()
    repeated: set[str] = set()
    unrelated: set[str] = set()
    for response in iter_responses(scored.path):
        key = response.request_id
        if key not in expected:
            unrelated.add(key)
        if response.error is None:
            if key in latest:
                (retried if _may_be_retried(latest[key]) else repeated).add(key)
            latest[key] = response
    unanswered = {request_id(row.item.id, row.sample) for row in rows if not row.is_answered}
    asked = {task: [row.item.id for row in of_task] for task, of_task in scored.rows.items()}
    judge = _warning if completeness(scored, asked).is_complete else _error
    findings = (
        (judge, unanswered, f"of {len(expected):,} samples have no answer", _way_to_answers(rows)),
        (_error, repeated, "samples have several answers", "submit the run as it was written"),
        (_warning, retried, "samples have an answer in place of one that was truncated, refused or "
         "empty", "as with --retry"),
        (_error, unrelated, "responses to questions that the run does not ask", "remove them"),
    )  # fmt: skip
    for severity, keys, what, note in findings:
        if keys:
            shown = ", ".join(sorted(keys)[:_MAX_EXAMPLES])
            more = ", …" if len(keys) > _MAX_EXAMPLES else ""
            yield severity("answers", f"{len(keys):,} {what} ({shown}{more}); {note}")
    if not (unanswered or repeated or retried or unrelated):
        yield _ok("answers", f"{len(expected):,} samples, each answered once")


def _all_rows(scored: ScoredRun) -> list[ScoredItem]:
    return [row for of_task in scored.rows.values() for row in of_task]


def _may_be_retried(answer: Response) -> bool:
    """Return whether `--retry truncated`, `refused` or `empty` requests the answer again."""
    return answer.finish_reason in ("length", "refusal") or not answer.text.strip()


def _check_completeness(scored: ScoredRun, require_complete: bool) -> Finding:
    """Return whether a run answers its whole dataset: an error if that is required."""
    known = completeness(scored)
    if known.is_complete:
        return _ok("complete", f"{known} samples of the dataset are answered")
    rows = _all_rows(scored)
    if scored.info.shard is not None:
        way = "join the shards with `numbench merge`"
    elif len(rows) < known.total:
        way = "run all tasks without --limit"
    else:
        way = _way_to_answers(rows)
    text = f"{known} samples of the dataset are answered: leaderboards do not rank the run; {way}"
    return (_error if require_complete else _warning)("complete", text)


def _way_to_answers(rows: Sequence[ScoredItem]) -> str:
    """Say what requests the missing answers; resuming leaves out permanent failures."""
    failures = [row.response and row.response.error for row in rows if not row.is_answered]
    if all(failure and failure.kind == "item" for failure in failures):
        return "run its command with --retry error"
    return "resume the run with its command"


def _check_responses(scored: ScoredRun) -> Iterator[Finding]:
    """Yield whether the usage fits the texts, and how often the reasoning mentions a tool."""
    given = [row.response for row in _all_rows(scored) if row.response is not None]
    responses = [response for response in given if response.error is None]
    if not scored.info.model.startswith("baseline/"):
        counts = {name: sum(map(is_odd, responses)) for name, is_odd in _ODD_USAGE.items()}
        for name, count in counts.items():
            if count:
                yield _warning("usage", f"{count:,} of {len(responses):,} responses {name}")
        if not any(counts.values()):
            yield _ok("usage", "token counts fit the texts")
    if mentions := sum(bool(find_tool_mentions(each.reasoning_text)) for each in responses):
        yield _warning(
            "tools",
            f"{mentions:,} of {len(responses):,} responses mention a calculator, code or search "
            "in their reasoning; read them with `numbench show`",
        )


def _has_negative_count(response: Response) -> bool:
    usage = response.usage
    counts = (usage.input, usage.reasoning, usage.visible, usage.generated, response.cost)
    return any(count is not None and count < 0 for count in counts)


def _has_too_few_generated(response: Response) -> bool:
    usage = response.usage
    least = max(usage.reasoning or 0, usage.visible or 0, 1 if response.text else 0)
    return usage.generated is not None and usage.generated < least


def _has_too_many_visible(response: Response) -> bool:
    """A token of a text has at least one byte."""
    return (response.usage.visible or 0) > len(response.text.encode()) + _SPARE_TOKENS


_ODD_USAGE: dict[str, Callable[[Response], bool]] = {
    "have no token count": lambda response: response.usage.generated is None,
    "have a negative count or cost": _has_negative_count,
    "have fewer generated tokens than reasoning or visible ones": _has_too_few_generated,
    "have more visible tokens than their text has bytes: wrong counts, or reasoning that is not "
    "counted by itself": _has_too_many_visible,
}


def _check_computations(scored: ScoredRun) -> Iterator[Finding]:
    answers = numeric_answers(scored, read_questions(scored))
    [known] = find([(scored, answers)])
    if known.evidence.is_flagged:
        yield _warning("float64", f"{known.sentence} See `numbench report {scored.path}`")
    elif known.wrong:
        yield _ok("float64", known.sentence)
