"""Intervals of means, compared with independent computations."""

import math
from collections.abc import Sequence
from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import t

from numbench.stats.design import Column, Design, Stratum, drawn_together, residual_squares
from numbench.stats.intervals import (
    amount_intervals,
    difference_intervals,
    mean_intervals,
    ratio_of_means,
    score_interval,
    wilson,
)
from tests.support.case_tables import each_row

Z = 1.959963984540054


@given(st.integers(1, 2000), st.data())
def test_wilson_bounds_are_the_critical_values_of_the_score_test(
    n: int, data: st.DataObject
) -> None:
    successes = data.draw(st.integers(0, n))
    low, high = wilson(successes, n)
    p = successes / n
    for bound in {low, high} - {0.0, 1.0}:
        score = abs(p - bound) / math.sqrt(bound * (1 - bound) / n)
        assert score == pytest.approx(Z, rel=1e-6)
    assert 0 <= low <= p <= high <= 1


@each_row(__file__, "wilson_intervals")
def test_wilson_reproduces_known_intervals(
    successes: float, n: int, interval: tuple[float, float]
) -> None:
    low, high = wilson(successes, n)
    assert (round(low, 4), round(high, 4)) == interval
    assert (low == 0, high == 1) == (successes == 0, successes == n)


def stratum(values: Sequence[float] | Column, design: Design | None = None) -> Stratum:
    return Stratum("", np.array(values, dtype=float).reshape(-1, 1), design)


def test_amounts_have_students_interval_of_the_logarithm() -> None:
    rng = np.random.default_rng(7)
    first, second = rng.exponential(100, (30, 1)), rng.exponential(10, (50, 1))
    strata = [Stratum("a", first), Stratum("b", second)]
    error = math.sqrt(first.var(ddof=1) / 30 + second.var(ddof=1) / 50) / 2
    mean, low, high = (float(column[0]) for column in amount_intervals(strata))
    assert mean == pytest.approx((first.mean() + second.mean()) / 2)
    half = t.ppf(0.975, 78) * error
    assert (math.log(high / mean), math.log(mean / low)) == pytest.approx((half / mean,) * 2)
    _, low, high = amount_intervals([stratum(first - 100)], signed=True)
    half = t.ppf(0.975, 29) * first.std(ddof=1) / math.sqrt(30)
    assert high[0] - low[0] == pytest.approx(2 * half)


def test_ratio_has_the_interval_of_a_simulation() -> None:
    rng = np.random.default_rng(8)
    spent, digits = rng.gamma(2, 50, (400, 1000)), rng.normal(9, 3, (400, 1000))
    ratios = spent.mean(axis=0) / digits.mean(axis=0)
    ratio = ratio_of_means([stratum(spent[:, 0])], [stratum(digits[:, 0])])
    assert ratio and ratio[0] == pytest.approx(ratios[0])
    assert math.log(ratio[2] / ratio[1]) == pytest.approx(
        2 * Z * ratios.std() / ratios.mean(), rel=0.1
    )
    assert ratio_of_means([stratum([-1.0, 0.0])], [stratum([1.0, 2.0])]) is None


@given(st.integers(4, 500), st.data())
def test_interval_of_correct_and_wrong_answers_is_wilsons(n: int, data: st.DataObject) -> None:
    correct = data.draw(st.integers(0, n))
    scores = np.array([100.0] * correct + [0.0] * (n - correct))
    low, high = score_interval(scores)
    expected = wilson(correct, n)
    if correct > 3 or correct > n / 10 or not correct:
        assert low == pytest.approx(100 * expected.low)
    if n - correct > 3 or n - correct > n / 10 or correct == n:
        assert high == pytest.approx(100 * expected.high)
    assert low <= 100 * expected.low + 1e-9
    assert high >= 100 * expected.high - 1e-9


def test_bounds_of_few_errors_are_those_of_a_poisson_number() -> None:
    for errors in (1, 2, 3):
        scores = np.array([1.0] * (500 - errors) + [0.0] * errors)
        _, high = score_interval(scores, 1.0)
        expected = 500 * (1 - high)
        fewer = sum(math.exp(-expected) * expected**k / math.factorial(k) for k in range(errors))
        assert 1 - fewer == pytest.approx(0.05, abs=1e-5)


SCORES = st.lists(st.floats(0, 1), min_size=1, max_size=40)


@given(SCORES, st.booleans())
def test_score_interval_includes_the_mean_and_has_a_width(
    scores: list[float], stratified: bool
) -> None:
    column = np.array(scores)
    design = Design(np.arange(len(scores)), 1 / len(scores)) if stratified else None
    low, high = score_interval(column, 1.0, design)
    assert -1e-12 <= low <= column.mean() + 1e-12
    assert column.mean() - 1e-12 <= high <= 1 + 1e-12
    assert high - low > 1e-3
    mirrored = score_interval(1 - column, 1.0, design)
    assert (1 - mirrored.high, 1 - mirrored.low) == pytest.approx((low, high), abs=1e-9)


