"""Verification of run folders: is everything there, unchanged, and plausible?"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Literal, NamedTuple

from numbench.dataset.audit import audit
from numbench.dataset.store import (
    MANIFEST,
    RELEASED_DATASETS,
    Dataset,
    dataset_hash,
    released_dataset,
)
from numbench.errors import BadInput
from numbench.forensics.findings import find
from numbench.journal.conversations import Conversations
from numbench.journal.repair import verify_run
from numbench.journal.run_folder import find_runs, iter_responses, read_info
from numbench.memory_test.outcome import holds_memory_test, read_outcome
from numbench.records import Response, RunInfo, request_id
from numbench.runner.run_state import answer_defect
from numbench.scoring import ScoredItem, ScoredRun, score_run
from numbench.scoring.scored_run import completeness
from numbench.tasks.prompts import bundled_sets, changed_prompts, load_prompt_set

_MAX_EXAMPLES = 3

_SPARE_TOKENS = 16
"""Tokens around a text, such as its start and end."""


Severity = Literal["ok", "warning", "error"]
"""ok: the check passed. warning: a person should look. error: the run is not valid."""

Results = Iterator[tuple[Severity, str]]
"""What a check finds: what, where, and what to do."""


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
        return all(finding.severity != "error" for finding in self.findings)


def verify(
    runs: Sequence[Path],
    repair: bool = False,
    require_complete: bool = False,
    on_progress: Callable[[str], None] = lambda message: None,
) -> list[Verification]:
    """Check run folders, and return the findings about each of them.

    runs: folders that are runs or contain some. repair: whether to repair damaged lines instead;
    otherwise nothing is written. require_complete: whether a run is invalid unless it answers every
    item of its dataset. Raises BadInput if there is no run.
    """
    if repair and require_complete:
        raise BadInput("--complete cannot be used with --repair")
    folders = find_runs(runs)
    findings: dict[Path, list[Finding]] = {}
    checks = _CHECKS | {"complete": partial(_completeness, is_required=require_complete)}
    for number, folder in enumerate(folders, 1):
        on_progress(f"verifying run {number} of {len(folders)}: {folder}")
        found = [Finding(each[0], "journal", each[1]) for each in _files(folder, repair)]
        findings[folder] = found
        if repair or found[0].severity == "error":
            continue
        try:
            scored = score_run(folder, dataset=_trusted_dataset(read_info(folder)))
            for check, results in checks.items():
                if scored.info.horizon is None or check not in _OF_DATASETS:
                    found += [Finding(each[0], check, each[1]) for each in results(scored)]
        except BadInput as fault:
            found.append(Finding("error", "content", str(fault)))
    return [Verification(folder, tuple(found)) for folder, found in findings.items()]


def _files(folder: Path, repair: bool) -> Results:
    state = verify_run(folder, repair)
    for damage in state.damage:
        item = f" (question {damage.item_id})" if damage.item_id else ""
        way = "`numbench verify --repair` keeps the others"
        if repair:
            way = "its records are kept" if damage.kept else "the line is lost"
        text = f"{damage.path}, line {damage.line}{item}: {damage.reason}; {way}"
        yield "warning" if repair else "error", text
    if repair or not state.damage:
        yield "ok", f"{state.responses:,} responses, every line is readable"


def _trusted_dataset(info: RunInfo) -> Dataset | None:
    """Return the package's own copy of a released dataset; None for any other dataset.

    A folder beside the run could claim the hash of a released dataset.
    """
    names = {sha256: name for name, sha256 in RELEASED_DATASETS.items()}
    name = names.get(info.dataset.sha256) if info.horizon is None else None
    return released_dataset(name) if name else None


def _dataset(scored: ScoredRun) -> Results:
    """Yield whether the dataset is a released one, or else whether it is intact."""
    dataset, ref = scored.dataset, scored.info.dataset
    label = f"{ref.name}@{ref.sha256[:6]}"
    released = RELEASED_DATASETS.get(ref.name)
    if released == ref.sha256:
        yield "ok", f"{label} is the released dataset"
    elif released is not None:
        way = "give a dataset of your own another name"
        yield "error", f"run.json: {label} is not the released {ref.name} ({released[:6]}); {way}"
    elif dataset_hash(dataset.manifest.files) != dataset.manifest.sha256:
        manifest = dataset.path / MANIFEST
        yield "error", f"{manifest}: sha256 is not the hash of its files; restore it"
    else:
        effect = "so its questions cannot be compared with it"
        yield "warning", f"{label} is not a released dataset, {effect}"


def _labels(scored: ScoredRun) -> Results:
    """Yield whether the answers of a dataset that is not released are exact."""
    if scored.info.dataset.name in RELEASED_DATASETS:
        return
    result = audit(scored.dataset.path)
    for task, errors in result.wrong.items():
        count = f"({len(errors)} such labels of {task}); `numbench audit` lists them"
        yield "error", f"{errors[0].label.location}: the answer is not exact {count}"
    if not result.wrong:
        yield "ok", f"{sum(result.checked.values()):,} answers recomputed, all exact"


def _prompts(scored: ScoredRun) -> Results:
    """Yield whether the prompts are bundled ones with the recorded hashes."""
    info = scored.info
    if info.source == "imported":
        yield "warning", "imported run: how the model was asked is not recorded"
    elif info.prompt.name not in bundled_sets():
        yield "warning", f"prompt set {info.prompt.label} is not a bundled one"
    elif changed := changed_prompts(load_prompt_set(info.prompt.name).ref(info.tasks), info.prompt):
        what = f"are not those of the bundled set {info.prompt.name!r}"
        way = "run again, or name another prompt set with --prompts"
        yield "error", f"run.json: the prompts of {', '.join(changed)} {what}; {way}"
    else:
        yield "ok", f"{info.prompt.label} has the hashes of the bundled set"


def _answers(scored: ScoredRun) -> Results:
    """Yield which responses are missing, failed, repeated or unrelated, or that all is well.

    Missing and failed ones are only a warning in a run that answers 99% of each task that it asks.
    """
    rows = _all_rows(scored)
    expected = {request_id(row.item.id, row.sample) for row in rows}
    latest: dict[str, Response] = {}
    retried, repeated, unrelated = set[str](), set[str](), set[str]()
    for response in map(Conversations().join, iter_responses(scored.path)):
        key = response.request_id
        if key not in expected:
            unrelated.add(key)
        if response.error is None:
            if key in latest:
                (retried if answer_defect(latest[key]) else repeated).add(key)
            latest[key] = response
    unanswered = {request_id(row.item.id, row.sample) for row in rows if not row.is_answered}
    asked = {task: [row.item.id for row in of_task] for task, of_task in scored.rows.items()}
    missing = f"of {len(expected):,} samples have no answer"
    of_missing: Severity = "warning" if completeness(scored, asked).is_complete else "error"
    again = "samples have an answer in place of one that was truncated, refused or empty"
    findings: list[tuple[Severity, set[str], str, str]] = [
        (of_missing, unanswered, missing, _way_to_answers(rows)),
        ("error", repeated, "samples have several answers", "submit the run as it was written"),
        ("warning", retried, again, "as with --retry"),
        ("error", unrelated, "responses to questions that the run does not ask", "remove them"),
    ]
    for severity, keys, what, note in findings:
        if keys:
            shown = ", ".join(sorted(keys)[:_MAX_EXAMPLES])
            more = ", …" if len(keys) > _MAX_EXAMPLES else ""
            yield severity, f"{len(keys):,} {what} ({shown}{more}); {note}"
    if not (unanswered or repeated or retried or unrelated):
        yield "ok", f"{len(expected):,} samples, each answered once"


def _all_rows(scored: ScoredRun) -> list[ScoredItem]:
    return [row for of_task in scored.rows.values() for row in of_task]


def _completeness(scored: ScoredRun, is_required: bool = False) -> Results:
    """Yield whether a run answers its whole dataset: an error if that is required."""
    known = completeness(scored)
    if known.is_complete:
        yield "ok", f"{known} samples of the dataset are answered"
        return
    rows = _all_rows(scored)
    if scored.info.shard is not None:
        way = "join the shards with `numbench merge`"
    elif len(rows) < known.total:
        way = "run all tasks without --limit"
    else:
        way = _way_to_answers(rows)
    text = f"{known} samples of the dataset are answered: leaderboards do not rank the run; {way}"
    yield "error" if is_required else "warning", text


def _way_to_answers(rows: Sequence[ScoredItem]) -> str:
    """Say what requests the missing answers; resuming leaves out permanent failures."""
    failures = [row.response and row.response.error for row in rows if not row.is_answered]
    if all(failure and failure.kind == "item" for failure in failures):
        return "run its command with --retry error"
    return "resume the run with its command"


def _usage(scored: ScoredRun) -> Results:
    """Yield whether the token counts of a model fit each other and the texts."""
    if scored.info.model.startswith("baseline/"):
        return
    received = (row.response for row in _all_rows(scored))
    responses = [each for each in received if each and each.error is None]
    counts = {what: sum(map(is_odd, responses)) for what, is_odd in _ODD_USAGE.items()}
    for what, count in counts.items():
        if count:
            yield "warning", f"{count:,} of {len(responses):,} responses {what}"
    if not any(counts.values()):
        yield "ok", "token counts fit the texts"


def _has_too_few_generated(response: Response) -> bool:
    usage = response.usage
    least = max(usage.reasoning or 0, usage.visible or 0, 1 if response.text else 0)
    return usage.generated is not None and usage.generated < least


def _has_too_many_visible(response: Response) -> bool:
    """A token of a text has at least one byte; those of calls are not in the text."""
    visible = 0 if response.turns else response.usage.visible or 0
    return visible > len(response.text.encode()) + _SPARE_TOKENS


_ODD_USAGE: dict[str, Callable[[Response], bool]] = {
    "have no token count": lambda response: response.usage.generated is None,
    "have fewer generated tokens than reasoning or visible ones": _has_too_few_generated,
    "have more visible tokens than their text has bytes: wrong counts, or reasoning that is not "
    "counted by itself": _has_too_many_visible,
}


def _tools(scored: ScoredRun) -> Results:
    if tools := scored.info.settings.get("tools"):
        yield "warning", f"the model was offered a tool: {tools}"


def _computations(scored: ScoredRun) -> Results:
    known = find(scored, {})
    if known.evidence.is_flagged:
        yield "warning", f"{known.sentence} See `numbench report {scored.path}`"
    elif known.wrong:
        yield "ok", known.sentence


def _memory_test(scored: ScoredRun) -> Results:
    """Yield the verdict of the memory test that a run belongs to."""
    if holds_memory_test(folder := scored.path.parent):
        tested = read_outcome(folder)
        verdict = f"verdict: {tested.verdict}" if tested.verdict else f"no verdict: {tested.reason}"
        yield "ok" if tested.verdict == "equivalent" else "warning", verdict


_CHECKS: dict[str, Callable[[ScoredRun], Results]] = {
    "dataset": _dataset,
    "labels": _labels,
    "prompts": _prompts,
    "answers": _answers,
    "complete": _completeness,
    "usage": _usage,
    "tools": _tools,
    "float64": _computations,
    "memory test": _memory_test,
}
_OF_DATASETS = {"dataset", "labels", "complete", "float64"}
"""The checks of runs on a dataset; a horizon measurement has none."""
