"""Correctly rounded results without big integers: double-double arithmetic and a proof.

A value is an unevaluated sum of two float64 (about 31 digits). Sums, products, quotients and
roots of such pairs err by less than 2⁻⁹⁸ of the largest magnitude involved (Joldes, Muller and
Popescu, "Tight and rigorous error bounds for basic building blocks of double-word arithmetic",
2017, give 2⁻¹⁰¹ and better for each step). `to_digits` rounds to 15 digits and tells which rows
lie so close to a tie that such an error could matter; those are left to exact arithmetic.
"""

from __future__ import annotations

from fractions import Fraction
from typing import NamedTuple

import numpy as np

from bench.batch.fixed import Flags, Floats, Ints, Numbers
from bench.tasks.truth import DIGITS

_SPLITTER = float(2**27 + 1)
_LARGEST_POWER = 80
_TIE_SLACK = 1e-9
"""In units of the last digit: covers errors up to 10⁻²⁴ relative, 10⁵ times what is claimed."""


class Pair(NamedTuple):
    """high + low, with |low| at most half a unit in the last place of high."""

    high: Floats
    low: Floats

    def where(self, keep: Flags) -> Pair:
        """The pairs of some rows."""
        return Pair(self.high[keep], self.low[keep])


def _power_of_ten(exponent: int) -> tuple[float, float]:
    exact = Fraction(10) ** exponent
    high = float(exact)
    return high, float(exact - Fraction(high))


_TENS = np.array([_power_of_ten(k) for k in range(-_LARGEST_POWER, _LARGEST_POWER + 1)])


def of_ints(values: Ints) -> Pair:
    """Integers below 2⁶² as pairs, exactly."""
    high = values.astype(np.float64)
    return Pair(high, (values - high.astype(np.int64)).astype(np.float64))


def ten_to(exponents: Ints) -> Pair:
    """10^exponent, exponents within ±80."""
    rows = _TENS[exponents + _LARGEST_POWER]
    return Pair(rows[:, 0], rows[:, 1])


def add(a: Pair, b: Pair) -> Pair:
    """a + b."""
    high, error = _two_sum(a.high, b.high)
    low, low_error = _two_sum(a.low, b.low)
    high, error = _fast_two_sum(high, error + low)
    return Pair(*_fast_two_sum(high, error + low_error))


def multiply(a: Pair, b: Pair) -> Pair:
    """a · b."""
    high, error = _two_product(a.high, b.high)
    return Pair(*_fast_two_sum(high, error + (a.high * b.low + a.low * b.high)))


def divide(a: Pair, b: Pair) -> Pair:
    """a / b, by three steps of long division."""
    first = a.high / b.high
    rest = add(a, negative(scale(b, first)))
    second = rest.high / b.high
    rest = add(rest, negative(scale(b, second)))
    third = rest.high / b.high
    high, low = _fast_two_sum(first, second)
    return add(Pair(high, low), Pair(third, np.zeros_like(third)))


def square_root(a: Pair) -> Pair:
    """√a of positive pairs: one Newton step from the float64 root."""
    root = np.sqrt(a.high)
    high, low = _two_product(root, root)
    rest = add(a, Pair(-high, -low))
    return Pair(*_fast_two_sum(root, rest.high / (2 * root)))


def scale(a: Pair, factor: Floats) -> Pair:
    """a times a float64."""
    high, error = _two_product(a.high, factor)
    return Pair(*_fast_two_sum(high, error + a.low * factor))


def negative(a: Pair) -> Pair:
    """−a."""
    return Pair(-a.high, -a.low)


def to_digits(value: Pair, digits: int = DIGITS) -> tuple[Numbers, Flags]:
    """Values rounded to `digits` significant digits, and the rows where that is proved."""
    powers = _TENS[:, 0]
    place = np.searchsorted(powers, np.abs(value.high), side="right") - 1 - _LARGEST_POWER
    place = np.maximum(place, digits - 1 - _LARGEST_POWER)
    units = multiply(value, ten_to(digits - 1 - place))
    whole = np.rint(units.high)
    rest = (units.high - whole) + units.low
    carry = np.rint(rest)
    proved: Flags = np.abs(np.abs(rest - carry) - 0.5) > _TIE_SLACK
    significand = whole.astype(np.int64) + carry.astype(np.int64)
    return Numbers(significand, place - (digits - 1)), proved


def _two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    total = a + b
    shadow = total - a
    return total, (a - (total - shadow)) + (b - shadow)


def _fast_two_sum(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    total = a + b
    return total, b - (total - a)


def _split(a: Floats) -> tuple[Floats, Floats]:
    big = _SPLITTER * a
    high = big - (big - a)
    return high, a - high


def _two_product(a: Floats, b: Floats) -> tuple[Floats, Floats]:
    product = a * b
    a_high, a_low = _split(a)
    b_high, b_low = _split(b)
    error = ((a_high * b_high - product) + a_high * b_low + a_low * b_high) + a_low * b_low
    return product, error
