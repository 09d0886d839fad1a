"""Floating-point arithmetic as models: their horizons are where their significands say."""

from __future__ import annotations

from functools import cache
from math import log10

import pytest

from numbench.horizon.estimate import SizeOutcome, TaskHorizon, estimate_horizon
from numbench.horizon.items import ItemSequences
from numbench.horizon.measurement import TaskMeasurement
from numbench.horizon.sizes import task_sizes
from numbench.horizon.stopping import Limits
from numbench.models.baseline import FLOAT_FORMATS, calculate
from numbench.records import Completion
from numbench.scoring import score_exact
from numbench.tasks import SCALED_TASKS
from numbench.tasks.prompts import load_prompt_set

pytestmark = pytest.mark.slow

ITEMS = ItemSequences()
BITS = {name: float_format.bits for name, float_format in FLOAT_FORMATS.items()}


def is_right(item_id: str, float_format: str) -> bool:
    item = ITEMS.by_id(item_id)
    question = load_prompt_set().parse_question(item.prompt)
    text = f'{{"answer": {calculate(question, FLOAT_FORMATS[float_format])}}}'
    return bool(score_exact(item, Completion(text=text)).exact_match)


@cache
def horizon(task: str, float_format: str) -> TaskHorizon:
    """Return the measured horizon of a floating-point type."""
    scaled, limits = SCALED_TASKS[task], Limits()
    measurement = TaskMeasurement(scaled, task_sizes(scaled), ITEMS, limits)
    outcomes = []
    while ids := measurement.next_round():
        measurement.add_round(ids)
        for item_id in measurement.open_items:
            size = int(item_id.split("-")[1])
            outcomes.append(SizeOutcome(size, float(is_right(item_id, float_format))))
            measurement.record(item_id, outcomes[-1])
    return estimate_horizon(scaled, outcomes, stop=measurement.stop_reason)


@pytest.mark.parametrize("name", FLOAT_FORMATS)
def test_each_operation_fails_where_the_digits_of_the_significand_end(name: str) -> None:
    digits = log10(2 ** BITS[name])
    for task, least, most in (
        ("long_addition", digits, digits),
        ("copy", digits - 1, digits + 1),
        # Some products end in zeros; of two numbers that differ, both may be rounded apart.
        ("long_multiplication", digits / 2, digits / 2 + 1),
        ("long_comparison", 2 * digits, 2 * digits + 2),
    ):
        low, high = horizon(task, name).h50[1:]
        assert low <= most and least <= high, task


def test_lists_of_short_numbers_exceed_no_type_that_holds_them() -> None:
    for task in ("long_sorting", "long_max", "long_sum", "chain", "nested"):
        assert horizon(task, "float64").stop == "above"
    # Of six digits, bfloat16 holds two.
    assert horizon("long_sorting", "bfloat16").stop == "below"
