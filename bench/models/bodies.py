"""Reading what a server sends: JSON wherever there is any, however badly it is encoded."""

from __future__ import annotations

import json
import reprlib

import msgspec


class NoJson(ValueError):
    """A body that holds no JSON, or JSON that is nested too deeply to be read."""


def decoded(content: bytes) -> object:
    """The JSON in a body. NoJson where there is none.

    An answer is paid for also where a byte of it is wrong, so what strict JSON refuses (a lone
    surrogate, bytes that are not UTF-8) is read leniently.
    """
    try:
        return msgspec.json.decode(content)
    except (msgspec.DecodeError, UnicodeDecodeError) as error:
        refused = error
    except RecursionError as error:
        raise NoJson(f"the server sent no JSON: {error}") from None
    try:
        return json.loads(content.decode("utf-8-sig", "replace"))
    except (ValueError, RecursionError):
        raise NoJson(f"the server sent no JSON: {refused}") from None


def worded(value: object) -> str:
    """`value` if it is a text, else a short description of what stands in its place."""
    return value if isinstance(value, str) else "" if value is None else reprlib.repr(value)
