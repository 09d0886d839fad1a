"""Scores of runs on one dataset, item beside item, ready to be paired."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench.report.layout import LOG_SMAPE
from bench.scoring import ScoredRun, headline
from bench.scoring.run import counted_rows
from bench.stats.draws import Matrix

TASK_ORDER = tuple(task for _, task in LOG_SMAPE.columns)


class TaskScores(NamedTuple):
    """Scores in percent of shape (items, runs), NaN where an item does not count for a run.

    An item's row is its place in the dataset. `headline` is the task's headline metric,
    `matches` its exact match.
    """

    headline: Matrix
    matches: Matrix


def same_dataset(runs: Sequence[ScoredRun]) -> list[list[int]]:
    """The places of runs that answer the same dataset, in order of first appearance."""
    groups: dict[str, list[int]] = {}
    for place, run in enumerate(runs):
        groups.setdefault(run.dataset.manifest.sha256, []).append(place)
    return list(groups.values())


def task_scores(runs: Sequence[ScoredRun]) -> dict[str, TaskScores]:
    """Task → scores of runs on one dataset, for each task that one of them was asked."""
    return {
        task: _scores(task, runs) for task in TASK_ORDER if any(task in run.rows for run in runs)
    }


def _scores(task: str, runs: Sequence[ScoredRun]) -> TaskScores:
    items = max(len(run.rows.get(task, ())) for run in runs)
    found = TaskScores(np.full((items, len(runs)), np.nan), np.full((items, len(runs)), np.nan))
    for column, run in enumerate(runs):
        if task not in run.rows:
            continue
        # A run was asked the first items of its dataset, so a place is the same item in all.
        counted = {id(row) for row in counted_rows(run, task)}
        for place, row in enumerate(run.rows[task]):
            if id(row) in counted:
                found.headline[place, column] = 100 * headline(task, row.score)
                found.matches[place, column] = 100 * row.score.exact_match
    return found
