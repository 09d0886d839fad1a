"""Floating-point arithmetic as models: their horizons are where their significands say."""

from __future__ import annotations

from collections.abc import Callable
from functools import cache
from math import log10

import numpy as np
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
from tests.horizon.exact_sums import share_of_exact_sums

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


def exact_crossing(share: Callable[[int, int], float], bits: int, size: int) -> float:
    """Return where the probability of an exact answer falls through a half.

    size: where the search begins. Between two sizes, the probability is taken as linear in the
    logarithm of the size.
    """
    before, after = 1.0, share(size, bits)
    while after >= 0.5:
        size, before = size + 1, after
        after = share(size, bits)
    part = (before - 0.5) / (before - after)
    return float((size - 1) * (size / (size - 1)) ** part)


def share_of_exact_products(digits: int, bits: int) -> float:
    """Return how many of many products of integers have few enough bits between their ones."""
    rng = np.random.default_rng(1)
    a, b = rng.integers(10 ** (digits - 1), 10**digits, (2, 100_000))
    product = a * b
    return float(np.mean(product // (product & -product) < 2**bits))


def share_of_exact_integers(digits: int, bits: int) -> float:
    """Return how many integers have few enough bits between their ones."""
    a = np.random.default_rng(1).integers(10 ** (digits - 1), 10**digits, 100_000)
    return float(np.mean(a // (a & -a) < 2**bits))


def share_of_unequal_pairs(digits: int, bits: int) -> float:
    """Return how many of many pairs of integers that differ in one digit remain different.

    Two numbers remain different if a point where rounding changes is between them: these points
    are as far from each other as two numbers of the type.
    """
    rng = np.random.default_rng(1)
    count = 20_000
    mantissa = rng.uniform(1, 10, count)
    place = rng.integers(0, digits, count)
    old = np.where(place == 0, np.floor(mantissa), rng.integers(0, 10, count))
    new = rng.integers(0, 9, count)
    new += new >= old
    new = np.where((place == 0) & (new == 0), old % 9 + 1, new)
    step = np.abs(new - old) * 10.0 ** (digits - 1 - place)
    exponent = np.floor(np.log2(mantissa) + (digits - 1) * np.log2(10)) + 1
    spacing = np.maximum(2.0 ** (exponent - bits), 1)
    return float(np.mean(np.minimum(step / spacing, 1)))


def test_exact_sums_are_counted_as_by_trying_all() -> None:
    bfloat16 = FLOAT_FORMATS["bfloat16"]
    for digits in (1, 2, 3):
        rounded = {n: bfloat16.round(float(n)) for n in range(10 ** (digits - 1), 10**digits)}
        sums = {n: bfloat16.round(float(n)) for n in range(2 * 10**digits + 16)}
        right = sum(sums[int(rounded[a] + rounded[b])] == a + b for a in rounded for b in rounded)
        assert share_of_exact_sums(digits, 8) * len(rounded) ** 2 == right


@pytest.mark.parametrize("name", FLOAT_FORMATS)
def test_sums_fail_at_the_digits_of_the_significand(name: str) -> None:
    digits = log10(2 ** BITS[name])
    crossing = exact_crossing(lambda *x: float(share_of_exact_sums(*x)), BITS[name], int(digits))
    low, high = horizon("long_addition", name).h50[1:]
    assert low <= crossing <= high
    assert low <= digits <= high


@pytest.mark.parametrize("name", FLOAT_FORMATS)
def test_products_fail_at_half_of_these_digits(name: str) -> None:
    half = log10(2 ** BITS[name]) / 2
    crossing = exact_crossing(share_of_exact_products, BITS[name], int(half) + 1)
    low, high = horizon("long_multiplication", name).h50[1:]
    assert low <= crossing <= high
    assert half <= crossing <= half + 1


def test_reading_a_number_fails_beyond_the_significand() -> None:
    for name, bits in BITS.items():
        low, high = horizon("copy", name).h50[1:]
        digits = int(log10(2**bits))
        assert low <= exact_crossing(share_of_exact_integers, bits, digits) <= high


@pytest.mark.parametrize("name", FLOAT_FORMATS)
def test_comparisons_fail_at_twice_the_digits_that_are_seen(name: str) -> None:
    digits = log10(2 ** BITS[name])
    crossing = exact_crossing(share_of_unequal_pairs, BITS[name], int(digits))
    low, high = horizon("long_comparison", name).h50[1:]
    assert low <= crossing <= high
    assert 2 * digits <= crossing <= 2 * digits + 2


def test_lists_of_short_numbers_exceed_no_type_that_holds_them() -> None:
    for task in ("long_sorting", "long_max", "long_sum", "chain", "nested"):
        assert horizon(task, "float64").stop == "above"
    # Of six digits, bfloat16 holds two.
    assert horizon("long_sorting", "bfloat16").stop == "below"
