"""95 % intervals of a mean over items, for the sampling error of the items.

Proportions use Wilson's score interval, other means a percentile bootstrap over items. The
intervals do not include the variation between repeated requests to the same model.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

from numbench.stats.bootstrap import CONFIDENCE_LEVEL, percentile_bounds, resampled_means
from numbench.stats.resampling import Column

_Z = NormalDist().inv_cdf((1 + CONFIDENCE_LEVEL) / 2)


class Interval(NamedTuple):
    """Lower and upper bound, in the unit of the averaged values."""

    low: float
    high: float


def wilson(successes: int, n: int) -> Interval:
    """Return Wilson's score interval of the proportion successes / n, within [0, 1].

    Raises ValueError if n is 0 or successes is not in 0 … n.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} successes in {n} observations")
    p = successes / n
    center = (p + _Z * _Z / (2 * n)) / (1 + _Z * _Z / n)
    half = _Z * math.sqrt(p * (1 - p) / n + (_Z / (2 * n)) ** 2) / (1 + _Z * _Z / n)
    # These bounds are exactly 0 and 1; floating point only approaches them.
    low = 0.0 if successes == 0 else center - half
    high = 1.0 if successes == n else center + half
    return Interval(low, high)


def bootstrap_means(columns: Sequence[Column]) -> list[Interval]:
    """Return the percentile interval of each column's mean, from 10,000 resamples.

    The columns may differ in length. An interval depends only on its own column.

    Raises ValueError if a column is empty.
    """
    if any(len(column) == 0 for column in columns):
        raise ValueError("a column without values has no interval")
    intervals: dict[int, Interval] = {}
    for indices, means in resampled_means("", columns):
        lows, highs = percentile_bounds(means)
        for index, low, high in zip(indices, lows.tolist(), highs.tolist(), strict=True):
            intervals[index] = Interval(low, high)
    return [intervals[index] for index in range(len(columns))]
