"""Paired correct and wrong answers: SciPy, definitions and simulation."""

from __future__ import annotations

import math
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest

from numbench.stats.mcnemar import (
    DiscordantCounts,
    mcnemar,
    tango_interval,
)

Z = 1.959963984540054
counts = st.integers(0, 60)


@given(st.integers(0, 400), st.integers(0, 400))
def test_p_is_that_of_the_exact_binomial_test(first: int, second: int) -> None:
    assume(first + second)
    expected = binomtest(first, first + second).pvalue
    assert mcnemar(first, second) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (5, 0), (6, 1), (2, 8), (7, 7)])
def test_p_is_the_share_of_coin_tosses_at_least_as_extreme(first: int, second: int) -> None:
    tosses = list(product((1, -1), repeat=first + second))
    extreme = sum(abs(sum(toss)) >= abs(first - second) for toss in tosses)
    assert mcnemar(first, second) == float(Fraction(extreme, len(tosses)))


def test_p_of_known_counts() -> None:
    assert mcnemar(6, 0) == 0.03125
    assert mcnemar(5, 0) == 0.0625
    assert mcnemar(3, 12) == pytest.approx(0.03515625)


@given(counts, counts)
def test_p_is_symmetric_and_never_0(first: int, second: int) -> None:
    assert mcnemar(first, second) == mcnemar(second, first)
    assert 0 < mcnemar(first, second) <= 1


def test_p_of_thousands_of_items_does_not_underflow() -> None:
    assert 0 < mcnemar(5_000, 0) < 1e-300
    assert mcnemar(5_000, 5_000) == 1.0


def test_negative_counts_are_rejected() -> None:
    with pytest.raises(ValueError, match="discordant"):
        mcnemar(-1, 3)


def _most_likely(first: int, second: int, n: int, difference: float) -> float:
    """Return the maximum-likelihood discordance, given the true difference."""

    def minus_log(psi: float) -> float:
        shares = ((psi + difference) / 2, (psi - difference) / 2, 1 - psi)
        pairs = zip((first, second, n - first - second), shares, strict=True)
        return -sum(c * math.log(max(share, 1e-300)) for c, share in pairs if c)

    optimum = minimize_scalar(
        minus_log, bounds=(abs(difference), 1), method="bounded", options={"xatol": 1e-12}
    )
    return float(optimum.x)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 60))
def test_bounds_are_the_critical_values_of_the_score_test(
    first: int, second: int, rest: int
) -> None:
    n = first + second + rest
    low, high = tango_interval(DiscordantCounts(first, second, n))
    assert -1 <= low <= (first - second) / n <= high <= 1
    for bound in {low, high} - {-1.0, 1.0}:
        psi = _most_likely(first, second, n, bound)
        score = (first - second - n * bound) / math.sqrt(n * (psi - bound**2))
        assert abs(score) == pytest.approx(Z, rel=1e-3)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 60))
def test_bounds_are_mirrored_if_the_models_are_exchanged(
    first: int, second: int, rest: int
) -> None:
    n = first + second + rest
    assume(n)
    low, high = tango_interval(DiscordantCounts(first, second, n))
    assert tango_interval(DiscordantCounts(second, first, n)) == (-high, -low)


def test_bounds_have_a_width_without_discordant_items() -> None:
    low, high = tango_interval(DiscordantCounts(0, 0, 500))
    assert high == -low == pytest.approx(Z**2 / (500 + Z**2))


def test_upper_bound_of_complete_disagreement_is_1() -> None:
    low, high = tango_interval(DiscordantCounts(10, 0, 10))
    assert high == 1.0
    assert 0.4 < low < 0.8


@pytest.mark.parametrize("counts", [(0, 0, 0), (2, 2, 3), (-1, 0, 5)])
def test_impossible_counts_are_rejected(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="discordant"):
        tango_interval(DiscordantCounts(*counts))


@pytest.mark.parametrize(
    ("n", "first", "second"), [(200, 0.02, 0.01), (500, 0.02, 0.005), (50, 0.2, 0.1)]
)
def test_intervals_cover_the_true_difference_in_95_percent(
    n: int, first: float, second: float
) -> None:
    # Exact coverage: all likely counts, weighted with their probabilities.
    coverage = total = 0.0
    for b in range(30):
        for c in range(min(30, n - b)):
            outcomes = math.comb(n, b) * math.comb(n - b, c)
            probability = outcomes * first**b * second**c * (1 - first - second) ** (n - b - c)
            if probability < 1e-7:
                continue
            low, high = tango_interval(DiscordantCounts(b, c, n))
            coverage += probability * (low <= first - second <= high)
            total += probability
    assert total > 0.999
    assert 0.935 <= coverage <= 0.965


@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 60), st.integers(2, 5))
def test_design_effect_is_that_of_as_many_times_fewer_items(
    first: int, second: int, rest: int, ratio: int
) -> None:
    n = first + second + rest
    more = DiscordantCounts(ratio * first, ratio * second, ratio * n)
    expected = tango_interval(DiscordantCounts(first, second, n))
    assert tango_interval(more, design_effect=ratio) == pytest.approx(expected, abs=1e-9)


def test_narrower_bounds_have_a_lower_critical_value() -> None:
    counts = DiscordantCounts(12, 5, 300)
    low, high = tango_interval(counts)
    narrow_low, narrow_high = tango_interval(counts, 1.644854)
    assert low < narrow_low < counts.difference < narrow_high < high
