"""Measure how well language models compute with numbers, and how many tokens that takes.

The names listed in `__all__` are the public API; `docs/reference.md` shows how to use them.
Everything else in the package is internal and may change without notice. Names load on first
use, so that `import numbench` stays fast.
"""

from __future__ import annotations

import sys
from importlib import import_module
from types import ModuleType
from typing import TYPE_CHECKING

from numbench._version import __version__

if TYPE_CHECKING:
    from numbench.api import (
        arun,
        audit,
        compare,
        generate,
        load_dataset,
        load_horizons,
        load_scores,
        measure_horizons,
        merge,
        plan,
        plan_precision,
        report,
        run,
        score,
        show,
    )
    from numbench.dataset.store import Dataset
    from numbench.errors import BadInput, NumbenchError
    from numbench.horizon.estimate import TaskHorizon
    from numbench.journal_merge import MergedRun
    from numbench.records import (
        Completion,
        Difficulty,
        Failure,
        Item,
        Manifest,
        Response,
        RunInfo,
        Score,
        Usage,
    )
    from numbench.reporting.precision_plan import PrecisionPlan
    from numbench.runner import Plan, RunReport
    from numbench.scoring import ScoredRun
    from numbench.tasks import PAPER_TASKS, TASKS, Task, TaskPrompts

__all__ = [
    "PAPER_TASKS",
    "TASKS",
    "BadInput",
    "Completion",
    "Dataset",
    "Difficulty",
    "Failure",
    "Item",
    "Manifest",
    "MergedRun",
    "NumbenchError",
    "Plan",
    "PrecisionPlan",
    "Response",
    "RunInfo",
    "RunReport",
    "Score",
    "ScoredRun",
    "Task",
    "TaskHorizon",
    "TaskPrompts",
    "Usage",
    "__version__",
    "arun",
    "audit",
    "compare",
    "generate",
    "load_dataset",
    "load_horizons",
    "load_scores",
    "measure_horizons",
    "merge",
    "plan",
    "plan_precision",
    "report",
    "run",
    "score",
    "show",
]

_MODULES = {
    "numbench.dataset.store": ("Dataset",),
    "numbench.journal_merge": ("MergedRun",),
    "numbench.horizon.estimate": ("TaskHorizon",),
    "numbench.errors": ("BadInput", "NumbenchError"),
    "numbench.records": (
        "Completion",
        "Difficulty",
        "Failure",
        "Item",
        "Manifest",
        "Response",
        "RunInfo",
        "Score",
        "Usage",
    ),
    "numbench.reporting.precision_plan": ("PrecisionPlan",),
    "numbench.runner": ("Plan", "RunReport"),
    "numbench.scoring": ("ScoredRun",),
    "numbench.tasks": ("PAPER_TASKS", "TASKS", "Task", "TaskPrompts"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in __all__:
        raise AttributeError(f"module 'numbench' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF.get(name, "numbench.api")), name)
    globals()[name] = value
    return value


class _Package(ModuleType):
    """Keeps a public function when a subpackage of the same name is imported: `report`."""

    def __setattr__(self, name: str, value: object) -> None:
        if name not in __all__ or not isinstance(value, ModuleType):
            super().__setattr__(name, value)


sys.modules[__name__].__class__ = _Package


def __dir__() -> list[str]:
    return sorted(__all__)
