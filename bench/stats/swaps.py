"""The paired randomisation test: would swapping two models' scores on items change as much?

If the two are alike, then on every item their two scores could as well have come the other way
round. For scores of 0 and 1 this is the exact McNemar test; it holds its level with few differing
items too, where a bootstrap does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from bench.stats.draws import Matrix, coin_flips
from bench.stats.strata import Column, Stratum, on_grid

FLIPS = 19_999
ALL_WAYS_UP_TO = 12
"""With at most so many differing items every way to swap them is tried, once."""

_COLUMNS_AT_ONCE = 256
# The mean of strata is no exact sum: what differs by less counts as equal, which is careful.
_SLACK = 1e-12


class PValues(NamedTuple):
    """Two-sided p-values per column, never 0; 1 where no item differs.

    `overall` is of the unweighted mean of all strata; without meaning where one has no items.
    """

    strata: list[Column]
    overall: Column


def swap_p_values(strata: Sequence[Stratum]) -> PValues:
    """Columns are differences of two models' scores per item, NaN where one does not count.

    p is the share of swaps whose mean difference is at least as large, the one that swaps nothing
    included: of 19,999 random ones, or of all. ValueError without a stratum.
    """
    if not strata:
        raise ValueError("no items to compare")
    columns = strata[0].values.shape[1]
    starts = range(0, columns, _COLUMNS_AT_ONCE) or range(1)
    parts = [_some([s.columns(slice(a, a + _COLUMNS_AT_ONCE)) for s in strata]) for a in starts]
    return PValues(
        [np.concatenate([part.strata[place] for part in parts]) for place in range(len(strata))],
        np.concatenate([part.overall for part in parts]),
    )


def _some(strata: Sequence[Stratum]) -> PValues:
    columns = strata[0].values.shape[1]
    swapped_sum, observed_sum = np.zeros((FLIPS, columns)), np.zeros(columns)
    scaled, found = [], []
    for stratum in strata:
        values = np.nan_to_num(on_grid(stratum.values))
        share = 1 / (len(strata) * np.maximum(stratum.n, 1))
        observed = values.sum(axis=0)
        swapped = _swapped(values, stratum.name)
        found.append(_p_values(swapped, observed, values))
        swapped_sum += swapped * share
        observed_sum += observed * share
        scaled.append(values * share)
    return PValues(found, _p_values(swapped_sum, observed_sum, np.concatenate(scaled)))


def _p_values(swapped: Matrix, observed: Column, values: Matrix) -> Column:
    extreme = np.abs(swapped) >= np.abs(observed) * (1 - _SLACK)
    p = np.asarray((1 + np.count_nonzero(extreme, axis=0)) / (1 + len(swapped)))
    differing = np.count_nonzero(values, axis=0)
    for place in np.flatnonzero(differing <= ALL_WAYS_UP_TO).tolist():
        column = values[:, place]
        p[place] = _exact(column[column != 0])
    return p


def _swapped(values: Matrix, stream: str) -> Matrix:
    """The sum of each column with random signs; shape (flips, columns)."""
    sums = np.empty((FLIPS, values.shape[1]))
    start = 0
    for flips in coin_flips(len(values), FLIPS, stream):
        np.matmul(flips, -2 * values, out=sums[start : start + len(flips)])
        start += len(flips)
    sums += values.sum(axis=0)
    return sums


def _exact(values: Column) -> float:
    if not len(values):
        return 1.0
    sums = _signs(len(values)) @ values
    return float(np.mean(np.abs(sums) >= abs(values.sum()) * (1 - _SLACK)))


@cache
def _signs(items: int) -> Matrix:
    """All ways to sign items, but for the sign of the whole, which does not matter."""
    ways = np.arange(2 ** (items - 1))[:, None] >> np.arange(items)
    return np.asarray(1.0 - 2.0 * (ways & 1))
