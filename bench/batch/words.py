"""Random draws for many attempts at once: the vectorised twin of `bench.tasks.draws`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from bench.tasks.draws import Stream

Ints = NDArray[np.int64]
_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class Words:
    """The random words of a run of attempts, one column of words after another.

    Draws are int64 arrays, one entry per attempt, equal to what `Draws` gives attempt by attempt.
    """

    def __init__(self, stream: Stream, words: int, first: int, count: int) -> None:
        """Attempts first … first + count − 1 of `stream`, of `words` words each."""
        generator = np.random.Philox(key=stream.key())
        generator.advance(first * words // 4)
        skipped = first * words % 4
        flat = generator.random_raw(count * words + skipped)[skipped:]
        self._columns = np.ascontiguousarray(flat.reshape(count, words).T)
        self._next = 0

    def below(self, bound: int | Ints) -> Ints:
        """Uniform on {0 … bound−1}; bounds are below 2⁶³."""
        word = self._columns[self._next]
        self._next += 1
        return high_product(word, np.asarray(bound).astype(np.uint64)).astype(np.int64)

    def between(self, low: int | Ints, high: int | Ints) -> Ints:
        """Uniform on the integers low … high, both included."""
        return low + self.below(high - low + 1)

    def weighted(self, weights: Sequence[int]) -> Ints:
        """Indices drawn with probability proportional to integer weights."""
        steps = np.cumsum(weights)
        return np.searchsorted(steps, self.below(int(steps[-1])), side="right")


def high_product(a: NDArray[np.uint64], b: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """⌊a · b / 2⁶⁴⌋ from four 32-bit products."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    carry = a_low * b_high + (middle & _LOW)
    high: NDArray[np.uint64] = a_high * b_high + (middle >> _HALF) + (carry >> _HALF)
    return high
