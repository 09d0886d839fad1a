"""Numbers of items and samples: inversion of the variance, simulation and worked examples."""

from __future__ import annotations

import math
from itertools import combinations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from hypothesis.extra.numpy import arrays
from scipy.stats import binom

from numbench.stats.design import Design, Matrix, Stratum
from numbench.stats.intervals import difference_intervals, difference_variances
from numbench.stats.paired import sign_flip_test
from numbench.stats.planning import (
    ItemVariance,
    detectable_difference,
    item_variance,
    items_for_difference,
    items_for_precision,
    pass_at_k,
)

Z = 1.959963984540054


@given(
    st.floats(1, 2500), st.floats(0, 2500), st.floats(0, 1), st.integers(1, 8),
    st.sampled_from([None, 10_000]), st.floats(0.2, 5),
)  # fmt: skip
def test_items_are_the_fewest_with_the_precision(
    between: float,
    within: float,
    residual: float,
    samples: int,
    pool: int | None,
    half_width: float,
) -> None:
    variance = ItemVariance(between, within, residual)
    items = items_for_precision(variance, half_width, samples, pool)
    assert wilson_half_width(variance.of_mean(items, samples, pool), items) <= half_width
    if items > 1:
        fewer = variance.of_mean(items - 1, samples, pool)
        assert wilson_half_width(fewer, items - 1) > half_width


def wilson_half_width(variance: float, items: int) -> float:
    return Z * math.sqrt(variance + (50 * Z / items) ** 2) / (1 + Z**2 / items)


def detectable(differences: Matrix) -> list[float]:
    column = Stratum("", differences)
    found = detectable_difference(*difference_variances([column]), column.n)
    return found.tolist()  # type: ignore[no-any-return]


def test_six_items_have_to_differ() -> None:
    # The number of items that differ exceeds five with a probability of 80%.
    for items in (6, 50, 500):
        (least,) = detectable(np.zeros((items, 1)))
        assert binom.sf(5, items, least / 100) == pytest.approx(0.8, abs=0.001) or least > 96
        assert items_for_difference(ItemVariance(1.0), least) <= items
    assert np.isnan(detectable(np.zeros((5, 1)))).all()


@pytest.mark.parametrize("samples", [1, 3])
def test_residual_is_the_share_that_difficulty_does_not_explain(samples: int) -> None:
    rng = np.random.default_rng(2)
    p = np.linspace(1, 0, 3000)
    scores = 100.0 * (rng.random((3000, samples)) < p[:, None])
    variance = item_variance(scores, Design(np.arange(3000), 1 / 3000))
    remaining = variance.between * variance.residual + variance.within
    assert remaining == pytest.approx(100**2 * float(np.mean(p * (1 - p))), rel=0.08)


@pytest.mark.parametrize(("errors", "difference", "most"), [(0.002, 1.0, 1.0), (0.3, 3.0, 0.86)])
def test_planned_items_give_a_verdict_in_80_percent(
    errors: float, difference: float, most: float
) -> None:
    rng = np.random.default_rng(5)

    def scores(share: float, items: int, samples: int) -> Matrix:
        wrong = rng.random((items, samples)) < share
        return np.asarray(100 * (1 - wrong * rng.beta(1.5, 1.5, wrong.shape)))

    pilot = scores(errors, 20_000, 1)
    variance = item_variance(pilot).with_pseudo_items(500, float(pilot.mean()))
    items = items_for_difference(ItemVariance(2 * variance.between), difference)
    low = max(errors - difference / 100, 0.0)
    drawn = scores(low, items, 500) - scores(low + difference / 50, items, 500)
    stratum = Stratum("", drawn)
    p = sign_flip_test([stratum])
    power = np.mean((p <= 0.05) & (difference_intervals([stratum]).low > 0))
    # Where few items differ, the plan allows for differences of 100 points.
    assert 0.75 <= power <= most


NAN = math.nan

answers_of_items = st.lists(st.lists(st.sampled_from("cabx-"), min_size=1, max_size=7), min_size=1)
"""Per item the answers to it: `c` is the correct one, `-` is none."""


def correct_matrix(answers: list[list[str]]) -> np.ndarray:
    matrix = np.full((len(answers), max(map(len, answers))), NAN)
    for row, item in zip(matrix, answers, strict=True):
        row[: len(item)] = [answer == "c" for answer in item]
    return matrix


@given(answers_of_items, st.integers(1, 7))
def test_pass_at_k_is_the_share_of_subsets_with_a_correct_sample(
    answers: list[list[str]], k: int
) -> None:
    chances = [
        np.mean(["c" in subset for subset in combinations(item, k)])
        for item in answers
        if len(item) >= k
    ]
    result = pass_at_k(correct_matrix(answers), k)
    assert result == (pytest.approx(np.mean(chances)) if chances else None)


@given(
    arrays(np.float64, st.tuples(st.integers(2, 6), st.integers(2, 5)), elements=st.floats(0, 100))
)
def test_with_equal_numbers_of_samples_the_components_are_the_textbook_ones(
    values: np.ndarray,
) -> None:
    items, samples = values.shape
    components = item_variance(values)
    within = values.var(axis=1, ddof=1).mean()
    between = values.mean(axis=1).var(ddof=1) - within / samples
    assert components.within == pytest.approx(within, abs=1e-6)
    assert components.between == pytest.approx(between, abs=1e-6)
    # The variance of the mean of these very items follows from the components.
    if components.between >= 0:
        of_mean = values.mean(axis=1).var(ddof=1) / items
        assert components.of_mean(items, samples) == pytest.approx(of_mean, abs=1e-6)


def test_what_cannot_be_computed_is_none() -> None:
    once = np.array([[1.0], [0.0]])
    assert pass_at_k(once, 2) is None
    assert pass_at_k(np.full((2, 3), NAN), 1) is None
