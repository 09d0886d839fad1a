"""Distributions of the dataset card for lists, tested on raw attempts; shares of the splits.

As in `test_distributions.py`: attempts before any is dropped, and laws written down a second time
from `datasets/README.md`. With a fresh seed each of the 314 comparisons here fails with a chance
of 1e-6 (`ALPHA`) where the sampler is right.
"""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from scipy import stats

from numbench.tasks import PAPER_TASKS
from numbench.tasks.items import split_of
from numbench.vectorized.decimal_arrays import BoolArray
from numbench.vectorized.questions import Questions
from numbench.vectorized.random_words import RandomWordArrays
from numbench.vectorized.samplers import minmax_or_sorting
from tests.tasks.distributions import (
    ATTEMPTS,
    FloatArray,
    IntArray,
    attempts_at,
    counted,
    follows,
    follows_cdf,
    follows_uniform,
    independent,
    spread_out,
    stream_of,
    tenths,
    texts,
)

pytestmark = pytest.mark.slow

REACH = {"minmax": 2, "interval": 2, "sorting": 2, "mean": 17}
"""Largest spread above the magnitude of the mean; std shares the lists of mean."""

DIGITS = (5, 15, 17)
FINE = 10**5
"""10^spread in units above which a list counts as continuous: its steps are below 1e-5 of it."""


def lists_of(task: str, max_digits: int) -> Questions:
    """Return lists in the order of their draws; those of interval before they are sorted."""
    if task != "interval":
        return attempts_at(task, max_digits)
    words = RandomWordArrays(stream_of(task), PAPER_TASKS[task].words_per_attempt, 0, ATTEMPTS)
    return minmax_or_sorting("minmax", words, max_digits)


def grid_of(questions: Questions) -> IntArray:
    """Return the exponent of the last digit of the elements: p digits up to max(x, s)."""
    params = questions.params
    return np.maximum(params["exponent"], params["spread"]) - params["digits"] + 1


def radius_of(questions: Questions) -> IntArray:
    """Return 10^spread in units of the last digit."""
    return 10 ** (questions.params["spread"] - grid_of(questions))


def total_of(questions: Questions) -> tuple[IntArray, IntArray]:
    """Return the sum of a list in units, and the smallest sum with its mean's magnitude."""
    total = questions.operands.significand.sum(axis=1)
    unit_exponent = grid_of(questions)
    least = questions.length * 10 ** (
        np.maximum(questions.params["exponent"], unit_exponent) - unit_exponent
    )
    return total, least


def lowest_spread(x: int, max_digits: int) -> int:
    """Return the smallest spread that max_digits can represent with a mean of magnitude x."""
    return min(13, x - min(13, max_digits - 2))


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", REACH)
def test_lengths_and_magnitudes_are_uniform_and_spreads_uniform_in_their_range(
    task: str, max_digits: int
) -> None:
    params = attempts_at(task, max_digits).params
    length, x, s = params["length"], params["exponent"], params["spread"]
    table = counted(length, x, low=(2, -14), shape=(4, 29))
    follows_uniform(table)
    follows_uniform(table.sum(0))
    follows_uniform(table.sum(1))
    law = np.zeros((29, 41))
    for magnitude in range(-14, 15):
        low, high = lowest_spread(magnitude, max_digits), min(magnitude + REACH[task], 13)
        law[magnitude + 14, low + 27 : high + 28] = 1 / (high - low + 1)
    table = counted(x, s, low=(-14, -27), shape=(29, 41))
    follows(table, law)
    follows(table.sum(0), law.sum(0))


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", REACH)
def test_digits_are_uniform_over_the_range_that_represents_the_spread(
    task: str, max_digits: int
) -> None:
    params = attempts_at(task, max_digits).params
    law = np.zeros((42, max_digits + 1))
    for x in range(-14, 15):
        low, high = lowest_spread(x, max_digits), min(x + REACH[task], 13)
        for s in range(low, high + 1):
            fewest = max(2, x - s + 2)
            law[s - x + 15, fewest:] += 1 / (high - low + 1) / (max_digits - fewest + 1)
    above = params["spread"] - params["exponent"] + 15
    table = counted(above, params["digits"], shape=law.shape)
    follows(table, law)
    follows(table.sum(0), law.sum(0))


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", REACH)
def test_the_mean_is_uniform_within_its_magnitude(task: str, max_digits: int) -> None:
    """10^x ≤ mean < 10^(x+1), or in units of the last digit if that is above 10^x."""
    questions = lists_of(task, max_digits)
    assert (questions.operands.exponent[:, 0] == grid_of(questions)).all()
    total, least = total_of(questions)
    even = spread_out(total - least, 9 * least)
    follows_cdf(even, "uniform")
    length, x = questions.length, questions.params["exponent"]
    follows_uniform(counted(length, x, tenths(even), low=(2, -14, 0), shape=(4, 29, 10)))


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", REACH)
def test_elements_are_within_the_spread_of_their_mean(task: str, max_digits: int) -> None:
    questions = lists_of(task, max_digits)
    total, _ = total_of(questions)
    length = questions.length
    away = np.abs(length[:, None] * questions.operands.significand - total[:, None])
    most = length * (radius_of(questions) + 1)
    assert ((away < most[:, None]) | ~questions.present).all()


