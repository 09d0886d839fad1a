"""Many questions of one task as columns: random words, ranges, splits and ids."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from numbench.tasks import TASKS
from numbench.tasks.base import MAX_EXPONENT, MIN_EXPONENT
from numbench.tasks.decimal_arrays import (
    BoolArray,
    DecimalArray,
    IntArray,
    magnitude,
    normalize,
)
from numbench.tasks.items import (
    SHARD_BITS,
    SPLIT_BUCKETS,
    absorb,
    initial_state,
    operand_hash,
)
from numbench.tasks.random_words import RandomStream, splitmix64

Hashes = NDArray[np.uint64]

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


def high_product(a: Hashes, b: Hashes | np.uint64) -> Hashes:
    """Return ⌊a · b / 2⁶⁴⌋ from four 32-bit products."""
    a_low, a_high, b_low, b_high = a & _LOW, a >> _HALF, b & _LOW, b >> _HALF
    middle = a_high * b_low + (a_low * b_low >> _HALF)
    carry = a_low * b_high + (middle & _LOW)
    return np.asarray(a_high * b_high + (middle >> _HALF) + (carry >> _HALF))


@dataclass(frozen=True)
class Questions:
    """The questions of one task, one per row.

    operands: matrices of shape (rows, largest number of operands); entries beyond `length` are 0.
    length: number of operands. operator: index into the task's operators. params: the sampling
    parameters.
    """

    task: str
    operands: DecimalArray
    length: IntArray
    operator: IntArray
    params: dict[str, IntArray]

    def __len__(self) -> int:
        return len(self.length)

    @property
    def present(self) -> BoolArray:
        """Whether each entry of the operand matrices is an operand of its row."""
        return np.arange(self.operands.significand.shape[1]) < self.length[:, None]

    def select(self, keep: BoolArray | IntArray) -> Questions:
        """Return the questions of some rows."""
        length, operator = self.length[keep], self.operator[keep]
        params = {name: values[keep] for name, values in self.params.items()}
        return Questions(self.task, self.operands.select(keep), length, operator, params)


def in_range(numbers: DecimalArray) -> BoolArray:
    """Return whether numbers n are 0 or 10⁻¹⁴ ≤ |n| < 10¹⁵."""
    x = magnitude(numbers)
    inside = (x >= MIN_EXPONENT) & (x <= MAX_EXPONENT)
    return np.asarray(inside | (numbers.significand == 0))


def in_shard(questions: Questions, split: str, index: int, count: int) -> BoolArray:
    """Return whether questions belong to a split and to its shard `index` of `count`."""
    significand, exponent = normalize(questions.operands)
    hashes = operand_hash(np.abs(significand).astype(np.uint64), exponent.astype(np.uint64))
    content = splitmix64(
        np.where(questions.present, hashes, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    )
    bucket, buckets = content >> SHARD_BITS, SPLIT_BUCKETS[split]
    inside: BoolArray = (bucket >= buckets.start) & (bucket < buckets.stop)
    if count > 1:
        # The shift drops the six bits of the split.
        shard = high_product(content << 64 - SHARD_BITS, np.uint64(count))
        inside &= shard == index
    return inside


def item_hashes(questions: Questions) -> Hashes:
    """Return the 64 bits of each question's id."""
    starts = [initial_state(questions.task, each) for each in TASKS[questions.task].operators]
    state = np.array(starts, np.uint64)[questions.operator]
    operands = (part.T.astype(np.uint64) for part in normalize(questions.operands))
    for column, (significand, exponent) in enumerate(zip(*operands, strict=True)):
        absorbed = absorb(state, significand, exponent)
        state = np.where(column < questions.length, absorbed, state)
    return state


_SMALLEST_FILTER, _LARGEST_FILTER = 16, 26


class SeenHashes:
    """A growing set of 64-bit hashes: a byte filter in front of sorted arrays.

    It takes 8 bytes per hash and at most 64 MiB for the filter; arrays of similar size are merged.
    """

    def __init__(self, expected: int) -> None:
        """Create an empty set, with a filter sized for `expected` hashes."""
        bits = min(max((8 * expected).bit_length(), _SMALLEST_FILTER), _LARGEST_FILTER)
        self._shift = np.uint64(64 - bits)
        self._filter = np.zeros(1 << bits, np.bool_)
        self._runs: list[Hashes] = []
        self.count = 0

    def add(self, hashes: Hashes) -> BoolArray:
        """Add `hashes`; return True for each first appearance."""
        _, first = np.unique(hashes, return_index=True)
        fresh = np.zeros(len(hashes), np.bool_)
        fresh[first] = True
        slots = (hashes >> self._shift).astype(np.int64)
        doubtful = np.flatnonzero(fresh & self._filter[slots])
        for run in self._runs:
            index = np.minimum(np.searchsorted(run, hashes[doubtful]), len(run) - 1)
            fresh[doubtful] &= run[index] != hashes[doubtful]
        self._filter[slots] = True
        run = np.sort(hashes[fresh])
        self.count += len(run)
        while self._runs and len(self._runs[-1]) < 2 * len(run):
            # Timsort merges two sorted runs in one pass.
            run = np.sort(np.concatenate([self._runs.pop(), run]), kind="stable")
        if len(run):
            self._runs.append(run)
        return fresh
