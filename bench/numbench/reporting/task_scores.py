"""Scores as arrays: per task with difficulties for figures, and as matrices for comparisons."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import TYPE_CHECKING, NamedTuple

import numpy as np

from numbench.dataset.settings import strata_share_per_item
from numbench.records import Difficulty
from numbench.reporting.table_model import LOG_SMAPE
from numbench.scoring import ScoredItem, ScoredRun, headline_percent
from numbench.scoring.scored_run import counted_rows, item_groups, item_means
from numbench.stats.design import Matrix
from numbench.stats.rank_statistics import FloatArray

if TYPE_CHECKING:
    from numbench.reporting.entries import MeasuredRun

POOLED_LABEL = "all models, mean"
POOLED_INDEX = -1
"""The `run_index` of the mean over the runs."""


class RunScores(NamedTuple):
    """One task of one run, or of the mean over the runs.

    score: headline score of each item, the mean over its samples, 0 … 100; base10, base2: its
    difficulty; all of shape (items,). run_index: index of the run, `POOLED_INDEX` for the mean.
    share_per_item: as in `Design`, 0 if the items are not stratified by difficulty.
    """

    model: str
    reasoning: str
    score: FloatArray
    base10: FloatArray
    base2: FloatArray
    run_index: int = 0
    share_per_item: float = 0.0


class TaskScores(NamedTuple):
    """The runs of a task, and their mean per item if several of them share items."""

    task: str
    runs: tuple[RunScores, ...]
    pooled: RunScores | None


def task_scores(task: str, measured: Sequence[MeasuredRun]) -> TaskScores | None:
    """Return the counted items of a task; None if no run has any.

    The mean over the runs uses the items that all runs of the task answered.
    """
    by_run = []
    for index, run in enumerate(measured):
        rows = counted_rows(run.scored, task) if task in run.scored.rows else []
        if rows:
            groups = item_groups(rows)
            items = [group[0].item for group in groups]
            values = headline_column(task, groups).tolist()
            scores = {item.id: value for item, value in zip(items, values, strict=True)}
            difficulties = {item.id: item.difficulty for item in items}
            by_run.append((index, run, scores, difficulties))
    if not by_run:
        return None
    runs = tuple(
        _run_scores(run.entry.name, run.entry.reasoning, scores, difficulties, index)._replace(
            share_per_item=strata_share_per_item(run.scored.dataset.manifest)
        )
        for index, run, scores, difficulties in by_run
    )
    _, _, first, difficulties = by_run[0]
    means = {
        item: sum(scores[item] for _, _, scores, _ in by_run) / len(by_run)
        for item in first
        if all(item in scores for _, _, scores, _ in by_run)
    }
    pooled = (
        _run_scores(POOLED_LABEL, "", means, difficulties, POOLED_INDEX)
        if means and len(by_run) > 1
        else None
    )
    return TaskScores(task, runs, pooled)


def select_runs(scores: Sequence[TaskScores], indices: Collection[int]) -> list[TaskScores]:
    """Return the tasks with only the runs at `indices`, without tasks that none of them has."""
    selected = [
        task._replace(runs=tuple(run for run in task.runs if run.run_index in indices))
        for task in scores
    ]
    return [task for task in selected if task.runs]


def _run_scores(
    model: str,
    reasoning: str,
    scores: dict[str, float],
    difficulties: dict[str, Difficulty],
    index: int,
) -> RunScores:
    return RunScores(
        model,
        reasoning,
        np.array(list(scores.values())),
        np.array([float(difficulties[item].base10) for item in scores]),
        np.array([float(difficulties[item].base2) for item in scores]),
        index,
    )


def headline_column(task: str, items: Sequence[list[ScoredItem]]) -> FloatArray:
    """Return the headline score of each item in percent, the mean over its samples."""
    return np.array(item_means(items, lambda row: headline_percent(task, row.score)))


class ScoreMatrices(NamedTuple):
    """Scores in percent of shape (items, runs), NaN if an item does not count for a run.

    A score is the mean over the samples of the item that count. The row of an item is its index in
    the dataset. headline: the task's headline metric. matches: exact match.
    """

    headline: Matrix
    matches: Matrix


def group_by_dataset(runs: Sequence[ScoredRun]) -> list[list[int]]:
    """Return the indices of the runs, grouped by dataset in order of first appearance."""
    groups: dict[str, list[int]] = {}
    for index, run in enumerate(runs):
        groups.setdefault(run.dataset.manifest.sha256, []).append(index)
    return list(groups.values())


def score_matrices(runs: Sequence[ScoredRun]) -> dict[str, ScoreMatrices]:
    """Return task → scores of runs on one dataset, for each task that one of them includes.

    The paper's tasks are first, in the order of its tables.
    """
    tasks = dict.fromkeys(task for run in runs for task in run.rows)
    columns = LOG_SMAPE.with_tasks(tasks).columns
    return {task: _score_matrices(task, runs) for _, task in columns if task in tasks}


def _score_matrices(task: str, runs: Sequence[ScoredRun]) -> ScoreMatrices:
    items = runs[0].dataset.by_task[task]
    index_of = {item.id: index for index, item in enumerate(items)}
    last = max(
        (index_of[row.item.id] for run in runs for row in run.rows.get(task, ())), default=-1
    )
    shape = (last + 1, len(runs))
    matrices = ScoreMatrices(np.full(shape, np.nan), np.full(shape, np.nan))
    for column, run in enumerate(runs):
        if task not in run.rows:
            continue
        counted = item_groups(counted_rows(run, task))
        rows = [index_of[samples[0].item.id] for samples in counted]
        matrices.headline[rows, column] = headline_column(task, counted)
        matrices.matches[rows, column] = item_means(
            counted, lambda row: 100 * row.score.exact_match
        )
    return matrices
