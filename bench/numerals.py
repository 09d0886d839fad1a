"""Decimal numbers as text: an integer significand, a power of ten, and their plain spelling."""

from __future__ import annotations

from decimal import Decimal, InvalidOperation
from typing import NamedTuple


class Number(NamedTuple):
    """The value significand · 10^exponent, both integers."""

    significand: int
    exponent: int


def plain(number: Number) -> str:
    """Plain decimal: no exponent, no `.0`, no idle zeros, `0` for zero, never `-0`.

    >>> plain(Number(-1250, -3))
    '-1.25'
    """
    significand, exponent = number
    if significand == 0:
        return "0"
    sign = "-" if significand < 0 else ""
    digits = str(abs(significand))
    if exponent < 0:
        digits = digits.rjust(1 - exponent, "0")
        whole, fraction = digits[:exponent], digits[exponent:].rstrip("0")
        return f"{sign}{whole}.{fraction}" if fraction else sign + whole
    return sign + digits + "0" * exponent


def parse(text: str) -> Number:
    """The exact value of a decimal literal. ValueError for anything else, NaN and infinity too."""
    try:
        sign, digits, exponent = Decimal(text).as_tuple()
    except InvalidOperation:
        raise ValueError(f"{text!r} is not a decimal number") from None
    if not isinstance(exponent, int):
        raise ValueError(f"{text!r} is not a finite number")
    significand = int("".join(map(str, digits)))
    return Number(-significand if sign else significand, exponent)


def reduced(number: Number) -> Number:
    """The same value with no trailing zero in its significand; zero is 0 · 10^0."""
    significand, exponent = number
    if significand == 0:
        return Number(0, 0)
    digits = str(significand)
    kept = digits.rstrip("0")
    return Number(int(kept), exponent + len(digits) - len(kept))


def number_of(value: Decimal) -> Number:
    """A finite Decimal as a Number."""
    sign, digits, exponent = value.as_tuple()
    if not isinstance(exponent, int):
        raise ValueError(f"{value} is not a finite number")
    significand = int("".join(map(str, digits)))
    return Number(-significand if sign else significand, exponent)


def aligned(numbers: list[Number]) -> tuple[list[int], int]:
    """The numbers as integers over one power of ten, and its exponent."""
    exponent = min(number.exponent for number in numbers)
    return [n.significand * 10 ** (n.exponent - exponent) for n in numbers], exponent
