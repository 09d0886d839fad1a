"""Reading what servers send: JSON, fields by path (`a.b`: nested), usage, and server-sent events.

Requests stream so that bytes arrive while a model thinks: devices on the way drop connections that
are silent for minutes. Nothing else needs the events one by one: formats merge them into the body
of a whole response.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Iterable, Iterator, Mapping
from typing import NamedTuple

import msgspec

from numbench.records import FinishReason, Scalar, Usage

_MAX_TOKEN_COUNT = 2**53
"""A larger number is not a token count, and some JSON readers do not keep it exactly."""


class InvalidJson(ValueError):
    """A body that is not JSON, or is nested too deeply to be decoded."""


def decode_json(content: bytes) -> object:
    """Decode a response body. Raises InvalidJson if it is not JSON.

    A response is paid for even if one byte of it is wrong, so that lone surrogates and bytes that
    are not UTF-8, which strict JSON forbids, are accepted.
    """
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        reason = error
    except RecursionError as error:
        raise InvalidJson(f"the server sent no JSON: {error}") from None
    try:
        return json.loads(content.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        raise InvalidJson(f"the server sent no JSON: {reason}") from None


def text_or_repr(value: object) -> str:
    """Return a string unchanged, `""` for None, and a short description of anything else."""
    return value if isinstance(value, str) else "" if value is None else reprlib.repr(value)


def value_at(body: object, path: str = "") -> object:
    """Return the value at a path of names, None if there is none; without a path the body."""
    for name in path.split(".") if path else ():
        body = body.get(name) if isinstance(body, dict) else None
    return body


def text_at(body: object, path: str = "") -> str | None:
    """Return the string at a path, None if it is empty or something else."""
    value = value_at(body, path)
    return value if isinstance(value, str) and value else None


def object_at(body: object, path: str = "") -> Mapping[str, object]:
    """Return the object at a path, an empty one for anything else."""
    value = value_at(body, path)
    return value if isinstance(value, dict) else {}


def objects_at(body: object, path: str = "") -> list[Mapping[str, object]]:
    """Return the elements of the array at a path, each as an object; empty for anything else."""
    value = value_at(body, path)
    return [object_at(element) for element in value] if isinstance(value, list) else []


def tokens_at(body: object, path: str = "") -> int | None:
    """Return the number of tokens at a path."""
    value = value_at(body, path)
    return value if type(value) is int and 0 <= value <= _MAX_TOKEN_COUNT else None


def dollars_at(body: object, path: str = "") -> float | None:
    """Return the amount of money at a path: finite, 0 or more."""
    value = value_at(body, path)
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        amount = float(value)
    except OverflowError:
        return None
    return amount if 0 <= amount < math.inf else None


def join_texts(parts: Iterable[Mapping[str, object]], *names: str) -> str:
    """Return the texts of all parts, each under the first of the names that it has."""
    return "".join(next(filter(None, (text_at(p, name) for name in names)), "") for p in parts)


def without_nulls(fields: Mapping[str, object]) -> dict[str, object]:
    """Return the fields that are not null."""
    return {name: value for name, value in fields.items() if value is not None}


_TICKS_PER_DOLLAR = 10**10

FINISH_REASON = "finish_reason"
"""The field of `extra` with a reason that the records have no word for."""

_WORDS: dict[FinishReason, str] = {
    # Chat Completions, Responses, Anthropic, Google
    "stop": "stop completed end_turn stop_sequence STOP",
    "length": "length max_output_tokens max_tokens model_context_window_exceeded MAX_TOKENS",
    "refusal": "content_filter refusal SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII",
}
_FINISH_REASONS = {word: reason for reason, words in _WORDS.items() for word in words.split()}


def finish_reason(reason: object, extra: dict[str, Scalar]) -> FinishReason | None:
    """Return why an answer ended in a word of the records; `extra` keeps one without equivalent.

    Such a reason is the server's, not the model's: `error`, `abort`, Google's `OTHER`.
    """
    if reason is None:
        return None
    word = text_or_repr(reason)
    if word not in _FINISH_REASONS:
        extra[FINISH_REASON] = word
    return _FINISH_REASONS.get(word, "other")


def text_fields(body: object, **paths: str) -> dict[str, Scalar]:
    """Return the texts of a body that `extra` keeps, by their names there."""
    return {name: text for name, path in paths.items() if (text := text_at(body, path))}


class UsageFields(NamedTuple):
    """The paths of the counts in a response, for `output` that includes the reasoning.

    inputs: their sum is the input; all but the first may be missing.
    """

    inputs: tuple[str, ...]
    output: str
    reasoning: str = ""
    total: str = ""


def parse_usage(body: object, fields: UsageFields) -> Usage:
    """Return the usage in a response.

    If the total is larger than input and output, the server counts the reasoning separately, as
    xAI does, or not at all, and the total is right.
    """
    counts = [tokens_at(body, path) for path in fields.inputs if value_at(body, path)]
    known = [count for count in counts if count is not None]
    is_complete = value_at(body, fields.inputs[0]) is not None and len(known) == len(counts)
    input_tokens = tokens_at(sum(known)) if is_complete else None
    output, reasoning = tokens_at(body, fields.output), tokens_at(body, fields.reasoning)
    total = tokens_at(body, fields.total)
    generated, is_split = output, True
    rest = None if total is None or input_tokens is None else total - input_tokens
    if rest is not None and rest > (output or 0):
        if output is not None:
            reasoning = reasoning or rest - output
            is_split = rest == output + reasoning
        generated = rest
    if generated is not None and reasoning is not None and reasoning > generated:
        if rest == generated:
            # The reasoning is counted by another tokenizer than what is billed.
            reasoning = None
        else:
            generated = None
    visible = None
    if is_split and generated is not None and reasoning is not None:
        visible = generated - reasoning
    return reported_usage(input_tokens, reasoning, visible, generated)


def reported_usage(
    input_tokens: int | None, reasoning: int | None, visible: int | None, generated: int | None
) -> Usage:
    """Return the usage that a server reports, without a source if it reports nothing."""
    counts = (input_tokens, reasoning, visible, generated)
    is_known = any(count is not None for count in counts)
    return Usage(
        input=input_tokens,
        reasoning=reasoning,
        visible=visible,
        generated=generated,
        source="reported" if is_known else None,
    )


def parse_cost(body: object) -> float | None:
    """Return the US dollars that the usage reports. xAI's are a number of ticks.

    If the user's own key pays the model's provider (BYOK), OpenRouter's `cost` is its fee only and
    the provider's share is a separate field: without that the cost is unknown.
    """
    usage = object_at(body, "usage")
    cost, ticks = dollars_at(usage, "cost"), dollars_at(usage, "cost_in_usd_ticks")
    if cost is None and ticks is not None:
        return ticks / _TICKS_PER_DOLLAR
    if usage.get("is_byok") is not True:
        return cost
    upstream = dollars_at(usage, "cost_details.upstream_inference_cost")
    return None if cost is None or upstream is None else dollars_at(cost + upstream)


_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EVENT_START = re.compile(rb"(\xef\xbb\xbf)?\s*(data|event|id|retry)?:")
_END_MARKER = b"[DONE]"
_LINE_END = re.compile(rb"\r\n|\n|\r")


class IncompleteStream(InvalidJson):
    """A stream that ends before the answer does."""

    def __init__(self, end: str = "before the answer") -> None:
        super().__init__(f"connection failed: the stream ended {end}")


def is_event_stream(content: bytes) -> bool:
    """Return whether a response body consists of server-sent events rather than JSON."""
    return _EVENT_START.match(content) is not None


def iter_events(content: bytes) -> Iterator[Mapping[str, object] | None]:
    """Yield the JSON objects of server-sent events, None for the end marker.

    The data of an event of the type `error` becomes `{"error": data}`, if it has no such key.
    Raises InvalidJson for a malformed event.
    """
    data: list[bytes] = []
    event_type = b""
    for line in (*_LINE_END.split(content.removeprefix(_BYTE_ORDER_MARK)), b""):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif line.startswith(b"event:"):
            event_type = line[6:].strip()
        elif not line:
            if data or event_type == b"error":
                yield _decode_event(event_type, b"\n".join(data))
            data, event_type = [], b""


def _decode_event(event_type: bytes, data: bytes) -> Mapping[str, object] | None:
    if event_type == b"error":
        try:
            error = decode_json(data)
        except InvalidJson:
            error = data.decode("utf-8", "replace")
        has_key = isinstance(error, dict) and error.get("error")
        return object_at(error) if has_key else {"error": error or {"message": ""}}
    return None if data.strip() == _END_MARKER else object_at(decode_json(data))
