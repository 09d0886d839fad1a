"""The randomisation test: enumeration, McNemar's test and the null hypothesis."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st

from numbench.stats.design import Column, Stratum
from numbench.stats.intervals import bootstrap_means
from numbench.stats.mcnemar import mcnemar
from numbench.stats.permutation import PERMUTATIONS, _exact_p_value, permutation_test

EIGHTHS = st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=1, max_size=8)


def p_of(*columns: Sequence[float]) -> list[float]:
    p_values: list[float] = permutation_test([Stratum("a", np.array(columns).T)]).strata[0].tolist()
    return p_values


def _enumerated(values: Sequence[float | Fraction]) -> Fraction:
    """Return the share of all sign patterns with an absolute sum at least as large, exactly."""
    exact = [Fraction(value) for value in values]
    sums = [
        abs(sum((v * s for v, s in zip(exact, signs, strict=True)), Fraction(0)))
        for signs in product((1, -1), repeat=len(exact))
    ]
    return Fraction(sum(total >= sums[0] for total in sums), len(sums))


@pytest.fixture(scope="module")
def differences() -> Column:
    return np.random.default_rng(3).choice([-1.0, -0.25, 0.0, 0.25, 1.0], size=(60, 40))


def test_few_differing_items_are_enumerated() -> None:
    rng = random.Random(5)
    columns = [[rng.choice((-1.0, -0.5, 0.0, 0.25, 0.75)) for _ in range(9)] for _ in range(30)]
    assert p_of(*columns) == [float(_enumerated(column)) for column in columns]


@pytest.mark.parametrize(("first", "second"), [(1, 0), (6, 0), (4, 1), (7, 5), (0, 0), (0, 12)])
def test_p_of_correct_and_wrong_answers_is_that_of_mcnemar(first: int, second: int) -> None:
    assert p_of([1.0] * first + [-1.0] * second + [0.0] * 50) == [mcnemar(first, second)]


@pytest.mark.parametrize(("first", "second"), [(20, 9), (15, 14), (30, 30), (40, 70)])
def test_p_of_many_differing_items_is_close_to_the_exact_one(first: int, second: int) -> None:
    (p,) = p_of([1.0] * first + [-1.0] * second + [0.0] * 50)
    exact = mcnemar(first, second)
    assert p == pytest.approx(
        exact, abs=4 * (exact * (1 - exact) / PERMUTATIONS) ** 0.5 + 1 / PERMUTATIONS
    )


def test_p_is_never_0_and_can_be_less_than_the_number_of_permutations_allows() -> None:
    few, many = p_of([1.0] * 16 + [0.0] * 99, [1.0] * 115)
    # Of 2^16 permutations, two are as extreme.
    assert 2 / 2**16 <= few <= 5 / PERMUTATIONS
    assert many == pytest.approx(2 * np.exp(-115 / 2), rel=1e-9)
    assert p_of([1.0] * 5000)[0] > 0


def test_p_below_the_resolution_is_at_least_the_exact_p() -> None:
    # Of 2^n permutations of n positive values, two are as extreme.
    rng = np.random.default_rng(15)
    columns = [rng.integers(1, 9, size=n).astype(float) for n in range(17, 60, 3)]
    for values in columns:
        (p,) = p_of(values.tolist())
        assert 2.0 ** (1 - len(values)) <= p <= 2 / (1 + PERMUTATIONS)
    assert p < 1e-6


def test_items_that_were_drawn_together_are_swapped_together() -> None:
    # Nine clusters of two: the signs of both are the same in every permutation.
    rng = np.random.default_rng(11)
    first = rng.normal(1, 1, size=(9, 1))
    keys = list("abcdefghi")
    together = permutation_test(
        [Stratum("a", first, None, keys), Stratum("b", first[::-1], None, keys[::-1])]
    )
    assert together.overall.tolist() == p_of(first[:, 0].tolist())
    apart = permutation_test([Stratum("a", first), Stratum("b", first[::-1])])
    assert apart.overall[0] < together.overall[0]


def test_swaps_of_clusters_in_random_permutations() -> None:
    rng = np.random.default_rng(12)
    first = rng.normal(0.3, 1, size=(80, 1))
    keys = list(range(80))
    order = rng.permutation(80)
    strata = [
        Stratum("a", first, None, keys),
        # Half of the second stratum's items are in the first, in another order.
        Stratum("b", first[order], None, [int(k) if k < 40 else f"own {k}" for k in order]),
    ]
    sums = np.concatenate([first[:40] * 2, first[40:], first[40:]])
    (expected,) = p_of(sums[:, 0].tolist())
    assert permutation_test(strata).overall[0] == pytest.approx(expected, abs=0.01)


def test_a_key_that_repeats_within_a_stratum_does_not_tie_items() -> None:
    rng = np.random.default_rng(13)
    values = rng.normal(0.4, 1, size=(40, 1))
    plain = permutation_test([Stratum("a", values), Stratum("b", values)])
    repeated = permutation_test(
        [Stratum("a", values, None, ["x"] * 40), Stratum("b", values, None, ["x"] * 40)]
    )
    assert plain.overall.tolist() == repeated.overall.tolist()


def test_items_that_do_not_count_change_no_p_value(differences: Column) -> None:
    gaps = differences.copy()
    gaps[differences == 0] = np.nan
    assert (
        permutation_test([Stratum("a", differences)]).strata[0].tolist()
        == permutation_test([Stratum("a", gaps)]).strata[0].tolist()
    )


def test_p_is_bit_identical_for_any_order_and_selection_of_columns(differences: Column) -> None:
    values = differences * np.random.default_rng(4).random(differences.shape)
    result = permutation_test([Stratum("a", values), Stratum("b", values[::-1])])
    reverse = permutation_test([Stratum("a", -values[:, ::-1]), Stratum("b", -values[::-1, ::-1])])
    single = permutation_test([Stratum("a", values[:, 7:8]), Stratum("b", values[::-1, 7:8])])
    for p, reversed_p in zip(
        [*result.strata, result.overall], [*reverse.strata, reverse.overall], strict=True
    ):
        assert p.tolist() == reversed_p[::-1].tolist()
    assert single.strata[0][0] == result.strata[0][7]
    assert single.overall[0] == result.overall[7]


def test_all_batches_of_columns_are_tested() -> None:
    values = np.random.default_rng(6).normal(size=(20, 300))
    p = permutation_test([Stratum("a", values)]).strata[0]
    assert p.shape == (300,)
    assert p[299] == permutation_test([Stratum("a", values[:, 299:])]).strata[0][0]


def test_mean_of_strata_is_unweighted() -> None:
    small, large = np.array([[1.0], [1.0], [1.0]]), np.array([[-1.0]] * 9)
    # 3 items of 1/6 each and 9 of 1/18 each: twelve differing items, so all are enumerated.
    weights = [Fraction(1, 6)] * 3 + [Fraction(-1, 18)] * 9
    sums = [
        abs(sum((w * s for w, s in zip(weights, signs, strict=True)), Fraction(0)))
        for signs in product((1, -1), repeat=12)
    ]
    expected = sum(total >= abs(sum(weights)) for total in sums) / len(sums)
    result = permutation_test([Stratum("a", small), Stratum("b", large)])
    assert result.overall.tolist() == [expected] == [1.0]


def test_mean_of_strata_detects_a_difference_that_no_stratum_detects() -> None:
    rng = np.random.default_rng(8)
    strata = [Stratum(name, rng.normal(0.15, 1, size=(100, 1))) for name in "abcdefghi"]
    result = permutation_test(strata)
    assert result.overall[0] < 0.001
    assert min(p[0] for p in result.strata) > result.overall[0]


def test_level_is_5_percent_with_few_differing_items_unlike_the_bootstrap() -> None:
    # About seven of 500 items differ, as between two good models.
    rng = np.random.default_rng(9)
    values = rng.normal(size=(500, 400)) * (rng.random((500, 400)) < 0.014)
    strata = [Stratum("a", values)]
    rejected = np.mean(permutation_test(strata).strata[0] <= 0.05)
    bounds = bootstrap_means([Stratum("", column[:, None]) for column in values.T])
    rejected_by_bootstrap = np.mean([low > 0 or high < 0 for low, high in bounds])
    assert rejected <= 0.07
    assert rejected_by_bootstrap > rejected


THIRDS = st.lists(st.integers(-3, 3), min_size=1, max_size=10)


@given(THIRDS, st.integers(1, 3))
@settings(max_examples=30)
def test_means_over_samples_have_exact_ties(thirds: list[int], strata: int) -> None:
    # As scores of three samples, 100 / 3 and 200 / 3 are not exact, and their sums neither.
    first = np.array([[100 / 3 * max(n, 0)] for n in thirds])
    second = np.array([[(0.0 + 100 * max(-n, 0)) / 3] for n in thirds])
    expected = float(_enumerated([Fraction(n) for n in thirds]))
    keys = list(range(len(thirds)))
    same = [Stratum(str(name), first - second, None, keys) for name in range(strata)]
    result = permutation_test(same)
    assert result.strata[0].tolist() == result.overall.tolist() == [expected]


def test_random_permutations_have_the_ties_of_whole_numbers() -> None:
    rng = np.random.default_rng(16)
    thirds = rng.integers(-3, 4, size=(60, 50))
    scores = np.where(thirds % 2 == 0, thirds / 3 * 100, 100 * thirds / 3)
    assert p_of(*scores.T) == p_of(*thirds.astype(float).T)


def test_test_without_a_stratum_is_rejected() -> None:
    with pytest.raises(ValueError, match="no items"):
        permutation_test([])


@given(EIGHTHS)
def test_exact_p_value_agrees_with_enumeration(values: list[float]) -> None:
    differing = [value for value in values if value]
    assert _exact_p_value(np.array(differing), 0.0) == float(_enumerated(differing))
