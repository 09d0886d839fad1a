"""Many questions of one task as columns; their ranges, splits and ids."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from numbench.tasks import TASKS
from numbench.tasks.items import SPLIT_SHARES
from numbench.tasks.number_sampling import MAX_EXPONENT, MIN_EXPONENT
from numbench.vectorized.decimal_arrays import (
    BoolArray,
    DecimalArray,
    IntArray,
    magnitude,
    normalize,
)
from numbench.vectorized.random_words import high_product

Hashes = NDArray[np.uint64]
_SHARD_BITS = np.uint64(58)


@dataclass(frozen=True)
class Questions:
    """The questions of one task, one per row.

    operands: matrices of shape (rows, largest number of operands); entries beyond `length` are 0.
    length: number of operands. operator: index into the task's operators. params: the sampling
    parameters. valid: False for attempts that break a rule of the sampler.
    """

    task: str
    operands: DecimalArray
    length: IntArray
    operator: IntArray
    params: dict[str, IntArray]
    valid: BoolArray

    def __len__(self) -> int:
        return len(self.length)

    @property
    def present(self) -> BoolArray:
        """Whether each entry of the operand matrices is an operand of its row."""
        return np.arange(self.operands.significand.shape[1]) < self.length[:, None]

    def select(self, keep: BoolArray | IntArray) -> Questions:
        """Return the questions of some rows."""
        return replace(
            self,
            operands=self.operands.select(keep),
            length=self.length[keep],
            operator=self.operator[keep],
            params={name: values[keep] for name, values in self.params.items()},
            valid=self.valid[keep],
        )


def in_range(numbers: DecimalArray) -> BoolArray:
    """Return whether numbers n are 0 or 10⁻¹⁴ ≤ |n| < 10¹⁵."""
    x = magnitude(numbers)
    inside = (x >= MIN_EXPONENT) & (x <= MAX_EXPONENT)
    flags: BoolArray = inside | (numbers.significand == 0)
    return flags


def in_shard(questions: Questions, split: str, index: int, count: int) -> BoolArray:
    """Return whether questions belong to a split and to its shard `index` of `count`.

    Vectorized equivalent of `split_of` and `shard_of` in `numbench.tasks.items`.
    """
    significand, exponent = _normalize(questions)
    mixed = _splitmix64(
        np.abs(significand).astype(np.uint64) + _splitmix64(exponent.astype(np.uint64))
    )
    total = np.where(questions.present, mixed, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    content = _splitmix64(total)
    bucket = (content >> _SHARD_BITS).astype(np.int64)
    steps = np.cumsum(list(SPLIT_SHARES.values()))
    inside: BoolArray = np.searchsorted(steps, bucket, side="right") == list(SPLIT_SHARES).index(
        split
    )
    if count > 1:
        # The shift drops the six bits of the split.
        shard = high_product(content << np.uint64(6), np.uint64(count))
        inside &= shard == index
    return inside


def item_hashes(questions: Questions) -> Hashes:
    """Return the 64 bits of each question's id: vectorized equivalent of `item_id`."""
    operators = TASKS[questions.task].operators
    starts = [hashlib.sha256(f"{questions.task} {op}".encode()).digest()[:8] for op in operators]
    state = np.array([int.from_bytes(start, "big") for start in starts], np.uint64)
    state = state[questions.operator]
    significand, exponent = _normalize(questions)
    for column in range(significand.shape[1]):
        new = _splitmix64(state ^ _splitmix64(significand[:, column].astype(np.uint64)))
        new = _splitmix64(new ^ _splitmix64(exponent[:, column].astype(np.uint64)))
        state = np.where(column < questions.length, new, state)
    return state


def _normalize(questions: Questions) -> DecimalArray:
    shape = questions.operands.significand.shape
    flat = normalize(DecimalArray(*(part.ravel() for part in questions.operands)))
    return DecimalArray(flat.significand.reshape(shape), flat.exponent.reshape(shape))


def _splitmix64(words: Hashes) -> Hashes:
    """Apply the SplitMix64 finaliser: vectorized `numbench.tasks.items.splitmix64`."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
