"""Arrays of decimal numbers: integer significands (below 10¹⁸) and powers of ten.

Results in extended precision (`long double`) are rounded to decimal numbers with a proof, row by
row; rows without one need exact arithmetic.
"""

from __future__ import annotations

from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

IntArray = NDArray[np.int64]
BoolArray = NDArray[np.bool_]
ExtendedArray = NDArray[np.longdouble]

POWERS_OF_TEN = 10 ** np.arange(19, dtype=np.int64)
_POWERS_OF_TWO = 2 ** np.arange(63, dtype=np.int64)


class DecimalArray(NamedTuple):
    """The values significand · 10^exponent."""

    significand: IntArray
    exponent: IntArray

    def select(self, keep: BoolArray | IntArray) -> DecimalArray:
        """Return the numbers of some rows."""
        return DecimalArray(self.significand[keep], self.exponent[keep])


def digit_count(values: IntArray) -> IntArray:
    """Count the decimal digits of |values|; 0 has none."""
    return np.searchsorted(POWERS_OF_TEN, np.abs(values), side="right")


def magnitude(numbers: DecimalArray) -> IntArray:
    """Return x with 10^x ≤ |n| < 10^(x+1), for numbers other than 0."""
    return digit_count(numbers.significand) - 1 + numbers.exponent


def normalize(numbers: DecimalArray) -> DecimalArray:
    """Return the same values without trailing zeros in the significands; zero is 0 · 10^0.

    Vectorized equivalent of `numbench.core.decimal_numbers.normalize`.
    """
    significand, exponent = numbers.significand.copy(), numbers.exponent.copy()
    rows = np.flatnonzero(significand % 10 == 0)
    exponent[rows[significand[rows] == 0]] = 0
    rows = rows[significand[rows] != 0]
    while rows.size:
        significand[rows] //= 10
        exponent[rows] += 1
        rows = rows[significand[rows] % 10 == 0]
    return DecimalArray(significand, exponent)


def floor_log10(numerators: IntArray, denominators: IntArray) -> IntArray:
    """Return ⌊log10(numerator / denominator)⌋ of positive integers below 10¹⁸."""
    return _floor_log(POWERS_OF_TEN, numerators, denominators)


def floor_log2(numerators: IntArray, denominators: IntArray) -> IntArray:
    """Return ⌊log2(numerator / denominator)⌋ of positive integers below 2⁶²."""
    return _floor_log(_POWERS_OF_TWO, numerators, denominators)


def _floor_log(powers: IntArray, numerators: IntArray, denominators: IntArray) -> IntArray:
    lengths = (np.searchsorted(powers, each, side="right") for each in (numerators, denominators))
    exponent: IntArray = np.subtract(*lengths)
    left = numerators * powers[np.maximum(-exponent, 0)]
    right = denominators * powers[np.maximum(exponent, 0)]
    floor: IntArray = exponent - (left < right)
    return floor


def bit_length(values: IntArray) -> IntArray:
    """Count the binary digits of integers that are not negative."""
    return np.searchsorted(_POWERS_OF_TWO, values, side="right")


_LARGEST_POWER = 300
_TENS = np.array([np.longdouble(f"1e{k}") for k in range(-_LARGEST_POWER, _LARGEST_POWER + 1)])
_ERROR = 2.0**-59
"""A bound on the relative error of a value to be rounded: 16 units of the 64th bit."""

_HAS_64_BITS = bool(np.longdouble(1) + np.longdouble(2.0**-63) != 1)
"""Whether `long double` has a significand of at least 64 bits, as on Linux with x86 or Arm."""


def scaled(values: NDArray[Any], exponents: IntArray) -> ExtendedArray:
    """Return value · 10^exponent in extended precision, for exponents within ±300."""
    result: ExtendedArray = values * _TENS[exponents + _LARGEST_POWER]
    return result


