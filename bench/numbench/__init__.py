"""Measure how well language models compute with numbers, and how many tokens that takes.

The names listed in `__all__` are the public API; `docs/reference.md` shows how to use them.
Everything else in the package is internal and may change without notice. Names load on first
use, so that `import numbench` stays fast.
"""

# ruff: noqa: I001 - a module is named once
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

from numbench._version import __version__ as __version__

if TYPE_CHECKING:
    from numbench.api import (
        arun as arun,
        audit as audit,
        compare as compare,
        export as export,
        generate as generate,
        import_logs as import_logs,
        load_dataset as load_dataset,
        load_horizons as load_horizons,
        load_scores as load_scores,
        measure_horizons as measure_horizons,
        merge as merge,
        plan as plan,
        report as report,
        run as run,
        run_memory_test as run_memory_test,
        score as score,
        show as show,
        verify as verify,
        write_leaderboard as write_leaderboard,
    )
    from numbench.dataset.store import Dataset as Dataset
    from numbench.errors import BadInput as BadInput, NumbenchError as NumbenchError
    from numbench.horizon.estimate import TaskHorizon as TaskHorizon
    from numbench.records import (
        Completion as Completion,
        Difficulty as Difficulty,
        Failure as Failure,
        Item as Item,
        Manifest as Manifest,
        Response as Response,
        RunInfo as RunInfo,
        Score as Score,
        Usage as Usage,
    )
    from numbench.runner.active_run import (
        CostLimitReached as CostLimitReached,
        RunInterrupted as RunInterrupted,
        TimeLimitReached as TimeLimitReached,
    )
    from numbench.runner.planning import Plan as Plan
    from numbench.runner.progress import RunReport as RunReport
    from numbench.scoring import ScoredRun as ScoredRun
    from numbench.tasks import (
        PAPER_TASKS as PAPER_TASKS,
        TASKS as TASKS,
        Task as Task,
        TaskPrompts as TaskPrompts,
    )

_NAMES = {
    "numbench.api": "arun audit compare export generate import_logs load_dataset load_horizons"
    " load_scores measure_horizons merge plan report run run_memory_test score show verify"
    " write_leaderboard",
    "numbench.dataset.store": "Dataset",
    "numbench.errors": "BadInput NumbenchError",
    "numbench.horizon.estimate": "TaskHorizon",
    "numbench.records": "Completion Difficulty Failure Item Manifest Response RunInfo Score Usage",
    "numbench.runner.active_run": "CostLimitReached RunInterrupted TimeLimitReached",
    "numbench.runner.planning": "Plan",
    "numbench.runner.progress": "RunReport",
    "numbench.scoring": "ScoredRun",
    "numbench.tasks": "PAPER_TASKS TASKS Task TaskPrompts",
}
"""The modules of the public names."""

_MODULE_OF = {name: module for module, names in _NAMES.items() for name in names.split()}

__all__ = sorted(("__version__", *_MODULE_OF))


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module 'numbench' has no attribute {name!r}")
    value = getattr(import_module(_MODULE_OF[name]), name)
    globals()[name] = value
    return value


def __dir__() -> list[str]:
    return __all__
