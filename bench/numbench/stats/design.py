"""The sampling design of a set of items, and the dispersion of scores that it leaves.

A stratified sample has the same distribution of difficulty in every repetition, so the part of the
scores' spread that difficulty explains is not sampling error. Squared differences of neighbours in
the order of difficulty contain only the rest (von Neumann 1941; Wolter 2007, chapter 8).
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Hashable, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

Indices = npt.NDArray[np.int64]
Matrix = npt.NDArray[np.float64]
Column = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


class Design(NamedTuple):
    """How items were drawn.

    order: indices of the items by the variable of the strata (difficulty), of shape (items,).
    share_per_item: share of the variance between the strata that each item removes: 1/strata −
        1/pool if one item was drawn from each stratum of a pool; 0 for independent items.
    """

    order: Indices
    share_per_item: float


class Stratum(NamedTuple):
    """One group of items; `values` of shape (items, columns), NaN if an item does not count.

    A column contains one model's scores, or the difference of two models' scores, per item. The
    name selects the random stream: strata with different names are drawn independently. design:
    None for independently drawn items. clusters: a key per item; items of different strata with
    the same key, if it is unique within each stratum, were drawn together. None if all items were
    drawn separately.
    """

    name: str
    values: Matrix
    design: Design | None = None
    clusters: Sequence[Hashable] | None = None

    @property
    def n(self) -> Counts:
        """Number of items that count, per column."""
        return np.asarray(np.count_nonzero(~np.isnan(self.values), axis=0))

    @property
    def means(self) -> Column:
        """The mean of each column, NaN for a column without items."""
        n = self.n
        return np.asarray(np.nansum(self.values, axis=0) / np.where(n == 0, np.nan, n))


def residual_squares(stratum: Stratum) -> Column:
    """Return, per column, n² times the variance of the mean, up to a factor of (n − 1)/n.

    For independent items this is the sum of squared deviations from the mean. For a complete
    stratified sample it is half the sum of squared differences of neighbours in the order of the
    strata. If only some of its items count, the strata between them are random, and the result is
    interpolated in proportion to their number.
    """
    return residual_products(stratum.values, stratum.values, stratum.design)


def residual_products(first: Matrix, second: Matrix, design: Design | None) -> Column:
    """Return the same for products of the columns of `first` and `second`, item by item.

    An item counts if it does in both. The result estimates the covariance of two sums.
    """
    counted = ~np.isnan(first + second)
    n = np.count_nonzero(counted, axis=0)
    a, b = _centred(first, counted, n), _centred(second, counted, n)
    total: Column = np.sum(a * b, axis=0)
    if design is None or not design.share_per_item:
        return total
    neighbours = _neighbour_products(a[design.order], b[design.order], counted[design.order])
    share = np.clip(n * design.share_per_item, 0.0, 1.0)
    return np.asarray(share * neighbours + (1 - share) * total)


def drawn_together(strata: Sequence[Stratum]) -> list[list[tuple[int, Indices, Indices]]]:
    """Return, per stratum, the items that were drawn together with items of earlier strata.

    As tuples: the index of the earlier stratum, the items, and those of the earlier stratum.
    """
    keys = [_unique_keys(stratum.clusters or ()) for stratum in strata]
    together: list[list[tuple[int, Indices, Indices]]] = []
    for index, own in enumerate(keys):
        together.append([])
        for earlier, others in enumerate(keys[:index]):
            if shared := [key for key in own if key in others]:
                here, there = (np.array([known[key] for key in shared]) for known in (own, others))
                together[index].append((earlier, here, there))
    return together


def sum_by_draw(strata: Sequence[Stratum], values: Sequence[Matrix]) -> list[Matrix]:
    """Add up the values of items that were drawn together, and return one matrix per stratum.

    The sum is in the row of the item of the earliest stratum; those of the others are 0, like NaN.
    """
    sums = [np.nan_to_num(matrix) for matrix in values]
    for own, together in zip(sums, drawn_together(strata), strict=True):
        for earlier, here, there in together:
            sums[earlier][there] += own[here]
            own[here] = 0.0
    return sums


def _unique_keys(keys: Sequence[Hashable]) -> dict[Hashable, int]:
    """Return key → index for the keys that occur once."""
    count = Counter(keys)
    return {key: index for index, key in enumerate(keys) if count[key] == 1}


def _centred(values: Matrix, counted: npt.NDArray[np.bool_], n: Counts) -> Matrix:
    """Subtract the mean of the items that count; the others become 0."""
    known = np.where(counted, values, 0.0)
    return np.where(counted, known - known.sum(axis=0) / np.maximum(n, 1), 0.0)


def _neighbour_products(a: Matrix, b: Matrix, counted: npt.NDArray[np.bool_]) -> Column:
    """Return half the sum of products of differences between successive items that count."""
    if counted.all():
        return np.asarray((np.diff(a, axis=0) * np.diff(b, axis=0)).sum(axis=0) / 2)
    sums = [
        float(np.diff(a[keep, column]) @ np.diff(b[keep, column])) / 2
        for column, keep in enumerate(counted.T)
    ]
    return np.array(sums)
