"""The items of a shard as Arrow tables: `bench.tasks.shards`, thousands at a time."""

from __future__ import annotations

from collections.abc import Iterator
from itertools import count, islice

import msgspec
import numpy as np
import pyarrow as pa

from bench.batch.distinct import Seen
from bench.batch.questions import item_hashes
from bench.batch.rows import SAMPLERS, finished, sample_questions
from bench.tasks.shards import LEAST_NEW, PATIENCE, Exhausted, Shard, items

BLOCK = 16_384
"""Attempts per batch: small enough for the cache, large enough to forget Python."""


def tables(shard: Shard, rows: int) -> Iterator[pa.Table]:
    """The first `rows` items of a shard, in order, in tables of some thousands.

    Exhausted where hardly any new ones come before that.
    """
    made = 0
    for whole in _batches(shard, rows) if shard.task in SAMPLERS else _one_by_one(shard):
        table = whole.slice(0, rows - made)
        made += len(table)
        yield table
        if made == rows:
            return


def _batches(shard: Shard, rows: int) -> Iterator[pa.Table]:
    seen = Seen(rows)
    candidates = new = 0
    for block in count():
        questions = sample_questions(shard, block * BLOCK, BLOCK)
        hashes = item_hashes(questions)
        fresh = seen.add(hashes)
        candidates, new = candidates + len(fresh), new + int(np.count_nonzero(fresh))
        yield finished(questions.where(fresh), hashes[fresh], shard.max_digits)
        if candidates >= PATIENCE:
            if new < candidates * LEAST_NEW:
                raise Exhausted(seen.count)
            candidates = new = 0


def _one_by_one(shard: Shard) -> Iterator[pa.Table]:
    """The same for a task without a batched twin, a table per thousand items."""
    source = items(shard)
    while some := list(islice(source, 1000)):
        yield pa.Table.from_pylist([msgspec.to_builtins(item) for item in some])
