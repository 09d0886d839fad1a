"""`scores.parquet`: one row per sample of a question and run, for further analyses."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from numbench.core import jsonl
from numbench.records import Answer
from numbench.reporting.names import dataset_label, one_line
from numbench.scoring import ScoredItem, ScoredRows, ScoredRun, signature
from numbench.stats.design import Column

_ROWS_AT_ONCE = 2_000


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
    part = _Rows(run, task, rows, list(rows))
    columns = _COLUMNS.values()
    arrays = [pa.array(values(part), kind, from_pandas=True) for kind, values in columns]
    return pa.Table.from_arrays(arrays, schema=_SCHEMA)


class _Rows(NamedTuple):
    """Some rows of a run and task. read: with their questions and responses."""

    run: ScoredRun
    task: str
    rows: ScoredRows
    read: Sequence[ScoredItem]


def _answer_text(answer: Answer | None) -> str | None:
    """Return an answer as text; a list as a JSON array of strings."""
    if answer is None or isinstance(answer, str):
        return answer
    return msgspec.json.encode(answer).decode()


def _score(part: _Rows) -> Column:
    """Return the scores as in the means, 0 to 100; NaN for what does not count."""
    counts = part.rows.is_answered | (part.run.protocol == "paper")
    return np.where(counts, 100 * part.rows.headline, np.nan)


_Values = Callable[[_Rows], Any]


def _same(value: Callable[[ScoredRun, str], str]) -> _Values:
    """Return the values of a column that is the same for all rows of a run and task."""
    return lambda part: [value(part.run, part.task)] * len(part.rows)


def _of_row(value: Callable[[ScoredItem], object]) -> _Values:
    return lambda part: [value(row) for row in part.read]


def _usage(name: str) -> _Values:
    return _of_row(lambda row: row.response and getattr(row.response.usage, name))


def _column(name: str) -> _Values:
    return lambda part: part.rows.columns[name]


_COLUMNS: Mapping[str, tuple[pa.DataType, _Values]] = {
    "run": (pa.string(), _same(lambda run, task: run.path.as_posix())),
    "model": (pa.string(), _same(lambda run, task: one_line(run.info.display))),
    "reasoning": (pa.string(), _same(lambda run, task: one_line(run.info.reasoning))),
    "dataset": (pa.string(), _same(lambda run, task: dataset_label(run))),
    "task": (pa.string(), _same(lambda run, task: task)),
    "item_id": (pa.string(), _of_row(lambda row: row.item.id)),
    "sample": (pa.int32(), _column("sample")),
    "prompt": (pa.string(), _of_row(lambda row: row.item.prompt)),
    "answer": (pa.string(), _of_row(lambda row: _answer_text(row.item.answer))),
    "parsed": (pa.string(), _of_row(lambda row: _answer_text(row.score.parsed))),
    "text": (pa.string(), _of_row(lambda row: row.response and row.response.text)),
    "status": (pa.string(), _column("status")),
    "rule": (pa.string(), _column("rule")),
    "score": (pa.float64(), _score),
    "exact_match": (pa.bool_(), _column("exact_match")),
    "log_smape": (pa.float64(), _column("log_smape")),
    "error_kind": (pa.string(), _column("error_kind")),
    "correct_digits": (pa.int8(), _column("correct_digits")),
    "reasoning_tokens": (pa.int64(), _usage("reasoning")),
    "visible_tokens": (pa.int64(), _usage("visible")),
    # Those that the tables average.
    "generated_tokens": (pa.int64(), _column("tokens")),
    "input_tokens": (pa.int64(), _usage("input")),
    "cost": (pa.float64(), _column("cost")),
    "latency": (pa.float64(), _column("latency")),
    "difficulty_base10": (pa.int64(), _column("difficulty")),
    "difficulty_base2": (pa.int64(), _of_row(lambda row: row.item.difficulty.base2)),
    "protocol": (pa.string(), _same(lambda run, task: run.protocol)),
    "signature": (pa.string(), _same(signature)),
}
"""Name → type and values."""

_SCHEMA = pa.schema({name: kind for name, (kind, _) in _COLUMNS.items()})
