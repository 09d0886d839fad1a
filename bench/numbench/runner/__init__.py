"""Running models on datasets: run specifications, plans, costs, scheduling and progress."""

from numbench.runner.planning import Plan, plan
from numbench.runner.run import arun, run
from numbench.runner.run_report import (
    CostLimitReached,
    RunInterrupted,
    RunReport,
    TimeLimitReached,
)
from numbench.runner.spec import RunSpec

__all__ = [
    "CostLimitReached",
    "Plan",
    "RunInterrupted",
    "RunReport",
    "RunSpec",
    "TimeLimitReached",
    "arun",
    "plan",
    "run",
]