@pytest.mark.parametrize("max_digits", [15, 17])
@pytest.mark.parametrize("task", REACH)
def test_offsets_from_the_mean_are_uniform_and_independent(task: str, max_digits: int) -> None:
    """Offsets are on ±l / (2 (l − 1)) · 10^s; differences of elements cancel the shift."""
    questions = lists_of(task, max_digits)
    radius = radius_of(questions)
    for length in (2, 3, 4, 5):
        rows = (questions.length == length) & (radius >= FINE)
        half = radius[rows] * length / (2 * (length - 1))
        offsets = questions.operands.significand[rows, :length] / half[:, None]
        for column in range(length - 1):
            follows_cdf(offsets[:, column] - offsets[:, column + 1], difference_of_offsets)
        # The range of l uniform offsets, which dependent ones would not have.
        reach = (offsets.max(axis=1) - offsets.min(axis=1)) / 2
        follows_cdf(reach, stats.beta(length - 1, 2).cdf)


def difference_of_offsets(values: FloatArray) -> FloatArray:
    """Return the CDF of the difference of two independent uniform variables on [−1, 1]."""
    return np.asarray(stats.triang(0.5, loc=-2, scale=4).cdf(values), np.float64)


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", REACH)
def test_offsets_take_every_unit_if_the_spread_is_ten_units(task: str, max_digits: int) -> None:
    """If 10^s is ten units, the difference of two elements shows single units."""
    questions = lists_of(task, max_digits)
    total, _ = total_of(questions)
    rows = (questions.length == 2) & (radius_of(questions) == 10)
    # The first of two elements takes the remainder of an odd difference of sum and offsets.
    difference = questions.operands.significand[rows, 0] - questions.operands.significand[rows, 1]
    law = np.zeros((2, 43))
    for a in range(-10, 11):
        for b in range(-10, 11):
            for odd in (0, 1):
                law[odd, a - b + (a + b + odd) % 2 + 21] += 1
    table = counted(total[rows] % 2, difference + 21, shape=(2, 43))
    follows(table, law * (table.sum(1) / law.sum(1))[:, None])


