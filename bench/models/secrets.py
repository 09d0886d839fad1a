"""Which texts are secrets, and how they are masked wherever a server may echo them."""

from __future__ import annotations

import json
import os
import re
from collections.abc import Iterable, Sequence
from urllib.parse import quote

_NAMES = ("KEY", "TOKEN", "SECRET", "PASSWORD", "CREDENTIALS")
_SHORTEST = 8
_LONG = 16
_NUMBER = re.compile(r"[\d\s.,:;eE+-]*")


def secrets(key: str | None = None) -> tuple[str, ...]:
    """The key in use and the secrets of the environment, each in every way it may be written.

    A server may echo any of them: an SDK picks some by itself. What is too short to be a key
    (servers of one's own take `1` or `EMPTY`), a number or a mere word stays: masking it would
    mutilate answers.
    """
    own = [key] if key and len(key) >= _SHORTEST and not _NUMBER.fullmatch(key) else []
    named = [value.strip() for name, value in os.environ.items() if name.upper().endswith(_NAMES)]
    found = {*own, *filter(_may_be_secret, named)}
    written = {form for secret in found for form in _forms(secret)}
    # The longest first: one secret may be part of another.
    return tuple(sorted(written, key=lambda form: (-len(form), form)))


def masked(text: str, hidden: Sequence[str]) -> str:
    """`text` with every occurrence of what is `hidden` masked."""
    for secret in hidden:
        if secret in text:
            text = text.replace(secret, "[key]")
    return text


def _may_be_secret(value: str) -> bool:
    if len(value) < _SHORTEST or _NUMBER.fullmatch(value):
        return False
    return len(value) >= _LONG or not value.isalpha()


def _forms(secret: str) -> Iterable[str]:
    """As it is, in JSON, in Python's words, and in a URL."""
    return (
        secret,
        json.dumps(secret)[1:-1],
        repr(secret)[1:-1],
        quote(secret, safe="", errors="replace"),
    )
