"""Paired right and wrong answers: against scipy, against definitions, and by simulation."""

from __future__ import annotations

import math
import random
from fractions import Fraction
from itertools import product

import pytest
from hypothesis import assume, given
from hypothesis import strategies as st
from scipy.optimize import minimize_scalar
from scipy.stats import binomtest

from bench.stats.mcnemar import (
    Discordance,
    fewest_discordant,
    mcnemar,
    score_interval,
    smallest_difference,
)

Z = 1.959963984540054
counts = st.integers(0, 60)


@given(st.integers(0, 400), st.integers(0, 400))
def test_p_is_that_of_the_exact_binomial_test(first: int, second: int) -> None:
    assume(first + second)
    expected = binomtest(first, first + second).pvalue
    assert mcnemar(first, second) == pytest.approx(expected, rel=1e-9)


@pytest.mark.parametrize(("first", "second"), [(0, 0), (1, 0), (5, 0), (6, 1), (2, 8), (7, 7)])
def test_p_is_the_share_of_coin_tosses_at_least_as_lopsided(first: int, second: int) -> None:
    tosses = list(product((1, -1), repeat=first + second))
    extreme = sum(abs(sum(toss)) >= abs(first - second) for toss in tosses)
    assert mcnemar(first, second) == float(Fraction(extreme, len(tosses)))


def test_p_of_known_counts() -> None:
    assert mcnemar(6, 0) == 0.03125
    assert mcnemar(5, 0) == 0.0625
    assert mcnemar(3, 12) == pytest.approx(0.03515625)


@given(counts, counts)
def test_p_does_not_depend_on_who_comes_first_and_is_never_0(first: int, second: int) -> None:
    assert mcnemar(first, second) == mcnemar(second, first)
    assert 0 < mcnemar(first, second) <= 1


def test_p_of_thousands_of_items_is_tiny_but_not_0() -> None:
    assert 0 < mcnemar(5_000, 0) < 1e-300
    assert mcnemar(5_000, 5_000) == 1.0


def test_negative_counts_are_refused() -> None:
    with pytest.raises(ValueError, match="discordant"):
        mcnemar(-1, 3)


def _most_likely(first: int, second: int, n: int, difference: float) -> float:
    """The discordance that makes the counts most likely if that is the true difference."""

    def minus_log(psi: float) -> float:
        shares = ((psi + difference) / 2, (psi - difference) / 2, 1 - psi)
        pairs = zip((first, second, n - first - second), shares, strict=True)
        return -sum(c * math.log(max(share, 1e-300)) for c, share in pairs if c)

    found = minimize_scalar(
        minus_log, bounds=(abs(difference), 1), method="bounded", options={"xatol": 1e-12}
    )
    return float(found.x)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(1, 60))
def test_bounds_are_where_the_score_test_turns(first: int, second: int, rest: int) -> None:
    n = first + second + rest
    low, high = score_interval(Discordance(first, second, n))
    assert -1 <= low <= (first - second) / n <= high <= 1
    for bound in {low, high} - {-1.0, 1.0}:
        psi = _most_likely(first, second, n, bound)
        score = (first - second - n * bound) / math.sqrt(n * (psi - bound**2))
        assert abs(score) == pytest.approx(Z, rel=1e-3)


@given(st.integers(0, 20), st.integers(0, 20), st.integers(0, 60))
def test_bounds_turn_round_with_the_models(first: int, second: int, rest: int) -> None:
    n = first + second + rest
    assume(n)
    low, high = score_interval(Discordance(first, second, n))
    assert score_interval(Discordance(second, first, n)) == (-high, -low)


def test_bounds_have_a_width_where_no_item_is_discordant() -> None:
    low, high = score_interval(Discordance(0, 0, 500))
    assert high == -low == pytest.approx(Z**2 / (500 + Z**2))


def test_bounds_of_complete_disagreement_end_at_1() -> None:
    low, high = score_interval(Discordance(10, 0, 10))
    assert high == 1.0
    assert 0.4 < low < 0.8


@pytest.mark.parametrize("counts", [(0, 0, 0), (2, 2, 3), (-1, 0, 5)])
def test_impossible_counts_have_no_bounds(counts: tuple[int, int, int]) -> None:
    with pytest.raises(ValueError, match="discordant"):
        score_interval(Discordance(*counts))


def _draw(rng: random.Random, n: int, first: float, second: float) -> Discordance:
    kinds = rng.choices((0, 1, 2), (first, second, 1 - first - second), k=n)
    return Discordance(kinds.count(0), kinds.count(1), n)


@pytest.mark.parametrize(
    ("n", "first", "second"), [(200, 0.02, 0.01), (500, 0.02, 0.005), (50, 0.2, 0.1)]
)
def test_19_of_20_intervals_hold_the_true_difference(n: int, first: float, second: float) -> None:
    # All counts that happen, with their chances: no luck of the draw is in the figure.
    held = total = 0.0
    for one in range(30):
        for other in range(min(30, n - one)):
            rest = n - one - other
            ways = math.comb(n, one) * math.comb(n - one, other)
            chance = ways * first**one * second**other * (1 - first - second) ** rest
            if chance < 1e-7:
                continue
            low, high = score_interval(Discordance(one, other, n))
            held += chance * (low <= first - second <= high)
            total += chance
    assert total > 0.999
    assert 0.935 <= held <= 0.965


def test_the_smallest_difference_solves_its_equation() -> None:
    counts = Discordance(60, 40, 500)
    found, psi = smallest_difference(counts), 0.2
    assert found
    z_power = 0.8416212335729143
    right = Z * math.sqrt(psi) + z_power * math.sqrt(psi - found**2)
    assert found * math.sqrt(500) == pytest.approx(right)
    assert found == pytest.approx(0.0558997, abs=1e-7)


def test_the_smallest_difference_shows_in_4_of_5_samples() -> None:
    n, psi = 2_000, 0.1
    needed = smallest_difference(Discordance(110, 90, n))
    assert needed
    rng = random.Random(12)
    drawn = [_draw(rng, n, (psi + needed) / 2, (psi - needed) / 2) for _ in range(300)]
    shown = sum(mcnemar(counts.first_only, counts.second_only) <= 0.05 for counts in drawn)
    assert 0.7 <= shown / 300 <= 0.87


def test_no_difference_of_fewer_than_6_answers_can_show() -> None:
    assert fewest_discordant() == 6
    assert smallest_difference(Discordance(0, 0, 500)) == 6 / 500
    assert smallest_difference(Discordance(2, 0, 200)) == 6 / 200


@pytest.mark.parametrize("n", [1, 3, 5])
def test_so_few_items_show_no_difference_however_large(n: int) -> None:
    assert smallest_difference(Discordance(n, 0, n)) is None
    assert smallest_difference(Discordance(0, 0, n)) is None


def test_a_smallest_difference_is_never_more_than_all_items() -> None:
    found = [
        smallest_difference(Discordance(only, 0, n)) for n in range(6, 30) for only in range(n + 1)
    ]
    assert all(one is None or one <= 1 for one in found)
    assert found[0] == 1
