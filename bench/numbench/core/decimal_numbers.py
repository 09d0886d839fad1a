"""Exact decimal numbers: their plain notation, and their digits as integers."""

from __future__ import annotations

from collections.abc import Iterable
from decimal import (
    MAX_EMAX,
    MAX_PREC,
    MIN_EMIN,
    ROUND_HALF_EVEN,
    Context,
    Decimal,
    InvalidOperation,
)

SIGNIFICANT_DIGITS = 15
"""The digits of an answer that are computed and compared (M in the paper)."""


def wide_context(digits: int, rounding: str = ROUND_HALF_EVEN) -> Context:
    """Return a context of this precision for numbers of any size, in which nothing raises."""
    return Context(prec=digits, rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])


_EXACT = wide_context(MAX_PREC)


def format_decimal(number: Decimal) -> str:
    """Return plain notation: no exponent, no superfluous zeros, no `.0`, never `-0`.

    >>> format_decimal(Decimal("-1250e-3"))
    '-1.25'
    """
    return f"{_EXACT.normalize(number):f}" if number else "0"


def parse_decimal(text: str) -> Decimal:
    """Return the exact value of a decimal literal.

    Raises ValueError if the text is not a finite decimal number.
    """
    try:
        number = Decimal(text)
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a decimal number") from None
    if not number.is_finite():
        raise ValueError(f"{number} is not a finite number")
    return number


def split_decimal(number: Decimal) -> tuple[int, int]:
    """Return the significand, without trailing zeros, and the power of ten; (0, 0) for zero."""
    sign, digits, exponent = _EXACT.normalize(number).as_tuple()
    return int(Decimal((sign, digits, 0))), int(exponent)


def align_decimals(numbers: Iterable[Decimal]) -> tuple[list[int], int]:
    """Return the numbers as integers times one common power of ten, and its exponent."""
    parts = [split_decimal(number) for number in numbers]
    common = min(exponent for _, exponent in parts)
    return [significand * 10 ** (exponent - common) for significand, exponent in parts], common
