"""Numbers rounded to 15 significant digits, as integers: the form in which digits are compared."""

from __future__ import annotations

from decimal import Decimal
from typing import NamedTuple

from bench.scoring import metrics

POWERS: tuple[int, ...] = tuple(10**k for k in range(4 * metrics.DIGITS))


class Rounded(NamedTuple):
    """The value ± significand · 10^(place − 14).

    The significand has exactly 15 digits, filled up with zeros, and the first stands at the decimal
    place `place` (0 for units, -1 for tenths). Zero is all zeros.
    """

    negative: bool
    significand: int
    place: int


def rounded_form(value: Decimal) -> Rounded:
    """A number that has been rounded to 15 digits."""
    if not value:
        return Rounded(False, 0, 0)
    sign, digits, _ = value.as_tuple()
    significand = int("".join(map(str, digits)).ljust(metrics.DIGITS, "0"))
    return Rounded(bool(sign), significand, value.adjusted())


def idle_zeros(significand: int) -> int:
    """How many zeros a significand ends with."""
    digits = str(significand)
    return len(digits) - len(digits.rstrip("0"))


def aligned(one: Rounded, other: Rounded) -> tuple[int, int, int]:
    """Both absolute values as integers over one power of ten, and its exponent."""
    low = min(one.place, other.place)
    return (
        one.significand * POWERS[one.place - low],
        other.significand * POWERS[other.place - low],
        low - metrics.DIGITS + 1,
    )
