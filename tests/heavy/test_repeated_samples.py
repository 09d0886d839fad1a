"""Coverage and bias of the statistics of repeated samples, by simulation: `make heavy`."""

import math

import numpy as np
import pytest

from numbench.stats.design import Column
from numbench.stats.intervals import score_interval

pytestmark = pytest.mark.heavy

ITEMS = 500
RUNS = 4000
STEEPNESS = 10.0


def probabilities(generator: np.random.Generator, count: int) -> Column:
    """Return the success probabilities of random items: easy, hard, and some in between."""
    difficulty = generator.random(count)
    return 1 / (1 + np.exp(STEEPNESS * (difficulty - 0.4)))


def known() -> Column:
    """Return the probabilities of a fine grid of items, for expected values."""
    difficulty = (np.arange(100_000) + 0.5) / 100_000
    return 1 / (1 + np.exp(STEEPNESS * (difficulty - 0.4)))


def simulate(generator: np.random.Generator, samples: int, missing: float = 0.0) -> Column:
    """Return one run: 100 for correct samples, 0 for others, NaN for missing ones."""
    p = probabilities(generator, ITEMS)[:, None]
    values = 100.0 * (generator.random((ITEMS, samples)) < p)
    values[generator.random(values.shape) < missing] = math.nan
    return values


@pytest.mark.parametrize(
    ("samples", "missing"), [(1, 0.0), (2, 0.0), (5, 0.0), (20, 0.0), (5, 0.2)]
)
def test_the_interval_covers_the_true_mean(samples: int, missing: float) -> None:
    generator = np.random.default_rng(samples)
    truth = 100 * known().mean()
    covered = covered_by_responses = 0
    for _ in range(RUNS):
        values = simulate(generator, samples, missing)
        counts = (~np.isnan(values)).sum(axis=1)
        low, high = score_interval(np.nansum(values, axis=1)[counts > 0] / counts[counts > 0])
        covered += low <= truth <= high
        # What treating the responses as independent would give.
        low, high = score_interval(values[~np.isnan(values)])
        covered_by_responses += low <= truth <= high
    assert 0.94 <= covered / RUNS <= 0.96
    if samples >= 5:
        assert covered_by_responses / RUNS < 0.85
