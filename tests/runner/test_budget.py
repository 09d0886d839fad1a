"""Budgets of runs: what is reserved, and when a limit cannot be enforced."""

from __future__ import annotations

import asyncio
from pathlib import Path

import pytest

from numbench.errors import BadInput
from numbench.runner.budget import Budget, SharedLimit, open_budget
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


def shared_budgets(limit: float, recorded: float) -> list[Budget]:
    folders = [Path("a"), Path("b")]
    shared = SharedLimit(dict.fromkeys((*folders, Path("c")), recorded))
    budgets = [Budget(limit, {"addition": 0.5}, [("addition", recorded)]) for _ in folders]
    for folder, budget in zip(folders, budgets, strict=True):
        shared.join(folder, budget)
    return budgets


def test_runs_that_share_a_limit_count_together() -> None:
    one, other = shared_budgets(1.5, 0.25)
    assert one.try_admit(ITEMS[0])
    assert not other.try_admit(ITEMS[1])
    one.release(ITEMS[0].id)
    assert other.try_admit(ITEMS[1])
    other.add_possibly_billed("addition")
    other.release(ITEMS[1].id)
    assert not one.try_admit(ITEMS[0])


def test_a_run_waits_for_the_requests_of_another_that_shares_its_limit() -> None:
    async def main() -> bool:
        one, other = shared_budgets(1.5, 0.25)
        assert await one.admit(ITEMS[0])
        waiting = asyncio.create_task(other.admit(ITEMS[1]))
        await asyncio.sleep(0)
        assert not waiting.done()
        one.release(ITEMS[0].id)
        return await waiting

    assert asyncio.run(main())
