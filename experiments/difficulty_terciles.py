"""Scores of a run by terciles of difficulty, per task."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from msgspec import Struct

from experiments.results_store import ScoreEstimate
from numbench.scoring import ScoredItem, ScoredRun, headline_score
from numbench.stats.intervals import score_interval
from numbench.stats.rank_statistics import quantile_bins
from numbench.tasks import TASKS


class DifficultyTercile(Struct, frozen=True):
    """Items of a task with similar difficulty δ (base 10), and their score in percent.

    chance: mean chance accuracy over these items in percent, None if answers cannot be guessed.
    """

    items: int
    easiest: int
    hardest: int
    score: ScoreEstimate
    chance: float | None


def score_by_tercile(run: ScoredRun, tasks: Sequence[str]) -> dict[str, list[DifficultyTercile]]:
    """Return the scores of three parts of about equal size per task, easiest first.

    Items of the same difficulty are in the same part. Scores are in the task's headline metric.
    """
    return {task: _terciles_of_task(task, run.rows[task]) for task in tasks}


def _terciles_of_task(task: str, rows: Sequence[ScoredItem]) -> list[DifficultyTercile]:
    difficulty = np.array([row.item.difficulty.base10 for row in rows])
    bins = quantile_bins(difficulty.astype(np.float64), 3)
    return [
        _score_tercile(task, [rows[index] for index in np.flatnonzero(bins == number).tolist()])
        for number in range(int(bins.max()) + 1)
    ]


def _score_tercile(task: str, rows: Sequence[ScoredItem]) -> DifficultyTercile:
    scores = np.array([headline_score(task, row.score) for row in rows])
    low, high = score_interval(scores, maximum=1.0)
    chance_accuracy = TASKS[task].chance_accuracy
    chance = float(np.mean([chance_accuracy(len(row.item.operands)) for row in rows]))
    levels = [row.item.difficulty.base10 for row in rows]
    return DifficultyTercile(
        items=len(rows),
        easiest=min(levels),
        hardest=max(levels),
        score=ScoreEstimate(100 * float(scores.mean()), 100 * low, 100 * high),
        chance=100 * chance or None,
    )
