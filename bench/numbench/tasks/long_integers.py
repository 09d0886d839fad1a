"""Integers with thousands of digits as text, without Python's limit of 4,300 digits for `int(str)`.

`Decimal` converts between text and integers without that limit, and exactly.
"""

from __future__ import annotations

import re
from decimal import Decimal

from numbench.tasks.random_words import RandomWords

_DIGITS_PER_WORD = 9
_INTEGER = re.compile(r"-?[0-9]+")


def parse_integer(text: str) -> int:
    """Return the value of an integer in plain notation. Raises ValueError for other text."""
    if not _INTEGER.fullmatch(text):
        raise ValueError(f"{text[:40]!r} is not an integer")
    return int(Decimal(text))


def format_integer(value: int) -> str:
    """Return the digits of an integer."""
    return str(Decimal(value))


def words_of(digits: int) -> int:
    """Return the number of random words that `sample_integer` uses."""
    return 1 + -(-(digits - 1) // _DIGITS_PER_WORD)


def sample_integer(words: RandomWords, digits: int) -> str:
    """Return an integer uniform on {10^(digits−1) … 10^digits − 1}."""
    first = str(words.randint(1, 9))
    rest = "".join(
        f"{words.randbelow(10**_DIGITS_PER_WORD):0{_DIGITS_PER_WORD}}"
        for _ in range(words_of(digits) - 1)
    )
    return first + rest[: digits - 1]
