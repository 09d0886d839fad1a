"""Percentile bootstrap over items: the mean of each stratum, and the mean over all strata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Iterator, Sequence
from typing import NamedTuple

import numpy as np

from numbench.stats.resampling import (
    Column,
    Matrix,
    Stratum,
    bootstrap_weights,
    column_batches,
    column_means,
    round_for_exact_sums,
)

CONFIDENCE_LEVEL = 0.95
RESAMPLES = 10_000
# With this many items, a resample without any counted item has a probability below e^-50.
_FEW_ITEMS = 50


class MeanIntervals(NamedTuple):
    """Mean and 95 % bounds per column, NaN for a column without items."""

    mean: Column
    low: Column
    high: Column

    def select_columns(self, part: slice) -> MeanIntervals:
        """Return the intervals of the columns in `part`."""
        return MeanIntervals(*(values[part] for values in self))


class BootstrapResult(NamedTuple):
    """Intervals per stratum, and of the unweighted mean over the independently drawn strata."""

    strata: list[MeanIntervals]
    overall: MeanIntervals


def bootstrap(strata: Sequence[Stratum]) -> BootstrapResult:
    """Return the means of all columns with their bounds; all strata have the same columns.

    The bounds of a column depend only on its own values and the names of the strata.

    Raises ValueError if there is no stratum.
    """
    if not strata:
        raise ValueError("no items to draw from")
    parts = [_bootstrap_columns(batch) for batch in column_batches(strata)]
    return BootstrapResult(
        [_concatenate([part.strata[index] for part in parts]) for index in range(len(strata))],
        _concatenate([part.overall for part in parts]),
    )


def _bootstrap_columns(strata: Sequence[Stratum]) -> BootstrapResult:
    columns = strata[0].values.shape[1]
    resampled_sum, mean_sum = np.zeros((RESAMPLES, columns)), np.zeros(columns)
    intervals = []
    for stratum in strata:
        values = round_for_exact_sums(stratum.values)
        resampled, mean = _resampled_matrix(stratum.name, values), column_means(values)
        # The NaN of a column without items in one stratum propagates to the overall mean.
        resampled_sum += resampled
        mean_sum += mean
        intervals.append(MeanIntervals(mean, *percentile_bounds(resampled)))
    overall = percentile_bounds(resampled_sum / len(strata))
    return BootstrapResult(intervals, MeanIntervals(mean_sum / len(strata), *overall))


def percentile_bounds(resampled: Matrix) -> tuple[Column, Column]:
    """Return the lower and upper 95 % bounds of each column of resampled means."""
    tail = 100 * (1 - CONFIDENCE_LEVEL) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail], axis=0)
    return low, high


def resampled_means(stream: str, columns: Sequence[Column]) -> Iterator[tuple[list[int], Matrix]]:
    """Yield the indices of all columns of one length and their means, shape (resamples, columns).

    Columns of the same length share the draws, which take most of the time. NaN entries drop out
    of a resample; an empty column has NaN means.
    """
    indices_by_length: dict[int, list[int]] = defaultdict(list)
    for index, column in enumerate(columns):
        indices_by_length[len(column)].append(index)
    for length, indices in indices_by_length.items():
        values = np.stack([columns[index] for index in indices], axis=1)
        counted = (~np.isnan(values)).astype(np.float64)
        values, start = np.nan_to_num(values), 0
        means = np.full((RESAMPLES, len(indices)), np.nan)
        for weights in bootstrap_weights(length, RESAMPLES if length else 0, stream):
            items_drawn = weights @ counted if (counted == 0).any() else length
            means[start : start + len(weights)] = weights @ values / items_drawn
            start += len(weights)
        yield indices, means


def _resampled_matrix(stream: str, values: Matrix) -> Matrix:
    resampled = np.empty((RESAMPLES, values.shape[1]))
    for indices, means in resampled_means(stream, [_items_to_draw(c) for c in values.T]):
        resampled[:, indices] = means
    return resampled


def _items_to_draw(column: Column) -> Column:
    """Return the items up to the last that counts; without the NaN entries if few items count.

    NaN entries drop out of a resample. With few items, some resamples would have no item left.
    """
    counted = np.flatnonzero(~np.isnan(column))
    if len(counted) < _FEW_ITEMS:
        return column[counted]
    return column[: counted[-1] + 1]


def _concatenate(parts: Sequence[MeanIntervals]) -> MeanIntervals:
    return MeanIntervals(*(np.concatenate(bounds) for bounds in zip(*parts, strict=True)))
