"""Rows of different lengths in one flat array."""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]


class Ragged(NamedTuple):
    """Row i is values[starts[i] : starts[i] + lengths[i]]."""

    values: NDArray[Any]
    starts: Ints
    lengths: Ints

    @classmethod
    def of(cls, values: NDArray[Any], lengths: Ints) -> Ragged:
        """Rows that lie one after the other."""
        return cls(values, np.cumsum(lengths) - lengths, lengths)

    def places(self, rows: Ints) -> Ints:
        """Where the entries of some rows lie in `values`, one row after the other."""
        lengths = self.lengths[rows]
        before = np.cumsum(lengths) - lengths
        total = int(lengths.sum())
        return np.repeat(self.starts[rows] - before, lengths) + np.arange(total)

    def take(self, rows: Ints) -> Ragged:
        """Some rows, laid out one after the other."""
        return Ragged.of(self.values[self.places(rows)], self.lengths[rows])


def joined(first: Ragged, second: Ragged) -> Ragged:
    """The rows of `first`, then those of `second`."""
    return Ragged(
        np.concatenate([first.values, second.values]),
        np.concatenate([first.starts, second.starts + len(first.values)]),
        np.concatenate([first.lengths, second.lengths]),
    )


def row_sums(values: Ints, lengths: Ints) -> Ints:
    """The sum of each row of a flat array; every row has at least one entry."""
    sums: Ints = np.add.reduceat(values, np.cumsum(lengths) - lengths)
    return sums
