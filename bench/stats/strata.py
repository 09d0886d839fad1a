"""Scores in strata: groups of items of which each is a sample of its own."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from bench.stats.draws import Matrix

Column = npt.NDArray[np.float64]
Counts = npt.NDArray[np.int64]


class Stratum(NamedTuple):
    """One group of items; `values` of shape (items, columns), NaN where an item does not count.

    A column is one model's scores, or the difference of two models' scores, per item. The name
    chooses the random stream: strata of different names are drawn independently.
    """

    name: str
    values: Matrix

    @property
    def n(self) -> Counts:
        """Items that count, per column."""
        return np.asarray(np.count_nonzero(~np.isnan(self.values), axis=0))

    def columns(self, part: slice) -> Stratum:
        """The same items, fewer columns."""
        return Stratum(self.name, self.values[:, part])


def on_grid(values: Matrix) -> Matrix:
    """Each column rounded to multiples of a power of two so large that all its sums are exact.

    The error is below 1e-11 of the column's largest value for up to 10,000 items. In return
    sums come out the same bits in any order, on any machine, and equal sums are equal.
    """
    largest = np.max(np.abs(np.nan_to_num(values)), axis=0, initial=0.0)
    bits = 51 - len(values).bit_length()
    unit = np.ldexp(1.0, np.frexp(largest)[1] - bits)
    return np.asarray(np.round(values / unit) * unit)


def means(values: Matrix) -> Column:
    """The mean of each column, NaN for one without items."""
    n = np.count_nonzero(~np.isnan(values), axis=0)
    return np.asarray(np.nansum(values, axis=0) / np.where(n == 0, np.nan, n))
