"""Percentile bootstrap over items: of the mean in each stratum, and of the mean of all strata."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench.stats.draws import Matrix, bootstrap_weights
from bench.stats.normal import LEVEL
from bench.stats.strata import Column, Stratum, means, on_grid

RESAMPLES = 10_000
_COLUMNS_AT_ONCE = 256
# Of so many items, 1 in e^50 resamples holds none.
_FEW = 50


class Bounded(NamedTuple):
    """A mean with its 95 % bounds per column, NaN for a column without items."""

    mean: Column
    low: Column
    high: Column

    def columns(self, part: slice) -> Bounded:
        """The same of fewer columns."""
        return Bounded(*(values[part] for values in self))


class Bootstrapped(NamedTuple):
    """Per stratum, and for the unweighted mean of all strata, each drawn from its own items."""

    strata: list[Bounded]
    overall: Bounded


def bootstrap(strata: Sequence[Stratum]) -> Bootstrapped:
    """The means of all columns with their bounds. All strata have the same columns.

    A column's bounds depend on nothing but its own values and the strata's names. ValueError
    without a stratum.
    """
    if not strata:
        raise ValueError("no items to draw from")
    columns = strata[0].values.shape[1]
    starts = range(0, columns, _COLUMNS_AT_ONCE) or range(1)
    parts = [_some([s.columns(slice(a, a + _COLUMNS_AT_ONCE)) for s in strata]) for a in starts]
    return Bootstrapped(
        [_joined([part.strata[place] for part in parts]) for place in range(len(strata))],
        _joined([part.overall for part in parts]),
    )


def _some(strata: Sequence[Stratum]) -> Bootstrapped:
    columns = strata[0].values.shape[1]
    resampled_sum, mean_sum = np.zeros((RESAMPLES, columns)), np.zeros(columns)
    found = []
    for stratum in strata:
        values = on_grid(stratum.values)
        resampled, mean = _resampled_means(stratum.name, values), means(values)
        # A column without items in one stratum becomes NaN for good.
        resampled_sum += resampled
        mean_sum += mean
        found.append(_bounded(mean, resampled))
    return Bootstrapped(found, _bounded(mean_sum / len(strata), resampled_sum / len(strata)))


def _bounded(mean: Column, resampled: Matrix) -> Bounded:
    tail = 100 * (1 - LEVEL) / 2
    low, high = np.percentile(resampled, [tail, 100 - tail], axis=0)
    return Bounded(mean, low, high)


def _joined(parts: Sequence[Bounded]) -> Bounded:
    return Bounded(*(np.concatenate(bounds) for bounds in zip(*parts, strict=True)))


def _resampled_means(stream: str, values: Matrix) -> Matrix:
    """Shape (resamples, columns); NaN for a column without items.

    Columns of one length share the draws, as it is those that take the time.
    """
    columns = [_drawable(column) for column in values.T]
    places: dict[int, list[int]] = defaultdict(list)
    for place, column in enumerate(columns):
        places[len(column)].append(place)
    resampled = np.full((RESAMPLES, len(columns)), np.nan)
    for length, alike in places.items():
        own = np.stack([columns[place] for place in alike], axis=1)
        counts = (~np.isnan(own)).astype(np.float64)
        own, start = np.nan_to_num(own), 0
        for weights in bootstrap_weights(length, RESAMPLES if length else 0, stream):
            drawn = weights @ counts if (counts == 0).any() else length
            resampled[start : start + len(weights), alike] = weights @ own / drawn
            start += len(weights)
    return resampled


def _drawable(column: Column) -> Column:
    """The items to draw from: up to the last that counts, or without gaps if those are few.

    What does not count drops out of a resample, which a mean over few items would not bear.
    """
    counts = np.flatnonzero(~np.isnan(column))
    if len(counts) < _FEW:
        return column[counts]
    return column[: counts[-1] + 1]
