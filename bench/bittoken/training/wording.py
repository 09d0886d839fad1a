"""How figures of a training are told to people."""

from __future__ import annotations

from bench.screen import NONE
from bench.tasks import TASKS


def display_name(task: str) -> str:
    """A task's name as people read it."""
    return TASKS[task].display if task in TASKS else task.capitalize()


def short(count: float) -> str:
    """`812`, `41.3k`, `117M`, `1.25B`: three digits."""
    for size, unit in ((1e9, "B"), (1e6, "M"), (1e3, "k")):
        if count >= 0.9995 * size:
            return f"{count / size:.3g}{unit}"
    return f"{count:.3g}"


def percent(share: float | None) -> str:
    """`97.3%`, a dash where unknown."""
    return NONE if share is None else f"{share:.1%}"
