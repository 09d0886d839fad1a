"""The items of a shard as Arrow tables: vectorized equivalent of `numbench.tasks.shards`."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

import msgspec
import numpy as np
import pyarrow as pa

from numbench.errors import BadInput
from numbench.tasks.shards import (
    EXHAUSTION_WINDOW,
    MAX_ATTEMPTS_WITHOUT_ITEM,
    MIN_NEW_FRACTION,
    ItemsExhausted,
    Shard,
    generate_items,
)
from numbench.vectorized.decimal_arrays import BoolArray
from numbench.vectorized.item_tables import build_item_table, sample_questions
from numbench.vectorized.questions import Hashes, item_hashes
from numbench.vectorized.samplers import SAMPLERS

ATTEMPTS_PER_BATCH = 16_384
"""Attempts per batch: small enough for the cache, large enough to hide Python's overhead."""

_ITEMS_PER_TABLE = 1000


def generate_tables(shard: Shard, rows: int) -> Iterator[pa.Table]:
    """Yield the first `rows` items of a shard in order, in tables of some thousands.

    Tasks and profiles that are not vectorized are generated item by item. Raises ItemsExhausted
    if there are fewer distinct items.
    """
    is_vectorized = shard.task in SAMPLERS and shard.profile is None
    tables = _generate_vectorized(shard, rows) if is_vectorized else _generate_one_by_one(shard)
    finished = 0
    for whole in tables:
        table = whole.slice(0, rows - finished)
        finished += len(table)
        yield table
        if finished == rows:
            return


def _generate_vectorized(shard: Shard, rows: int) -> Iterator[pa.Table]:
    seen = SeenHashes(rows)
    candidates = new = since_item = 0
    for block in count():
        questions = sample_questions(shard, block * ATTEMPTS_PER_BATCH, ATTEMPTS_PER_BATCH)
        hashes = item_hashes(questions)
        fresh = seen.add(hashes)
        candidates, new = candidates + len(fresh), new + int(np.count_nonzero(fresh))
        yield build_item_table(questions.select(fresh), hashes[fresh], shard.max_digits)
        since_item = 0 if len(fresh) else since_item + ATTEMPTS_PER_BATCH
        if since_item >= MAX_ATTEMPTS_WITHOUT_ITEM * shard.count:
            raise ItemsExhausted(seen.count)
        if candidates >= EXHAUSTION_WINDOW:
            if new < candidates * MIN_NEW_FRACTION:
                raise ItemsExhausted(seen.count)
            candidates = new = 0


def _generate_one_by_one(shard: Shard) -> Iterator[pa.Table]:
    """Yield all items of a shard from the task's own sampler. Raises BadInput for uneven params."""
    source = generate_items(shard)
    expected: set[str] | None = None
    while items := list(islice(source, _ITEMS_PER_TABLE)):
        params = set(items[0].params) if expected is None else expected
        expected = params
        for item in items:
            if item.params.keys() != params:
                raise BadInput(
                    f"task {shard.task!r}: its questions have different params "
                    f"({', '.join(params) or 'none'}; {', '.join(item.params) or 'none'}); "
                    "Task.sample has to return the same keys each time"
                )
        yield pa.Table.from_pylist([msgspec.to_builtins(item) for item in items])


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
        candidates = np.flatnonzero(fresh & self._filter[slots])
        fresh[candidates] = ~self._contains(hashes[candidates])
        self._filter[slots] = True
        self._insert(np.sort(hashes[fresh]))
        return fresh

    def _contains(self, hashes: Hashes) -> BoolArray:
        result = np.zeros(len(hashes), np.bool_)
        for run in self._runs:
            index = np.minimum(np.searchsorted(run, hashes), len(run) - 1)
            result |= run[index] == hashes
        return result

    def _insert(self, run: Hashes) -> None:
        if not len(run):
            return
        self.count += len(run)
        self._runs.append(run)
        while len(self._runs) > 1 and len(self._runs[-2]) < 2 * len(self._runs[-1]):
            last, previous = self._runs.pop(), self._runs.pop()
            # Timsort merges two sorted runs in one pass.
            self._runs.append(np.sort(np.concatenate([previous, last]), kind="stable"))
