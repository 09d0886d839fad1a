"""Samples of different lengths as one flat run of tokens."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

from bench.bittoken.data.ragged import Ragged

Ints = NDArray[np.int64]


class Samples(NamedTuple):
    """Samples one after the other, without filling between them.

    tokens: ids, shape (T,). codes: a row per token, shape (T, columns); zeros where the token is
    no number; no columns where numbers are spelled. lengths: tokens of each sample, summing to T.
    questions: tokens of each sample that carry no loss, the end-of-question token included
    (for text 1: the first token has nothing to be predicted from).
    """

    tokens: Ints
    codes: NDArray[np.generic]
    lengths: Ints
    questions: Ints

    def take(self, rows: Ints) -> Samples:
        """Some samples, in the order of `rows`."""
        tokens = Ragged.of(np.arange(len(self.tokens)), self.lengths).take(rows)
        places, lengths = tokens.values, tokens.lengths
        return Samples(self.tokens[places], self.codes[places], lengths, self.questions[rows])


def concatenated(parts: Sequence[Samples]) -> Samples:
    """The samples of all parts, one after the other."""
    return Samples(*(np.concatenate(columns) for columns in zip(*parts, strict=True)))
