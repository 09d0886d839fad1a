"""Minimum detectable differences of means: McNemar's test, limits and simulated verdicts."""

from __future__ import annotations

import math

import numpy as np
import pytest
from scipy.stats import beta, norm

from numbench.stats.design import Column, Matrix, Stratum
from numbench.stats.intervals import difference_intervals
from numbench.stats.mcnemar import DiscordantCounts
from numbench.stats.permutation import permutation_test
from numbench.stats.power import minimum_detectable_difference
from numbench.stats.power_of_means import _beta_quantiles, minimum_detectable_mean_difference


def shares_of(sizes: Column, n: int) -> Column:
    return np.concatenate([sizes, np.zeros(n - len(sizes))]) / n


@pytest.mark.parametrize("differing", [1, 6, 20, 60, 300])
def test_differences_of_the_largest_size_need_the_difference_of_matches(differing: int) -> None:
    shares = shares_of(np.tile([1.0, -1.0], differing)[:differing], 400)
    expected = minimum_detectable_difference(DiscordantCounts(differing, 0, 400))
    assert minimum_detectable_mean_difference(shares, 1 / 400) == pytest.approx(expected, rel=0.015)


def test_equal_scores_have_no_minimum_detectable_difference() -> None:
    assert minimum_detectable_mean_difference(np.zeros(9), 1 / 9) is None


@pytest.mark.parametrize("n", [1, 3, 5])
def test_fewer_than_6_items_detect_no_difference(n: int) -> None:
    assert minimum_detectable_mean_difference(np.arange(1.0, n + 1), 1.0) is None


def test_undetectable_difference_above_the_maximum_is_none() -> None:
    shares = np.array([100.0, -100.0] * 3) / 6
    unlimited = minimum_detectable_mean_difference(shares, 100 / 6)
    assert unlimited and minimum_detectable_mean_difference(shares, 100 / 6, unlimited - 1) is None


def test_sizes_scale_the_difference() -> None:
    sizes = np.random.default_rng(3).beta(1, 2, 40)
    plain = minimum_detectable_mean_difference(shares_of(sizes, 300), 1 / 300)
    scaled = minimum_detectable_mean_difference(shares_of(100 * sizes, 300), 100 / 300)
    assert plain and scaled == pytest.approx(100 * plain)


@pytest.mark.parametrize(("a", "b"), [(6, 2), (8, 3), (3, 8), (60, 40), (272, 229)])
def test_beta_quantiles_are_those_of_scipy(a: int, b: int) -> None:
    shares = np.array([0.05, 0.2, 0.5, 0.8, 0.95])
    quantiles = _beta_quantiles(np.array([a]), np.array([b]), norm.ppf(shares))
    assert quantiles == pytest.approx(beta.ppf(shares, a, b), abs=0.012)


def draw(sizes: Column, n: int, differing: float, true: float, samples: int, seed: int) -> Matrix:
    """Return scores of which differences of these sizes, `true` on average, are the first."""
    rng = np.random.default_rng(seed)
    mean = float(sizes.mean())
    probability = max(differing / n, true / mean)
    values: Matrix = rng.choice(sizes, (n, samples))
    values *= rng.random(values.shape) < probability
    return values * np.where(rng.random(values.shape) < (1 + true / mean / probability) / 2, 1, -1)


RNG = np.random.default_rng(14)
SIZES = {
    "8 of 7 points": np.full(8, 0.07),
    "12 unequal": RNG.beta(1, 2, 12),
    "40 unequal": RNG.beta(1, 2, 40),
    "many small and few large": np.concatenate([np.ones(3), 0.03 * RNG.random(60)]),
    "all differ": RNG.beta(1, 2, 200),
}


@pytest.mark.parametrize("name", SIZES)
def test_80_percent_of_simulated_samples_have_a_verdict(name: str) -> None:
    sizes = SIZES[name]
    true = minimum_detectable_mean_difference(shares_of(sizes, 200), 1 / 200)
    assert true
    stratum = Stratum("", draw(sizes, 200, len(sizes), true, 1000, 15))
    (p,) = permutation_test([stratum]).strata
    power = np.mean((p <= 0.05) & (difference_intervals([stratum], 1.0).low > 0))
    # Four standard errors.
    assert power == pytest.approx(0.8, abs=4 * math.sqrt(0.16 / 1000))
