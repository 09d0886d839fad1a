"""`scores.parquet`: one row per sample of a question and run, for further analyses."""

from __future__ import annotations

import io
from collections.abc import Iterable, Iterator, Sequence

import msgspec
import pyarrow as pa
import pyarrow.parquet as pq

from numbench.records import Answer
from numbench.reporting.names import dataset_label, one_line
from numbench.scoring import ScoredItem, ScoredRun, signature
from numbench.scoring.scored_run import token_counts
from numbench.scoring.tool_mentions import find_tool_mentions

_SCHEMA = pa.schema(
    {
        "run": pa.string(),
        "model": pa.string(),
        "reasoning": pa.string(),
        "dataset": pa.string(),
        "task": pa.string(),
        "item_id": pa.string(),
        "sample": pa.int32(),
        "prompt": pa.string(),
        "answer": pa.string(),
        "parsed": pa.string(),
        "text": pa.string(),
        "status": pa.string(),
        "rule": pa.string(),
        "exact_match": pa.bool_(),
        "log_smape": pa.float64(),
        "error_kind": pa.string(),
        "correct_digits": pa.int8(),
        "reasoning_tokens": pa.int64(),
        "visible_tokens": pa.int64(),
        "generated_tokens": pa.int64(),
        "input_tokens": pa.int64(),
        "tool_mentioned": pa.bool_(),
        "cost": pa.float64(),
        "difficulty_base10": pa.int64(),
        "difficulty_base2": pa.int64(),
        "protocol": pa.string(),
        "signature": pa.string(),
    }
)


def scores_parquet(runs: Iterable[ScoredRun]) -> bytes:
    """Return the content of the file, with one row group per run and task."""
    buffer = io.BytesIO()
    with pq.ParquetWriter(buffer, _SCHEMA, compression="zstd") as writer:
        for table in _tables(runs):
            writer.write_table(table)
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
            columns = {name: [value] * len(rows) for name, value in of_task.items()}
            yield pa.table({**columns, **_row_columns(run, rows)}, schema=_SCHEMA)


def _row_columns(run: ScoredRun, rows: Sequence[ScoredItem]) -> dict[str, list[object]]:
    """Return the columns that differ from row to row; an unknown value is None."""
    columns: dict[str, list[object]] = {
        "item_id": [row.item.id for row in rows],
        "prompt": [row.item.prompt for row in rows],
        "answer": [_answer_text(row.item.answer) for row in rows],
        "parsed": [_answer_text(row.score.parsed) for row in rows],
        "difficulty_base10": [row.item.difficulty.base10 for row in rows],
        "difficulty_base2": [row.item.difficulty.base2 for row in rows],
        # Those that the tables average; the protocol `paper` has its own.
        "generated_tokens": [next(map(int, token_counts(run, [row])), None) for row in rows],
    }
    for name in ("status", "rule", "exact_match", "log_smape", "error_kind", "correct_digits",
                 "sample"):  # fmt: skip
        columns[name] = [getattr(row.score, name) for row in rows]
    responses = [row.response for row in rows]
    columns["text"] = [known and known.text for known in responses]
    columns["cost"] = [known and known.cost for known in responses]
    columns["tool_mentioned"] = [
        known and bool(find_tool_mentions(known.reasoning_text)) for known in responses
    ]
    for name in ("reasoning", "visible", "input"):
        columns[f"{name}_tokens"] = [known and getattr(known.usage, name) for known in responses]
    return columns


def _answer_text(answer: Answer | None) -> str | None:
    """Return an answer as text; a list as a JSON array of strings."""
    if answer is None or isinstance(answer, str):
        return answer
    return msgspec.json.encode(answer).decode()
