"""Changes of the exact scores since the first version of the re-scored study.

`earlier_scores.csv` has its scores, which an earlier import and parser produced. A score is
compared only if it comes from the same file of responses.
"""

from __future__ import annotations

import csv
from collections.abc import Iterator, Mapping, Sequence
from functools import cache
from pathlib import Path
from typing import NamedTuple

from numbench.records import Status
from numbench.reporting.entries import MeasuredRun
from numbench.scoring import TaskSummary
from numbench.study_import import StudyFile
from numbench.tasks import TASKS

_EARLIER = Path(__file__).parent / "earlier_scores.csv"
_STATUSES: tuple[Status, ...] = ("ok", "unparseable", "empty", "truncated", "error")
_SMALLEST_CHANGE = 5e-5

FileDigests = Mapping[tuple[str, str, str], str]
"""(Task, model, effort) of a response file → its SHA-256."""


class ScoreChange(NamedTuple):
    """A mean of a task that moved.

    measure: `log_smape` or `exact_match`, in percent, or `tokens`; `statuses` if no mean moved.
    before, after: None for `statuses`.
    by_counting: effect, in the measure's unit, of failed requests that no longer count as wrong
        answers, and of token counts that became known.
    by_parsing: effect of answers that are read differently.
    """

    model: str
    reasoning: str
    task: str
    measure: str
    before: float | None
    after: float | None
    by_counting: float | None
    by_parsing: float | None
    reason: str


class _Earlier(NamedTuple):
    """The earlier results of a task in one configuration."""

    counted: int
    statuses: dict[Status, int]
    values: dict[str, float]
    tokens_unknown: int


def file_digest_key(source: StudyFile) -> tuple[str, str, str]:
    """Return the key of a response file in `FileDigests`."""
    return source.task, str(source.model), str(source.effort)


def score_changes(runs: Sequence[MeasuredRun], digests: FileDigests) -> list[ScoreChange]:
    """Return every changed mean of the runs by exact scoring, in the order of runs and tasks."""
    return [
        change for run in runs for task in run.cells for change in _task_changes(run, task, digests)
    ]


@cache
def _earlier_results() -> dict[str, _Earlier]:
    """Return the earlier results by the SHA-256 of the file of responses."""
    with _EARLIER.open(encoding="utf-8", newline="") as file:
        return {
            row["sha256"]: _Earlier(
                int(row["n"]),
                {status: int(row.get(status) or 0) for status in _STATUSES},
                {
                    measure: float(row[measure])
                    for measure in ("log_smape", "exact_match", "tokens")
                    if row[measure]
                },
                int(row["tokens_unknown"]),
            )
            for row in csv.DictReader(file)
        }


def _task_changes(run: MeasuredRun, task: str, digests: FileDigests) -> Iterator[ScoreChange]:
    settings = run.scored.info.settings
    model = str(settings.get("served_model")).replace("/", "__", 1)
    digest = digests.get((task, model, str(settings.get("effort"))))
    earlier = _earlier_results().get(digest or "")
    if earlier is None:
        return
    cell = run.cells[task]
    row = (run.entry.name, run.entry.reasoning, task)
    changes = []
    for measure, after in _means(task, cell).items():
        before = earlier.values.get(measure)
        if before is None or abs(after - before) < _SMALLEST_CHANGE:
            continue
        by_counting = after - before
        if measure != "tokens":
            # The score if the requests that now count as failed were still wrong answers.
            by_counting = after - after * cell.counted / earlier.counted
        by_parsing = after - before - by_counting
        reason = _reason(cell, earlier, is_parsed_differently=abs(by_parsing) >= _SMALLEST_CHANGE)
        changes.append(ScoreChange(*row, measure, before, after, by_counting, by_parsing, reason))
    yield from changes
    if not changes and (reason := _reason(cell, earlier)):
        yield ScoreChange(*row, "statuses", None, None, None, None, reason)


def _means(task: str, cell: TaskSummary) -> dict[str, float]:
    scores = {"exact_match": cell.exact_match, "tokens": cell.tokens}
    if TASKS[task].metric == "log_smape":
        scores = {"log_smape": cell.score, **scores}
    return {measure: value for measure, value in scores.items() if value is not None}


def _reason(cell: TaskSummary, earlier: _Earlier, is_parsed_differently: bool = False) -> str:
    """Return what changed among the responses of a task; empty if nothing did."""
    changes = {
        status: cell.statuses.get(status, 0) - earlier.statuses[status] for status in _STATUSES
    }
    reasons = []
    if failed := changes["error"]:
        reasons.append(f"{_count(failed, 'failed request')} no longer counted as wrong")
    if truncated := changes["truncated"]:
        reasons.append(f"{_count(truncated, 'response')} truncated instead of unreadable or empty")
    if known := earlier.tokens_unknown - cell.tokens_unknown - failed:
        reasons.append(f"{_count(known, 'token count')} more known")
    if changes["ok"] > 0:
        reasons.append(f"{_count(changes['ok'], 'more answer')} read")
    elif changes["ok"] < 0:
        reasons.append(f"{_count(-changes['ok'], 'answer')} no longer read")
    elif is_parsed_differently:
        reasons.append("answers read differently")
    return "; ".join(reasons)


def _count(count: int, noun: str) -> str:
    return f"{count} {noun}" if count == 1 else f"{count} {noun}s"
