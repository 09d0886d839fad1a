"""Percentile bootstrap of means over items."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence

import numpy as np

from numbench.stats.design import Column, Matrix
from numbench.stats.resampling import bootstrap_weights

CONFIDENCE_LEVEL = 0.95
RESAMPLES = 10_000


def percentile_bounds(resampled: Matrix) -> tuple[Column, Column]:
    """Return the lower and upper 95 % bounds of each column of resampled means."""
    tail = 100 * (1 - CONFIDENCE_LEVEL) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail], axis=0)
    return low, high


def resampled_means(columns: Sequence[Column]) -> Iterator[tuple[list[int], Matrix]]:
    """Yield the indices of all columns of one length and their means, shape (resamples, columns).

    Columns of the same length share the draws, which take most of the time.
    """
    indices_by_length: dict[int, list[int]] = defaultdict(list)
    for index, column in enumerate(columns):
        indices_by_length[len(column)].append(index)
    for length, indices in indices_by_length.items():
        values, start = np.stack([columns[index] for index in indices], axis=1), 0
        means = np.full((RESAMPLES, len(indices)), np.nan)
        for weights in bootstrap_weights(length, RESAMPLES if length else 0):
            means[start : start + len(weights)] = weights @ values / length
            start += len(weights)
        yield indices, means
