"""Scores of tasks with several conventions: by the task's own, and with every one accepted."""

from __future__ import annotations

from collections.abc import Callable, Sequence
from typing import TYPE_CHECKING, NamedTuple

from numbench.reporting.entries import MeasuredRun
from numbench.reporting.report_warnings import ReportWarning
from numbench.reporting.sampling_design import run_stratum, sample_mean, score_bounds
from numbench.reporting.score_tables import BOUNDS_NOTE
from numbench.reporting.table_model import (
    EXACT_MATCH,
    LOG_SMAPE,
    Estimate,
    RowGroup,
    format_estimate,
)
from numbench.reporting.table_spec import TableContent, TableSpec
from numbench.scoring.conventions import ConventionScore, score_with_conventions
from numbench.scoring.scored_run import counted_rows, item_groups
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from numbench.reporting.report_data import ReportData

CONVENTIONS_CAPTION = (
    "Tasks whose questions do not state a convention, such as the population or the sample "
    "deviation: the score by the definition of the task, and the score if the answer by the other "
    "convention were accepted too (for every answer the better of the two scores). n: counted "
    "items; followed: wrong answers within 0.1% of the answer by the other convention and closer "
    "to it than to the truth. They may have errors in later digits: the table of what wrong "
    "answers are equal to counts only those without an error in any digit that they give."
)
CONVENTIONS_HEADER = (
    "Model",
    "Reasoning",
    "Task",
    "Other convention",
    "n",
    "followed",
    "log-sMAPE",
    "log-sMAPE, either convention",
    "exact match",
    "exact match, either convention",
)
MAX_DIFFERENCE = 2.0
"""Difference of the two log-sMAPE in points above which a report warns."""


class ConventionCell(NamedTuple):
    """A task with conventions in one run.

    counted: items included in the means. answers: numbers read, with those of all samples.
    followed: those of them that are wrong and by another convention.
    log_smape, exact_match: in percent, with every convention accepted.
    """

    run: MeasuredRun
    task: str
    counted: int
    answers: int
    followed: int
    log_smape: Estimate
    exact_match: Estimate

    @property
    def difference(self) -> float:
        """How many points of log-sMAPE the other conventions add."""
        return self.log_smape.value - self.run.entry.tables[LOG_SMAPE.name][self.task].value


def convention_cells(runs: Sequence[MeasuredRun]) -> list[ConventionCell]:
    """Return a cell per run and task with conventions and counted items; none under `paper`."""
    cells = (_cell(run, task) for run in runs for task in run.cells if TASKS[task].conventions)
    return [cell for cell in cells if cell is not None]


def _cell(run: MeasuredRun, task: str) -> ConventionCell | None:
    groups = item_groups(counted_rows(run.scored, task))
    if run.scored.protocol == "paper" or not groups:
        return None
    scores = {
        (row.item.id, row.sample): score_with_conventions(row.item, row.score)
        for group in groups
        for row in group
    }

    def estimate(value: Callable[[ConventionScore], float]) -> Estimate:
        of_item = sample_mean(lambda row: 100 * value(scores[row.item.id, row.sample]))
        stratum = run_stratum(run.scored, task, of_item)
        return Estimate(float(stratum.values.mean()), *score_bounds([stratum]))

    return ConventionCell(
        run,
        task,
        len(groups),
        sum(row.score.status == "ok" for group in groups for row in group),
        sum(score.follows for score in scores.values()),
        estimate(lambda score: score.log_smape),
        estimate(lambda score: score.exact_match),
    )


def convention_rows(cells: Sequence[ConventionCell]) -> list[list[str]]:
    """Return one row per cell, for `CONVENTIONS_HEADER`."""
    return [
        [
            cell.run.entry.name,
            cell.run.entry.reasoning,
            TASKS[cell.task].display,
            ", ".join(convention.display for convention in TASKS[cell.task].conventions),
            str(cell.counted),
            str(cell.followed),
            format_estimate(LOG_SMAPE, cell.run.entry.tables[LOG_SMAPE.name].get(cell.task)),
            format_estimate(LOG_SMAPE, cell.log_smape),
            format_estimate(EXACT_MATCH, cell.run.entry.tables[EXACT_MATCH.name].get(cell.task)),
            format_estimate(EXACT_MATCH, cell.exact_match),
        ]
        for cell in cells
    ]


def convention_warnings(cells: Sequence[ConventionCell]) -> list[ReportWarning]:
    """Return a line for every score that depends on a convention that the question leaves open."""
    return [
        ReportWarning(
            f"{cell.run.label}: {TASKS[cell.task].display} depends on a convention: log-sMAPE "
            f"{cell.log_smape.value - cell.difference:.1f}, and {cell.log_smape.value:.1f} if the "
            f"{' or '.join(convention.display for convention in TASKS[cell.task].conventions)} is "
            f"accepted too ({cell.followed} of {cell.answers} answers are within 0.1% of it and "
            "closer to it than to the truth)."
        )
        for cell in cells
        if cell.difference > MAX_DIFFERENCE
    ]


def conventions_json(cells: Sequence[ConventionCell]) -> dict[str, dict[str, object]]:
    """Return task → further fields of the task in `report.json`, for the cells of one run."""
    return {
        cell.task: {
            "either_convention": {
                "followed": cell.followed,
                "log_smape": cell.log_smape._asdict(),
                "exact_match": cell.exact_match._asdict(),
            }
        }
        for cell in cells
    }


def _conventions(data: ReportData) -> TableContent | None:
    if not data.conventions:
        return None
    return TableContent(
        CONVENTIONS_HEADER,
        [RowGroup(data.heading, convention_rows(data.conventions))],
        text_columns=4,
        notes=[BOUNDS_NOTE],
    )


TABLES = (
    TableSpec(
        "conventions",
        "Conventions",
        CONVENTIONS_CAPTION,
        _conventions,
    ),
)
