"""Running models on datasets: specifications, plans, costs, scheduling and progress.

Names load on first use: the command line reads the options of `RunSpec`, and nothing else.
"""

from __future__ import annotations

from importlib import import_module
from typing import TYPE_CHECKING

if TYPE_CHECKING:
    from numbench.runner.execution import (
        CostLimitReached,
        RunInterrupted,
        RunReport,
        TimeLimitReached,
        arun,
        run,
    )
    from numbench.runner.planning import Plan, plan
    from numbench.runner.spec import HorizonSpec, RunSpec

__all__ = [
    "CostLimitReached",
    "HorizonSpec",
    "Plan",
    "RunInterrupted",
    "RunReport",
    "RunSpec",
    "TimeLimitReached",
    "arun",
    "plan",
    "run",
]

_MODULES = {
    "execution": (
        "CostLimitReached",
        "RunInterrupted",
        "RunReport",
        "TimeLimitReached",
        "arun",
        "run",
    ),
    "planning": ("Plan", "plan"),
    "spec": ("HorizonSpec", "RunSpec"),
}
_MODULE_OF = {name: module for module, names in _MODULES.items() for name in names}


def __getattr__(name: str) -> object:
    if name not in _MODULE_OF:
        raise AttributeError(f"module {__name__!r} has no attribute {name!r}")
    value = getattr(import_module(f"{__name__}.{_MODULE_OF[name]}"), name)
    globals()[name] = value
    return value
