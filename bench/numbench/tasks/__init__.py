"""The tasks: the nine of the paper, the scaled ones, and those of installed plugins.

`numbench.tasks.base` shows a complete task. A task is registered in one place: inside this
package in `_BUILT_IN`, in any other package as an entry point in the group `numbench.tasks`.
"""

from __future__ import annotations

from collections.abc import Iterator, MutableMapping
from difflib import get_close_matches
from functools import cached_property

from numbench.errors import BadInput
from numbench.plugins import load_plugins
from numbench.tasks.arithmetic import ADDITION, DIVISION, EXPONENTIATION, MEAN, MULTIPLICATION, STD
from numbench.tasks.base import Convention, SampledQuestion, SamplingSettings, Task, TaskPrompts
from numbench.tasks.comparison import INTERVAL, MINMAX, SORTING
from numbench.tasks.random_words import RandomWords
from numbench.tasks.scaled import SCALED_TASKS

PAPER_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        MINMAX,
        INTERVAL,
        SORTING,
        ADDITION,
        MULTIPLICATION,
        DIVISION,
        EXPONENTIATION,
        MEAN,
        STD,
    )
}
"""The nine tasks of the paper: the content of `v1`, and `all` of `numbench generate`."""

_BUILT_IN: tuple[Task, ...] = (*PAPER_TASKS.values(), *SCALED_TASKS.values())
"""The tasks of this package: those of the paper, then newer ones."""

ENTRY_POINTS = "numbench.tasks"


def _load_tasks() -> dict[str, Task]:
    """Return the built-in tasks, then those of plugins. Raises BadInput for a broken plugin."""
    tasks = {task.name: task for task in _BUILT_IN}
    for name, task in load_plugins(ENTRY_POINTS, Task):
        source = f"plugin task {task.name!r} (entry point {name!r} in {ENTRY_POINTS})"
        if task.name in tasks:
            raise BadInput(f"{source}: a task of this name exists already; rename it")
        if task.prompts is None:
            raise BadInput(f"{source}: Task.prompts is missing")
        tasks[task.name] = task
    return tasks


class _TaskRegistry(MutableMapping[str, Task]):
    """All tasks by name. Plugins are loaded on first use, so that they can import this package."""

    @cached_property
    def _tasks(self) -> dict[str, Task]:
        return _load_tasks()

    def __getitem__(self, name: str) -> Task:
        return self._tasks[name]

    def __setitem__(self, name: str, task: Task) -> None:
        self._tasks[name] = task

    def __delitem__(self, name: str) -> None:
        del self._tasks[name]

    def __iter__(self) -> Iterator[str]:
        return iter(self._tasks)

    def __len__(self) -> int:
        return len(self._tasks)


TASKS: MutableMapping[str, Task] = _TaskRegistry()
"""All tasks by name: the built-in ones, then those of plugins."""


def check_task_name(name: str) -> None:
    """Raise BadInput, with the nearest name if one is similar, if there is no task `name`."""
    if name in TASKS:
        return
    names = {task.display.casefold(): task.name for task in TASKS.values()}
    names |= {task: task for task in TASKS}
    if similar := get_close_matches(name.casefold(), names, n=1):
        raise BadInput(f"unknown task {name!r}; use {names[similar[0]]!r}")
    raise BadInput(f"unknown task {name!r}; choose from {', '.join(TASKS)}, or all")


__all__ = [
    "PAPER_TASKS",
    "SCALED_TASKS",
    "TASKS",
    "Convention",
    "RandomWords",
    "SampledQuestion",
    "SamplingSettings",
    "Task",
    "TaskPrompts",
    "check_task_name",
]
