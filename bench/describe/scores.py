"""Scores of runs against the difficulty of the items that they answer, as columns."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

import numpy as np

from bench.describe.ranks import Floats
from bench.errors import BadInput
from bench.journal import find_runs
from bench.records import Difficulty
from bench.report.measured import Measured, measure
from bench.scoring import headline, score_run
from bench.scoring.run import counted_rows
from bench.tasks import TASKS

POOLED = "all models, mean"


class Series(NamedTuple):
    """One task of one run, or of the mean over the runs.

    score: headline score of each item, 0 … 100; base10, base2: its difficulty; all of shape
    (items,).
    """

    model: str
    reasoning: str
    score: Floats
    base10: Floats
    base2: Floats


class TaskScores(NamedTuple):
    """The runs of a task, and their mean per item where several of them share items."""

    task: str
    runs: tuple[Series, ...]
    pooled: Series | None


def read_scores(runs: Sequence[Path]) -> list[TaskScores]:
    """Scores of the runs in or below the given folders, exact protocol, per task.

    Items without an answer to judge are left out; the mean over the runs takes the items that
    all of a task's runs answered. BadInput where there is no run or no answer.
    """
    folders = dict.fromkeys(folder for path in runs for folder in find_runs([path]))
    measured = measure([score_run(folder, "exact") for folder in folders])
    found = [scores for task in TASKS if (scores := _of_task(task, measured)) is not None]
    if not found:
        places = ", ".join(str(path) for path in runs) or "no folder given"
        raise BadInput(f"{places}: no scored answers, so no difficulty to check")
    return found


def _of_task(task: str, measured: Sequence[Measured]) -> TaskScores | None:
    own = []
    for run in measured:
        if task not in run.run.rows:
            continue
        rows = counted_rows(run.run, task)
        if rows:
            scores = {row.item.id: 100 * headline(task, row.score) for row in rows}
            difficulties = {row.item.id: row.item.difficulty for row in rows}
            own.append((run, scores, difficulties))
    if not own:
        return None
    series = tuple(
        _series(run.entry.name, run.entry.reasoning, scores, difficulties)
        for run, scores, difficulties in own
    )
    _, first, difficulties = own[0]
    means = {
        item: sum(scores[item] for _, scores, _ in own) / len(own)
        for item in first
        if all(item in scores for _, scores, _ in own)
    }
    pooled = _series(POOLED, "", means, difficulties) if means and len(own) > 1 else None
    return TaskScores(task, series, pooled)


def _series(
    model: str, reasoning: str, scores: dict[str, float], difficulties: dict[str, Difficulty]
) -> Series:
    return Series(
        model,
        reasoning,
        np.array(list(scores.values())),
        np.array([float(difficulties[item].base10) for item in scores]),
        np.array([float(difficulties[item].base2) for item in scores]),
    )
