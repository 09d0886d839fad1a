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

    Columns with as many items share the draws; a column's items are numbered without gaps.
    """
    places: dict[int, list[int]] = defaultdict(list)
    for place, n in enumerate(np.count_nonzero(~np.isnan(values), axis=0).tolist()):
        places[n].append(place)
    resampled = np.full((RESAMPLES, values.shape[1]), np.nan)
    for n, alike in places.items():
        if n == 0:
            continue
        own = np.stack([column[~np.isnan(column)] for column in values.T[alike]], axis=1)
        start = 0
        for weights in bootstrap_weights(n, RESAMPLES, stream):
            resampled[start : start + len(weights), alike] = weights @ own / n
            start += len(weights)
    return resampled
