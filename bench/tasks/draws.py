"""Reproducible random integers: Philox words turned into draws by integer arithmetic alone.

NumPy fixes the raw 64-bit stream of its Philox generator but not what its distributions make
of it (NEP 19), so only raw words are taken from it. No float decides anything here.
"""

from __future__ import annotations

import hashlib
from collections.abc import Iterator, Sequence
from typing import NamedTuple

_CHUNK = 256


class Stream(NamedTuple):
    """The address of an independent random stream."""

    seed: int
    name: str
    split: str
    shard: int

    def key(self) -> int:
        """The 128-bit Philox key of this stream."""
        text = f"numbench|{self.seed}|{self.name}|{self.split}|{self.shard}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


class Draws:
    """The random words of one attempt, consumed in order."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words = words
        self._next = 0

    def below(self, bound: int) -> int:
        """Uniform on {0 … bound−1}, by Lemire's multiply-shift (bias below bound / 2⁶⁴)."""
        word = self._words[self._next]
        self._next += 1
        return word * bound >> 64

    def between(self, low: int, high: int) -> int:
        """Uniform on the integers low … high, both included."""
        return low + self.below(high - low + 1)

    def weighted(self, weights: Sequence[int]) -> int:
        """An index drawn with probability proportional to its integer weight."""
        left = self.below(sum(weights))
        for index, weight in enumerate(weights):
            left -= weight
            if left < 0:
                return index
        raise AssertionError("weights do not cover their own sum")


def attempts(stream: Stream, words: int) -> Iterator[Draws]:
    """Endless attempts of w = `words` words each: attempt i has words i·w … (i+1)·w − 1."""
    # Imported here, so that whoever only asks a model does not wait for it.
    from numpy.random import Philox

    generator = Philox(key=stream.key())
    while True:
        block = generator.random_raw(words * _CHUNK).tolist()
        for start in range(0, len(block), words):
            yield Draws(block[start : start + words])
