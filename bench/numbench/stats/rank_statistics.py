"""Rank statistics: average ranks, Spearman's correlation and quantile bins."""

from __future__ import annotations

import math

import numpy as np
import numpy.typing as npt

FloatArray = npt.NDArray[np.float64]
IntArray = npt.NDArray[np.int64]


def average_ranks(values: FloatArray) -> FloatArray:
    """Return ranks from 1; equal values share the mean of their ranks."""
    _, group, counts = np.unique(values, return_inverse=True, return_counts=True)
    last = np.cumsum(counts)
    shared: FloatArray = (2 * last - counts + 1) / 2
    return shared[group]


def spearman(x: FloatArray, y: FloatArray) -> float | None:
    """Return Spearman's rank correlation in [−1, 1]; None if all x or all y are equal.

    Raises ValueError if the arrays differ in length.
    """
    if x.shape != y.shape:
        raise ValueError(f"arrays of different lengths: {x.size} and {y.size} values")
    if x.size == 0:
        return None
    a, b = (ranks - ranks.mean() for ranks in (average_ranks(x), average_ranks(y)))
    norm = math.sqrt(float(a @ a) * float(b @ b))
    return float(a @ b) / norm if norm else None


def quantile_bins(values: FloatArray, max_bins: int) -> IntArray:
    """Return the bin of each value, numbered from 0 in ascending order of the values.

    Bins have about equal sizes. Equal values share a bin, so there may be fewer than `max_bins`.
    """
    if values.size == 0:
        return np.zeros(0, dtype=np.int64)
    ideal_bins = np.floor((average_ranks(values) - 0.5) / values.size * max_bins)
    _, bins = np.unique(ideal_bins, return_inverse=True)
    return bins.astype(np.int64)
