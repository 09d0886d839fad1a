"""Running models on datasets: specifications, plans, costs, scheduling and progress.

Names load on first use: the command line reads the options of `RunSpec`, and nothing else.
"""

# ruff: noqa: I001 - a module is named once
from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numbench.runner.execution import arun as arun, run as run
    from numbench.runner.planning import Plan as Plan, plan as plan
    from numbench.runner.progress import RunReport as RunReport
    from numbench.runner.active_run import (
        CostLimitReached as CostLimitReached,
        RunInterrupted as RunInterrupted,
        TimeLimitReached as TimeLimitReached,
    )
    from numbench.runner.spec import HorizonSpec as HorizonSpec, RunSpec as RunSpec

_MODULES = {
    "execution": "arun run",
    "planning": "Plan plan",
    "progress": "RunReport",
    "active_run": "CostLimitReached RunInterrupted TimeLimitReached",
    "spec": "HorizonSpec RunSpec",
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names.split()}

__all__ = sorted(_MODULE_OF)


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
