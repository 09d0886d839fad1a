"""Writing of one file of a dataset: the rows of a shard, under a temporary name until complete."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator, Sequence
from pathlib import Path
from typing import BinaryIO

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from numbench import jsonl
from numbench.dataset.settings import POOL_SIZE, ShardFile
from numbench.dataset.store import sha256_of
from numbench.errors import BadInput
from numbench.records import FileEntry, Item
from numbench.tasks.random_words import RandomWords, attempts
from numbench.tasks.shards import MAX_ATTEMPTS_WITHOUT_ITEM, ItemsExhausted, Shard
from numbench.vectorized.jsonl_encoding import concatenated_bytes, json_lines
from numbench.vectorized.samplers import SAMPLERS
from numbench.vectorized.shards import generate_tables

RESUME_FOLDER = ".parts"
"""Folder with the entries of finished files, until the manifest replaces it."""

_ROW_GROUP = 1 << 17
_DICTIONARY_COLUMNS = ["task", "operator"]


def write_shard_file(shard_file: ShardFile, folder: Path) -> FileEntry:
    """Write one file into `folder`, then its entry in RESUME_FOLDER; return the entry.

    Raises BadInput if there are fewer distinct items than rows.
    """
    temporary = folder / f".{shard_file.file}"
    ids = hashlib.sha256()
    try:
        with temporary.open("wb") as file:
            tables = _hash_ids(generate_rows(shard_file), ids)
            if shard_file.file.endswith(".parquet"):
                _write_parquet(tables, file)
            else:
                _write_jsonl(tables, file, escape=shard_file.shard.task not in SAMPLERS)
            file.flush()
            os.fsync(file.fileno())
        entry = FileEntry(
            task=shard_file.shard.task,
            file=shard_file.file,
            items=shard_file.rows,
            bytes=temporary.stat().st_size,
            sha256=sha256_of(temporary),
            ids=ids.hexdigest(),
        )
        temporary.replace(folder / shard_file.file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    jsonl.write_json(folder / RESUME_FOLDER / f"{shard_file.file}.json", entry)
    return entry


def generate_rows(shard_file: ShardFile) -> Iterator[pa.Table]:
    """Yield the rows of a file as tables.

    Up to POOL_SIZE rows of a single shard are a subset of a pool, stratified by difficulty; more
    rows, and questions of one size, are the first items of the shard.
    """
    shard, rows = shard_file.shard, shard_file.rows
    try:
        if shard.count == 1 and rows <= POOL_SIZE and shard.question_size is None:
            yield _stratified_subset(shard_file, _pool(shard, rows))
        else:
            yield from generate_tables(shard, rows)
    except ItemsExhausted as end:
        if not end.item_count and shard.question_size is None:
            attempted = f"{MAX_ATTEMPTS_WITHOUT_ITEM * shard.count:,} attempts"
            remedy = "a larger --max-bits" if shard.max_bits else "a Task.sample that discards less"
            raise BadInput(
                f"{shard.task}: no {shard.split} item in {attempted}; use another --split, or "
                f"{remedy}"
            ) from end
        available = end.item_count * shard.count
        raise BadInput(
            f"{shard.task} has only about {available} different {shard.split} items of "
            f"{_operand_limit(shard)}"
        ) from end


def _pool(shard: Shard, rows: int) -> pa.Table:
    """Return the first POOL_SIZE items, or all items if there are fewer but at least `rows`."""
    tables: list[pa.Table] = []
    try:
        for table in generate_tables(shard, POOL_SIZE):
            tables.append(table)
    except ItemsExhausted as end:
        if end.item_count < rows:
            raise
    return pa.concat_tables(tables)


def _operand_limit(shard: Shard) -> str:
    """Return the limit of the operands, and how to get more items."""
    if shard.profile is not None:
        return f"the {shard.profile} profile; use a smaller --size"
    if shard.question_size is not None:
        return f"size {shard.question_size}; use a smaller --size or a larger --question-size"
    if shard.max_bits is None:
        return f"at most {shard.max_digits} digits; use a smaller --size or a larger --max-digits"
    return f"at most {shard.max_bits} bits; use a smaller --size or a larger --max-bits"


def _stratified_subset(shard_file: ShardFile, pool: pa.Table) -> pa.Table:
    stream = shard_file.shard.stream
    words = next(attempts(stream._replace(name=f"{stream.name}/subset"), 3 * len(pool)))
    difficulties = pool["difficulty"].combine_chunks().field("base10").to_pylist()
    return pool.take(pa.array(stratified_sample(difficulties, shard_file.rows, words)))


def _hash_ids(tables: Iterable[pa.Table], ids: hashlib._Hash) -> Iterator[pa.Table]:
    """Yield the tables unchanged, adding their item ids to the hash `ids`."""
    for table in tables:
        ids.update(concatenated_bytes(table["id"].combine_chunks()))
        yield table


def _write_jsonl(tables: Iterable[pa.Table], file: BinaryIO, escape: bool) -> None:
    """Write JSON lines. escape: strings may need escapes, as in prompts of plugin tasks."""
    for table in tables:
        if escape:
            items = msgspec.convert(table.to_pylist(), list[Item])
            file.writelines(map(jsonl.encode, items))
        else:
            file.write(json_lines(table))


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
