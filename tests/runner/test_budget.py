"""Budgets of commands: what is reserved, and which request waits."""

import asyncio
from pathlib import Path

from numbench.journal.run_folder import SENT
from numbench.journal.writer import Journal
from numbench.records import Completion, Failure, ItemSample, Response
from numbench.runner.budget import Budget, RunCosts
from numbench.runner.prepare import describe, resolve
from numbench.runner.run_state import read_state
from numbench.runner.spec import RunSpec
from numbench.tasks.items import make_item
from tests.support.case_tables import each_row

ITEMS = [ItemSample(make_item("addition", "+", (str(n), "1"), {})) for n in range(4)]
HALF = {"addition": 0.5}


@each_row(__file__, "admitted_requests")
def test_requests_are_admitted_as_far_as_the_limit_covers_them(
    limit: float,
    expected: dict[str, float],
    bounds: dict[str, float],
    paid: tuple[float, ...],
    admitted: int,
) -> None:
    costs = RunCosts(expected, bounds)
    Budget(limit).add(Path(), costs)
    for cost in paid:
        costs.add_cost("addition", cost)
    assert [costs.try_admit(item) for item in ITEMS] == [n < admitted for n in range(4)]
    assert costs.is_closed("addition") is (admitted == 0)


def test_runs_of_a_command_share_its_limit() -> None:
    budget, runs = Budget(1.5), [RunCosts(HALF, HALF) for _ in range(3)]
    for name, run in zip("abc", runs, strict=True):
        run.add_cost("addition", 0.25)
        # Whatever was known of a folder before is replaced.
        budget.add(Path(name), RunCosts({}, {}))
        budget.add(Path(name), run)
    one, other, _ = runs
    assert one.try_admit(ITEMS[0]) and not other.try_admit(ITEMS[1])
    one.release(ITEMS[0].id)
    assert other.try_admit(ITEMS[1])
    other.add_possibly_billed("addition")
    other.release(ITEMS[1].id)
    assert not one.try_admit(ITEMS[0]) and one.is_closed("addition")


def test_only_one_request_of_unknown_cost_is_in_flight_in_all_runs_of_a_limit() -> None:
    budget = Budget(2.0)
    one, other, third = (RunCosts({}, {}) for _ in range(3))
    for name, run in zip("abc", (one, other, third), strict=True):
        budget.add(Path(name), run)
    assert one.try_admit(ITEMS[0]) and not other.try_admit(ITEMS[1])
    one.add_cost("addition", 0.9)
    one.release(ITEMS[0].id)
    # The cost of the other run's answers is unknown, and counts as the highest known one.
    assert other.try_admit(ITEMS[1]) and other.committed == 0.9
    assert not third.try_admit(ITEMS[2]) and not one.try_admit(ITEMS[3])


def test_what_a_killed_call_left_counts_before_its_run_is_opened_again(
    dataset: Path, tmp_path: Path
) -> None:
    spec = RunSpec("openrouter/some", dataset=dataset, out=tmp_path / "run", max_cost=5.0)
    run = resolve(spec, describe(spec))
    item = run.items_by_task["addition"][0]
    journal = Journal(run.folder, run.info, max_in_flight=1)
    asyncio.run(journal.append(Response(item_id=item.id, cost=0.5)))
    journal.record_sent(ItemSample(item, sample=1))
    log = (run.folder / SENT).read_bytes()
    journal.close()
    (run.folder / SENT).write_bytes(log)
    for _ in range(2):
        costs = read_state(run).costs
        assert costs.committed == 1.0
        Journal(run.folder, run.info).close()


def test_a_failure_whose_attempts_are_paid_for_is_no_further_cost() -> None:
    costs = RunCosts({}, {})
    costs.add_cost("addition", 0.5)
    costs.count(ITEMS[0], Completion(error=Failure(kind="transient", message="no"), cost=0.5), 0.5)
    costs.count(ITEMS[1], Completion(cost=0.0))
    assert (costs.spent, costs.tasks["addition"].count) == (0.5, 2)


def test_what_lost_attempts_cost_is_unknown_until_an_answer_tells() -> None:
    costs = RunCosts()
    costs.add_possibly_billed("addition", 2)
    assert costs.known_possibly_billed_cost is None
    costs.add_cost("minmax", 0.5)
    assert costs.known_possibly_billed_cost == 1.0


def test_only_tasks_with_requests_in_flight_need_a_margin() -> None:
    costs = RunCosts()
    Budget(10.0).add(Path("run"), costs)
    for cost in (0.01, 0.01, 0.01, 0.02, 1.0):
        costs.add_cost("minmax", cost)
    costs.add_cost("addition", 0.01)
    assert costs.try_admit(ITEMS[0]) and costs.tail_margin(is_alone=True) == 0.0
