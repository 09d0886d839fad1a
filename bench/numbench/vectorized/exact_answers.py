"""Exact answers of many questions: proved roundings, and exact arithmetic for the other rows."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

from numbench.decimal_numbers import normalize, parse_decimal
from numbench.tasks import TASKS
from numbench.tasks.arithmetic import MAX_RESULT_EXPONENT, reciprocal
from numbench.tasks.exact_arithmetic import DIGITS
from numbench.vectorized import double_double
from numbench.vectorized.decimal_arrays import (
    POWERS_OF_TEN,
    BoolArray,
    DecimalArray,
    FloatArray,
    IntArray,
    digit_count,
    format_decimals,
)
from numbench.vectorized.double_double import DoubleDouble
from numbench.vectorized.questions import Questions


def numeric_answers(questions: Questions, max_digits: int) -> DecimalArray:
    """Return the answers of arithmetic questions, rounded to 15 significant digits."""
    answers, proved = _ANSWER_FUNCTIONS[questions.task](questions, max_digits)
    rows = np.flatnonzero(~proved)
    if rows.size:
        _answer_exactly(questions, rows, answers)
    return answers


def sort_order(questions: Questions) -> IntArray:
    """Return the operands' indices from smallest to largest per row; absent ones come last."""
    units = questions.operands.significand
    largest = np.iinfo(np.int64).max
    return np.argsort(np.where(questions.present, units, largest), axis=1, kind="stable")


def interval_index(questions: Questions) -> IntArray:
    """Return the number of boundaries that are not above the reference, per row."""
    units = questions.operands.significand
    below = (units[:, 1:] <= units[:, :1]) & questions.present[:, 1:]
    count: IntArray = below.sum(axis=1)
    return count


def _add_or_subtract(questions: Questions, _max_digits: int) -> tuple[DecimalArray, BoolArray]:
    significand, exponent = questions.operands
    unit_exponent = exponent.min(axis=1)
    shifted = [
        double_double.multiply(
            double_double.from_ints(s), double_double.power_of_ten(e - unit_exponent)
        )
        for s, e in zip(significand.T, exponent.T, strict=True)
    ]
    sign = np.where(questions.operator == 1, -1.0, 1.0)
    second = DoubleDouble(shifted[1].high * sign, shifted[1].low * sign)
    return _scale_exponent(
        double_double.round_to_digits(double_double.add(shifted[0], second)), unit_exponent
    )


def _multiply(questions: Questions, _max_digits: int) -> tuple[DecimalArray, BoolArray]:
    a, b = map(double_double.from_ints, questions.operands.significand.T)
    unit_exponent = questions.operands.exponent.sum(axis=1)
    return _scale_exponent(
        double_double.round_to_digits(double_double.multiply(a, b)), unit_exponent
    )


def _divide(questions: Questions, _max_digits: int) -> tuple[DecimalArray, BoolArray]:
    a, b = map(double_double.from_ints, questions.operands.significand.T)
    unit_exponent = questions.operands.exponent[:, 0] - questions.operands.exponent[:, 1]
    return _scale_exponent(double_double.round_to_digits(double_double.divide(a, b)), unit_exponent)


def _power(questions: Questions, max_digits: int) -> tuple[DecimalArray, BoolArray]:
    """Compute integer powers by repeated squaring of a base in [1, 10), roots by a Newton step."""
    base = DecimalArray(questions.operands.significand[:, 0], questions.operands.exponent[:, 0])
    xi, root = questions.params["power"], questions.params["root"] == 1
    x = questions.params["exponent"]
    size = np.abs(base.significand)
    leading = double_double.multiply(
        double_double.from_ints(size), double_double.power_of_ten(1 - digit_count(size))
    )
    value = _integer_power(leading, np.where(root, 1, xi))
    unit_exponent = np.where(root, 0, x * xi)
    rows = np.flatnonzero(root)
    rooted = _root(_to_double_double(base.select(rows)), xi[rows], max_digits)
    value.high[rows], value.low[rows] = rooted
    inverse = questions.operands.significand[:, 1] < 0
    reciprocals = double_double.divide(DoubleDouble(np.ones(len(x)), np.zeros(len(x))), value)
    high = np.where(inverse, reciprocals.high, value.high)
    low = np.where(inverse, reciprocals.low, value.low)
    answers, proved = _scale_exponent(
        double_double.round_to_digits(DoubleDouble(high, low)),
        np.where(inverse, -unit_exponent, unit_exponent),
    )
    odd = (base.significand < 0) & (xi % 2 == 1)
    if max_digits < DIGITS:
        proved = proved & ~root
    return answers._replace(significand=np.where(odd, -1, 1) * answers.significand), proved


