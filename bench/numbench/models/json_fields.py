"""Reading what servers send: JSON, fields by path (`a.b`: nested), and server-sent events.

Requests stream so that bytes arrive while a model thinks: devices on the way drop connections that
are silent for minutes. Nothing else needs the events one by one: formats merge them into the body
of a whole response.
"""

from __future__ import annotations

import json
import math
import re
import reprlib
from collections.abc import Iterator, Mapping

import msgspec

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