def round_to_digits(values: ExtendedArray, digits: int) -> tuple[DecimalArray, BoolArray]:
    """Return values rounded to `digits` significant digits, and the rows with a proved result.

    A result is proved if a relative error of 2⁻⁵⁹ in the value cannot change it. Where `long
    double` is no longer than float64, no result is.
    """
    exponent = np.searchsorted(_TENS, np.abs(values), side="right") - 1 - _LARGEST_POWER
    unit_exponent = np.maximum(exponent, digits - 1 - _LARGEST_POWER) - (digits - 1)
    units = scaled(values, -unit_exponent)
    whole = np.rint(units)
    proved: BoolArray = np.abs(np.abs(units - whole) - 0.5) > 10.0**digits * _ERROR
    return DecimalArray(whole.astype(np.int64), unit_exponent), proved & _HAS_64_BITS


_SIGNIFICAND_WIDTH = 18
_TRIPLES: NDArray[np.uint8] = np.array([list(b"%03d" % i) for i in range(1000)], np.uint8)
_NONZERO_COUNTS = np.array([len(str(i).replace("0", "")) for i in range(1000)], np.uint8)
_WHOLE_COLUMNS, _FRACTION_COLUMNS = 19, 46
"""Columns left and right of the decimal point: a sign and 18 digits, 46 digits."""


def format_decimals(numbers: DecimalArray) -> pa.Array:
    """Return numbers in plain notation, for |n| < 10¹⁸ and exponents ≥ −46.

    Vectorized equivalent of `numbench.core.decimal_numbers.format_decimal`.
    """
    significand, exponent = normalize(numbers)
    aligned = _align_at_point(_digits(np.abs(significand)), exponent)
    first = _WHOLE_COLUMNS - np.maximum(digit_count(significand) + exponent, 1)
    negative = np.flatnonzero(significand < 0)
    first[negative] -= 1
    aligned[negative, first[negative]] = ord("-")
    end = np.where(exponent < 0, _WHOLE_COLUMNS + 1 - exponent, _WHOLE_COLUMNS)
    return slices_to_strings(aligned, first, end)


def slices_to_strings(matrix: np.ndarray, first: IntArray, end: IntArray) -> pa.Array:
    """Return the bytes matrix[i, first[i]:end[i]] of each row as strings."""
    lengths = end - first
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    starts = np.arange(len(matrix)) * matrix.shape[1] + first - offsets[:-1]
    index = np.repeat(starts, lengths) + np.arange(offsets[-1])
    data = matrix.ravel().take(index)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(data))


def base_1000_digits(values: IntArray) -> np.ndarray:
    """Return the six digits in base 1000 of non-negative integers below 10¹⁸, largest first."""
    thousand = np.uint32(1000)
    digits = np.empty((6, len(values)), np.uint16)
    high = values // 10**9
    for half, first in ((high, 0), (values - high * 10**9, 3)):
        remainder = half.astype(np.uint32)
        for index in (first + 2, first + 1):
            quotient = remainder // thousand
            digits[index] = remainder - quotient * thousand
            remainder = quotient
        digits[first] = remainder
    return digits


def count_nonzero_digits(values: IntArray) -> IntArray:
    """Count the non-zero decimal digits of non-negative integers below 10¹⁸."""
    count: IntArray = _NONZERO_COUNTS.take(base_1000_digits(values)).sum(axis=0, dtype=np.int64)
    return count


def _digits(values: IntArray) -> np.ndarray:
    """Return the ASCII digits of non-negative integers in 18 columns, padded with zeros."""
    matrix: np.ndarray = _TRIPLES.take(base_1000_digits(values).T, axis=0).reshape(
        len(values), _SIGNIFICAND_WIDTH
    )
    return matrix


def _align_at_point(digits: np.ndarray, exponent: IntArray) -> np.ndarray:
    """Return the digits aligned at a common decimal point, one byte per column."""
    rows, width = len(digits), _SIGNIFICAND_WIDTH
    margin = max(_WHOLE_COLUMNS, _FRACTION_COLUMNS) + width
    padded = np.full((rows, width + 2 * margin), ord("0"), np.uint8)
    padded[:, margin : margin + width] = digits
    units_column = margin + width - 1 + exponent
    units_index = np.arange(rows, dtype=np.int64) * padded.shape[1] + units_column
    offsets = np.r_[np.arange(-_WHOLE_COLUMNS + 1, 1), 0, np.arange(1, _FRACTION_COLUMNS + 1)]
    aligned: np.ndarray = padded.ravel().take(units_index[:, None] + offsets)
    aligned[:, _WHOLE_COLUMNS] = ord(".")
    return aligned
