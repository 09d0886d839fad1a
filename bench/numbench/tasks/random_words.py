"""Reproducible random integers from the raw 64-bit words of NumPy's Philox generator.

NumPy guarantees the raw words of a generator but not the values of its distributions (NEP 19).
Integers are therefore derived from the words here, by integer arithmetic alone.
"""

from __future__ import annotations

import hashlib
from bisect import bisect_right
from collections.abc import Iterator, Sequence
from itertools import accumulate
from typing import TYPE_CHECKING, Any, NamedTuple, TypeVar

from numbench.errors import BadInput

if TYPE_CHECKING:
    import numpy as np
    from numpy.typing import NDArray

Word = TypeVar("Word", int, "NDArray[np.uint64]")
"""A 64-bit word, or an array of them."""

_MASK = (1 << 64) - 1

_MAX_ATTEMPTS, _MAX_WORDS = 256, 1 << 16
"""The attempts whose words are drawn at a time: at most so many, with so many words."""


class RandomStream(NamedTuple):
    """The address of an independent random stream."""

    seed: int
    name: str
    split: str
    shard: int

    def philox_key(self) -> int:
        """Return the 128-bit Philox key of this stream."""
        text = f"numbench|{self.seed}|{self.name}|{self.split}|{self.shard}"
        return int.from_bytes(hashlib.sha256(text.encode()).digest()[:16], "little")


class RandomWords:
    """The random words of one attempt. Each method consumes one word."""

    def __init__(self, words: Sequence[int]) -> None:
        self._words = words
        self._next = 0

    def randbelow(self, bound: int) -> int:
        """Return an integer uniform on {0 … bound−1}.

        Lemire's multiply-shift, with a bias below bound / 2⁶⁴. Raises BadInput if no word is left.
        """
        try:
            word = self._words[self._next]
        except IndexError:
            raise BadInput(
                f"the sampler of a task uses more than {len(self._words)} random words; "
                "increase Task.words_per_attempt"
            ) from None
        self._next += 1
        return word * bound >> 64

    def randint(self, low: int, high: int) -> int:
        """Return an integer uniform on {low … high}, both included."""
        return low + self.randbelow(high - low + 1)

    def weighted_index(self, weights: Sequence[int]) -> int:
        """Return an index with probability proportional to its integer weight."""
        return bisect_right([*accumulate(weights)], self.randbelow(sum(weights)))


def attempts(stream: RandomStream, words: int) -> Iterator[RandomWords]:
    """Yield attempts without end; attempt i has the words i·w … (i+1)·w − 1 for w = `words`."""
    # A slow import that is not needed to query a model.
    from numpy.random import Philox

    generator = Philox(key=stream.philox_key())
    count = max(1, min(_MAX_ATTEMPTS, _MAX_WORDS // words))
    while True:
        block = generator.random_raw(words * count).tolist()
        for start in range(0, len(block), words):
            yield RandomWords(block[start : start + words])


def splitmix64(word: Word) -> Word:
    """Apply the SplitMix64 finalizer, a bijection of 64-bit words (integers modulo 2⁶⁴)."""
    mixed: Any = (word + 0x9E3779B97F4A7C15) & _MASK
    mixed = ((mixed ^ (mixed >> 30)) * 0xBF58476D1CE4E5B9) & _MASK
    mixed = ((mixed ^ (mixed >> 27)) * 0x94D049BB133111EB) & _MASK
    result: Word = mixed ^ (mixed >> 31)
    return result
