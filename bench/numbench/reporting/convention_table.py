"""Scores of tasks with several conventions: by the task's own, and with every one accepted."""

from __future__ import annotations

from collections.abc import Sequence
from statistics import fmean
from typing import NamedTuple

import numpy as np

from numbench.reporting.entries import MeasuredRun
from numbench.reporting.table_model import (
    EXACT_MATCH,
    LOG_SMAPE,
    Estimate,
    format_estimate,
)
from numbench.scoring.conventions import ConventionScore, score_with_conventions
from numbench.scoring.scored_run import counted_rows
from numbench.stats.intervals import bootstrap_means
from numbench.tasks import TASKS

CONVENTIONS_TITLE = "Conventions"
CONVENTIONS_CAPTION = (
    "Tasks whose questions do not state a convention, such as the population or the sample "
    "deviation: the score by the definition of the task, and the score if the answer by the other "
    "convention were accepted too (for every answer the better of the two scores). n: counted "
    "items; followed: wrong answers within 0.1 % of the answer by the other convention."
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
CONVENTIONS_TEXT_COLUMNS = 4
MAX_DIFFERENCE = 2.0
"""Difference of the two log-sMAPE in points above which a report warns."""


class ConventionCell(NamedTuple):
    """A task with conventions in one run.

    counted: items included in the means. followed: wrong answers by another convention.
    log_smape, exact_match: in percent, with every convention accepted.
    """

    run: MeasuredRun
    task: str
    counted: int
    followed: int
    log_smape: Estimate
    exact_match: Estimate

    @property
    def difference(self) -> float:
        """How many points of log-sMAPE the other conventions add."""
        return self.log_smape.value - self.run.entry.tables[LOG_SMAPE.name][self.task].value


def convention_cells(runs: Sequence[MeasuredRun]) -> list[ConventionCell]:
    """Return a cell per run and task with conventions and counted items; none under `paper`."""
    scores: dict[tuple[int, str], list[list[ConventionScore]]] = {}
    for index, run in enumerate(runs):
        for task in run.cells:
            by_item = _scores_by_item(run, task)
            if by_item:
                scores[index, task] = by_item
    columns = [_item_means(items) for items in scores.values()]
    intervals = iter(bootstrap_means([column for pair in columns for column in pair]))
    return [
        ConventionCell(
            runs[index],
            task,
            sum(map(len, items)),
            sum(score.follows for item in items for score in item),
            *(Estimate(float(column.mean()), *next(intervals)) for column in pair),
        )
        for ((index, task), items), pair in zip(scores.items(), columns, strict=True)
    ]


def _scores_by_item(run: MeasuredRun, task: str) -> list[list[ConventionScore]]:
    """Return the scores of every counted item of a task, empty if it has no conventions."""
    if run.scored.protocol == "paper" or not TASKS[task].conventions:
        return []
    by_item: dict[str, list[ConventionScore]] = {}
    for row in counted_rows(run.scored, task):
        by_item.setdefault(row.item.id, []).append(score_with_conventions(row.item, row.score))
    return list(by_item.values())


def _item_means(items: Sequence[Sequence[ConventionScore]]) -> tuple[np.ndarray, np.ndarray]:
    """Return the mean log-sMAPE and exact match of each item, 0 … 100."""
    return (
        np.array([100 * fmean(score.log_smape for score in item) for item in items]),
        np.array([100 * fmean(score.exact_match for score in item) for item in items]),
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


def convention_warnings(cells: Sequence[ConventionCell]) -> list[str]:
    """Return a line for every score that depends on a convention that the question leaves open."""
    return [
        f"{cell.run.label}: {TASKS[cell.task].display} depends on a convention: log-sMAPE "
        f"{cell.log_smape.value - cell.difference:.1f}, and {cell.log_smape.value:.1f} if the "
        f"{' or '.join(convention.display for convention in TASKS[cell.task].conventions)} is "
        f"accepted too ({cell.followed} of {cell.counted} answers are within 0.1 % of it)."
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
