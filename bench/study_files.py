"""The study's CSV files: rows of questions and labels, and rows of responses."""

from __future__ import annotations

import csv
import math
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path
from typing import NamedTuple, TextIO

from bench.errors import BadInput
from bench.records import Response, Scalar, Usage

TOKEN_LIMIT = "Token limit reached"
"""What the study wrote in place of a response that was cut off."""

_QUESTION_COLUMNS = ("text_prompt", "answer")
_RESPONSE_COLUMNS = (*_QUESTION_COLUMNS, "raw_response")
_LARGEST_CELL = 2**31 - 1


class StudyRow(NamedTuple):
    """A question with its published label, both verbatim, and the line where its row ends."""

    line: int
    prompt: str
    label: str


def read_rows(path: Path) -> Iterator[StudyRow]:
    """The questions of a file. BadInput for what is no such CSV file, with its line."""
    for line, cells in _read(path, _QUESTION_COLUMNS):
        yield StudyRow(line, cells["text_prompt"], cells["answer"])


def read_responses(path: Path) -> Iterator[tuple[StudyRow, Response]]:
    """The questions and responses of a file; the item ids are left empty.

    `extra["study_tokens"]` is the file's `tokens` column, in the study's mixed units.
    """
    for line, cells in _read(path, _RESPONSE_COLUMNS):
        text = cells["raw_response"]
        extra: dict[str, Scalar] = {}
        tokens = _number(path, line, cells, "tokens")
        if tokens is not None:
            extra["study_tokens"] = int(tokens) if tokens.is_integer() else tokens
        response = Response(
            item_id="",
            text=text,
            reasoning_text=cells.get("reasoning") or None,
            finish_reason="length" if text.strip() == TOKEN_LIMIT else None,
            usage=_usage(path, line, cells),
            cost=_cost(path, line, cells),
            extra=extra,
        )
        yield StudyRow(line, cells["text_prompt"], cells["answer"]), response


def _read(path: Path, required: tuple[str, ...]) -> Iterator[tuple[int, dict[str, str]]]:
    """Rows as a dict by column, each with the number of the line on which it ends."""
    with _large_cells():
        try:
            with open(path, newline="", encoding="utf-8-sig") as file:
                yield from _rows(path, file, required)
        except OSError as error:
            raise BadInput(f"{path}: {error.strerror}") from error
        except UnicodeDecodeError as error:
            raise BadInput(f"{path}: not UTF-8 text ({error.reason})") from error


def _rows(
    path: Path, file: TextIO, required: tuple[str, ...]
) -> Iterator[tuple[int, dict[str, str]]]:
    reader = csv.reader(file)
    try:
        header: list[str] = next(reader, [])
        missing = [column for column in required if column not in header]
        if missing:
            raise BadInput(f"{path}, line 1: column {', '.join(missing)} is missing")
        for cells in filter(None, reader):
            if len(cells) != len(header):
                raise BadInput(
                    f"{path}, line {reader.line_num}: {len(cells)} fields, "
                    f"the header names {len(header)}"
                )
            yield reader.line_num, dict(zip(header, cells, strict=True))
    except csv.Error as error:
        raise BadInput(f"{path}, line {reader.line_num}: {error}") from error


@contextmanager
def _large_cells() -> Iterator[None]:
    """Runaway responses are larger than the csv module's default limit."""
    before = csv.field_size_limit(_LARGEST_CELL)
    try:
        yield
    finally:
        csv.field_size_limit(before)


def _usage(path: Path, line: int, cells: dict[str, str]) -> Usage:
    """Tokens in our one meaning; what the row does not say stays unknown.

    Gemini's own rows (`usage_metadata`) count visible tokens as candidates and reasoning as
    thoughts, and leave thoughts blank where there were none: the total tells. OpenRouter's
    completion tokens include reasoning.
    """

    def count(column: str) -> int | None:
        value = _number(path, line, cells, f"usage.{column}")
        return int(value) if value is not None and value >= 0 else None

    visible = count("usage_metadata.candidates_token_count")
    if visible is not None:
        sent = count("usage_metadata.prompt_token_count")
        reasoning = count("usage_metadata.thoughts_token_count")
        total = count("usage_metadata.total_token_count")
        if reasoning is None and total is not None and sent is not None and total >= sent + visible:
            reasoning = total - sent - visible
        generated = None if reasoning is None else reasoning + visible
        return Usage(
            input=sent, reasoning=reasoning, visible=visible, generated=generated, source="reported"
        )
    generated, sent = count("completion_tokens"), count("prompt_tokens")
    reasoning = count("completion_tokens_details.reasoning_tokens")
    if generated is None and sent is None:
        return Usage()
    if generated is None or (reasoning is not None and reasoning > generated):
        reasoning = None
    visible = generated - reasoning if generated is not None and reasoning is not None else None
    return Usage(
        input=sent, reasoning=reasoning, visible=visible, generated=generated, source="reported"
    )


def _cost(path: Path, line: int, cells: dict[str, str]) -> float | None:
    """The price of the inference in US dollars.

    Where the study brought its own key, `usage.cost` is the router's fee alone, and the upstream
    cost is the price.
    """
    own_key = cells.get("usage.is_byok", "").strip().lower() == "true"
    column = "usage.cost_details.upstream_inference_cost" if own_key else "usage.cost"
    return _number(path, line, cells, column)


def _number(path: Path, line: int, cells: dict[str, str], column: str) -> float | None:
    """The finite number in a cell; None for a blank cell, NaN, and a column that is not there."""
    text = cells.get(column, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise BadInput(
            f"{path}, line {line}, column {column}: {text[:40]!r} is no number"
        ) from None
    return value if math.isfinite(value) else None
