"""Whether a horizon moved: the posterior of the ratio of two horizons."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numbench.horizon.estimate import TaskHorizon
from numbench.horizon.psychometric import LOG2_HORIZONS, Estimate, Floats


class HorizonShift(NamedTuple):
    """The horizon of a new measurement compared with that of an old one.

    ratio: new h50 over old h50, median and 95 % interval. larger: the posterior probability that
    the new one is larger. smallest, largest: the sizes that both measurements could ask; a horizon
    beyond counts as if it were at their end, so that the ratio is then a bound.
    """

    ratio: Estimate
    larger: float
    smallest: int
    largest: int

    @property
    def p(self) -> float:
        """The two-sided p-value: twice the smaller of the probabilities of the two directions."""
        return min(1.0, 2 * min(self.larger, 1 - self.larger))


def compare_horizons(old: TaskHorizon, new: TaskHorizon) -> HorizonShift:
    """Return how far a horizon moved, from the posteriors of both as if they were independent.

    Both may have asked the same items. What these have in common makes the answers of two runs
    more alike, so the difference varies less than is assumed here: the test is conservative.
    """
    smallest, largest = max(old.smallest, new.smallest), min(old.largest, new.largest)
    return shift(old.log2_h50_weights, new.log2_h50_weights, smallest, largest)


def shift(old: Sequence[float], new: Sequence[float], smallest: int, largest: int) -> HorizonShift:
    """Return how far a horizon moved, from the posterior probabilities of `LOG2_HORIZONS`."""
    placed = np.clip(LOG2_HORIZONS, np.log2(smallest), np.log2(largest))
    old_values, old_weights = _grouped(placed, np.asarray(old))
    new_values, new_weights = _grouped(placed, np.asarray(new))
    pairs = np.outer(new_weights, old_weights).ravel()
    values, weights = _grouped((new_values[:, None] - old_values).ravel(), pairs)
    middle = np.cumsum(weights) - weights / 2
    low, value, high = np.interp((0.025, 0.5, 0.975), middle, values)
    larger = float(weights[values > 0].sum() + weights[values == 0].sum() / 2)
    return HorizonShift(Estimate(2**value, 2**low, 2**high), larger, smallest, largest)


def _grouped(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the different values, increasing, with the sum of their weights."""
    different, group = np.unique(values, return_inverse=True)
    return different, np.asarray(np.bincount(group, weights), np.float64)
