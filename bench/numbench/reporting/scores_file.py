"""`scores.parquet`: one row per sample of a question and run, for further analyses."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from numbench.core import jsonl
from numbench.core.installation import read_toml
from numbench.records import Answer
from numbench.reporting.names import dataset_label, one_line
from numbench.scoring import ScoredRows, ScoredRun, signature

_ROWS_AT_ONCE = 2_000

_TYPES: dict[str, str] = read_toml(Path(__file__).with_suffix(".toml"))
_SCHEMA = pa.schema({name: getattr(pa, kind)() for name, kind in _TYPES.items()})


def write_scores(runs: Iterable[ScoredRun], path: Path) -> None:
    """Write the file, with one row group per run and task, atomically."""
    pool = pa.default_memory_pool()
    # Other pools keep tens of megabytes that are free.
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        with (
            jsonl.atomic_file(path) as file,
            pq.ParquetWriter(file, _SCHEMA, compression="zstd") as writer,
        ):
            for table in _tables(runs):
                writer.write_table(table)
    finally:
        pa.set_memory_pool(pool)


def scores_table(runs: Iterable[ScoredRun]) -> pa.Table:
    """Return the same rows as a table in memory."""
    return pa.concat_tables([_SCHEMA.empty_table(), *_tables(runs)])


def _tables(runs: Iterable[ScoredRun]) -> Iterator[pa.Table]:
    for run in runs:
        for task, rows in run.rows.items():
            starts = range(0, len(rows), _ROWS_AT_ONCE)
            parts = (_table(run, task, rows[start : start + _ROWS_AT_ONCE]) for start in starts)
            yield pa.concat_tables([_SCHEMA.empty_table(), *parts]).combine_chunks()


def _table(run: ScoredRun, task: str, rows: ScoredRows) -> pa.Table:
    values = _values(run, task, rows)
    arrays = []
    for field in _SCHEMA:
        known = values[field.name]
        # A text is the same for all rows.
        known = [known] * len(rows) if isinstance(known, str) else known
        arrays.append(pa.array(known, field.type, from_pandas=True))
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


def _values(run: ScoredRun, task: str, rows: ScoredRows) -> dict[str, Any]:
    """Return the values of each column, among others."""
    read, columns = list(rows), rows.columns
    usages = [row.response and row.response.usage for row in read]
    counts = rows.is_answered | (run.protocol == "paper")
    return {
        **{name: columns[name] for name in columns.dtype.names or ()},
        "run": run.path.as_posix(),
        "model": one_line(run.info.display),
        "reasoning": one_line(run.info.reasoning),
        "dataset": dataset_label(run),
        "task": task,
        "item_id": [row.item.id for row in read],
        "prompt": [row.item.prompt for row in read],
        "answer": [_answer_text(row.item.answer) for row in read],
        "parsed": [_answer_text(row.score.parsed) for row in read],
        "text": [row.response and row.response.text for row in read],
        # As in the means, 0 to 100; NaN for what does not count.
        "score": np.where(counts, 100 * rows.headline, np.nan),
        "reasoning_tokens": [usage and usage.reasoning for usage in usages],
        "visible_tokens": [usage and usage.visible for usage in usages],
        "generated_tokens": columns["tokens"],
        "input_tokens": [usage and usage.input for usage in usages],
        "difficulty_base10": columns["difficulty"],
        "difficulty_base2": [row.item.difficulty.base2 for row in read],
        "protocol": run.protocol,
        "signature": signature(run, task),
    }


def _answer_text(answer: Answer | None) -> str | None:
    """Return an answer as text; a list as a JSON array of strings."""
    if answer is None or isinstance(answer, str):
        return answer
    return msgspec.json.encode(answer).decode()
