"""How often the comparison of two horizons errs, with items that both measurements share."""

import numpy as np
import pytest
from scipy.special import expit
from scipy.stats import binomtest

from numbench.horizon.estimate import HorizonShift, shift
from numbench.horizon.psychometric import Posterior

pytestmark = pytest.mark.heavy

SIZES = (4, 5, 6, 7, 8, 10, 11, 13, 16, 19, 22, 27)
ITEMS = 8
REPLICATES = 1000
H50, SLOPE = 10.0, 3.0


def simulated_shifts(
    spread: float, ratio: float = 1.0, is_shared: bool = True
) -> list[HorizonShift]:
    """Compare two simulated measurements of 8 items at each size.

    spread: standard deviation of what makes an item harder than others of its size, in logits.
    ratio: of the horizons. is_shared: whether both measurements ask the same items.
    """
    rng = np.random.default_rng(round(100 * spread) + round(10 * ratio))
    sizes = np.repeat(SIZES, ITEMS)
    shifts = []
    for _ in range(REPLICATES):
        first = spread * rng.standard_normal(len(sizes))
        second = first if is_shared else spread * rng.standard_normal(len(sizes))
        weights = []
        for horizon, hardness in ((H50, first), (H50 * ratio, second)):
            p = expit(SLOPE * (np.log(horizon) - np.log(sizes)) - hardness)
            right = (rng.random(len(sizes)) < p).reshape(-1, ITEMS).sum(axis=1)
            posterior = Posterior(SIZES)
            for size, count in zip(SIZES, right.tolist(), strict=True):
                posterior.update(size, count, ITEMS - count)
            weights.append(posterior.horizon_weights().tolist())
        shifts.append(shift(weights[0], weights[1], SIZES[0], SIZES[-1]))
    return shifts


def significant(shifts: list[HorizonShift]) -> int:
    return sum(result.p < 0.05 for result in shifts)


@pytest.mark.parametrize("spread", [0.0, 1.0, 2.0])
def test_equal_horizons_are_rarely_called_different(spread: float) -> None:
    errors = significant(simulated_shifts(spread))
    assert binomtest(errors, REPLICATES, 0.05, alternative="greater").pvalue > 0.001
    if spread:
        # What the items share makes the test conservative.
        other = significant(simulated_shifts(spread, is_shared=False))
        assert errors < other


def test_the_interval_of_the_ratio_covers_it() -> None:
    shifts = simulated_shifts(0.0, ratio=1.5)
    covered = sum(result.ratio.low <= 1.5 <= result.ratio.high for result in shifts)
    assert 0.92 <= covered / REPLICATES <= 0.98
    # Halfway between never and always detected.
    assert 0.2 < significant(shifts) / REPLICATES < 0.95