def test_difference_interval_of_matches_has_the_standard_error_of_bonett_and_price() -> None:
    n, first, second = 500, 12, 5
    values = np.array([1.0] * first + [-1.0] * second + [0.0] * (n - first - second))
    mean, low, high = difference_intervals([Stratum("", values[:, None])], 1.0)
    # With one more item in each direction.
    discordance = (first + second + 2) / n
    expected = Z * math.sqrt((discordance - mean[0] ** 2) / n)
    assert (high[0] - low[0]) / 2 == pytest.approx(expected, rel=2e-3)


def test_single_items_of_many_tasks_vary_as_much_as_they_can() -> None:
    tasks = 20
    strata = [stratum([0.0])] * tasks
    *_, high = difference_intervals(strata)
    # Of each single item the variance is 100², and two pseudo-items add 2 · 100² / 20².
    assert high[0] == pytest.approx(Z * 100 * math.sqrt(1 / tasks + 2 / tasks**2))
    low, high = (bound[0] / 100 for bound in mean_intervals([stratum([50.0])] * tasks)[1:])
    # 20 values of 0.5 whose mean has the variance of 0 or 1, and a pseudo-item on either side.
    squares = tasks / 4 + 1 / 2
    effective = tasks * (tasks + 2) / 4 / squares
    assert (low, high) == pytest.approx(wilson(effective / 2, effective))


def _mean_of_strata(strata: list[Stratum]) -> tuple[float, float]:
    mean, low, high = mean_intervals(strata, 1.0)
    return float(mean[0]), float(high[0] - low[0])


def test_mean_of_strata_is_unweighted_and_its_error_is_that_of_independent_means() -> None:
    rng = np.random.default_rng(4)
    first, second = rng.random((400, 1)), 0.2 * rng.random((900, 1))
    mean, width = _mean_of_strata([Stratum("a", first), Stratum("b", second)])
    assert mean == pytest.approx((first.mean() + second.mean()) / 2)
    error = math.sqrt(float(first.var()) / 400 + float(second.var()) / 900) / 2
    assert width == pytest.approx(2 * Z * error, rel=0.01)


def test_strata_of_the_same_items_are_one_sample() -> None:
    scores = np.random.default_rng(5).random((600, 1))
    order = np.random.default_rng(6).permutation(600)
    for design in (None, Design(np.argsort(scores[:, 0] + scores[::-1, 0]), 1 / 600)):
        permuted = design and Design(np.argsort(order)[design.order], design.share_per_item)
        pair = [
            Stratum("a", scores, design, range(600)),
            Stratum("b", scores[order], permuted, order.tolist()),
        ]
        _, alone = _mean_of_strata(pair[:1])
        _, together = _mean_of_strata(pair)
        apart = [stratum._replace(clusters=None) for stratum in pair]
        assert together == pytest.approx(alone, rel=0.01)
        assert _mean_of_strata(apart)[1] == pytest.approx(alone / math.sqrt(2), rel=0.01)


def test_mean_of_strata_is_unknown_without_items_in_one_of_them() -> None:
    empty = np.full((3, 1), np.nan)
    result = mean_intervals([Stratum("a", np.ones((3, 1))), Stratum("b", empty)])
    assert np.isnan(np.array(result)).all()
    with pytest.raises(ValueError, match="no questions"):
        mean_intervals([])
    with pytest.raises(ValueError, match="no questions"):
        difference_intervals([])


VALUES = st.lists(st.floats(-1, 1), min_size=2, max_size=30)


@given(VALUES)
def test_complete_sample_has_half_the_squared_successive_differences(values: list[float]) -> None:
    order = np.random.default_rng(len(values)).permutation(len(values))
    ranked = [values[index] for index in order]
    expected = sum((b - a) ** 2 for a, b in pairwise(ranked)) / 2
    stratum = Stratum("", np.array(values)[:, None], Design(order, 1 / len(values)))
    assert residual_squares(stratum)[0] == pytest.approx(expected, abs=1e-12)


def test_part_of_a_sample_is_interpolated() -> None:
    rng = np.random.default_rng(1)
    values = rng.random((40, 2))
    values[10:, 1] = np.nan
    design = Design(np.arange(40), 1 / 40)
    _, part = residual_squares(Stratum("", values, design))
    rest = values[:10, 1]
    neighbours = np.sum(np.diff(rest) ** 2) / 2
    independent = np.sum((rest - rest.mean()) ** 2)
    assert part == pytest.approx(0.25 * neighbours + 0.75 * independent)


def test_pairs_are_items_with_the_same_unique_key() -> None:
    values = np.zeros((4, 1))
    first = Stratum("a", values, None, ["p", "q", "r", "r"])
    second = Stratum("b", values, None, ["x", "r", "q", "p"])
    none, ((earlier, here, there),), others = drawn_together([first, second, Stratum("c", values)])
    assert (earlier, here.tolist(), there.tolist()) == (0, [2, 3], [1, 0])
    assert none == others == []
