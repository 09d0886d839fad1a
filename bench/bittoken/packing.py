"""Samples of different lengths as one flat run of tokens."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

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
