"""Paired comparison, against SciPy, enumeration, simulation and the null hypothesis."""

import math
from collections.abc import Sequence
from fractions import Fraction
from itertools import product

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta, binomtest, permutation_test

from numbench.stats.design import Column, Stratum
from numbench.stats.paired import RESAMPLES, compare, one_sided_bounds, sign_flip_test
from numbench.stats.random_streams import coin_flips, uniform_numbers

NAN = math.nan


@pytest.fixture(scope="module")
def scores() -> Column:
    rng = np.random.default_rng(20)
    values: Column = rng.random((200, 3)) + np.array([0.0, 0.15, 0.0])
    return values


def test_only_items_that_count_for_both_models_are_paired() -> None:
    values = np.array([[1.0, 0.5], [NAN, 0.0], [0.0, NAN], [0.5, 0.5], [NAN, NAN]])
    (((result,),), _) = compare([Stratum("a", values)], [(0, 1)])
    assert result
    assert (result.n, result.difference, result.p) == (2, 0.25, 1.0)


def test_difference_is_first_minus_second_and_changes_sign_with_the_order(scores: Column) -> None:
    result = compare([Stratum("a", scores)], [(0, 1), (1, 0)], 1.5)
    first, second = result.strata[0]
    assert first and second
    assert first.difference == pytest.approx(float((scores[:, 0] - scores[:, 1]).mean()))
    same = [(each.n, each.p, each.minimum_detectable) for each in (first, second)]
    assert same[0] == same[1]
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
    # What the values scatter counts once; answers that get lost are other ones in each stratum.
    assert 0.9 * single.minimum_detectable < both.minimum_detectable <= single.minimum_detectable
    assert independent.minimum_detectable < 0.8 * both.minimum_detectable


def test_rounding_errors_of_means_are_no_differences() -> None:
    values = np.array([[0.1 + 0.2, 0.3], [0.7, 0.7], [0.6, 0.6 + 1e-16]] * 20)
    (result,) = compare([Stratum("a", values)], [(0, 1)], 1.0).strata[0]
    (equal,) = compare([Stratum("a", values[:, [1, 1]])], [(0, 1)], 1.0).strata[0]
    assert result == equal
    assert result and result.p == 1.0


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


@given(st.integers(2, 600), st.data())
@settings(max_examples=60)
def test_losses_of_the_worst_size_have_the_bound_of_clopper_and_pearson(
    n: int, data: st.DataObject
) -> None:
    losses = data.draw(st.integers(0, n - 1))
    values = np.zeros((n, 1))
    values[:losses] = -100.0
    expected = -100 * beta.ppf(0.95, losses + 1, n - losses)
    bound = float(one_sided_bounds([Stratum("", values)]).at_least[0])
    assert bound == pytest.approx(expected, rel=0.006)
    # Where it differs by more than rounding, it is on the safe side.
    assert bound <= expected + 0.002


def test_bound_is_the_quantile_of_weighted_means() -> None:
    rng = np.random.default_rng(5)
    values = rng.choice([-1.0, -0.3, 0.0, 0.1, 0.8], size=(60, 1)) * rng.random((60, 1))
    weights = rng.dirichlet(np.ones(61), 100_000)
    bounds = one_sided_bounds([Stratum("", values)], 1.0)
    for bound, worst, share in ((bounds.at_least, -1.0, 0.05), (bounds.at_most, 1.0, 0.95)):
        means = weights @ np.append(values, worst)
        assert np.mean(means < bound[0]) == pytest.approx(share, abs=0.003)


@pytest.mark.parametrize(
    ("margin", "loss", "small"), [(0.5, 1.0, 0.0), (0.6, 1.0, 0.07), (2.0, 1.0, 0.07), (1, 0.5, 0)]
)
def test_a_regression_of_the_margin_is_excluded_in_5_percent(
    margin: float, loss: float, small: float
) -> None:
    rng = np.random.default_rng(8)
    drawn = np.where(rng.random((500, 800)) < margin / 100 / loss, -loss, 0.0)
    noise = rng.choice([-small, small], drawn.shape) * (rng.random(drawn.shape) < 0.2)
    bounds = one_sided_bounds([Stratum("", np.where(drawn < 0, drawn, noise))], 1.0)
    # Three standard errors above 5 %.
    assert np.mean(bounds.at_least > -margin / 100) <= 0.05 + 3 * (0.0475 / 800) ** 0.5
