"""Differences between models on their common items."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numbench.stats.paired import compare, minimum_detectable_mean_difference
from numbench.stats.resampling import Column, Stratum

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
    result = compare([Stratum("a", scores)], [(0, 1), (1, 0)])
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


def test_pairing_detects_a_difference_smaller_than_the_spread_of_items() -> None:
    rng = np.random.default_rng(21)
    hard = rng.random((100, 1))
    values = np.hstack([hard, hard - 0.02 + rng.normal(0, 0.02, (100, 1))])
    (((result,),), _, _) = compare([Stratum("a", values)], [(0, 1)])
    assert result and result.low > 0 and result.p < 0.001


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


def test_single_model_has_a_mean_and_no_pair() -> None:
    result = compare([Stratum("a", np.array([[1.0], [0.0]]))], [])
    assert (result.strata, result.overall) == ([[]], [])
    assert result.means.mean.tolist() == [0.5]


def test_minimum_detectable_difference_is_a_multiple_of_the_standard_error(scores: Column) -> None:
    (result,) = compare([Stratum("a", scores)], [(0, 1)]).strata[0]
    spread = float(np.std(scores[:, 0] - scores[:, 1], ddof=1))
    assert result and result.minimum_detectable == pytest.approx(
        (1.959963984540054 + 0.8416212335729143) * spread / math.sqrt(200)
    )
    # Squared errors of independent strata add up.
    combined = compare([Stratum("a", scores), Stratum("b", scores)], [(0, 1)]).overall[0]
    assert combined and combined.minimum_detectable == pytest.approx(
        result.minimum_detectable / math.sqrt(2)
    )


def test_equal_scores_have_no_minimum_detectable_difference() -> None:
    assert minimum_detectable_mean_difference(0.0, np.zeros(9)) is None
    assert minimum_detectable_mean_difference(NAN, np.ones(9)) is None
    (result,) = compare([Stratum("a", np.ones((9, 2)))], [(0, 1)]).strata[0]
    assert result and (result.p, result.minimum_detectable) == (1.0, None)


def test_minimum_detectable_difference_is_at_least_six_differing_items() -> None:
    values = np.zeros((200, 2))
    values[:2, 0] = 0.1, -0.3
    (result,) = compare([Stratum("a", values)], [(0, 1)]).strata[0]
    assert result and result.p >= 0.5
    assert result.minimum_detectable == pytest.approx(6 / 200 * 0.2)
    # In the mean of strata an item contributes in inverse proportion to the size of its stratum.
    strata = [Stratum("a", values[1:]), Stratum("b", values[1:101])]
    (combined,) = compare(strata, [(0, 1)]).overall
    assert combined and combined.minimum_detectable == pytest.approx(
        6 * 0.3 * (1 / 398 + 1 / 200) / 2
    )


def test_constant_differences_have_a_minimum_detectable_difference() -> None:
    values = np.array([[0.5, 0.25]] * 12)
    (result,) = compare([Stratum("a", values)], [(0, 1)]).strata[0]
    assert result and result.minimum_detectable == pytest.approx(6 / 12 * 0.25)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_fewer_than_6_items_detect_no_difference(n: int) -> None:
    values = np.column_stack([np.arange(1.0, n + 1), np.zeros(n)])
    (result,) = compare([Stratum("a", values)], [(0, 1)]).strata[0]
    assert result and result.p > 0.05 and result.minimum_detectable is None


def test_undetectable_difference_above_the_maximum_is_none() -> None:
    values = np.array([[100.0, 0.0], [0.0, 100.0]] * 3)
    (unlimited,) = compare([Stratum("a", values)], [(0, 1)]).strata[0]
    assert unlimited and unlimited.minimum_detectable and unlimited.minimum_detectable > 100
    (limited,) = compare([Stratum("a", values)], [(0, 1)], 100.0).strata[0]
    assert limited and limited.minimum_detectable is None


def test_minimum_detectable_mean_difference_has_a_power_of_80_percent() -> None:
    rng = np.random.default_rng(22)
    true = minimum_detectable_mean_difference(1 / math.sqrt(150), np.full(150, 1 / 150))
    assert true
    first = rng.normal(true, 1, size=(150, 300))
    values = np.hstack([first, np.zeros((150, 1))])
    results = compare([Stratum("a", values)], [(column, 300) for column in range(300)]).strata[0]
    power = np.mean([result is not None and result.p <= 0.05 for result in results])
    assert 0.72 <= power <= 0.88


def test_comparison_is_reproducible() -> None:
    values = np.array([[(7 * i) % 11 / 10, (5 * i) % 13 / 12] for i in range(40)])
    (difference,) = compare([Stratum("addition", values)], [(0, 1)]).strata[0]
    assert difference and difference == pytest.approx(
        (40, 0.0175, -0.112083333, 0.144583333, 0.7966, 0.185457846)
    )


def test_comparison_without_a_stratum_is_rejected() -> None:
    with pytest.raises(ValueError, match="no items"):
        compare([], [])


def test_stratum_of_two_items_has_a_standard_error() -> None:
    rng = np.random.default_rng(23)
    strata = [Stratum("a", rng.random((40, 2))), Stratum("b", rng.random((2, 2)))]
    result = compare(strata, [(0, 1)])
    variances = [
        float(np.var(stratum.values[:, 0] - stratum.values[:, 1], ddof=1)) / len(stratum.values)
        for stratum in strata
    ]
    (overall,) = result.overall
    assert overall and overall.minimum_detectable == pytest.approx(
        (1.959963984540054 + 0.8416212335729143) * math.sqrt(sum(variances)) / 2
    )
