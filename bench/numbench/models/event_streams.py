"""Answers that a server streams: its events, merged into the body of a whole response.

Requests stream so that bytes arrive while a model thinks: devices on the way drop connections that
are silent for minutes. Nothing else needs the events one by one.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping, Sequence
from typing import NamedTuple

from numbench.models.json_fields import (
    InvalidJson,
    decode_json,
    dict_or_empty,
    dicts_of,
    text_or_none,
    text_or_repr,
)

_BYTE_ORDER_MARK = b"\xef\xbb\xbf"
_EVENT_START = re.compile(rb"(\xef\xbb\xbf)?\s*(data|event|id|retry)?:")
_END_MARKER = b"[DONE]"
# An error of an upstream server is no refusal to stream.
_STREAM_WORD = re.compile(rb"(?<!up)stream", re.IGNORECASE)
_LINE_END = re.compile(rb"\r\n|\n|\r")

REFUSING_STATUSES = (400, 404, 405, 415, 422, 501)
"""Statuses with which a server may refuse to stream."""


class IncompleteStream(InvalidJson):
    """A stream that ends before the answer does.

    has_end_marker: whether it ends with `[DONE]` all the same, but without a finish reason.
    """

    def __init__(self, has_end_marker: bool = False) -> None:
        reason = "without a finish reason" if has_end_marker else "before the answer"
        super().__init__(f"connection failed: the stream ended {reason}")
        self.has_end_marker = has_end_marker


def is_event_stream(content: bytes) -> bool:
    """Return whether a response body consists of server-sent events rather than JSON."""
    return _EVENT_START.match(content) is not None


def refuses_streaming(status: int, content: bytes) -> bool:
    """Return whether an error says that the server, or this account, does not stream."""
    return status in REFUSING_STATUSES and _STREAM_WORD.search(content) is not None


def merge_chat_events(content: bytes) -> dict[str, object]:
    """Return the Chat Completions response of a stream.

    Raises IncompleteStream if there is no finish reason: some servers also send `[DONE]` after an
    answer that was cut off. Raises InvalidJson for a malformed event.
    """
    body: dict[str, object] = {}
    choice: dict[str, object] = {}
    parts: dict[str, list[object]] = {}
    has_end_marker = False
    for event in _events(content):
        if event is None:
            has_end_marker = True
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
    if choice.get("finish_reason") is None:
        raise IncompleteStream(has_end_marker)
    message = {key: _joined(values) for key, values in parts.items()}
    return body | {"choices": [choice | {"message": message}]}


def merge_response_events(content: bytes) -> Mapping[str, object]:
    """Return the response of a Responses stream, which its last event contains.

    Some proxies leave the output of that event empty: what it lacks is taken from the events
    before. Raises IncompleteStream if the stream ends before the answer does, InvalidJson for a
    malformed event.
    """
    streamed = _StreamedOutput()
    for event in _events(content):
        if event is None:
            continue
        kind = event.get("type")
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            response = dict_or_empty(event.get("response"))
            return {**response, "output": streamed.complete(response.get("output"))}
        if kind == "error" or event.get("error"):
            return {"error": event.get("error") or event}
        streamed.add(event)
    raise IncompleteStream


class _StreamedOutput:
    """The output items that the events of a Responses stream contain, whole or in pieces."""

    def __init__(self) -> None:
        self._items: list[Mapping[str, object]] = []
        self._pieces: dict[str, dict[str, list[str]]] = {}

    def add(self, event: Mapping[str, object]) -> None:
        """Add what an event contains, if anything."""
        kind = text_or_repr(event.get("type"))
        if kind == "response.output_item.done":
            self._items.append(dict_or_empty(event.get("item")))
        elif kind in _DELTAS and (delta := text_or_none(event.get("delta"))):
            key = f"{event.get('output_index')} {event.get(_DELTAS[kind].part_index)}"
            self._pieces.setdefault(kind, {}).setdefault(key, []).append(delta)

    def complete(self, output: object) -> object:
        """Return the output of the last event, with the kinds of items that it lacks."""
        if output is not None and not isinstance(output, list):
            return output
        items = dicts_of(output)
        for streamed in (self._items, self._joined_pieces()):
            filled = [item for item in items if item.get("content") or item.get("summary")]
            kinds = [item.get("type") for item in filled]
            items += [item for item in streamed if item.get("type") not in kinds]
        return items if items or output is not None else None

    def _joined_pieces(self) -> list[Mapping[str, object]]:
        return [
            {
                "type": _DELTAS[kind].item,
                _DELTAS[kind].field: [
                    {"type": _DELTAS[kind].part, _DELTAS[kind].text: "".join(texts)}
                    for texts in parts.values()
                ],
            }
            for kind, parts in self._pieces.items()
        ]


class _Delta(NamedTuple):
    """Where the text of a kind of delta belongs: type and field of the item, those of the part."""

    item: str
    field: str
    part: str
    text: str
    part_index: str


_DELTAS = {
    "response.output_text.delta": _Delta(
        "message", "content", "output_text", "text", "content_index"
    ),
    "response.refusal.delta": _Delta("message", "content", "refusal", "refusal", "content_index"),
    "response.reasoning_summary_text.delta": _Delta(
        "reasoning", "summary", "summary_text", "text", "summary_index"
    ),
    "response.reasoning_text.delta": _Delta(
        "reasoning", "content", "reasoning_text", "text", "content_index"
    ),
}


def merge_message_events(content: bytes) -> dict[str, object]:
    """Return the Messages response of a stream.

    An error in it is the field `error`; `is_started` says whether the answer had begun.
    Raises InvalidJson if the stream ends before the answer does.
    """
    body: dict[str, object] = {}
    blocks: dict[int, dict[str, object]] = {}
    usage: dict[str, object] = {}
    is_complete = False
    for event in filter(None, _events(content)):
        match event:
            case {"type": "message_start", "message": dict(message)}:
                body |= message
                usage |= dict_or_empty(message.get("usage"))
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                blocks[index] = block
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                _append_delta(blocks.setdefault(index, {}), delta)
            case {"type": "message_delta"}:
                body |= _present(dict_or_empty(event.get("delta")))
                usage |= _present(dict_or_empty(event.get("usage")))
            case {"type": "message_stop"}:
                is_complete = True
            case {"error": error} if error:
                return {"error": error, "is_started": bool(body)}
    if not (body and is_complete):
        raise IncompleteStream
    content_blocks = [_joined_block(blocks[index]) for index in sorted(blocks)]
    return body | {"content": content_blocks, "usage": usage}


def merge_gemini_events(content: bytes) -> dict[str, object]:
    """Return the generateContent response of a stream.

    Raises IncompleteStream if it ends before the answer does, InvalidJson for a malformed event.
    """
    return merge_gemini_chunks([event for event in _events(content) if event is not None])


def merge_gemini_chunks(chunks: Sequence[Mapping[str, object]]) -> dict[str, object]:
    """Return the response whose parts are `chunks`.

    Raises IncompleteStream if the last are missing.
    """
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
        raise IncompleteStream
    body["usageMetadata"] = usage
    if candidate:
        body["candidates"] = [candidate | {"content": {"parts": parts}}]
    return body


def _events(content: bytes) -> Iterator[Mapping[str, object] | None]:
    """Yield the JSON objects of server-sent events, None for the end marker.

    The data of an event of the type `error` becomes `{"error": data}`, if it has no such key.
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
        return dict_or_empty(error) if has_key else {"error": error or {"message": ""}}
    return None if data.strip() == _END_MARKER else dict_or_empty(decode_json(data))


_TEXT_FIELDS = ("text", "thinking")


def _append_delta(block: dict[str, object], delta: Mapping[str, object]) -> None:
    """Add the text of a delta to the pieces that `block` holds until `_joined_block`."""
    for key in _TEXT_FIELDS:
        if isinstance(piece := delta.get(key), str):
            pieces = block.get(key)
            if not isinstance(pieces, list):
                pieces = block[key] = [pieces] if isinstance(pieces, str) else []
            pieces.append(piece)


def _joined_block(block: Mapping[str, object]) -> dict[str, object]:
    texts = {
        key: "".join(pieces) for key in _TEXT_FIELDS if isinstance(pieces := block.get(key), list)
    }
    return {**block, **texts}


def _present(fields: Mapping[str, object]) -> dict[str, object]:
    return {key: value for key, value in fields.items() if value is not None}


def _joined(values: Sequence[object]) -> str | list[object]:
    """Return the text whose pieces are `values`, or a list with texts as parts if some are none."""
    texts = [value for value in values if isinstance(value, str)]
    if values and len(texts) == len(values):
        return "".join(texts)
    return [{"type": "text", "text": v} if isinstance(v, str) else v for v in values]
