"""Reading the JSON that servers send: lenient decoding and typed access to fields."""

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


def text_or_none(value: object) -> str | None:
    """Return `value` if it is a string that is not empty."""
    return value if isinstance(value, str) and value else None


def dict_or_empty(value: object) -> Mapping[str, object]:
    """Return `value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def dicts_of(value: object) -> list[Mapping[str, object]]:
    """Return the elements of a JSON array, each as an object; empty for anything else."""
    return [dict_or_empty(element) for element in value] if isinstance(value, list) else []


def token_count(value: object) -> int | None:
    """Return `value` if it is a number of tokens."""
    return value if type(value) is int and 0 <= value <= _MAX_TOKEN_COUNT else None


def dollar_amount(value: object) -> float | None:
    """Return `value` as a float if it is a finite amount of money, 0 or more."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        amount = float(value)
    except OverflowError:
        return None
    return amount if 0 <= amount < math.inf else None
