"""Numbers in running text (paper, "Number parsing")."""

from __future__ import annotations

import re

from numbench.decimal_numbers import format_decimal, parse_decimal

NUMBER_PATTERN = r"[-]?(?:(?:0(?!\.[0-9]))|(?:[0-9]*[.][0-9]+)|(?:[1-9][0-9]*))"
"""The paper's pattern of a signed number. Every digit 0-9 of a text is part of a match."""

MAX_SIGNIFICANT_DIGITS = 15
"""Decimals with up to this many significant digits map to distinct float64 values."""

_SPLIT = re.compile(f"({NUMBER_PATTERN})")


def text_between_numbers(text: str) -> list[str]:
    """Return the non-empty text before, between and after the numbers."""
    return [piece for piece in _SPLIT.split(text)[::2] if piece]


def canonical_value(text: str) -> float | None:
    """Return the number whose canonical decimal form is `text`, None if there is none.

    >>> [canonical_value(text) for text in ("3.1", "3.10", "-.5", "12345678901234567")]
    [3.1, None, None, None]
    """
    if len(text.lstrip("-").replace(".", "").strip("0")) > MAX_SIGNIFICANT_DIGITS:
        return None
    value = float(text)
    return value if plain_decimal(value) == text else None


def plain_decimal(value: float) -> str:
    """Return a float64 as a decimal without exponent; `inf`, `-inf` and `nan` as such."""
    try:
        return format_decimal(parse_decimal(repr(value)))
    except ValueError:
        return repr(value)
