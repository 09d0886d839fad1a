"""Many questions of one task as columns, and what is worked out from their content."""

from __future__ import annotations

import hashlib
from dataclasses import dataclass, replace

import numpy as np
from numpy.typing import NDArray

from bench.batch.fixed import Flags, Ints, Numbers, magnitude, reduced
from bench.batch.words import high_product
from bench.tasks import TASKS
from bench.tasks.items import SPLIT_SHARES
from bench.tasks.numbers import HIGHEST_EXPONENT, LOWEST_EXPONENT

Hashes = NDArray[np.uint64]
_HOME_BITS = np.uint64(58)


@dataclass(frozen=True)
class Questions:
    """Rows of one task.

    operands: matrices of shape (rows, most operands); entries beyond `length` are 0.
    length: operands per row. operator: index into the task's operators. params: the sampling
    parameters. valid: rows whose attempt broke no rule of sampling.
    """

    task: str
    operands: Numbers
    length: Ints
    operator: Ints
    params: dict[str, Ints]
    valid: Flags

    def __len__(self) -> int:
        return len(self.length)

    @property
    def present(self) -> Flags:
        """Which entries of the operand matrices belong to their row's question."""
        return np.arange(self.operands.significand.shape[1]) < self.length[:, None]

    def where(self, keep: Flags | Ints) -> Questions:
        """The questions of some rows."""
        return replace(
            self,
            operands=self.operands.where(keep),
            length=self.length[keep],
            operator=self.operator[keep],
            params={name: values[keep] for name, values in self.params.items()},
            valid=self.valid[keep],
        )


def in_range(numbers: Numbers) -> Flags:
    """Whether numbers are 0 or have 10⁻¹⁴ ≤ |n| < 10¹⁵."""
    x = magnitude(numbers)
    inside = (x >= LOWEST_EXPONENT) & (x <= HIGHEST_EXPONENT)
    flags: Flags = inside | (numbers.significand == 0)
    return flags


def belongs(questions: Questions, split: str, index: int, count: int) -> Flags:
    """Which questions belong to a split and, of that, to shard `index` of `count`."""
    significand, exponent = _reduced(questions)
    mixed = _mix(np.abs(significand).astype(np.uint64) + _mix(exponent.astype(np.uint64)))
    total = np.where(questions.present, mixed, np.uint64(0)).sum(axis=1, dtype=np.uint64)
    content = _mix(total)
    bucket = (content >> _HOME_BITS).astype(np.int64)
    steps = np.cumsum(list(SPLIT_SHARES.values()))
    inside: Flags = np.searchsorted(steps, bucket, side="right") == list(SPLIT_SHARES).index(split)
    if count > 1:
        # The shift drops the six bits of the split and makes the other 58 the leading ones.
        home = high_product(content << np.uint64(6), np.uint64(count))
        inside &= home == index
    return inside


def item_hashes(questions: Questions) -> Hashes:
    """The 64 bits of each question's id, as `bench.tasks.items.item_id`."""
    operators = TASKS[questions.task].operators
    starts = [hashlib.sha256(f"{questions.task} {op}".encode()).digest()[:8] for op in operators]
    state = np.array([int.from_bytes(start, "big") for start in starts], np.uint64)
    state = state[questions.operator]
    significand, exponent = _reduced(questions)
    for column in range(significand.shape[1]):
        new = _mix(state ^ _mix(significand[:, column].astype(np.uint64)))
        new = _mix(new ^ _mix(exponent[:, column].astype(np.uint64)))
        state = np.where(column < questions.length, new, state)
    return state


def _reduced(questions: Questions) -> Numbers:
    shape = questions.operands.significand.shape
    flat = reduced(Numbers(*(part.ravel() for part in questions.operands)))
    return Numbers(flat.significand.reshape(shape), flat.exponent.reshape(shape))


def _mix(words: Hashes) -> Hashes:
    """The SplitMix64 finaliser, as `bench.tasks.items.mix`."""
    words = words + np.uint64(0x9E3779B97F4A7C15)
    words = (words ^ (words >> np.uint64(30))) * np.uint64(0xBF58476D1CE4E5B9)
    words = (words ^ (words >> np.uint64(27))) * np.uint64(0x94D049BB133111EB)
    return words ^ (words >> np.uint64(31))
