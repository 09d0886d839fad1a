"""`scores.parquet`: one row per item and run, for analyses that the tables do not hold."""

from __future__ import annotations

import io
from collections.abc import Callable, Iterable

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from bench.records import Answer
from bench.report.measured import Measured, dataset_label, display, level
from bench.scoring import Row
from bench.scoring.evidence import tool_mentions

_Getter = Callable[[Measured, str, Row], object]


def _written(answer: Answer | None) -> str | None:
    """An answer as text; a list as a JSON array of its numbers' strings."""
    if answer is None or isinstance(answer, str):
        return answer
    return msgspec.json.encode(answer).decode()


# Column → type and value; a value is None where it is not known.
_COLUMNS: dict[str, tuple[pa.DataType, _Getter]] = {
    "run": (pa.string(), lambda run, task, row: run.run.path.as_posix()),
    "model": (pa.string(), lambda run, task, row: display(run.run)),
    "reasoning": (pa.string(), lambda run, task, row: level(run.run)),
    "dataset": (pa.string(), lambda run, task, row: dataset_label(run.run)),
    "task": (pa.string(), lambda run, task, row: task),
    "item_id": (pa.string(), lambda run, task, row: row.item.id),
    "prompt": (pa.string(), lambda run, task, row: row.item.prompt),
    "answer": (pa.string(), lambda run, task, row: _written(row.item.answer)),
    "parsed": (pa.string(), lambda run, task, row: _written(row.score.parsed)),
    "text": (pa.string(), lambda run, task, row: row.response and row.response.text),
    "status": (pa.string(), lambda run, task, row: row.score.status),
    "rule": (pa.int8(), lambda run, task, row: row.score.rule),
    "exact_match": (pa.bool_(), lambda run, task, row: row.score.exact_match),
    "log_smape": (pa.float64(), lambda run, task, row: row.score.log_smape),
    "error_kind": (pa.string(), lambda run, task, row: row.score.error_kind),
    "correct_digits": (pa.int8(), lambda run, task, row: row.score.correct_digits),
    "reasoning_tokens": (
        pa.int64(),
        lambda run, task, row: row.response and row.response.usage.reasoning,
    ),
    "visible_tokens": (
        pa.int64(),
        lambda run, task, row: row.response and row.response.usage.visible,
    ),
    "generated_tokens": (
        pa.int64(),
        lambda run, task, row: row.response and row.response.usage.generated,
    ),
    "input_tokens": (pa.int64(), lambda run, task, row: row.response and row.response.usage.input),
    "tool_mentioned": (
        pa.bool_(),
        lambda run, task, row: row.response and bool(tool_mentions(row.response.reasoning_text)),
    ),
    "cost": (pa.float64(), lambda run, task, row: row.response and row.response.cost),
    "difficulty_base10": (pa.int64(), lambda run, task, row: row.item.difficulty.base10),
    "difficulty_base2": (pa.int64(), lambda run, task, row: row.item.difficulty.base2),
    "protocol": (pa.string(), lambda run, task, row: run.run.protocol),
    "signature": (pa.string(), lambda run, task, row: run.signatures[task]),
}
_SCHEMA = pa.schema([(name, kind) for name, (kind, _) in _COLUMNS.items()])


def scores_parquet(runs: Iterable[Measured]) -> bytes:
    """The whole file; one row group per run and task."""
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, _SCHEMA, compression="zstd") as writer:
        for run in runs:
            for task, rows in run.run.rows.items():
                columns = {
                    name: [get(run, task, row) for row in rows]
                    for name, (_, get) in _COLUMNS.items()
                }
                writer.write_table(pa.table(columns, schema=_SCHEMA))
    return buffer.getvalue()
