"""Scores of the runs in some folders, task by task."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from bench.errors import BadInput
from bench.journal import find_runs
from bench.report.measured import measure
from bench.report.series import TaskScores, task_scores
from bench.scoring import score_run
from bench.tasks import TASKS


def read_scores(runs: Sequence[Path]) -> list[TaskScores]:
    """Scores of the runs in or below the given folders, exact protocol, per task.

    Items without an answer to judge are left out. BadInput where there is no run or no answer.
    """
    folders = dict.fromkeys(folder for path in runs for folder in find_runs([path]))
    measured = measure([score_run(folder, "exact") for folder in folders])
    found = [scores for task in TASKS if (scores := task_scores(task, measured)) is not None]
    if not found:
        places = ", ".join(str(path) for path in runs) or "no folder given"
        raise BadInput(f"{places}: no scored answers, so no difficulty to check")
    return found
