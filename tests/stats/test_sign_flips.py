"""The sign-flip test, checked against SciPy, enumeration and the null hypothesis."""

from __future__ import annotations

from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import binomtest, permutation_test

from numbench.stats.design import Column, Stratum
from numbench.stats.random_streams import coin_flips, uniform_numbers
from numbench.stats.sign_flips import RESAMPLES, sign_flip_test


def p_of(*columns: Sequence[float] | Column) -> list[float]:
    p_values: list[float] = sign_flip_test([Stratum("a", np.array(columns).T)]).tolist()
    return p_values


def close_to(p: float) -> object:
    """A share of random sign patterns, within four standard errors."""
    return pytest.approx(p, abs=4 * (p * (1 - p) / RESAMPLES) ** 0.5 + 2 / RESAMPLES)


def enumerated(values: Sequence[Fraction]) -> float:
    """Return the share of all sign patterns with an absolute sum at least as large, exactly."""
    sums = [
        abs(sum((v * s for v, s in zip(values, signs, strict=True)), Fraction(0)))
        for signs in product((1, -1), repeat=len(values))
    ]
    return sum(total >= sums[0] for total in sums) / len(sums)


@given(st.integers(0, 700), st.integers(0, 700), st.integers(1, 50), st.floats(0.01, 100))
def test_p_of_correct_and_incorrect_answers_is_that_of_the_exact_test(
    first: int, second: int, equal: int, size: float
) -> None:
    (p,) = p_of([size] * first + [-size] * second + [0.0] * equal)
    expected = binomtest(first, first + second).pvalue if first + second else 1.0
    assert p == pytest.approx(max(expected, np.finfo(float).tiny), rel=1e-9)


def test_p_of_unequal_differences_is_that_of_scipy() -> None:
    rng = np.random.default_rng(3)
    for shift in (0.0, 0.3, 0.5):
        values = rng.normal(shift, 1, 14)
        exact = permutation_test(
            (values,), np.mean, permutation_type="samples", n_resamples=np.inf
        ).pvalue
        assert p_of(values) == [close_to(exact)]


@given(st.lists(st.integers(-3, 3), min_size=1, max_size=9), st.integers(1, 3))
@settings(max_examples=25, deadline=None)
def test_means_over_samples_have_exact_ties(thirds: list[int], tasks: int) -> None:
    # As scores of three samples, 100 / 3 and 200 / 3 are not exact, and their sums neither.
    first = np.array([[100 / 3 * max(n, 0)] for n in thirds])
    second = np.array([[(0.0 + 100 * max(-n, 0)) / 3] for n in thirds])
    expected = close_to(enumerated([Fraction(n) for n in thirds]))
    # Items that were drawn together flip together.
    keys = list(range(len(thirds)))
    same = [Stratum(str(name), first - second, None, keys) for name in range(tasks)]
    assert sign_flip_test(same).tolist() == sign_flip_test(same[:1]).tolist() == [expected]


def test_weights_make_the_mean_of_tasks_unweighted() -> None:
    strata = [Stratum("a", np.ones((3, 1))), Stratum("b", -np.ones((9, 1)))]
    weights = [np.array([1 / 3]), np.array([1 / 9])]
    expected = enumerated([Fraction(1, 3)] * 3 + [Fraction(-1, 9)] * 9)
    assert sign_flip_test(strata, weights).tolist() == [close_to(expected)] == [1.0]
    assert sign_flip_test(strata)[0] < 0.2


def test_p_is_never_0_nor_smaller_than_the_exact_one() -> None:
    values = np.random.default_rng(15).integers(1, 9, size=60).astype(float)
    assert 2.0 ** (1 - 60) <= p_of(values)[0] < 1e-8
    assert p_of([1.0, 2.0] * 3000)[0] > 0
    assert p_of([0.0] * 5, [np.nan] * 5) == [1.0, 1.0]


def test_random_numbers_never_change() -> None:
    assert uniform_numbers((4,), "addition").round(6).tolist() == UNIFORM
    (flips,) = coin_flips(5, 3, "addition")
    assert flips.tolist() == FLIPS
    (more,) = coin_flips(200, 3, "addition")
    assert more[:, :5].tolist() == FLIPS


UNIFORM = [0.846491, 0.330067, 0.446315, 0.320187]
FLIPS = [[1.0, 0.0, 0.0, 1.0, 0.0], [0.0, 1.0, 0.0, 1.0, 1.0], [1.0, 0.0, 1.0, 1.0, 0.0]]


def test_p_depends_on_its_own_column_and_items_only() -> None:
    values = np.random.default_rng(4).normal(0.1, 1, size=(60, 300))
    all_columns = sign_flip_test([Stratum("a", values), Stratum("b", values[::-1])])
    backwards = [Stratum("a", -values[:, ::-1]), Stratum("b", -values[::-1, ::-1])]
    assert sign_flip_test(backwards)[::-1].tolist() == all_columns.tolist()
    one = [Stratum("a", values[:, 299:]), Stratum("b", values[::-1, 299:])]
    assert sign_flip_test(one)[0] == all_columns[299]
    longer = np.vstack([values[:, :5], np.full((70, 5), np.nan)])
    assert p_of(*longer.T) == p_of(*values[:, :5].T)