def _integer_power(base: DoubleDouble, power: IntArray) -> DoubleDouble:
    result = DoubleDouble(np.ones(len(power)), np.zeros(len(power)))
    square = base
    for bit in range(int(power.max(initial=1)).bit_length()):
        is_set = (power >> bit & 1) == 1
        product = double_double.multiply(result, square)
        result = DoubleDouble(
            *(np.where(is_set, p, r) for p, r in zip(product, result, strict=True))
        )
        square = double_double.multiply(square, square)
    return result


def _root(base: DoubleDouble, xi: IntArray, max_digits: int) -> DoubleDouble:
    """Return base ^ e for the printed exponent e of 1/ξ, if e has 15 digits.

    With the float64 root y₀, y₀ · (1 + (base − y₀^ξ) / (ξ · y₀^ξ)) is the ξ-th root with a
    relative error of 10⁻²⁸; the factor base^(e − 1/ξ) is 1 + (e − 1/ξ) · ln base with the same
    error.
    """
    start = base.high ** (1 / xi)
    power = _integer_power(DoubleDouble(start, np.zeros_like(start)), xi)
    residual = double_double.add(base, double_double.negate(power))
    step: FloatArray = residual.high / (xi * power.high)
    step = step + _rounding_of_reciprocals(max_digits)[xi] * np.log(base.high)
    return double_double.add(
        DoubleDouble(start, np.zeros_like(start)), DoubleDouble(start * step, np.zeros_like(start))
    )


def _mean(questions: Questions, _max_digits: int) -> tuple[DecimalArray, BoolArray]:
    """Divide the sum by the length with integers; many quotients of even lengths are ties."""
    total, length = questions.operands.significand.sum(axis=1), questions.length
    size = np.abs(total)
    whole = size // length
    excess = digit_count(whole) - DIGITS
    # Digits are appended to a short quotient, or removed from one of more than 15 digits.
    append = POWERS_OF_TEN[np.maximum(-excess, 0)]
    remove = POWERS_OF_TEN[np.maximum(excess, 0)]
    numerator = (size - whole * length) * append
    extended = whole * append + numerator // length
    rounded = extended // remove
    twice_remainder = 2 * ((extended - rounded * remove) * length + numerator % length)
    half = length * remove
    rounded += (twice_remainder > half) | ((twice_remainder == half) & (rounded % 2 == 1))
    exponent = questions.operands.exponent[:, 0] + excess
    return DecimalArray(np.sign(total) * rounded, exponent), np.ones(len(total), np.bool_)


def _std(questions: Questions, _max_digits: int) -> tuple[DecimalArray, BoolArray]:
    """Return √(Σ (l·kᵢ − T)² / l) / l for the units kᵢ, their sum T and their number l."""
    units, length = questions.operands.significand, questions.length
    deviations = length[:, None] * units - units.sum(axis=1)[:, None]
    deviations = np.where(questions.present, deviations, 0)
    zeros = np.zeros(len(questions))
    squares = DoubleDouble(zeros, zeros)
    for column in deviations.T:
        deviation = double_double.from_ints(column)
        squares = double_double.add(squares, double_double.multiply(deviation, deviation))
    count = double_double.from_ints(length)
    root = double_double.square_root(double_double.divide(squares, count))
    return _scale_exponent(
        double_double.round_to_digits(double_double.divide(root, count)),
        questions.operands.exponent[:, 0],
    )


_ANSWER_FUNCTIONS: dict[str, Callable[[Questions, int], tuple[DecimalArray, BoolArray]]] = {
    "addition": _add_or_subtract,
    "multiplication": _multiply,
    "division": _divide,
    "exponentiation": _power,
    "mean": _mean,
    "std": _std,
}


def _answer_exactly(questions: Questions, rows: IntArray, answers: DecimalArray) -> None:
    """Replace the answers of some rows by those of exact arithmetic."""
    task = TASKS[questions.task]
    subset = questions.select(rows)
    texts = iter(format_decimals(subset.operands.select(subset.present)).to_pylist())
    for row, length, operator in zip(rows, subset.length, subset.operator, strict=True):
        operands = [next(texts) for _ in range(length)]
        exact = normalize(parse_decimal(str(task.exact_answer(task.operators[operator], operands))))
        answers.significand[row], answers.exponent[row] = exact


def _scale_exponent(
    rounded: tuple[DecimalArray, BoolArray], unit_exponent: IntArray
) -> tuple[DecimalArray, BoolArray]:
    answers, proved = rounded
    return answers._replace(exponent=answers.exponent + unit_exponent), proved


def _to_double_double(values: DecimalArray) -> DoubleDouble:
    return double_double.multiply(
        double_double.from_ints(values.significand), double_double.power_of_ten(values.exponent)
    )


@cache
def _rounding_of_reciprocals(max_digits: int) -> FloatArray:
    """Return e − 1/ξ for the printed exponents e and ξ = 0 … 14 (0 and 1 are not used)."""
    errors = [
        float(Fraction(reciprocal(xi, max_digits)) - Fraction(1, xi))
        for xi in range(2, MAX_RESULT_EXPONENT + 1)
    ]
    return np.array([0.0, 0.0, *errors])
