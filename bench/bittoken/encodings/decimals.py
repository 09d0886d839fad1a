"""Decimal digits of float64 numbers, many at a time."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
from numpy.typing import NDArray

from bench.bittoken.encodings.base import Floats

Ints = NDArray[np.int64]
Text = NDArray[np.uint8]

DIGITS = 17
"""Significant digits that tell any two float64 apart."""

POWERS = 10 ** np.arange(19)
_WIDEST = 24
_BLOCK = 1 << 14
"""Numbers worked on at a time, so that all their digits stay in the processor's cache."""


class Shortest(NamedTuple):
    """The shortest decimals that read back as the same float64.

    significand: 17 digits, the first of them not zero, as int64 (n,); 0 for zero.
    exponent: the power of ten of the first digit, int64 (n,); 0 for zero.
    """

    significand: Ints
    exponent: Ints


def shortest(values: Floats) -> Shortest:
    """The shortest decimals of n finite values that are not negative."""
    blocks = [_shortest(values[at : at + _BLOCK]) for at in range(0, len(values), _BLOCK)]
    if not blocks:
        return Shortest(np.zeros(0, np.int64), np.zeros(0, np.int64))
    return Shortest(*map(np.concatenate, zip(*blocks, strict=True)))


def digits_of(numbers: Ints, count: int) -> NDArray[np.int8]:
    """int8 of shape (n, count): the last `count` decimal digits, most significant first."""
    digits = np.empty((count, len(numbers)), np.int8)
    for place in range(count - 1, -1, -1):
        higher = numbers // 10
        digits[place] = numbers - higher * 10
        numbers = higher
    return np.ascontiguousarray(digits.T)


def number_of(digits: NDArray[np.int8]) -> Ints:
    """The n integers of n rows of at most 18 decimal digits: the inverse of `digits_of`."""
    numbers = np.zeros(len(digits), np.int64)
    for column in digits.T:
        numbers = numbers * 10 + column
    return numbers


def parsed(text: Text) -> Floats:
    """The float64 nearest to each of n decimal literals, given as rows of ASCII of one length.

    What is too large is inf.
    """
    n, width = text.shape
    ends = pa.py_buffer(np.arange(n + 1, dtype=np.int64) * width)
    literals = pa.LargeStringArray.from_buffers(n, ends, pa.py_buffer(np.ascontiguousarray(text)))
    values: Floats = literals.cast(pa.float64()).to_numpy()
    return values


def _shortest(values: Floats) -> Shortest:
    significand, exponent = _read(_written(values))
    length = np.searchsorted(POWERS, significand, side="right")
    leading = np.where(significand > 0, exponent + length - 1, 0)
    return Shortest(significand * POWERS[np.minimum(DIGITS - length, DIGITS)], leading)


def _written(values: Floats) -> Text:
    """The shortest spellings, such as `0.1` or `5e-324`: one a column of ASCII, then blanks."""
    spelled = pa.array(np.ascontiguousarray(values, np.float64)).cast(pa.string())
    padded = pc.ascii_rpad(spelled, _WIDEST).buffers()[2]
    return np.ascontiguousarray(np.frombuffer(padded, np.uint8).reshape(-1, _WIDEST).T)


def _read(text: Text) -> tuple[Ints, Ints]:
    """Columns of ASCII → significand and exponent: the value is significand · 10^exponent."""
    n = text.shape[1]
    significand, exponent, fraction = (np.zeros(n, np.int64) for _ in range(3))
    point, power, negative = (np.zeros(n, bool) for _ in range(3))
    for characters in text:
        digit = characters - np.uint8(ord("0"))
        is_digit = digit < 10
        np.copyto(significand, significand * 10 + digit, where=is_digit & ~power)
        np.copyto(exponent, exponent * 10 + digit, where=is_digit & power)
        fraction += is_digit & point & ~power
        point |= characters == ord(".")
        power |= characters == ord("e")
        negative |= characters == ord("-")
    return significand, np.where(negative, -exponent, exponent) - fraction