@pytest.mark.parametrize("task", REACH)
def test_the_draws_of_a_list_are_independent(task: str) -> None:
    questions = lists_of(task, 15)
    params, radius = questions.params, radius_of(questions)
    total, least = total_of(questions)
    fine = radius >= FINE
    steps = (questions.operands.significand[:, 0] - questions.operands.significand[:, 1]) / radius
    columns = {
        "length": params["length"] - 2,
        "total": tenths(spread_out(total - least, 9 * least), 5),
        "digits": digits_place(questions, 15),
        "magnitude and spread": 5 * ((params["exponent"] + 14) // 6)
        + spread_place(questions, task),
    }
    if task in ("minmax", "sorting"):
        columns["operator"] = questions.operator
    if task == "interval":
        columns["position"] = tenths(position_place(attempts_at(task, 15)), 5)
    independent(columns)
    # Which element is larger, and by how much relative to the maximum for the length.
    share = steps * (params["length"] - 1) / params["length"]
    untied = columns.keys() - {"magnitude and spread", "digits"}
    some = {name: columns[name][fine] for name in sorted(untied)}
    independent(some | {"first difference": np.digitize(share[fine], [-0.5, 0, 0.5])})


def digits_place(questions: Questions, max_digits: int) -> IntArray:
    """Return digits as a fifth of their range."""
    params = questions.params
    fewest = np.maximum(2, params["exponent"] - params["spread"] + 2)
    return tenths(spread_out(params["digits"] - fewest, max_digits - fewest + 1, salt=1), 5)


def spread_place(questions: Questions, task: str) -> IntArray:
    """Return the spread as a fifth of its range."""
    x, s = questions.params["exponent"], questions.params["spread"]
    low = np.minimum(13, x - 13)
    return tenths(spread_out(s - low, np.minimum(x + REACH[task], 13) - low + 1, salt=2), 5)


def position_place(questions: Questions) -> FloatArray:
    """Return the position of the reference as a point of (0, 1)."""
    return spread_out(questions.params["position"], questions.params["length"] + 1, salt=3)


@pytest.mark.parametrize("max_digits", DIGITS)
@pytest.mark.parametrize("task", REACH)
def test_a_list_is_dropped_only_for_its_range_digits_or_equal_elements(
    task: str, max_digits: int
) -> None:
    questions, drawn = attempts_at(task, max_digits), lists_of(task, max_digits)
    units = drawn.operands.significand
    equal = ((units == units[:, :1]) | ~drawn.present).all(axis=1)
    # Reference and separated boundaries of an interval question must fit too.
    assert (questions.valid == fits(questions) & fits(drawn) & ~equal).all()


def fits(questions: Questions) -> BoolArray:
    """Return whether all numbers have at most p digits and are 0 or at least 10⁻¹⁴."""
    size, unit_exponent = np.abs(questions.operands.significand), grid_of(questions)
    smallest = 10 ** np.maximum(0, -14 - unit_exponent)[:, None]
    largest = 10 ** questions.params["digits"][:, None] - 1
    fit = (size <= largest) & ((size >= smallest) | (size == 0))
    flags: BoolArray = (fit | ~questions.present).all(axis=1)
    return flags


@pytest.mark.parametrize("max_digits", DIGITS)
def test_boundaries_are_the_sorted_list_with_equal_elements_separated(max_digits: int) -> None:
    questions, drawn = attempts_at("interval", max_digits), lists_of("interval", max_digits)
    assert (questions.params["length"] == drawn.length).all()
    moved = 0
    for length in (2, 3, 4, 5):
        rows = drawn.length == length
        bounds = np.sort(drawn.operands.significand[rows, :length], axis=1)
        moved += int((np.diff(bounds, axis=1) == 0).sum())
        for left, right in pairwise(range(length)):
            bounds[:, right] = np.maximum(bounds[:, right], bounds[:, left] + 1)
        assert (questions.operands.significand[rows, 1 : length + 1] == bounds).all()
    assert moved > 500


@pytest.mark.parametrize("max_digits", DIGITS)
def test_positions_and_references_are_uniform(max_digits: int) -> None:
    questions = attempts_at("interval", max_digits)
    length, position = questions.params["length"], questions.params["position"]
    law = np.array([[1 / (n + 1) if index <= n else 0 for index in range(6)] for n in (2, 3, 4, 5)])
    follows(counted(length, position, low=(2, 0), shape=(4, 6)), law)

    units, every = questions.operands.significand, np.arange(len(length))
    step = np.maximum(1, radius_of(questions) // length)
    first, last = position == 0, position == length
    assert (units[first, 0] == units[first, 1] - step[first]).all()
    assert (units[last, 0] == units[every, length][last] + step[last]).all()

    inner = ~first & ~last
    low = units[every, position][inner]
    high = units[every, np.minimum(position + 1, length)][inner]
    even = spread_out(units[inner, 0] - low, high - low)
    follows_cdf(even, "uniform")
    places = counted(length[inner], tenths(even), low=(2, 0), shape=(4, 10))
    follows(places, np.repeat(places.sum(1, keepdims=True), 10, 1).astype(float))


@pytest.mark.parametrize("task", [task for task in PAPER_TASKS if task != "std"])
def test_test_and_val_are_an_eighth_each_and_train_the_rest(task: str) -> None:
    questions = attempts_at(task, 15)
    different = {}
    for row in range(40_000):
        operands = texts(questions, row)
        different[tuple(sorted(text.removeprefix("-") for text in operands))] = operands
    assert len(different) > 30_000
    names = ("test", "val", "train")
    splits = np.array([names.index(split_of(operands)) for operands in different.values()])
    follows(counted(splits, shape=(3,)), np.array([8.0, 8.0, 48.0]))
    lengths = np.array([sum(map(len, operands)) for operands in different])
    independent({"split": splits, "long": (lengths > np.median(lengths)).astype(np.int64)})
