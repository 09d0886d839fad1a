"""The progress of a horizon measurement: a table on a terminal, and a line in a log."""

from __future__ import annotations

from typing import TYPE_CHECKING

from numbench.horizon.sizes import size_text
from numbench.horizon.stopping import StopReason
from numbench.progress_display import NO_VALUE, progress_table
from numbench.runner.progress import HorizonProgress, RunProgress, TaskProgress
from numbench.tasks import TASKS

if TYPE_CHECKING:
    from rich.table import Table

_WIDE = 72
"""Columns of a terminal that shows all columns of the table."""

_STOP_TEXTS: dict[StopReason | None, str] = {
    None: "",
    "precision": "precise",
    "items": "--max-items",
    "above": "passed all",
    "below": "passed none",
    "exhausted": "no more",
}


def measurement_table(progress: RunProgress, width: int, shows_tasks: bool = True) -> Table:
    """Return a row per task with the estimate so far; one row for all on a low terminal."""
    table, is_wide = progress_table(width), width >= _WIDE
    for name in ("Task", "h50", "95 % interval", "Items", "Right"):
        table.add_column(name, justify="left" if name == "Task" else "right", no_wrap=True)
    if is_wide:
        table.add_column("Tokens/item", justify="right", no_wrap=True)
        table.add_column("State", no_wrap=True)
    counts = {task.task: task for task in progress.tasks}
    for horizon in progress.horizons if shows_tasks else ():
        task = counts.get(horizon.task, TaskProgress(horizon.task, 0))
        row = [*_estimate(horizon, task), *_counts(task), _STOP_TEXTS[horizon.stop]]
        table.add_row(TASKS[horizon.task].display, *row[: None if is_wide else 4])
    row = ["", "", *_counts(progress.overall)]
    table.add_row("All", *row[: None if is_wide else 4], style="bold")
    return table


def complete_tasks(progress: RunProgress) -> str:
    """Return how many tasks are complete, such as `3 of 12 tasks complete`."""
    complete = sum(horizon.stop is not None for horizon in progress.horizons)
    return f"{complete} of {len(progress.horizons)} tasks complete"


def measurement_counts(progress: RunProgress) -> list[str]:
    """Return how far a measurement is, the most important first."""
    overall = progress.overall
    parts = [complete_tasks(progress), f"{overall.answered:,} answered"]
    if overall.scored:
        parts.append(f"{overall.correct:,} correct")
    return parts


def _estimate(horizon: HorizonProgress, task: TaskProgress) -> list[str]:
    if not task.answered:
        return [NO_VALUE, NO_VALUE]
    value, low, high = (size_text(size, horizon.smallest, horizon.largest) for size in horizon.h50)
    return [value, f"[{low}, {high}]"]


def _counts(task: TaskProgress) -> list[str]:
    tokens = task.tokens_per_answer
    return [
        f"{task.answered:,}",
        f"{task.correct:,}",
        NO_VALUE if tokens is None else f"{tokens:,.0f}",
    ]
