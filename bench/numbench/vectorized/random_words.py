"""Random integers of many attempts: vectorized equivalent of `numbench.tasks.random_words`."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from numpy.typing import NDArray

from numbench.tasks.random_words import RandomStream
from numbench.vectorized.decimal_arrays import IntArray

_LOW, _HALF = np.uint64(0xFFFFFFFF), np.uint64(32)


class RandomWordArrays:
    """The random words of consecutive attempts. Each method consumes one word of each attempt.

    Results are int64 arrays with one entry per attempt, equal to those of `RandomWords`.
    """

    def __init__(self, stream: RandomStream, words: int, first: int, count: int) -> None:
        """Load attempts first … first + count − 1 of `stream`, with `words` words each."""
        generator = np.random.Philox(key=stream.philox_key())
        generator.advance(first * words // 4)
        skipped = first * words % 4
        flat = generator.random_raw(count * words + skipped)[skipped:]
        self._columns = np.ascontiguousarray(flat.reshape(count, words).T)
        self._next = 0

    def randbelow(self, bound: int | IntArray) -> IntArray:
        """Return integers uniform on {0 … bound−1}; bounds are below 2⁶³."""
        word = self._columns[self._next]
        self._next += 1
        return high_product(word, np.asarray(bound).astype(np.uint64)).astype(np.int64)

    def randint(self, low: int | IntArray, high: int | IntArray) -> IntArray:
        """Return integers uniform on {low … high}, both included."""
        return low + self.randbelow(high - low + 1)

    def weighted_index(self, weights: Sequence[int]) -> IntArray:
        """Return indices with probability proportional to integer weights."""
        steps = np.cumsum(weights)
        return np.searchsorted(steps, self.randbelow(int(steps[-1])), side="right")


def high_product(a: NDArray[np.uint64], b: NDArray[np.uint64] | np.uint64) -> NDArray[np.uint64]:
    """Return ⌊a · b / 2⁶⁴⌋ from four 32-bit products."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    carry = a_low * b_high + (middle & _LOW)
    high: NDArray[np.uint64] = a_high * b_high + (middle >> _HALF) + (carry >> _HALF)
    return high
