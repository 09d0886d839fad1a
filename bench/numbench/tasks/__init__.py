"""The tasks: those of the paper, scaled ones, forms, numbers in context, and those of plugins.

`numbench.tasks.base` shows a complete task. A task is registered in one place: one of
the groups, or in any other package an entry point in the group `numbench.tasks`.
"""

# ruff: noqa: I001 - a module is named once
from __future__ import annotations

from collections import UserDict
from collections.abc import MutableMapping
from difflib import get_close_matches
from functools import cached_property

from numbench.errors import BadInput, bad_input_at
from numbench.core.installation import load_plugins
from numbench.tasks.base import (
    Convention as Convention,
    SampledQuestion as SampledQuestion,
    SamplingSettings as SamplingSettings,
    Task as Task,
    TaskPrompts as TaskPrompts,
    check_task as check_task,
)
from numbench.tasks.context import CONTEXT_TASKS as CONTEXT_TASKS
from numbench.tasks.forms import FORM_TASKS as FORM_TASKS
from numbench.tasks.paper_tasks import PAPER_TASKS as PAPER_TASKS
from numbench.tasks.random_words import RandomWords as RandomWords
from numbench.tasks.scaled import SCALED_TASKS as SCALED_TASKS

ENTRY_POINTS = "numbench.tasks"

TASK_GROUPS = {
    "paper": PAPER_TASKS,
    "scaled": SCALED_TASKS,
    "forms": FORM_TASKS,
    "context": CONTEXT_TASKS,
}
"""The tasks of this package by the names of their groups."""


class _TaskRegistry(UserDict[str, Task]):
    """All tasks by name. Plugins are loaded on first use, so that they can import this package."""

    def __init__(self) -> None:
        """Create the registry without loading the plugins."""

    @cached_property
    def data(self) -> dict[str, Task]:  # type: ignore[override]
        """Load the tasks. Raises BadInput for a broken plugin."""
        tasks = {name: task for group in TASK_GROUPS.values() for name, task in group.items()}
        for name, task in load_plugins(ENTRY_POINTS, Task):
            source = f"plugin task {task.name!r} (entry point {name!r} in {ENTRY_POINTS})"
            with bad_input_at(source, ValueError):
                if task.name in tasks:
                    raise ValueError("a task of this name exists already; rename it")
                check_task(task)
            tasks[task.name] = task
        return tasks


TASKS: MutableMapping[str, Task] = _TaskRegistry()
"""All tasks by name: those of the paper, the scaled ones, then those of plugins."""


def selectable_names() -> tuple[str, ...]:
    """Return the names of groups and tasks."""
    return (*TASK_GROUPS, *TASKS)


def check_task_name(name: str) -> None:
    """Raise BadInput, with the nearest name if one is similar, if there is no task `name`."""
    if name in TASKS:
        return
    names = {task.display.casefold(): task.name for task in TASKS.values()}
    names |= {task: task for task in (*TASKS, *TASK_GROUPS)}
    if similar := get_close_matches(name.casefold(), names, n=1):
        raise BadInput(f"unknown task {name!r}; use {names[similar[0]]!r}")
    single = [task for task in TASKS if task not in FORM_TASKS]
    groups = ", ".join(TASK_GROUPS)
    raise BadInput(f"unknown task {name!r}; choose from {', '.join(single)}, {groups}, or all")
