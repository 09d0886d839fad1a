"""Answers that a server streams: its events, merged into the body of a whole response.

Requests stream so that bytes arrive while a model thinks: devices on the way drop connections that
are silent for minutes. Nothing else needs the events one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence

from numbench.models.json_fields import (
    InvalidJson,
    decode_json,
    dict_or_empty,
    dicts_of,
    text_or_none,
)

_EVENT_START = re.compile(rb"\s*(data|event|id|retry)?:")
_END_MARKER = b"[DONE]"
# An error of an upstream server is no refusal to stream.
_STREAM_WORD = re.compile(rb"(?<!up)stream", re.IGNORECASE)
_LINE_END = re.compile(rb"\r\n|\n|\r")

REFUSING_STATUSES = (400, 404, 405, 415, 422, 501)
"""Statuses with which a server may refuse to stream."""


def is_event_stream(content: bytes) -> bool:
    """Return whether a response body consists of server-sent events rather than JSON."""
    return _EVENT_START.match(content) is not None


def refuses_streaming(status: int, content: bytes) -> bool:
    """Return whether an error says that the server, or this account, does not stream."""
    return status in REFUSING_STATUSES and _STREAM_WORD.search(content) is not None


def merge_chat_events(content: bytes) -> dict[str, object]:
    """Return the Chat Completions response of a stream.

    Raises InvalidJson if the stream ends before the answer does.
    """
    body: dict[str, object] = {}
    choice: dict[str, object] = {}
    parts: dict[str, list[object]] = {}
    is_complete = False
    for event in _events(content):
        if event is None:
            is_complete = True
            continue
        body |= {key: value for key, value in event.items() if value and key != "choices"}
        first = next((c for c in dicts_of(event.get("choices")) if not c.get("index")), {})
        choice |= {key: value for key, value in first.items() if value is not None}
        delta = dict_or_empty(first.get("delta") or first.get("message"))
        for key, value in delta.items():
            if isinstance(value, str) and key != "role":
                parts.setdefault(key, []).append(value)
            elif isinstance(value, list):
                parts.setdefault(key, []).extend(value)
    if body.get("error"):
        return body
    if not is_complete and choice.get("finish_reason") is None:
        raise _incomplete()
    if not choice:
        return body
    message = {key: _joined(values) for key, values in parts.items()}
    return body | {"choices": [choice | {"message": message}]}


def merge_response_events(content: bytes) -> Mapping[str, object]:
    """Return the response of a Responses stream, which its last event contains.

    Raises InvalidJson if the stream ends before the answer does.
    """
    for event in _events(content):
        if event is None:
            continue
        kind = event.get("type")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            return dict_or_empty(event.get("response"))
        if kind == "error" or event.get("error"):
            return {"error": event.get("error") or event}
    raise _incomplete()


def merge_gemini_events(content: bytes) -> dict[str, object]:
    """Return the generateContent response of a stream.

    Raises InvalidJson if the stream ends before the answer does.
    """
    return merge_gemini_chunks([event for event in _events(content) if event is not None])


def merge_gemini_chunks(chunks: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the response whose parts are `chunks`. Raises InvalidJson if the last are missing."""
    body: dict[str, object] = {}
    candidate: dict[str, object] = {}
    parts: list[Mapping[str, object]] = []
    usage: dict[str, object] = {}
    for chunk in chunks:
        body |= {key: value for key, value in chunk.items() if value}
        usage |= dict_or_empty(chunk.get("usageMetadata"))
        first = next((c for c in dicts_of(chunk.get("candidates")) if not c.get("index")), {})
        candidate |= first
        parts += dicts_of(dict_or_empty(first.get("content")).get("parts"))
    is_blocked = text_or_none(dict_or_empty(body.get("promptFeedback")).get("blockReason"))
    if not body.get("error") and not is_blocked and candidate.get("finishReason") is None:
        raise _incomplete()
    body["usageMetadata"] = usage
    if candidate:
        body["candidates"] = [candidate | {"content": {"parts": parts}}]
    return body


def _events(content: bytes) -> Iterator[Mapping[str, object] | None]:
    """Yield the JSON objects of server-sent events, None for the end marker."""
    data: list[bytes] = []
    for line in (*_LINE_END.split(content), b""):
        if line.startswith(b"data:"):
            data.append(line[5:].removeprefix(b" "))
        elif not line and data:
            joined = b"\n".join(data)
            data = []
            yield None if joined.strip() == _END_MARKER else dict_or_empty(decode_json(joined))


def _joined(values: Sequence[object]) -> str | list[object]:
    """Return the text whose pieces are `values`, or a list with texts as parts if some are none."""
    texts = [value for value in values if isinstance(value, str)]
    if values and len(texts) == len(values):
        return "".join(texts)
    return [{"type": "text", "text": v} if isinstance(v, str) else v for v in values]


def _incomplete() -> InvalidJson:
    return InvalidJson("connection failed: the stream ended before the answer")
