"""Differences between models on their common items."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numbench.stats.design import Column, Stratum
from numbench.stats.paired import compare

NAN = math.nan


@pytest.fixture(scope="module")
def scores() -> Column:
    rng = np.random.default_rng(20)
    values: Column = rng.random((200, 3)) + np.array([0.0, 0.15, 0.0])
    return values


def test_only_items_that_count_for_both_models_are_paired() -> None:
    values = np.array([[1.0, 0.5], [NAN, 0.0], [0.0, NAN], [0.5, 0.5], [NAN, NAN]])
    (((result,),), _, _) = compare([Stratum("a", values)], [(0, 1)])
    assert result
    assert (result.n, result.difference, result.p) == (2, 0.25, 1.0)


def test_difference_is_first_minus_second_and_changes_sign_with_the_order(scores: Column) -> None:
    result = compare([Stratum("a", scores)], [(0, 1), (1, 0)], 1.5)
    first, second = result.strata[0]
    assert first and second
    assert first.difference == pytest.approx(float((scores[:, 0] - scores[:, 1]).mean()))
    assert (first.n, first.p, first.minimum_detectable) == (
        second.n,
        second.p,
        second.minimum_detectable,
    )
    assert (first.difference, first.low, first.high) == pytest.approx(
        (-second.difference, -second.high, -second.low), rel=1e-9
    )
    assert first.low < first.difference < first.high < 0
    assert first.p < 0.01


def test_models_without_common_items_are_not_compared() -> None:
    values = np.array([[1.0, NAN], [NAN, 1.0]])
    result = compare([Stratum("a", values), Stratum("b", np.ones((4, 2)))], [(0, 1)])
    assert result.strata[0] == [None]
    assert result.strata[1][0] and result.strata[1][0].p == 1.0
    assert result.overall == [None]
    assert result.means.mean.tolist() == [1.0, 1.0]


def test_mean_of_strata_is_unweighted() -> None:
    strata = [Stratum("a", np.array([[1.0, 0.0]] * 2)), Stratum("b", np.array([[0.5, 0.5]] * 8))]
    result = compare(strata, [(0, 1)])
    (overall,) = result.overall
    assert overall and (overall.n, overall.difference) == (10, 0.5)
    assert result.means.mean.tolist() == [0.75, 0.25]


def test_a_verdict_needs_the_p_value_and_the_interval() -> None:
    # Eight items that differ by 7 points: p = 2 / 2⁸, but a single loss of 100 is not excluded.
    values = np.zeros((500, 2))
    values[:8, 0] = 7.0
    (result,) = compare([Stratum("a", values)], [(0, 1)]).strata[0]
    assert result and result.p == pytest.approx(2 / 2**8) and result.low < 0
    assert not result.is_significant(result.p)
    values[:20, 0] = 7.0
    (more,) = compare([Stratum("a", values)], [(0, 1)]).strata[0]
    assert more and more.is_significant(more.p) and not more.is_significant(0.051)


def test_items_drawn_together_are_one_for_the_minimum_detectable_difference() -> None:
    rng = np.random.default_rng(23)
    values = np.column_stack([100 * (rng.random(200) < 0.5), np.full(200, 50.0)])
    keys = list(range(200))
    single = compare([Stratum("a", values)], [(0, 1)]).strata[0][0]
    together = [Stratum("a", values, None, keys), Stratum("b", values, None, keys)]
    apart = [Stratum("a", values), Stratum("b", values)]
    both, independent = (compare(strata, [(0, 1)]).overall[0] for strata in (together, apart))
    assert single and both and independent
    assert single.minimum_detectable and both.minimum_detectable and independent.minimum_detectable
    assert both.minimum_detectable == pytest.approx(single.minimum_detectable, rel=0.01)
    ratio = independent.minimum_detectable / both.minimum_detectable
    assert ratio == pytest.approx(0.5**0.5, rel=0.05)


def test_rounding_errors_of_means_are_no_differences() -> None:
    values = np.array([[0.1 + 0.2, 0.3], [0.7, 0.7], [0.6, 0.6 + 1e-16]] * 20)
    (result,) = compare([Stratum("a", values)], [(0, 1)], 1.0).strata[0]
    (equal,) = compare([Stratum("a", values[:, [1, 1]])], [(0, 1)], 1.0).strata[0]
    assert result == equal
    assert result and result.p == 1.0
