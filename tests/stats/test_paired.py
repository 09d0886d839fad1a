"""Differences between models on the items they share."""

from __future__ import annotations

import math

import numpy as np
import pytest

from bench.stats.paired import compare, smallest_difference
from bench.stats.strata import Column, Stratum

NAN = math.nan


@pytest.fixture(scope="module")
def scores() -> Column:
    rng = np.random.default_rng(20)
    found: Column = rng.random((200, 3)) + np.array([0.0, 0.15, 0.0])
    return found


def test_only_items_that_count_for_both_are_paired() -> None:
    values = np.array([[1.0, 0.5], [NAN, 0.0], [0.0, NAN], [0.5, 0.5], [NAN, NAN]])
    (((found,),), _, _) = compare([Stratum("a", values)], [(0, 1)])
    assert found
    assert (found.n, found.difference, found.p) == (2, 0.25, 1.0)


def test_a_difference_is_the_first_less_the_second_and_turns_round(scores: Column) -> None:
    found = compare([Stratum("a", scores)], [(0, 1), (1, 0)])
    one, other = found.strata[0]
    assert one and other
    assert one.difference == pytest.approx(float((scores[:, 0] - scores[:, 1]).mean()))
    assert (one.n, one.p, one.smallest) == (other.n, other.p, other.smallest)
    assert (one.difference, one.low, one.high) == pytest.approx(
        (-other.difference, -other.high, -other.low), rel=1e-9
    )
    assert one.low < one.difference < one.high < 0
    assert one.p < 0.01


def test_pairing_shows_what_unpaired_items_would_hide() -> None:
    rng = np.random.default_rng(21)
    hard = rng.random((100, 1))
    values = np.hstack([hard, hard - 0.02 + rng.normal(0, 0.02, (100, 1))])
    (((found,),), _, _) = compare([Stratum("a", values)], [(0, 1)])
    assert found and found.low > 0 and found.p < 0.001


def test_models_without_common_items_are_not_compared() -> None:
    values = np.array([[1.0, NAN], [NAN, 1.0]])
    found = compare([Stratum("a", values), Stratum("b", np.ones((4, 2)))], [(0, 1)])
    assert found.strata[0] == [None]
    assert found.strata[1][0] and found.strata[1][0].p == 1.0
    assert found.overall == [None]
    assert found.means.mean.tolist() == [1.0, 1.0]


def test_the_mean_of_strata_is_unweighted() -> None:
    strata = [Stratum("a", np.array([[1.0, 0.0]] * 2)), Stratum("b", np.array([[0.5, 0.5]] * 8))]
    found = compare(strata, [(0, 1)])
    (overall,) = found.overall
    assert overall and (overall.n, overall.difference) == (10, 0.5)
    assert found.means.mean.tolist() == [0.75, 0.25]


def test_one_model_has_a_mean_and_no_pair() -> None:
    found = compare([Stratum("a", np.array([[1.0], [0.0]]))], [])
    assert (found.strata, found.overall) == ([[]], [])
    assert found.means.mean.tolist() == [0.5]


def test_the_smallest_difference_is_power_times_standard_error(scores: Column) -> None:
    (found,) = compare([Stratum("a", scores)], [(0, 1)]).strata[0]
    spread = float(np.std(scores[:, 0] - scores[:, 1], ddof=1))
    assert found and found.smallest == pytest.approx(
        (1.959963984540054 + 0.8416212335729143) * spread / math.sqrt(200)
    )
    # Of the mean of two such strata: the errors of independent samples add in squares.
    both = compare([Stratum("a", scores), Stratum("b", scores)], [(0, 1)]).overall[0]
    assert both and both.smallest == pytest.approx(found.smallest / math.sqrt(2))


def test_equal_scores_do_not_tell_what_they_could_show() -> None:
    assert smallest_difference(0.0, np.zeros(9)) is None
    assert smallest_difference(NAN, np.ones(9)) is None
    (found,) = compare([Stratum("a", np.ones((9, 2)))], [(0, 1)]).strata[0]
    assert found and (found.p, found.smallest) == (1.0, None)


def test_few_differing_items_need_at_least_six_of_their_size() -> None:
    values = np.zeros((200, 2))
    values[:2, 0] = 0.1, -0.3
    (found,) = compare([Stratum("a", values)], [(0, 1)]).strata[0]
    assert found and found.p >= 0.5
    assert found.smallest == pytest.approx(6 / 200 * 0.2)
    # Items of the mean of strata weigh by the size of their stratum.
    strata = [Stratum("a", values[1:]), Stratum("b", values[1:101])]
    (both,) = compare(strata, [(0, 1)]).overall
    assert both and both.smallest == pytest.approx(6 * 0.3 * (1 / 398 + 1 / 200) / 2)


def test_equal_differences_tell_their_size() -> None:
    values = np.array([[0.5, 0.25]] * 12)
    (found,) = compare([Stratum("a", values)], [(0, 1)]).strata[0]
    assert found and found.smallest == pytest.approx(6 / 12 * 0.25)


@pytest.mark.parametrize("n", [1, 3, 5])
def test_so_few_items_show_no_difference_however_large(n: int) -> None:
    values = np.column_stack([np.arange(1.0, n + 1), np.zeros(n)])
    (found,) = compare([Stratum("a", values)], [(0, 1)]).strata[0]
    assert found and found.p > 0.05 and found.smallest is None


def test_a_difference_larger_than_scores_can_have_is_none() -> None:
    values = np.array([[100.0, 0.0], [0.0, 100.0]] * 3)
    (needed,) = compare([Stratum("a", values)], [(0, 1)]).strata[0]
    assert needed and needed.smallest and needed.smallest > 100
    (found,) = compare([Stratum("a", values)], [(0, 1)], 100.0).strata[0]
    assert found and found.smallest is None


def test_the_smallest_difference_shows_in_4_of_5_samples() -> None:
    rng = np.random.default_rng(22)
    needed = smallest_difference(1 / math.sqrt(150), np.full(150, 1 / 150))
    assert needed
    first = rng.normal(needed, 1, size=(150, 300))
    values = np.hstack([first, np.zeros((150, 1))])
    found = compare([Stratum("a", values)], [(place, 300) for place in range(300)]).strata[0]
    shown = np.mean([one is not None and one.p <= 0.05 for one in found])
    assert 0.72 <= shown <= 0.88


def test_a_comparison_stays_the_same_for_ever() -> None:
    values = np.array([[(7 * i) % 11 / 10, (5 * i) % 13 / 12] for i in range(40)])
    found = compare([Stratum("addition", values)], [(0, 1)])
    (one,) = found.strata[0]
    assert one and one == pytest.approx(
        (40, 0.0175, -0.112083333, 0.144583333, 0.7966, 0.185457846)
    )


def test_without_a_stratum_there_is_nothing_to_compare() -> None:
    with pytest.raises(ValueError, match="no items"):
        compare([], [])
