"""Making one file of a dataset: rows from a shard, written under a temporary name."""

from __future__ import annotations

import hashlib
import os
from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import BinaryIO

import pyarrow as pa
import pyarrow.parquet as pq

from bench import jsonl
from bench.batch.lines import joined, json_lines
from bench.batch.stream import tables
from bench.dataset.settings import POOL, Part
from bench.dataset.stratify import stratified
from bench.errors import BadInput
from bench.records import FileEntry
from bench.tasks.draws import attempts
from bench.tasks.shards import Exhausted

RECORDS = ".parts"
"""Folder of the finished files' entries, until the manifest takes their place."""

_ROW_GROUP = 1 << 17
_DICTIONARIES = ["task", "operator"]


def make(part: Part, folder: Path) -> FileEntry:
    """Write the file of `part` into `folder`, then the record that it is finished.

    BadInput where there are fewer different items than rows.
    """
    # One thread a worker: more would only take the time of the other workers.
    pa.set_cpu_count(1)
    temporary = folder / f".{part.file}"
    ids = hashlib.sha256()
    try:
        with temporary.open("wb") as file:
            write = _write_parquet if part.file.endswith(".parquet") else _write_jsonl
            write(_counted(rows(part), ids), file)
            file.flush()
            os.fsync(file.fileno())
        entry = FileEntry(
            task=part.shard.task,
            file=part.file,
            items=part.rows,
            bytes=temporary.stat().st_size,
            sha256=sha256_of(temporary),
            ids=ids.hexdigest(),
        )
        temporary.replace(folder / part.file)
    except BaseException:
        temporary.unlink(missing_ok=True)
        raise
    jsonl.write_json(folder / RECORDS / f"{part.file}.json", entry)
    return entry


def rows(part: Part) -> Iterator[pa.Table]:
    """The rows of a part as tables: up to POOL of them by difficulty, more as they come."""
    pooled = part.shard.count == 1 and part.rows <= POOL
    try:
        if pooled:
            yield _subset(part, pa.concat_tables(tables(part.shard, POOL)))
        else:
            yield from tables(part.shard, part.rows)
    except Exhausted as end:
        shard = part.shard
        few = end.found * shard.count
        raise BadInput(
            f"{shard.task} has only about {few} different {shard.split} items of at most "
            f"{shard.max_digits} digits: ask for a smaller --size, or for more --max-digits"
        ) from end


def sha256_of(path: Path) -> str:
    """The SHA-256 of a file, read in pieces."""
    with path.open("rb") as file:
        return hashlib.file_digest(file, "sha256").hexdigest()


def _subset(part: Part, pool: pa.Table) -> pa.Table:
    stream = part.shard.stream
    draws = next(attempts(stream._replace(name=f"{stream.name}/subset"), 3 * len(pool)))
    difficulties = pool["difficulty"].combine_chunks().field("base10").to_pylist()
    return pool.take(pa.array(stratified(difficulties, part.rows, draws)))


def _counted(source: Iterable[pa.Table], ids: hashlib._Hash) -> Iterator[pa.Table]:
    for table in source:
        ids.update(joined(table["id"].combine_chunks()))
        yield table


def _write_jsonl(source: Iterable[pa.Table], file: BinaryIO) -> None:
    for table in source:
        file.write(json_lines(table))


def _write_parquet(source: Iterable[pa.Table], file: BinaryIO) -> None:
    """Row groups of one size, wherever the source's tables end."""
    writer: pq.ParquetWriter | None = None
    waiting: list[pa.Table] = []
    for table in source:
        if writer is None:
            writer = pq.ParquetWriter(
                file, table.schema, compression="zstd", use_dictionary=_DICTIONARIES
            )
        waiting.append(table)
        if sum(map(len, waiting)) >= _ROW_GROUP:
            gathered = pa.concat_tables(waiting)
            writer.write_table(gathered.slice(0, _ROW_GROUP), row_group_size=_ROW_GROUP)
            waiting = [gathered.slice(_ROW_GROUP)]
    if writer is not None:
        writer.write_table(pa.concat_tables(waiting), row_group_size=_ROW_GROUP)
        writer.close()
