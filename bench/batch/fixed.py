"""Arrays of decimal numbers: integer significands (below 10¹⁸) over powers of ten."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from numpy.typing import NDArray

Ints = NDArray[np.int64]
Floats = NDArray[np.float64]
Flags = NDArray[np.bool_]

POWERS = 10 ** np.arange(19, dtype=np.int64)


class Numbers(NamedTuple):
    """The values significand · 10^exponent."""

    significand: Ints
    exponent: Ints

    def where(self, keep: Flags | Ints) -> Numbers:
        """The numbers of some rows."""
        return Numbers(self.significand[keep], self.exponent[keep])


def digit_count(values: Ints) -> Ints:
    """Decimal digits of |values|; 0 has none."""
    return np.searchsorted(POWERS, np.abs(values), side="right")


def magnitude(numbers: Numbers) -> Ints:
    """x with 10^x ≤ |n| < 10^(x+1), for numbers that are not 0."""
    return digit_count(numbers.significand) - 1 + numbers.exponent


def reduced(numbers: Numbers) -> Numbers:
    """The same values with no trailing zero in a significand; zero is 0 · 10^0."""
    significand, exponent = numbers.significand.copy(), numbers.exponent.copy()
    rows = np.flatnonzero(significand % 10 == 0)
    exponent[rows[significand[rows] == 0]] = 0
    rows = rows[significand[rows] != 0]
    while rows.size:
        significand[rows] //= 10
        exponent[rows] += 1
        rows = rows[significand[rows] % 10 == 0]
    return Numbers(significand, exponent)


def floor_log10(numerators: Ints, denominators: Ints) -> Ints:
    """⌊log10(numerator / denominator)⌋ of positive integers, denominators below 10."""
    exponent = digit_count(numerators) - 1
    return exponent - (numerators < denominators * POWERS[exponent])


def ceil_log10(numerators: Ints, denominators: Ints) -> Ints:
    """⌈log10(numerator / denominator)⌉ of positive integers, denominators below 10."""
    floor = floor_log10(numerators, denominators)
    exact = (floor >= 0) & (numerators == denominators * POWERS[np.maximum(floor, 0)])
    exact |= (floor < 0) & (numerators * POWERS[np.maximum(-floor, 0)] == denominators)
    return np.where(exact, floor, floor + 1)


def floor_log2(numerators: Ints, denominators: Ints) -> Ints:
    """⌊log2(numerator / denominator)⌋ of positive integers below 2⁶²."""
    exponent: Ints = bit_length(numerators) - bit_length(denominators)
    left = numerators << np.maximum(-exponent, 0)
    right = denominators << np.maximum(exponent, 0)
    floor: Ints = exponent - (left < right)
    return floor


def bit_length(values: Ints) -> Ints:
    """Binary digits of positive integers."""
    _, rounded = np.frexp(values.astype(np.float64))
    # The nearest float64 of a large integer may be the power of two above it.
    length = rounded.astype(np.int64)
    return length - (values < np.int64(1) << (length - 1))
