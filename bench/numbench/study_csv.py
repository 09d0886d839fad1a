"""The study's CSV files: rows of questions and labels, and rows of responses."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator
from pathlib import Path
from typing import NamedTuple

from numbench.csv_files import read_csv
from numbench.errors import BadInput
from numbench.records import Failure, Response, Scalar, Usage

TOKEN_LIMIT = "Token limit reached"
"""The study's text in place of a truncated response."""

OUTPUT_LIMITS = (4096, 8000, 65535)
"""Output limits that responses of the study reached, in tokens: Qwen3 the first two at different
providers, Gemini 2.5 the third."""

_LIMIT_TOLERANCE = 15
# The study's script writes -1 if a reply reports no usage, as one that breaks off does.
_NO_USAGE = -1
_PUNCTUATION = re.compile(r'[\s{"\[:]+')
_COMPLETE_OBJECT = re.compile(r"\}\s*(?:```)?\s*\Z")

_QUESTION_COLUMNS = ("text_prompt", "answer")
_RESPONSE_COLUMNS = (*_QUESTION_COLUMNS, "raw_response")


class StudyRow(NamedTuple):
    """A question with its published label, both verbatim, and the last line of its row."""

    line: int
    prompt: str
    label: str


def read_questions(path: Path) -> Iterator[StudyRow]:
    """Yield the questions of a file. Raises BadInput with the line if it cannot be read."""
    for line, cells in read_csv(path, _QUESTION_COLUMNS):
        yield StudyRow(line, cells["text_prompt"], cells["answer"])


def read_responses(path: Path) -> Iterator[tuple[StudyRow, Response]]:
    """Yield the questions and responses of a file; the item ids are empty.

    A response without usage and without any part of an answer is a failed request. A response
    that is not complete and has the number of tokens of an output limit is truncated.
    `extra["study_tokens"]` is the file's `tokens` column, whose unit differs between providers.
    """
    for line, cells in read_csv(path, _RESPONSE_COLUMNS):
        text = cells["raw_response"]
        extra: dict[str, Scalar] = {}
        tokens = _number(path, line, cells, "tokens")
        if tokens is not None:
            extra["study_tokens"] = int(tokens) if tokens.is_integer() else tokens
        usage = _usage(path, line, cells)
        response = Response(
            item_id="",
            text=text,
            reasoning_text=cells.get("reasoning") or None,
            finish_reason="length" if _is_truncated(text, usage) else None,
            usage=usage,
            cost=_cost(path, line, cells),
            error=_failure(text) if tokens == _NO_USAGE else None,
            extra=extra,
        )
        yield StudyRow(line, cells["text_prompt"], cells["answer"]), response


def _is_truncated(text: str, usage: Usage) -> bool:
    """Return whether the output ended at a token limit.

    Gemini's counts of endless outputs end a few tokens before its limit.
    """
    if text.strip() == TOKEN_LIMIT:
        return True
    if usage.generated is None or _COMPLETE_OBJECT.search(text[-100:]):
        return False
    return any(limit - _LIMIT_TOLERANCE <= usage.generated <= limit for limit in OUTPUT_LIMITS)


def _failure(text: str) -> Failure | None:
    """Return the failure of a reply without usage; None if it contains part of an answer.

    `{"answer":` and every shorter beginning of the requested object contain none.
    """
    if not "answer".startswith(_PUNCTUATION.sub("", text)):
        return None
    message = "neither an answer nor usage in the reply (tokens = -1)"
    return Failure(kind="transient", message=message)


def _usage(path: Path, line: int, cells: dict[str, str]) -> Usage:
    """Return the tokens of a row; values that it does not have are None.

    Gemini's rows (`usage_metadata`) count visible tokens as candidates and reasoning tokens as
    thoughts. Either is blank if there were none, which follows from the total, or from a response
    without text. OpenRouter's completion tokens include reasoning.
    """

    def count(column: str) -> int | None:
        value = _number(path, line, cells, f"usage.{column}")
        return int(value) if value is not None and value >= 0 else None

    visible = count("usage_metadata.candidates_token_count")
    reasoning = count("usage_metadata.thoughts_token_count")
    if visible is not None or reasoning is not None:
        prompt = count("usage_metadata.prompt_token_count")
        total = count("usage_metadata.total_token_count")
        if visible is None and cells["raw_response"].strip() in ("", TOKEN_LIMIT):
            visible = 0
        known = (visible or 0) + (reasoning or 0)
        if prompt is not None and total is not None and total >= prompt + known:
            rest = total - prompt - known
            visible = rest if visible is None else visible
            reasoning = rest if reasoning is None else reasoning
        generated = None if visible is None or reasoning is None else visible + reasoning
        return Usage(
            input=prompt,
            reasoning=reasoning,
            visible=visible,
            generated=generated,
            source="reported",
        )
    generated, prompt = count("completion_tokens"), count("prompt_tokens")
    reasoning = count("completion_tokens_details.reasoning_tokens")
    if generated is None and prompt is None:
        return Usage()
    if generated is None or (reasoning is not None and reasoning > generated):
        reasoning = None
    visible = generated - reasoning if generated is not None and reasoning is not None else None
    return Usage(
        input=prompt, reasoning=reasoning, visible=visible, generated=generated, source="reported"
    )


def _cost(path: Path, line: int, cells: dict[str, str]) -> float | None:
    """Return the price of the inference in US dollars.

    For requests with the study's own provider key (BYOK), `usage.cost` is only the router's fee,
    and the upstream cost is the price.
    """
    own_key = cells.get("usage.is_byok", "").strip().lower() == "true"
    column = "usage.cost_details.upstream_inference_cost" if own_key else "usage.cost"
    return _number(path, line, cells, column)


def _number(path: Path, line: int, cells: dict[str, str], column: str) -> float | None:
    """Return the finite number in a cell; None if it is blank, not finite, or has no column."""
    text = cells.get(column, "").strip()
    if not text:
        return None
    try:
        value = float(text)
    except ValueError:
        raise BadInput(
            f"{path}, line {line}, column {column}: {text[:40]!r} is not a number"
        ) from None
    return value if math.isfinite(value) else None
