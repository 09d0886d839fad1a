"""`scores.parquet`: one row per sample of a question and run, for further analyses."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable, Iterator, Mapping

import msgspec
import pyarrow as pa
import pyarrow.json
import pyarrow.parquet as pq

from numbench.core import jsonl
from numbench.records import Answer
from numbench.reporting.names import dataset_label, one_line
from numbench.scoring import ScoredItem, ScoredRun, headline_percent, signature
from numbench.scoring.scored_run import token_counts

_ROWS_AT_ONCE = 2_000


def scores_parquet(runs: Iterable[ScoredRun]) -> bytes:
    """Return the content of the file, with one row group per run and task."""
    buffer, pool = io.BytesIO(), pa.default_memory_pool()
    # Other pools keep tens of megabytes that are free.
    pa.set_memory_pool(pa.system_memory_pool())
    try:
        with pq.ParquetWriter(buffer, _SCHEMA, compression="zstd") as writer:
            for table in _tables(runs):
                writer.write_table(table)
    finally:
        pa.set_memory_pool(pool)
    return buffer.getvalue()


def scores_table(runs: Iterable[ScoredRun]) -> pa.Table:
    """Return the same rows as a table in memory."""
    return pa.concat_tables([_SCHEMA.empty_table(), *_tables(runs)])


def _tables(runs: Iterable[ScoredRun]) -> Iterator[pa.Table]:
    for run in runs:
        for task, rows in run.rows.items():
            of_task = {
                "run": run.path.as_posix(),
                "model": one_line(run.info.display),
                "reasoning": one_line(run.info.reasoning),
                "dataset": dataset_label(run),
                "task": task,
                "protocol": run.protocol,
                "signature": signature(run, task),
            }
            parts = [
                _table([of_task | _record(run, row) for row in rows[start : start + _ROWS_AT_ONCE]])
                for start in range(0, len(rows), _ROWS_AT_ONCE)
            ]
            yield pa.concat_tables(parts or [_SCHEMA.empty_table()]).combine_chunks()


def _record(run: ScoredRun, row: ScoredItem) -> dict[str, object]:
    """Return the values of a row that others of its run and task may not have."""
    record = {name: value(row) for name, (_, value) in _COLUMNS.items() if value}
    if run.protocol == "paper":
        # Those that the tables average.
        record["generated_tokens"] = next(map(int, token_counts(run, [row])), None)
    return record


def _table(records: Iterable[Mapping[str, object]]) -> pa.Table:
    """Return records as a table by way of JSON, because `pa.array` would import pandas."""
    lines = list(map(jsonl.encode, records))
    read = pa.json.ReadOptions(use_threads=False, block_size=(1 << 20) + max(map(len, lines)))
    parse = pa.json.ParseOptions(explicit_schema=_SCHEMA)
    return pa.json.read_json(io.BytesIO(b"".join(lines)), read, parse).select(_SCHEMA.names)


def _answer_text(answer: Answer | None) -> str | None:
    """Return an answer as text; a list as a JSON array of strings."""
    if answer is None or isinstance(answer, str):
        return answer
    return msgspec.json.encode(answer).decode()


def _score(row: ScoredItem) -> float | None:
    """Return the score as in the means, 0 to 100; None for what does not count."""
    counts = row.is_answered or row.score.protocol == "paper"
    return headline_percent(row.item.task, row.score) if counts else None


def _usage(name: str) -> Callable[[ScoredItem], object]:
    return lambda row: row.response and getattr(row.response.usage, name)


_COLUMNS: Mapping[str, tuple[pa.DataType, Callable[[ScoredItem], object] | None]] = {
    "run": (pa.string(), None),
    "model": (pa.string(), None),
    "reasoning": (pa.string(), None),
    "dataset": (pa.string(), None),
    "task": (pa.string(), None),
    "item_id": (pa.string(), lambda row: row.item.id),
    "sample": (pa.int32(), lambda row: row.score.sample),
    "prompt": (pa.string(), lambda row: row.item.prompt),
    "answer": (pa.string(), lambda row: _answer_text(row.item.answer)),
    "parsed": (pa.string(), lambda row: _answer_text(row.score.parsed)),
    "text": (pa.string(), lambda row: row.response and row.response.text),
    "status": (pa.string(), lambda row: row.score.status),
    "rule": (pa.string(), lambda row: row.score.rule),
    "score": (pa.float64(), _score),
    "exact_match": (pa.bool_(), lambda row: row.score.exact_match),
    "log_smape": (pa.float64(), lambda row: row.score.log_smape),
    "error_kind": (pa.string(), lambda row: row.score.error_kind),
    "correct_digits": (pa.int8(), lambda row: row.score.correct_digits),
    "reasoning_tokens": (pa.int64(), _usage("reasoning")),
    "visible_tokens": (pa.int64(), _usage("visible")),
    "generated_tokens": (pa.int64(), _usage("generated")),
    "input_tokens": (pa.int64(), _usage("input")),
    "cost": (pa.float64(), lambda row: row.response and row.response.cost),
    "latency": (pa.float64(), lambda row: row.response and row.response.latency),
    "difficulty_base10": (pa.int64(), lambda row: row.item.difficulty.base10),
    "difficulty_base2": (pa.int64(), lambda row: row.item.difficulty.base2),
    "protocol": (pa.string(), None),
    "signature": (pa.string(), None),
}
"""Name → type, and value of a row; None: the same for all rows of a run and task."""

_SCHEMA = pa.schema({name: kind for name, (kind, _) in _COLUMNS.items()})
