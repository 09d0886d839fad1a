"""Order and bins of values: rank correlation, and bins of about equal size."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

Floats = npt.NDArray[np.float64]
Ints = npt.NDArray[np.int64]


def average_ranks(values: Floats) -> Floats:
    """Ranks from 1; equal values share the mean of the ranks that they take up."""
    _, place, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: Floats = (2 * last - counts + 1) / 2
    return shared[place]


def spearman(x: Floats, y: Floats) -> float | None:
    """Spearman's rank correlation in [−1, 1]; None where all x or all y are equal.

    ValueError for columns of different lengths.
    """
    if x.shape != y.shape:
        raise ValueError(f"{x.size} values against {y.size}")
    if x.size == 0:
        return None
    a, b = (ranks - ranks.mean() for ranks in (average_ranks(x), average_ranks(y)))
    norm = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / norm if norm else None


def quantile_bins(values: Floats, most: int) -> Ints:
    """The bin of each value: at most `most`, numbered from 0 in the order of the values.

    Bins are of about equal size; equal values share one, so that there may be fewer.
    """
    if values.size == 0:
        return np.zeros(0, dtype=np.int64)
    wanted = np.floor((average_ranks(values) - 0.5) / values.size * most)
    _, bins = np.unique(wanted, return_inverse=True)
    return bins.astype(np.int64)
