"""Runs with several samples per question: pass@k."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Sequence

import numpy as np

from numbench.dataset.settings import strata_share_per_item
from numbench.reporting.data import ReportData
from numbench.reporting.tables.model import TASK_COLUMNS, Cell, Column, Row, Table, task_row
from numbench.reporting.values import make_stratum
from numbench.scoring import ScoredItem, ScoredRun, headline_percent
from numbench.scoring.scored_run import counted_rows, item_groups
from numbench.stats.design import Matrix
from numbench.stats.planning import ItemVariance, item_variance, pass_at_k

_LARGE_K = (20, 50, 100, 200, 500, 1000)


def _columns(data: ReportData) -> Sequence[Column]:
    """Return columns for every k up to 10, then fewer, and the largest."""
    most = max(run.scored.info.samples for run in data.runs if run.scored)
    shown = sorted({*range(1, min(most, 10) + 1), *(k for k in _LARGE_K if k < most), most})
    return (
        *TASK_COLUMNS,
        Column("questions", "Questions", "count"),
        Column("samples", "Samples", "count"),
        Column("complete", "Complete", "count"),
        *(Column(f"pass_at_{k}", f"pass@{k}", ".1f") for k in shown),
    )


def _rows(data: ReportData) -> Iterator[Row]:
    for index, run in enumerate(data.runs):
        if run.scored and run.scored.info.samples > 1:
            for task in run.tasks:
                yield task_row(data, index, task, _cells(run.scored, task))


def _cells(run: ScoredRun, task: str) -> dict[str, Cell]:
    """Return the statistics of a task, with the percentage for every k."""
    groups = item_groups(counted_rows(run, task))
    samples = run.info.samples
    correct = _matrix(run, groups, lambda row: float(row.score.exact_match))
    complete = sum(len(group) == samples for group in groups)
    cells: dict[str, Cell] = {"questions": len(groups), "samples": samples, "complete": complete}
    for k in range(1, samples + 1):
        share = pass_at_k(correct, k)
        cells[f"pass_at_{k}"] = None if share is None else 100 * share
    return cells


def run_variance(run: ScoredRun, task: str) -> ItemVariance:
    """Return the variance of the headline score in squared points; see `item_variance`."""
    groups = item_groups(counted_rows(run, task))
    scores = _matrix(run, groups, lambda row: headline_percent(task, row.score))
    difficulty = np.array([group[0].item.difficulty.base10 for group in groups], dtype=np.float64)
    share = strata_share_per_item(run.dataset.manifest)
    return item_variance(scores, make_stratum(task, scores, difficulty, (), share).design)


def _matrix(
    run: ScoredRun, groups: Sequence[list[ScoredItem]], value: Callable[[ScoredItem], float]
) -> Matrix:
    """Return values of shape (questions, samples), NaN for a sample that does not count."""
    matrix = np.full((len(groups), run.info.samples), np.nan)
    for number, group in enumerate(groups):
        for row in group:
            matrix[number, row.sample] = value(row)
    return matrix


def _notes(data: ReportData) -> Sequence[str]:
    if all(row.cells["complete"] == row.cells["questions"] for row in data.rows(TABLE)):
        return ()
    return (
        "Some samples are missing. pass@k is over the questions with at least k samples, so it may "
        "fall where k grows; numbench run with the same options requests the others.",
    )


TABLE = Table(
    "samples",
    "Repeated samples",
    "Runs with several samples per question. Complete: questions with all of them. pass@k: "
    "questions with a correct answer among k samples, the expected value over all choices of k "
    "samples, in percent.",
    _columns,
    _rows,
    _notes,
)
