"""Scores of runs beside the difficulty of the items that they answer, as columns per task."""

from __future__ import annotations

from collections.abc import Collection, Sequence
from typing import NamedTuple

import numpy as np

from bench.records import Difficulty
from bench.report.figures import run_label
from bench.report.intervals import Interval, wilson
from bench.report.measured import Measured
from bench.report.ranks import Floats
from bench.scoring import headline
from bench.scoring.run import counted_rows

POOLED = "all models, mean"
MEAN = -1
"""The place of the mean over the runs, which is none of theirs."""


class Series(NamedTuple):
    """One task of one run, or of the mean over the runs.

    score: headline score of each item, 0 … 100; base10, base2: its difficulty; all of shape
    (items,). place: which of the runs it is, `MEAN` for their mean.
    """

    model: str
    reasoning: str
    score: Floats
    base10: Floats
    base2: Floats
    place: int = 0

    @property
    def label(self) -> str:
        """The run's name in a legend."""
        return run_label(self.model, self.reasoning)


class TaskScores(NamedTuple):
    """The runs of a task, and their mean per item where several of them share items."""

    task: str
    runs: tuple[Series, ...]
    pooled: Series | None


def task_scores(task: str, measured: Sequence[Measured]) -> TaskScores | None:
    """The counted items of a task; None where no run has any.

    The mean over the runs takes the items that all of the task's runs answered.
    """
    own = []
    for place, run in enumerate(measured):
        rows = counted_rows(run.run, task) if task in run.run.rows else []
        if rows:
            scores = {row.item.id: 100 * headline(task, row.score) for row in rows}
            difficulties = {row.item.id: row.item.difficulty for row in rows}
            own.append((place, run, scores, difficulties))
    if not own:
        return None
    series = tuple(
        _series(run.entry.name, run.entry.reasoning, scores, difficulties, place)
        for place, run, scores, difficulties in own
    )
    _, _, first, difficulties = own[0]
    means = {
        item: sum(scores[item] for _, _, scores, _ in own) / len(own)
        for item in first
        if all(item in scores for _, _, scores, _ in own)
    }
    pooled = _series(POOLED, "", means, difficulties, MEAN) if means and len(own) > 1 else None
    return TaskScores(task, series, pooled)


def run_names(scores: Sequence[TaskScores]) -> dict[int, str]:
    """The label of each run that any of the tasks has, by its place."""
    return {s.place: s.label for t in scores for s in t.runs}


def some_runs(scores: Sequence[TaskScores], places: Collection[int]) -> list[TaskScores]:
    """The tasks with only the runs at `places`; a task that none of them answered is dropped."""
    kept = [t._replace(runs=tuple(s for s in t.runs if s.place in places)) for t in scores]
    return [of_task for of_task in kept if of_task.runs]


def _series(
    model: str,
    reasoning: str,
    scores: dict[str, float],
    difficulties: dict[str, Difficulty],
    place: int,
) -> Series:
    return Series(
        model,
        reasoning,
        np.array(list(scores.values())),
        np.array([float(difficulties[item].base10) for item in scores]),
        np.array([float(difficulties[item].base2) for item in scores]),
        place,
    )


def share_of_full(scores: Floats) -> Interval:
    """Wilson's bounds of the share of full scores (100), in percent."""
    share = wilson(int((scores == 100).sum()), scores.size)
    return Interval(100 * share.low, 100 * share.high)
