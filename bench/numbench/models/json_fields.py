"""Reading the JSON that servers send: lenient decoding, and fields by path (`a.b`: nested)."""

from __future__ import annotations

import json
import math
import reprlib
from collections.abc import Mapping

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
