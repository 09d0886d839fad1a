"""Decimal digits of arrays of float64 numbers."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bittoken.encodings.base import FloatArray, IntArray
from numbench.tasks.decimal_arrays import POWERS_OF_TEN

Text = NDArray[np.uint8]

DIGITS = 17
"""Significant digits that distinguish any two float64."""

_LITERAL = r"^(?P<whole>[0-9]+)\.?(?P<fraction>[0-9]*)e?\+?(?P<power>-?[0-9]*)$"


class ShortestDecimals(NamedTuple):
    """The shortest decimals that parse to the same float64.

    significand: 17 digits, the first of them nonzero, as int64 (n,); 0 for zero.
    exponent: the power of ten of the first digit, int64 (n,); 0 for zero.
    """

    significand: IntArray
    exponent: IntArray


def shortest_decimals(values: FloatArray) -> ShortestDecimals:
    """Return the shortest decimals of n finite, nonnegative values."""
    literals = pa.array(np.ascontiguousarray(values, np.float64)).cast(pa.string())
    whole, fraction, power = pc.extract_regex(literals, _LITERAL).flatten()
    power = pc.if_else(pc.equal(power, ""), "0", power).cast(pa.int64()).to_numpy()
    exponent = power - pc.binary_length(fraction).to_numpy()
    significand = pc.binary_join_element_wise(whole, fraction, "").cast(pa.int64()).to_numpy()
    length = np.searchsorted(POWERS_OF_TEN, significand, side="right")
    leading = np.where(significand > 0, exponent + length - 1, 0)
    return ShortestDecimals(
        significand * POWERS_OF_TEN[np.minimum(DIGITS - length, DIGITS)], leading
    )


def int_to_digits(numbers: IntArray, count: int) -> NDArray[np.int8]:
    """Return the last `count` decimal digits, most significant first: int8 of shape (n, count)."""
    digits = np.empty((count, len(numbers)), np.int8)
    for position in range(count - 1, -1, -1):
        higher = numbers // 10
        digits[position] = numbers - higher * 10
        numbers = higher
    return np.ascontiguousarray(digits.T)


def parse_decimals(text: Text) -> FloatArray:
    """Return the float64 nearest to each of n decimal literals, or inf if it is too large.

    text: ASCII, one literal per row, all of the same length.
    """
    n, width = text.shape
    ends = pa.py_buffer(np.arange(n + 1, dtype=np.int64) * width)
    literals = pa.LargeStringArray.from_buffers(n, ends, pa.py_buffer(np.ascontiguousarray(text)))
    values: FloatArray = literals.cast(pa.float64()).to_numpy()
    return values


def fixed_point_digits(
    values: FloatArray, integer_digits: int, fraction_digits: int
) -> NDArray[np.int8]:
    """Return the digits of n values ≥ 0 at fixed positions: (n, integer + fraction digits).

    They are those of the shortest decimal that parses to the same float64; what lies below the last
    position is rounded half to even. values: below 10^integer_digits. There must be at least 17
    positions.
    """
    significand, exponent = shortest_decimals(values)
    lowest = exponent - (DIGITS - 1)
    rounded = int_to_digits(_round_half_even(significand, -fraction_digits - lowest), DIGITS)
    first = integer_digits - DIGITS - np.maximum(lowest, -fraction_digits)
    digits = np.zeros((len(values), integer_digits + fraction_digits), np.int8)
    np.put_along_axis(digits, first[:, None] + np.arange(DIGITS), rounded, axis=1)
    return digits


def parse_fixed_point(digits: NDArray[np.int8], integer_digits: int) -> FloatArray:
    """Return the float64 nearest to each row of digits, the inverse of `fixed_point_digits`."""
    n, columns = digits.shape
    text = np.full((n, columns + 1), ord("."), np.uint8)
    text[:, :integer_digits] = digits[:, :integer_digits] + ord("0")
    text[:, integer_digits + 1 :] = digits[:, integer_digits:] + ord("0")
    return parse_decimals(text)


def _round_half_even(significand: IntArray, dropped: IntArray) -> IntArray:
    """Return 17-digit integers without their last `dropped` digits (none if negative)."""
    unit = POWERS_OF_TEN[np.clip(dropped, 0, DIGITS + 1)]
    quotient, remainder = np.divmod(significand, unit)
    round_up: NDArray[np.bool_] = (2 * remainder > unit) | (
        (2 * remainder == unit) & (quotient % 2 == 1)
    )
    return quotient + round_up
