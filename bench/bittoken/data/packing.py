"""Arrays of rows with different lengths, and samples packed into one sequence."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from numpy.typing import NDArray

from bittoken.encodings.base import IntArray


class RaggedArray(NamedTuple):
    """Rows of different lengths: row i is values[starts[i] : starts[i] + lengths[i]]."""

    values: NDArray[Any]
    starts: IntArray
    lengths: IntArray

    @classmethod
    def from_lengths(cls, values: NDArray[Any], lengths: IntArray) -> RaggedArray:
        """Return contiguous rows of these lengths."""
        return cls(values, np.cumsum(lengths) - lengths, lengths)

    def flat_indices(self, rows: IntArray) -> IntArray:
        """Return the indices in `values` of the entries of some rows, concatenated."""
        lengths = self.lengths[rows]
        row_starts = np.cumsum(lengths) - lengths
        total = int(lengths.sum())
        return np.repeat(self.starts[rows] - row_starts, lengths) + np.arange(total)

    def take(self, rows: IntArray) -> RaggedArray:
        """Return some rows, stored contiguously."""
        return RaggedArray.from_lengths(self.values[self.flat_indices(rows)], self.lengths[rows])


def concatenate_rows(first: RaggedArray, second: RaggedArray) -> RaggedArray:
    """Return the rows of `first`, followed by those of `second`."""
    return RaggedArray(
        np.concatenate([first.values, second.values]),
        np.concatenate([first.starts, second.starts + len(first.values)]),
        np.concatenate([first.lengths, second.lengths]),
    )


def row_sums(values: IntArray, lengths: IntArray) -> IntArray:
    """Return the sum of each row of contiguous rows; every row has at least one entry."""
    sums: IntArray = np.add.reduceat(values, np.cumsum(lengths) - lengths)
    return sums


class Samples(NamedTuple):
    """Samples packed into one sequence without padding.

    tokens: ids, shape (T,). codes: shape (T, columns), one row per token; zeros for tokens that
    are not numbers; no columns if numbers are written as text. lengths: tokens of each sample,
    with sum T. prompt_lengths: leading tokens of each sample without loss, up to and including the
    end-of-question token (1 for text, since the first token has no context to be predicted from).
    """

    tokens: IntArray
    codes: NDArray[np.generic]
    lengths: IntArray
    prompt_lengths: IntArray

    def take(self, rows: IntArray) -> Samples:
        """Return some samples, in the order of `rows`."""
        tokens = RaggedArray.from_lengths(np.arange(len(self.tokens)), self.lengths).take(rows)
        indices, lengths = tokens.values, tokens.lengths
        return Samples(
            self.tokens[indices], self.codes[indices], lengths, self.prompt_lengths[rows]
        )


def concatenate_samples(parts: Sequence[Samples]) -> Samples:
    """Return the samples of all parts as one sequence."""
    return Samples(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
