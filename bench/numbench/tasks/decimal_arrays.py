"""Arrays of decimal numbers: integer significands (below 10¹⁸) and powers of ten.

Results in extended precision (`long double`) are rounded to decimal numbers with a proof, row by
row; rows without one need exact arithmetic.
"""

from __future__ import annotations

from collections.abc import Callable
from functools import partial
from typing import Any, NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
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

    Vectorized equivalent of `numbench.core.decimal_numbers.split_decimal`.
    """
    numbers = DecimalArray(*(part.copy() for part in numbers))
    significand, exponent = (part.reshape(-1) for part in numbers)
    rows = np.flatnonzero(significand % 10 == 0)
    exponent[rows[significand[rows] == 0]] = 0
    rows = rows[significand[rows] != 0]
    while rows.size:
        significand[rows] //= 10
        exponent[rows] += 1
        rows = rows[significand[rows] % 10 == 0]
    return numbers


def _floor_log(powers: IntArray, numerators: IntArray, denominators: IntArray) -> IntArray:
    lengths = (np.searchsorted(powers, each, side="right") for each in (numerators, denominators))
    exponent: IntArray = np.subtract(*lengths)
    left = numerators * powers[np.maximum(-exponent, 0)]
    right = denominators * powers[np.maximum(exponent, 0)]
    return np.asarray(exponent - (left < right))


floor_log10 = partial(_floor_log, POWERS_OF_TEN)
"""Returns ⌊log10(numerator / denominator)⌋ of positive integers below 10¹⁸."""

floor_log2 = partial(_floor_log, _POWERS_OF_TWO)
"""Returns ⌊log2(numerator / denominator)⌋ of positive integers below 2⁶²."""


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
    return np.asarray(values * _TENS[exponents + _LARGEST_POWER])


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


def write_groups(keys: IntArray, write: Callable[[int, IntArray], pa.Array]) -> pa.Array:
    """Return one string per row. write: those of the rows that have a key, from key and rows."""
    order = np.argsort(keys, kind="stable")
    values, starts = np.unique(keys[order], return_index=True)
    groups = zip(values.tolist(), np.split(order, starts[1:]), strict=False)
    texts = pa.chunked_array([write(*group) for group in groups], pa.string())
    return texts.take(pa.array(np.argsort(order))).combine_chunks()


def format_decimals(numbers: DecimalArray) -> pa.Array:
    """Return numbers in plain notation.

    Vectorized equivalent of `numbench.core.decimal_numbers.format_decimal`.
    """
    significand, exponent = normalize(numbers)
    digits = pa.array(np.abs(significand)).cast(pa.string())
    signs = pa.array(["", "-"]).take(pa.array((significand < 0).astype(np.int8)))

    def write(unit: int, rows: IntArray) -> pa.Array:
        texts = digits.take(pa.array(rows))
        if unit < 0:
            return pc.binary_replace_slice(pc.ascii_lpad(texts, 1 - unit, "0"), unit, unit, ".")
        return pc.binary_join_element_wise(texts, "0" * unit, "")

    return pc.binary_join_element_wise(signs, write_groups(exponent, write), "")


def count_nonzero_digits(values: IntArray) -> IntArray:
    """Count the non-zero decimal digits of integers that are not negative."""
    digits = pa.array(values).cast(pa.string())
    count = pc.subtract(pc.binary_length(digits), pc.count_substring(digits, "0"))
    return np.asarray(count).astype(np.int64)
