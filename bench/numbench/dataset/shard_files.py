"""Writing of one file of a dataset: the rows of a shard as JSONL or Parquet."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from numbench.core import jsonl
from numbench.dataset.settings import POOL_SIZE, ShardFile
from numbench.dataset.store import file_entry
from numbench.errors import BadInput
from numbench.records import FileEntry, Item
from numbench.tasks.random_words import RandomWords, attempts
from numbench.tasks.shards import generate_tables

_ROW_GROUP = 1 << 17
_DICTIONARY_COLUMNS = ["task", "operator"]


def write_shard_file(shard_file: ShardFile, folder: Path) -> FileEntry:
    """Write one file into `folder`; return its entry in the manifest.

    Raises BadInput if there are fewer distinct items than rows.
    """
    path, ids = folder / shard_file.file, hashlib.sha256()
    with path.open("wb") as file:
        tables = _hash_ids(generate_rows(shard_file), ids)
        if path.suffix == ".parquet":
            _write_parquet(tables, file)
        else:
            rows = (row for table in tables for row in table.to_pylist())
            file.writelines(jsonl.encode(msgspec.convert(row, Item)) for row in rows)
        file.flush()
        os.fsync(file.fileno())
    return file_entry(path, shard_file.shard.task, shard_file.rows, ids.hexdigest())


def generate_rows(shard_file: ShardFile) -> Iterator[pa.Table]:
    """Yield the rows of a file as tables.

    Up to POOL_SIZE rows of a single shard are a subset of a pool, stratified by difficulty; more
    rows, and questions of one size, are the first items of the shard.
    """
    shard, rows, count = shard_file.shard, shard_file.rows, 0
    if shard.count == 1 and rows <= POOL_SIZE and shard.question_size is None:
        tables: Iterable[pa.Table] = list(generate_tables(shard, POOL_SIZE))
        if sum(map(len, tables)) >= rows:
            tables = [_stratified_subset(shard_file, pa.concat_tables(tables))]
    else:
        tables = generate_tables(shard, rows)
    for table in tables:
        count += len(table)
        yield table
    if count < rows:
        limit = f"at most {shard.max_digits} digits"
        if shard.question_size is not None:
            limit = f"size {shard.question_size}"
        elif shard.max_bits is not None:
            limit = f"at most {shard.max_bits} bits"
        raise BadInput(
            f"{shard.task} has only about {count * shard.count} different {shard.split} questions "
            f"of {limit}; use a smaller --size or larger numbers"
        )


def _stratified_subset(shard_file: ShardFile, pool: pa.Table) -> pa.Table:
    stream = shard_file.shard.stream
    words = next(attempts(stream._replace(name=f"{stream.name}/subset"), 3 * len(pool)))
    difficulties = pool["difficulty"].combine_chunks().field("base10").to_pylist()
    return pool.take(pa.array(stratified_sample(difficulties, shard_file.rows, words)))


def _hash_ids(tables: Iterable[pa.Table], ids: hashlib._Hash) -> Iterator[pa.Table]:
    """Yield the tables unchanged, adding their item ids to the hash `ids`."""
    for table in tables:
        ids.update("".join(table["id"].to_pylist()).encode())
        yield table


def _write_parquet(tables: Iterable[pa.Table], file: BinaryIO) -> None:
    """Write row groups of one size, independent of the sizes of the tables."""
    writer: pq.ParquetWriter | None = None
    buffered: list[pa.Table] = []
    for table in tables:
        if not table.schema.field("params").type.num_fields:
            # Parquet has no empty structs; readers take a missing column as no parameters.
            table = table.drop_columns("params")
        if writer is None:
            writer = pq.ParquetWriter(
                file, table.schema, compression="zstd", use_dictionary=_DICTIONARY_COLUMNS
            )
        buffered.append(table)
        if sum(map(len, buffered)) >= _ROW_GROUP:
            rows = pa.concat_tables(buffered)
            writer.write_table(rows.slice(0, _ROW_GROUP), row_group_size=_ROW_GROUP)
            buffered = [rows.slice(_ROW_GROUP)]
    if writer is not None:
        writer.write_table(pa.concat_tables(buffered), row_group_size=_ROW_GROUP)
        writer.close()


def stratified_sample(difficulties: Sequence[int], size: int, words: RandomWords) -> list[int]:
    """Return the indices of `size` items, spread evenly over the ranking by difficulty.

    The items are shuffled, ranked by difficulty (ties stay shuffled) and cut into `size`
    consecutive strata of equal length (±1); one item is drawn from each. The result is in random
    order. Uses at most 3·len(difficulties) words. Raises ValueError if there are too few items.
    """
    if size > len(difficulties):
        raise ValueError(f"cannot choose {size} of {len(difficulties)} items")
    ranked = sorted(shuffled(range(len(difficulties)), words), key=difficulties.__getitem__)
    chosen = []
    for stratum in range(size):
        low = stratum * len(ranked) // size
        high = (stratum + 1) * len(ranked) // size
        chosen.append(ranked[words.randint(low, high - 1)])
    return shuffled(chosen, words)


def shuffled(indices: Sequence[int], words: RandomWords) -> list[int]:
    """Return the indices in uniformly random order (Fisher–Yates)."""
    order = list(indices)
    for last in range(len(order) - 1, 0, -1):
        other = words.randint(0, last)
        order[last], order[other] = order[other], order[last]
    return order
