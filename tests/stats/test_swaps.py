"""The randomisation test: against enumeration, against McNemar, and under the null."""

from __future__ import annotations

import random
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.stats.bootstrap import bootstrap
from bench.stats.mcnemar import mcnemar
from bench.stats.strata import Column, Stratum
from bench.stats.swaps import FLIPS, swap_p_values

EIGHTHS = st.lists(st.integers(-8, 8).map(lambda n: n / 8), min_size=1, max_size=10)


def p_of(*columns: Sequence[float], name: str = "a") -> list[float]:
    found: list[float] = swap_p_values([Stratum(name, np.array(columns).T)]).strata[0].tolist()
    return found


def _by_hand(values: Sequence[float]) -> Fraction:
    """The share of all sign changes whose sum is at least as large, in exact arithmetic."""
    exact = [Fraction(value) for value in values]
    sums = [
        abs(sum((v * s for v, s in zip(exact, signs, strict=True)), Fraction(0)))
        for signs in product((1, -1), repeat=len(exact))
    ]
    return Fraction(sum(one >= sums[0] for one in sums), len(sums))


@pytest.fixture(scope="module")
def many() -> Column:
    return np.random.default_rng(3).choice([-1.0, -0.25, 0.0, 0.25, 1.0], size=(60, 40))


def test_few_differing_items_are_swapped_in_every_way() -> None:
    rng = random.Random(5)
    columns = [[rng.choice((-1.0, -0.5, 0.0, 0.25, 0.75)) for _ in range(9)] for _ in range(30)]
    assert p_of(*columns) == [float(_by_hand(column)) for column in columns]


@pytest.mark.parametrize(("first", "second"), [(1, 0), (6, 0), (4, 1), (7, 5), (0, 0), (0, 12)])
def test_right_and_wrong_answers_give_mcnemars_p(first: int, second: int) -> None:
    assert p_of([1.0] * first + [-1.0] * second + [0.0] * 50) == [mcnemar(first, second)]


@pytest.mark.parametrize(("first", "second"), [(20, 9), (15, 14), (30, 30), (40, 70)])
def test_many_differing_items_are_swapped_at_random(first: int, second: int) -> None:
    (p,) = p_of([1.0] * first + [-1.0] * second + [0.0] * 50)
    exact = mcnemar(first, second)
    assert p == pytest.approx(exact, abs=4 * (exact * (1 - exact) / FLIPS) ** 0.5 + 1 / FLIPS)


def test_p_is_never_0() -> None:
    assert p_of([1.0] * 500) == [1 / (1 + FLIPS)]


def test_items_that_do_not_count_change_nothing(many: Column) -> None:
    gaps = many.copy()
    gaps[many == 0] = np.nan
    assert (
        swap_p_values([Stratum("a", many)]).strata[0].tolist()
        == swap_p_values([Stratum("a", gaps)]).strata[0].tolist()
    )


def test_who_comes_first_and_who_else_is_compared_change_no_bit(many: Column) -> None:
    values = many * np.random.default_rng(4).random(many.shape)
    found = swap_p_values([Stratum("a", values), Stratum("b", values[::-1])])
    turned = swap_p_values([Stratum("a", -values[:, ::-1]), Stratum("b", -values[::-1, ::-1])])
    alone = swap_p_values([Stratum("a", values[:, 7:8]), Stratum("b", values[::-1, 7:8])])
    for one, other in zip([*found.strata, found.overall], [*turned.strata, turned.overall],
                          strict=True):  # fmt: skip
        assert one.tolist() == other[::-1].tolist()
    assert alone.strata[0][0] == found.strata[0][7]
    assert alone.overall[0] == found.overall[7]


def test_more_columns_than_fit_at_once_are_all_there() -> None:
    values = np.random.default_rng(6).normal(size=(20, 300))
    found = swap_p_values([Stratum("a", values)]).strata[0]
    assert found.shape == (300,)
    assert found[299] == swap_p_values([Stratum("a", values[:, 299:])]).strata[0][0]


def test_the_mean_of_strata_weighs_each_the_same() -> None:
    small, large = np.array([[1.0], [1.0], [1.0]]), np.array([[-1.0]] * 9)
    # 3 items of 1/6 each against 9 of 1/18 each: twelve differing items, so all swaps are tried.
    weights = [Fraction(1, 6)] * 3 + [Fraction(-1, 18)] * 9
    sums = [abs(sum((w * s for w, s in zip(weights, signs, strict=True)), Fraction(0)))
            for signs in product((1, -1), repeat=12)]  # fmt: skip
    expected = sum(one >= abs(sum(weights)) for one in sums) / len(sums)
    found = swap_p_values([Stratum("a", small), Stratum("b", large)])
    assert found.overall.tolist() == [expected] == [1.0]


def test_the_mean_of_strata_shows_what_no_stratum_shows() -> None:
    rng = np.random.default_rng(8)
    strata = [Stratum(name, rng.normal(0.15, 1, size=(100, 1))) for name in "abcdefghi"]
    found = swap_p_values(strata)
    assert found.overall[0] < 0.001
    assert min(p[0] for p in found.strata) > found.overall[0]


def test_alike_models_are_told_apart_in_1_of_20_at_most_where_a_bootstrap_errs_more() -> None:
    # 500 items of which seven or so differ, as between two good models.
    rng = np.random.default_rng(9)
    values = rng.normal(size=(500, 400)) * (rng.random((500, 400)) < 0.014)
    strata = [Stratum("a", values)]
    by_swaps = np.mean(swap_p_values(strata).strata[0] <= 0.05)
    bounds = bootstrap(strata).strata[0]
    by_bootstrap = np.mean((bounds.low > 0) | (bounds.high < 0))
    assert by_swaps <= 0.07
    assert by_bootstrap > by_swaps


def test_without_a_stratum_there_is_no_test() -> None:
    with pytest.raises(ValueError, match="no items"):
        swap_p_values([])


@given(EIGHTHS)
def test_p_of_any_few_items_is_that_by_hand(values: list[float]) -> None:
    from bench.stats.swaps import _exact

    differing = [value for value in values if value]
    assert _exact(np.array(differing)) == float(_by_hand(differing))
