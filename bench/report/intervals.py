"""95 % intervals of a mean over items: what another sample of items might have shown.

Proportions take Wilson's score interval, other means a percentile bootstrap over items. Both
speak of the items only: they do not hold what asking the same model again would change.
"""

from __future__ import annotations

import math
from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bench.stats.bootstrap import RESAMPLES
from bench.stats.draws import Matrix, bootstrap_weights
from bench.stats.normal import LEVEL, Z_LEVEL

Column = npt.NDArray[np.float64]


class Interval(NamedTuple):
    """Lower and upper bound, in the unit of what was averaged."""

    low: float
    high: float


def wilson(successes: int, n: int) -> Interval:
    """Wilson's score interval for the proportion successes / n, within [0, 1].

    ValueError without observations or with more successes than those.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} successes in {n} observations")
    z = Z_LEVEL
    p = successes / n
    shrunk = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * math.sqrt(p * (1 - p) / n + (z / (2 * n)) ** 2) / (1 + z * z / n)
    # At the ends the bound is exact, which floating point only approaches.
    low = 0.0 if successes == 0 else shrunk - half
    high = 1.0 if successes == n else shrunk + half
    return Interval(low, high)


def bootstrap_means(columns: Sequence[Column]) -> list[Interval]:
    """The percentile interval of each column's mean, in the columns' order.

    A column is resampled with replacement 10,000 times. Columns of one length share the draws,
    so an interval depends on nothing but its own column. ValueError for an empty column.
    """
    places: dict[int, list[int]] = defaultdict(list)
    for place, column in enumerate(columns):
        places[len(column)].append(place)
    found: dict[int, Interval] = {}
    if 0 in places:
        raise ValueError("a column without values has no interval")
    for alike in places.values():
        means = _resampled_means(np.stack([columns[place] for place in alike], axis=1))
        tail = 100 * (1 - LEVEL) / 2
        lows, highs = np.percentile(means, [tail, 100 - tail], axis=0)
        for place, low, high in zip(alike, lows.tolist(), highs.tolist(), strict=True):
            found[place] = Interval(low, high)
    return [found[place] for place in range(len(columns))]


def _resampled_means(values: Matrix) -> Matrix:
    """Means of shape (resamples, columns) of `values` of shape (items, columns)."""
    chunks = bootstrap_weights(len(values), RESAMPLES)
    return np.concatenate([weights @ values / len(values) for weights in chunks])
