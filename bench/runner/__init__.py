"""How models are asked: a run's words, its plan, its pace, its price, and how far it is."""

from bench.runner.planning import Plan, plan
from bench.runner.running import CostReached, Interrupted, RunReport, TimeReached, run
from bench.runner.spec import RunSpec

__all__ = [
    "CostReached",
    "Interrupted",
    "Plan",
    "RunReport",
    "RunSpec",
    "TimeReached",
    "plan",
    "run",
]
