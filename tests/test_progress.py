"""Counting a run: what is shown is what came, of the whole run, at the speed of late."""

from __future__ import annotations

import pytest

from bench.records import Completion, Failure, Item, Usage
from bench.runner.tally import Rate, Tally
from bench.tasks.items import make_item

FAILED = Completion(error=Failure(kind="item", message="no"))


class Clock:
    """A clock that stands until it is moved."""

    def __init__(self) -> None:
        self.now = 1000.0

    def __call__(self) -> float:
        return self.now


def addition(count: int) -> list[Item]:
    return [make_item("addition", "+", (str(n), "1"), {}) for n in range(count)]


def answer(text: str = "x", generated: int | None = None, cost: float | None = None) -> Completion:
    return Completion(text=text, usage=Usage(generated=generated), cost=cost)


def test_each_task_counts_for_itself_and_the_whole_is_their_sum() -> None:
    items = [*addition(3), make_item("minmax", "minimum", ("1", "2"), {})]
    tally = Tally(items, judge=lambda item, completion: completion.text == "right")
    tally.count(items[0], answer("right", generated=10, cost=0.25))
    tally.count(items[1], answer("wrong", generated=20, cost=0.5))
    tally.count(items[3], answer("right", generated=60, cost=1.0))
    now = tally.now()
    add, minmax = now.tasks
    assert (add.task, add.done, add.total, add.accuracy) == ("addition", 2, 3, 0.5)
    assert (add.tokens_per_answer, add.cost) == (15.0, 0.75)
    assert (minmax.done, minmax.total, minmax.accuracy) == (1, 1, 1.0)
    assert (now.done, now.total, now.whole.judged, now.whole.right) == (3, 4, 3, 2)
    assert (now.whole.tokens_per_answer, now.whole.cost) == (30.0, 1.75)


def test_what_nobody_reported_is_unknown_and_not_nothing() -> None:
    items = addition(3)
    tally = Tally(items)
    tally.count(items[0], answer())
    whole = tally.now().whole
    assert (whole.accuracy, whole.tokens_per_answer, whole.cost) == (None, None, None)
    tally.count(items[1], answer(generated=8, cost=0.5))
    whole = tally.now().whole
    # The mean is over the answers that report tokens; the cost is known to be incomplete.
    assert (whole.tokens_per_answer, whole.cost, whole.unpriced) == (8.0, 0.5, 1)


def test_a_failed_request_is_done_but_neither_judged_nor_counted_in_the_mean() -> None:
    items = addition(2)
    tally = Tally(items, judge=lambda item, completion: None if completion.error else True)
    tally.count(items[0], FAILED)
    tally.count(items[1], answer(generated=4, cost=1.0))
    whole = tally.now().whole
    assert (whole.done, whole.errors, whole.judged, whole.accuracy) == (2, 1, 1, 1.0)
    assert (whole.tokens_per_answer, whole.cost, whole.unpriced) == (4.0, 1.0, 0)


def test_what_was_settled_before_is_in_the_counts_but_not_in_the_rate() -> None:
    clock = Clock()
    items = addition(30)
    tally = Tally(items, clock=clock)
    for item in items[:20]:
        tally.count_before(item, answer())
    clock.now += 5
    tally.count(items[20], answer())
    now = tally.now()
    assert (now.done, now.before, now.seconds) == (21, 20, 5.0)
    assert now.rate == now.mean_rate == pytest.approx(0.2)
    assert now.left == pytest.approx(45.0)


def test_nothing_done_has_no_rate_and_no_time_left() -> None:
    clock = Clock()
    tally = Tally(addition(2), clock=clock)
    assert (tally.now().rate, tally.now().left) == (0.0, None)
    clock.now += 10
    assert (tally.now().rate, tally.now().left) == (0.0, None)


def steady(rate: Rate, clock: Clock, seconds: int, each: int) -> None:
    """`each` items at the end of every second."""
    for _ in range(seconds):
        clock.now += 1
        for _ in range(each):
            rate.count()


def test_the_rate_is_that_of_the_last_minute() -> None:
    clock = Clock()
    rate = Rate(clock)
    steady(rate, clock, 10, 5)
    assert rate.now() == pytest.approx(5.0)
    steady(rate, clock, 600, 5)
    steady(rate, clock, 61, 50)
    assert rate.now() == pytest.approx(50.0, rel=0.03)


def test_a_pause_is_forgotten_a_minute_after_it() -> None:
    clock = Clock()
    rate = Rate(clock)
    steady(rate, clock, 120, 10)
    clock.now += 600
    assert rate.now() < 1.0
    steady(rate, clock, 30, 10)
    assert rate.now() == pytest.approx(5.0, rel=0.05)
    steady(rate, clock, 31, 10)
    assert rate.now() == pytest.approx(10.0, rel=0.05)


def test_the_rate_of_a_slow_model_does_not_fall_to_nothing_between_two_answers() -> None:
    clock = Clock()
    rate = Rate(clock)
    for _ in range(50):
        clock.now += 200
        rate.count()
    clock.now += 100
    assert rate.now() == pytest.approx(1 / 200, rel=0.05)


def test_a_long_run_keeps_no_more_of_its_past_than_the_rate_needs() -> None:
    clock = Clock()
    rate = Rate(clock)
    for _ in range(20_000):
        clock.now += 0.05
        rate.count()
        rate.now()
    assert rate.now() == pytest.approx(20.0, rel=0.02)
    assert len(rate._marks) < 200
