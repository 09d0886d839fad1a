"""Where training questions come from: endless streams of one task, easy and hard ones apart."""

from __future__ import annotations

from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa

from bench.batch.questions import item_hashes
from bench.batch.rows import finished, sample_questions
from bench.bittoken.data import binary
from bench.tasks.shards import Shard

BLOCK = 2048
"""Attempts at a time."""


class Blocks(Protocol):
    """An endless stream of items of one task, in blocks; each block is the same every time."""

    def block(self, number: int) -> pa.Table:
        """Items with at least the columns operands, operator, answer and difficulty."""
        ...


class Source(NamedTuple):
    """Questions of one task with operands of at most `size` decimal digits, or bits.

    Attempt i is the same in every process; the items of `split` alone ever leave it, whatever
    the seed, so that nothing drawn for training is in a test set.
    """

    task: str
    size: int
    bits: bool
    split: str
    seed: int
    process: int = 0
    max_digits: int = 15

    def block(self, number: int) -> pa.Table:
        """The items among attempts BLOCK · number … BLOCK · (number + 1) − 1."""
        first = BLOCK * number
        if self.bits:
            questions = binary.sample(
                self.task,
                self.size,
                seed=self.seed,
                split=self.split,
                index=self.process,
                first=first,
                count=BLOCK,
                max_digits=self.max_digits,
            )
        else:
            # A stream of its own for each size: equal words would give numbers alike.
            stream = self.process * 64 + self.size
            shard = Shard(self.task, self.seed, self.split, stream, 1, self.size)
            questions = sample_questions(shard, first, BLOCK)
        # The printed exponent of a root has as many digits as its stream: so must its answer.
        digits = self.max_digits if self.bits else self.size
        return finished(questions, item_hashes(questions), digits)


def sources(
    task: str, *, split: str, seed: int, process: int, max_digits: int, easy: bool, base: int
) -> list[Source]:
    """The full distribution of a task first; where `easy`, also all easier ones.

    base: 2 adds questions with few significant bits where the task has them. Each process has
    streams of its own.
    """
    whole = Source(task, max_digits, False, split, seed, process, max_digits)
    if not easy:
        return [whole]
    found = [whole._replace(size=size) for size in range(max_digits, 1, -1)]
    if base == 2 and task in binary.TASKS:
        found += [whole._replace(size=size, bits=True) for size in binary.SIZES]
    return found


def difficulties(items: pa.Table, base: int) -> np.ndarray:
    """δ of each item, on decimal or binary digits."""
    column = items["difficulty"].combine_chunks()
    return np.asarray(column.field(f"base{base}"))
