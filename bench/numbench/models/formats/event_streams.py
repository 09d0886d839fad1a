"""Server-sent events: their JSON objects, and the signs of a stream that ended too early.

Requests stream so that bytes arrive while a model thinks: devices on the way drop connections that
are silent for minutes. Nothing else needs the events one by one: formats merge them into the body
of a whole response.
"""

from __future__ import annotations

import re
from collections.abc import Iterator, Mapping

from numbench.models.json_fields import InvalidJson, decode_json, object_at

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
