"""The words of servers for endings and failures, from `reply_words.toml`."""

from __future__ import annotations

import re
import tomllib
from typing import Any

from numbench.core.resources import PACKAGE

_TABLES: dict[str, Any] = tomllib.loads(
    (PACKAGE / "models" / "reply_words.toml").read_text("utf-8")
)


def _by_word(table: str) -> dict[str, str]:
    return {word: meaning for meaning, words in _TABLES[table].items() for word in words}


ENDINGS = _by_word("endings")
"""What finish reasons mean, in lower case."""

FIELDS = _by_word("fields")
"""What the fields of errors contain, by their names in lower case."""

STATUSES: dict[str, int] = _TABLES["statuses"]
"""The HTTP statuses of codes and types of errors."""


def pattern(name: str) -> re.Pattern[str]:
    """Return the regular expression of a name."""
    return re.compile("|".join(_TABLES["patterns"][name]), re.IGNORECASE)
