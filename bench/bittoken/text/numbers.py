"""Numbers in running text (paper, "Number parsing")."""

from __future__ import annotations

import re

from bench.numerals import parse, plain

NUMBER = r"[-]?(?:(?:0(?!\.[0-9]))|(?:[0-9]*[.][0-9]+)|(?:[1-9][0-9]*))"
"""The paper's pattern of a signed number. Every digit 0-9 of a text is part of a match."""

MOST_DIGITS = 15
"""Any decimal of so many significant digits is the only one next to its float64."""

_SPLIT = re.compile(f"({NUMBER})")


def without_numbers(text: str) -> list[str]:
    """What stands before, between and behind the numbers."""
    return [piece for piece in _SPLIT.split(text)[::2] if piece]


def value_of(text: str) -> float | None:
    """The number that is spelled like this and in no other way; None where there is none.

    >>> value_of("3.1"), value_of("3.10"), value_of("-.5"), value_of("12345678901234567")
    (3.1, None, None, None)
    """
    if len(text.lstrip("-").replace(".", "").strip("0")) > MOST_DIGITS:
        return None
    value = float(text)
    return value if spelling(value) == text else None


def spelling(value: float) -> str:
    """The plain decimal of a float64; `inf`, `-inf` and `nan` for what has none."""
    try:
        return plain(parse(repr(value)))
    except ValueError:
        return repr(value)
