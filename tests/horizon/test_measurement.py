"""The rounds of a task: they follow from the answers alone."""

import hashlib
import random
from collections.abc import Callable

import numpy as np
import pytest
from hypothesis import example, given, settings
from hypothesis import strategies as st

from benchmarks.horizon_simulation import Tokens, simulate
from numbench.horizon import Limits
from numbench.horizon.adaptive import MAX_REJECTIONS, AdaptiveDesign, round_size
from numbench.horizon.estimate import SizeOutcome
from numbench.horizon.items import ItemSequences, parse_id
from numbench.horizon.measurement import ItemOutcome, Rejected, TaskMeasurement
from numbench.horizon.sizes import task_sizes
from numbench.tasks import SCALED_TASKS
from tests.horizon.outcomes import Curve

ITEMS = ItemSequences()
Answer = Callable[[str], ItemOutcome]


def fixed_answer(horizon: float, seed: int = 0) -> Answer:
    """Return a model whose answer to an item is always the same, right below its horizon."""

    def answer(item_id: str) -> ItemOutcome:
        size = parse_id(item_id).size
        draw = hashlib.sha256(f"{seed} {item_id}".encode()).digest()[0] / 256
        is_right = draw < 1 / (1 + (size / horizon) ** 3)
        return SizeOutcome(size, float(is_right), tokens=20 + size)

    return answer


def start(limits: Limits, name: str = "long_addition") -> TaskMeasurement:
    task = SCALED_TASKS[name]
    return TaskMeasurement(task, task_sizes(task, 200), ITEMS, limits)


def measure(measurement: TaskMeasurement, answer: Answer, order: random.Random) -> None:
    """Answer the items of each round in random order, until the measurement is complete."""
    while True:
        items = measurement.open_items
        if not items:
            if not (following := measurement.next_round()):
                return
            measurement.add_round(following)
            continue
        measurement.record(item := order.choice(items), answer(item))


@settings(max_examples=8, deadline=None)
@example(2.375, 47, 48, 0)
@given(st.floats(0.5, 300), st.integers(0, 99), st.integers(1, 60), st.integers(0, 1000))
def test_interrupted_measurements_ask_what_an_uninterrupted_one_asks(
    horizon: float, seed: int, cut: int, order: int
) -> None:
    answer, limits = fixed_answer(horizon, seed), Limits(0.3, 60)
    whole = start(limits)
    measure(whole, answer, random.Random(order))
    # Stopped by a limit of items, then resumed with other limits from rounds and outcomes.
    first = start(Limits(0.3, cut))
    measure(first, answer, random.Random(order + 1))
    asked = [item for items in first.rounds for item in items if first.has_outcome(item)]
    assert len(asked) <= cut or cut >= 60
    second = start(limits)
    for item in asked:
        second.record(item, answer(item))
    for items in first.rounds:
        second.add_round(items)
    measure(second, answer, random.Random(order + 2))
    assert second.rounds == whole.rounds
    assert second.estimate == whole.estimate
    assert second.stop_reason == whole.stop_reason is not None


def test_rounds_grow_with_the_answers() -> None:
    measurement = start(Limits(0.05, 100))
    measure(measurement, fixed_answer(20), random.Random(0))
    sizes = [len(items) for items in measurement.rounds]
    completed = 0
    for size in sizes:
        assert size == round_size(completed)
        completed += size
    assert sizes[0] == 4 and sizes[-1] > 12
    # The last round is asked only as far as the limit allows.
    asked = sum(map(measurement.has_outcome, (i for items in measurement.rounds for i in items)))
    assert asked == 100 and measurement.stop_reason == "items"


@pytest.mark.parametrize(
    ("horizon", "reason"), [(1e9, "above"), (1e-9, "below"), (20, "precision")]
)
def test_a_measurement_says_why_it_is_complete(horizon: float, reason: str) -> None:
    measurement = start(Limits())
    measure(measurement, fixed_answer(horizon), random.Random(0))
    assert measurement.stop_reason == reason
    if reason == "precision":
        low, high = measurement.estimate[1:]
        assert low < horizon < high and high / low < 2


def test_sizes_whose_questions_are_rejected_are_asked_no_more() -> None:
    def answer(item_id: str) -> ItemOutcome:
        return Rejected() if parse_id(item_id).size > 30 else fixed_answer(1e9)(item_id)

    measurement = start(Limits(0.15, 300))
    measure(measurement, answer, random.Random(0))
    asked = [parse_id(item).size for items in measurement.rounds for item in items]
    rejected = [size for size in asked if size > 30]
    assert MAX_REJECTIONS <= len(rejected) < 40
    # The largest size that is answered is passed.
    assert measurement.stop_reason == "exhausted"
    assert len(asked) < 150 and measurement.estimate.low > 20


def test_without_further_questions_a_measurement_ends() -> None:
    task = SCALED_TASKS["copy"]
    measurement = TaskMeasurement(task, (1, 2), ITEMS, Limits(1e-6, 400))
    measure(measurement, fixed_answer(1.5), random.Random(0))
    assert measurement.stop_reason in ("exhausted", "above", "below")
    asked = [item for items in measurement.rounds for item in items]
    assert len(asked) == len(set(asked)) < 60


SIZES = task_sizes(SCALED_TASKS["long_addition"])
SIZE_ARRAY = np.array(SIZES, np.float64)
EXPECTED = Tokens(40 + 0.4 * SIZE_ARRAY, 10 + 0.4 * SIZE_ARRAY, 3 * SIZE_ARRAY, 0.0)


@pytest.mark.parametrize(
    ("curve", "guess"),
    [(Curve(20, 3, 0.02), 0.0), (Curve(1.5, 30, 0), 0.5), (Curve(3000, 8, 0), 0.5)],
)
def test_measurements_are_those_of_the_shipped_design(curve: Curve, guess: float) -> None:
    limits, chance = Limits(max_items=60), (guess,) * len(SIZES)
    # Answers are right or wrong for sure, so that both see the same ones.
    is_right = curve.probability(SIZE_ARRAY) >= 0.5
    result = simulate(is_right[None, :].astype(float), SIZES, chance, EXPECTED, limits, seed=1)
    design = AdaptiveDesign(
        SIZES, chance, EXPECTED.prompt.tolist(), EXPECTED.expected_answer.tolist()
    )
    asked = np.zeros(len(SIZES), int)
    while design.stop_reason(limits) is None:
        design.begin_round()
        for size in design.next_round()[: limits.max_items - design.completed]:
            index = SIZES.index(size)
            asked[index] += 1
            design.record(size, float(is_right[index]), float(max(EXPECTED.answer[index], 1)))
    assert result.total[0].tolist() == asked.tolist()
    assert result.right[0].tolist() == (asked * is_right).tolist()
    assert result.tokens[0] == pytest.approx(
        float(asked @ (EXPECTED.prompt + np.maximum(EXPECTED.answer, 1)))
    )
