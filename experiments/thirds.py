"""Scores of the easiest, the middle and the hardest third of the items of a task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from bench.report.intervals import bootstrap_means, wilson
from bench.report.ranks import quantile_bins
from bench.scoring import Row, ScoredRun, headline
from bench.tasks import TASKS
from bench.tasks.guessing import guessing
from experiments.kept import Bounded


class Third(Struct, frozen=True):
    """Items of a task of like difficulty δ (base 10), and their score in percent.

    chance: the mean over these items of what guessing gets, None where an answer is computed.
    """

    items: int
    easiest: int
    hardest: int
    score: Bounded
    chance: float | None


def thirds(run: ScoredRun, tasks: Sequence[str]) -> dict[str, list[Third]]:
    """The items of each task in three parts of about equal size, easiest first.

    Items of one difficulty stay together. Scores are in the task's headline metric.
    """
    return {task: _of_task(task, run.rows[task]) for task in tasks}


def _of_task(task: str, rows: Sequence[Row]) -> list[Third]:
    difficulty = np.array([row.item.difficulty.base10 for row in rows])
    bins = quantile_bins(difficulty.astype(np.float64), 3)
    return [
        _third(task, [rows[place] for place in np.flatnonzero(bins == number).tolist()])
        for number in range(int(bins.max()) + 1)
    ]


def _third(task: str, rows: Sequence[Row]) -> Third:
    scores = np.array([headline(task, row.score) for row in rows])
    if TASKS[task].metric == "exact_match":
        low, high = wilson(int(scores.sum()), len(scores))
    else:
        ((low, high),) = bootstrap_means([scores])
    chance = float(np.mean([guessing(task, len(row.item.operands)) for row in rows]))
    levels = [row.item.difficulty.base10 for row in rows]
    return Third(
        items=len(rows),
        easiest=min(levels),
        hardest=max(levels),
        score=Bounded(100 * float(scores.mean()), 100 * low, 100 * high),
        chance=100 * chance or None,
    )
