"""Difficulty of many questions: vectorized equivalent of `numbench.tasks.difficulty`."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc

from numbench.vectorized import decimal_arrays
from numbench.vectorized.decimal_arrays import (
    DecimalArray,
    IntArray,
    bit_length,
    ceil_log10,
    digit_count,
    floor_log2,
    floor_log10,
    normalize,
)
from numbench.vectorized.questions import Questions


class DifficultyArrays(NamedTuple):
    """δ in base 10 and base 2, one entry per row."""

    base10: IntArray
    base2: IntArray


def nonzero_digits(values: DecimalArray, texts: pa.Array) -> DifficultyArrays:
    """Count the non-zero decimal and binary digits of numbers, given as values and as text."""
    decimal = decimal_arrays.count_nonzero_digits(np.abs(values.significand))
    bits = np.asarray(pc.cast(texts, pa.float64())).view(np.uint64)
    ones = np.bitwise_count(bits & np.uint64((1 << 52) - 1)).astype(np.int64)
    return DifficultyArrays(decimal, np.where(values.significand == 0, 0, ones + 1))


def of_printed_digits(questions: Questions, operands: pa.ListArray) -> DifficultyArrays:
    """Return δ of addition and sorting: the digits of all operands as printed."""
    present = questions.present
    numbers = normalize(questions.operands.select(present))
    whole = np.maximum(digit_count(numbers.significand) + numbers.exponent, 1)
    decimal = whole + np.maximum(-numbers.exponent, 0)
    values = np.abs(np.asarray(pc.cast(operands.values, pa.float64())))
    significands, exponents = np.frexp(values)
    units = (significands * (1 << 53)).astype(np.int64)
    # The lowest set bit of the significand is the last binary place to be counted.
    lowest = bit_length(np.maximum(units & -units, 1)) - 1
    places = np.where(units == 0, 0, np.maximum(53 - lowest - exponents, 0))
    binary = np.maximum(exponents, 1) + places
    rows = np.repeat(np.arange(len(questions)), questions.length)
    return DifficultyArrays(
        *(_sum_by_row(part, rows, len(questions)) for part in (decimal, binary))
    )


def of_moments(questions: Questions) -> DifficultyArrays:
    """Return δ of mean and std."""
    units, length = questions.operands.significand, questions.length
    total = units.sum(axis=1)
    deviations = np.abs(length[:, None] * units - total[:, None])
    deviation = np.where(questions.present, deviations, 0).max(axis=1)
    size = np.abs(total)
    base10 = ceil_log10(deviation, length) - floor_log10(size, length) + 15
    base2 = 50 - floor_log2(size, deviation)
    return DifficultyArrays(np.maximum(base10, 0), np.maximum(base2, 0))


def of_comparison(questions: Questions, order: IntArray) -> DifficultyArrays:
    """Return δ of minmax and interval. order: the operands' indices from smallest to largest."""
    units = questions.operands.significand
    if questions.task == "interval":
        return _distinguishing_digits(
            units[:, :1], units[:, 1:], questions.operands, questions.present[:, 1:]
        )
    ranked = np.take_along_axis(units, order, axis=1)
    present = questions.present
    rows, last = np.arange(len(units)), questions.length - 1
    # The answer is one end of the order; exchange it with the first column, then compare.
    ends = np.where(questions.operator == 1, last, 0)
    answer = ranked[rows, ends]
    ranked[rows, ends] = ranked[:, 0]
    return _distinguishing_digits(
        answer[:, None], ranked[:, 1:], questions.operands, present[:, 1:]
    )


def _distinguishing_digits(
    a: IntArray, b: IntArray, operands: DecimalArray, counted: np.ndarray
) -> DifficultyArrays:
    """Count the digits that distinguish a from b, summed over the columns in `counted`."""
    a, b = np.broadcast_arrays(a, b)
    where = np.nonzero(counted)
    x, y, unit_exponent = a[where], b[where], operands.exponent[where[0], 0]
    larger = np.maximum(np.maximum(np.abs(x), np.abs(y)), 1)
    same = np.flatnonzero(x == y)
    larger[same] = np.maximum(
        np.abs(normalize(DecimalArray(x[same], unit_exponent[same])).significand), 1
    )
    difference = np.maximum(np.abs(x - y), 1)
    base10 = digit_count(larger) - digit_count(difference) + 1
    base2 = np.maximum(floor_log2(larger, difference) + 1, 1)
    base2[same] = bit_length(larger[same])
    rows = len(counted)
    return DifficultyArrays(
        _sum_by_row(np.maximum(base10, 1), where[0], rows), _sum_by_row(base2, where[0], rows)
    )


def _sum_by_row(values: IntArray, rows: IntArray, count: int) -> IntArray:
    """Return the sum of the values of each of `count` rows."""
    return np.bincount(rows, values, count).astype(np.int64)
