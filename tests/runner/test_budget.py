"""Budgets of runs: what is reserved, and when a limit cannot be enforced."""

from __future__ import annotations

from pathlib import Path

import pytest

from numbench.errors import BadInput
from numbench.runner.budget import Budget, open_budget
from numbench.runner.spec import ResolvedRun, RunSpec, resolve
from numbench.tasks.items import make_item
from tests.runner.test_run import dataset

__all__ = ["dataset"]

ITEMS = [make_item("addition", "+", (str(n), "1"), {}) for n in range(4)]


def resolved(dataset: Path, out: Path) -> ResolvedRun:
    spec = RunSpec("openai/some", dataset=dataset, out=out)
    return resolve(spec, spec.describe())


@pytest.mark.parametrize("discount", [0.0, 0.5])
def test_a_batch_of_unknown_cost_is_refused_with_and_without_a_discount(
    dataset: Path, tmp_path: Path, discount: float
) -> None:
    run = resolved(dataset, tmp_path / "run")
    with pytest.raises(BadInput, match="the cost per item of minmax, addition is unknown"):
        open_budget(5.0, run, None, discount, batch=True)


def test_requests_of_unknown_cost_are_allowed_one_at_a_time(dataset: Path, tmp_path: Path) -> None:
    budget = open_budget(5.0, resolved(dataset, tmp_path / "run"), None, 0.0, batch=False)
    assert [budget.try_admit(item) for item in ITEMS[:2]] == [True, False]


def test_reserved_costs_count_until_they_are_released() -> None:
    budget = Budget(1.0, {"addition": 0.5})
    assert [budget.try_admit(item) for item in ITEMS[:3]] == [True, True, False]
    budget.release(ITEMS[0].id)
    assert budget.try_admit(ITEMS[2])


def test_the_most_expensive_answer_replaces_a_lower_expectation() -> None:
    budget = Budget(10.0, {"addition": 0.5}, [("addition", 2.0), ("addition", 1.0)])
    assert (budget.spent, budget.estimate("addition"), budget.estimate("mean")) == (3.0, 2.0, None)
