"""Exact decimal numbers: an integer significand times a power of ten, and plain notation."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import NamedTuple

SIGNIFICANT_DIGITS = 15
"""The digits of an answer that are computed and compared (M in the paper)."""

_SHORT = 10**640
"""Python may refuse to convert longer integers to text: its limit is 640 digits or more."""

_QUICK_DIGITS = 18
"""Integers up to this length need no Decimal."""


class DecimalNumber(NamedTuple):
    """The value significand · 10^exponent, both integers."""

    significand: int
    exponent: int


def format_decimal(number: DecimalNumber) -> str:
    """Return plain notation: no exponent, no superfluous zeros, no `.0`, never `-0`.

    >>> format_decimal(DecimalNumber(-1250, -3))
    '-1.25'
    """
    significand, exponent = number
    if significand == 0:
        return "0"
    sign = "-" if significand < 0 else ""
    digits = _digits(abs(significand))
    if exponent < 0:
        digits = digits.rjust(1 - exponent, "0")
        whole, fraction = digits[:exponent], digits[exponent:].rstrip("0")
        return f"{sign}{whole}.{fraction}" if fraction else sign + whole
    return sign + digits + "0" * exponent


def parse_decimal(text: str) -> DecimalNumber:
    """Return the exact value of a decimal literal.

    Raises ValueError if the text is not a finite decimal number.
    """
    if len(text) <= _QUICK_DIGITS and text.isascii() and text.removeprefix("-").isdigit():
        return DecimalNumber(int(text), 0)
    try:
        return from_decimal(Decimal(text))
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a decimal number") from None


def normalize(number: DecimalNumber) -> DecimalNumber:
    """Return the same value without trailing zeros in the significand; zero is 0 · 10^0."""
    significand, exponent = number
    if significand == 0:
        return DecimalNumber(0, 0)
    if significand % 10:
        return number
    digits = _digits(significand)
    stripped = digits.rstrip("0")
    if len(stripped) < len(digits):
        significand = int(Decimal(stripped))
    return DecimalNumber(significand, exponent + len(digits) - len(stripped))


def from_decimal(value: Decimal) -> DecimalNumber:
    """A finite Decimal as a DecimalNumber."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a finite number")
    significand = int(Decimal((0, digits, 0)))
    return DecimalNumber(-significand if sign else significand, exponent)


def align_exponents(numbers: list[DecimalNumber]) -> tuple[list[int], int]:
    """Return the numbers as integers times one common power of ten, and its exponent."""
    exponent = min(number.exponent for number in numbers)
    return [n.significand * 10 ** (n.exponent - exponent) for n in numbers], exponent


def _digits(significand: int) -> str:
    """Return an integer as text; unlike `str`, without a limit on its length."""
    return str(significand) if -_SHORT < significand < _SHORT else str(Decimal(significand))
