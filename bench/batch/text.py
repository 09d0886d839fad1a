"""Arrays of numbers as plain decimal text, without a Python object per number."""

from __future__ import annotations

import numpy as np
import pyarrow as pa
from numpy.typing import NDArray

from bench.batch.fixed import Ints, Numbers, digit_count, reduced

_WIDTH = 18
_TRIPLES: NDArray[np.uint8] = np.array([list(b"%03d" % i) for i in range(1000)], np.uint8)
_NONZERO = np.array([len(str(i).replace("0", "")) for i in range(1000)], np.uint8)
_WHOLE, _FRACTION = 19, 46
"""Canvas columns left and right of the point: a sign and 18 digits, 46 digits."""


def plain(numbers: Numbers) -> pa.Array:
    """Plain decimals, as `bench.numerals.plain` writes them. |n| < 10¹⁸, exponents ≥ −46."""
    significand, exponent = reduced(numbers)
    canvas = _canvas(_digits(np.abs(significand)), exponent)
    first = _WHOLE - np.maximum(digit_count(significand) + exponent, 1)
    negative = np.flatnonzero(significand < 0)
    first[negative] -= 1
    canvas[negative, first[negative]] = ord("-")
    end = np.where(exponent < 0, _WHOLE + 1 - exponent, _WHOLE)
    return ragged(canvas, first, end)


def ragged(matrix: np.ndarray, first: Ints, end: Ints) -> pa.Array:
    """Strings of the bytes matrix[i, first[i]:end[i]]."""
    lengths = end - first
    offsets = np.zeros(len(lengths) + 1, np.int32)
    np.cumsum(lengths, out=offsets[1:])
    starts = np.arange(len(matrix)) * matrix.shape[1] + first - offsets[:-1]
    index = np.repeat(starts, lengths) + np.arange(offsets[-1])
    data = matrix.ravel().take(index)
    return pa.StringArray.from_buffers(len(lengths), pa.py_buffer(offsets), pa.py_buffer(data))


def fixed_width(matrix: np.ndarray) -> pa.Array:
    """Strings of whole rows of a byte matrix."""
    rows, width = matrix.shape
    offsets = np.arange(rows + 1, dtype=np.int32) * width
    return pa.StringArray.from_buffers(
        rows, pa.py_buffer(offsets), pa.py_buffer(np.ascontiguousarray(matrix))
    )


def triples(values: Ints) -> np.ndarray:
    """Non-negative integers below 10¹⁸ in base 1000: six places, most significant first."""
    thousand = np.uint32(1000)
    places = np.empty((6, len(values)), np.uint16)
    high = values // 10**9
    for half, first in ((high, 0), (values - high * 10**9, 3)):
        rest = half.astype(np.uint32)
        for place in (first + 2, first + 1):
            quotient = rest // thousand
            places[place] = rest - quotient * thousand
            rest = quotient
        places[first] = rest
    return places


def nonzero_digits(values: Ints) -> Ints:
    """The count of non-zero decimal digits of non-negative integers below 10¹⁸."""
    count: Ints = _NONZERO.take(triples(values)).sum(axis=0, dtype=np.int64)
    return count


def _digits(values: Ints) -> np.ndarray:
    """ASCII digits of non-negative integers, right-aligned in 18 columns, zeros before."""
    matrix: np.ndarray = _TRIPLES.take(triples(values).T, axis=0).reshape(len(values), _WIDTH)
    return matrix


def _canvas(digits: np.ndarray, exponent: Ints) -> np.ndarray:
    """Every number around a common point: column c holds the digit of its decimal place."""
    rows = len(digits)
    margin = max(_WHOLE, _FRACTION) + _WIDTH
    padded = np.full((rows, _WIDTH + 2 * margin), ord("0"), np.uint8)
    padded[:, margin : margin + _WIDTH] = digits
    unit = np.arange(rows, dtype=np.int64) * padded.shape[1] + margin + _WIDTH - 1 + exponent
    places = np.r_[np.arange(-_WHOLE + 1, 1), 0, np.arange(1, _FRACTION + 1)]
    canvas: np.ndarray = padded.ravel().take(unit[:, None] + places)
    canvas[:, _WHOLE] = ord(".")
    return canvas
