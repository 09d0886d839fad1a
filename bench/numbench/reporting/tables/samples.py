"""Runs with several samples per question: pass@k."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence

import numpy as np

from numbench.reporting.data import ReportData
from numbench.reporting.declarations import Column
from numbench.reporting.tables.model import Cell, Columns, Row, declared_table, table_rows, task_row
from numbench.scoring import ScoredRun
from numbench.scoring.scored_run import counted_rows
from numbench.stats.design import Matrix

_LARGE_K = (20, 50, 100, 200, 500, 1000)


def _columns(declared: Columns, data: ReportData) -> Columns:
    """Return columns for every k up to 10, then fewer, and the largest."""
    most = max(run.scored.info.samples for run in data.runs)
    shown = sorted({*range(1, min(most, 10) + 1), *(k for k in _LARGE_K if k < most), most})
    return (*declared, *(Column(f"pass_at_{k}", f"pass@{k}", ".1f") for k in shown))


def _rows(data: ReportData) -> Iterator[Row]:
    for index, run in enumerate(data.runs):
        if run.scored.info.samples > 1:
            for task in run.tasks:
                yield task_row(data, index, task, _cells(run.scored, task))


def _cells(run: ScoredRun, task: str) -> dict[str, Cell]:
    """Return the statistics of a task, with the percentage for every k."""
    rows, samples = counted_rows(run, task), run.info.samples
    # NaN for a sample that does not count.
    correct = np.full((len(rows.items), samples), np.nan)
    correct[rows.item_numbers, rows.columns["sample"]] = rows.columns["exact_match"]
    complete = int((~np.isnan(correct).any(axis=1)).sum())
    cells: dict[str, Cell] = {"questions": len(correct), "samples": samples, "complete": complete}
    for k in range(1, samples + 1):
        share = pass_at_k(correct, k)
        cells[f"pass_at_{k}"] = None if share is None else 100 * share
    return cells


def pass_at_k(correct: Matrix, k: int) -> float | None:
    """Return the probability that at least one of `k` samples of an item is correct, unbiased.

    correct: 1 or 0. The mean over the items with at least `k` samples; None if there is none. Of
    the n samples of an item c are correct, and 1 - C(n - c, k) / C(n, k) of all choices of k
    samples contain one of these.

    Source: M. Chen et al., Evaluating Large Language Models Trained on Code (2021), section 2.1.
    """
    counts = np.count_nonzero(~np.isnan(correct), axis=1).tolist()
    correct_counts = np.nansum(correct, axis=1).astype(int).tolist()
    chances = [
        1 - math.comb(n - c, k) / math.comb(n, k)
        for n, c in zip(counts, correct_counts, strict=True)
        if n >= k
    ]
    return math.fsum(chances) / len(chances) if chances else None


def _notes(data: ReportData) -> Sequence[str]:
    if all(row.cells["complete"] == row.cells["questions"] for row in table_rows(TABLE, data)):
        return ()
    return [TABLE.text("missing")]


TABLE = declared_table("samples", _rows, _notes, _columns)
