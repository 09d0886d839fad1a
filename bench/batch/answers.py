"""Exact answers in batches: proved roundings, and exact arithmetic for the rows left over."""

from __future__ import annotations

from collections.abc import Callable
from fractions import Fraction
from functools import cache

import numpy as np

from bench.batch import rounding
from bench.batch.fixed import POWERS, Flags, Floats, Ints, Numbers, digit_count
from bench.batch.questions import Questions
from bench.batch.rounding import Pair
from bench.batch.text import plain
from bench.numerals import parse, reduced
from bench.tasks import TASKS
from bench.tasks.multi_step import LARGEST_RESULT, reciprocal
from bench.tasks.truth import DIGITS


def numbers(questions: Questions, max_digits: int) -> Numbers:
    """The answers of arithmetic questions, in 15 significant digits."""
    answers, proved = _TRUTHS[questions.task](questions, max_digits)
    rows = np.flatnonzero(~proved)
    if rows.size:
        _settle(questions, rows, answers)
    return answers


def order(questions: Questions) -> Ints:
    """For each row the operands' indices from smallest to largest; absent ones come last."""
    units = questions.operands.significand
    largest = np.iinfo(np.int64).max
    return np.argsort(np.where(questions.present, units, largest), axis=1, kind="stable")


def interval(questions: Questions) -> Ints:
    """The number of boundaries that are not above the reference."""
    units = questions.operands.significand
    below = (units[:, 1:] <= units[:, :1]) & questions.present[:, 1:]
    count: Ints = below.sum(axis=1)
    return count


def _sum(questions: Questions, _max_digits: int) -> tuple[Numbers, Flags]:
    significand, exponent = questions.operands
    grid = exponent.min(axis=1)
    shifted = [
        rounding.multiply(rounding.of_ints(s), rounding.ten_to(e - grid))
        for s, e in zip(significand.T, exponent.T, strict=True)
    ]
    sign = np.where(questions.operator == 1, -1.0, 1.0)
    second = Pair(shifted[1].high * sign, shifted[1].low * sign)
    return _on_grid(rounding.to_digits(rounding.add(shifted[0], second)), grid)


def _product(questions: Questions, _max_digits: int) -> tuple[Numbers, Flags]:
    a, b = map(rounding.of_ints, questions.operands.significand.T)
    grid = questions.operands.exponent.sum(axis=1)
    return _on_grid(rounding.to_digits(rounding.multiply(a, b)), grid)


def _quotient(questions: Questions, _max_digits: int) -> tuple[Numbers, Flags]:
    a, b = map(rounding.of_ints, questions.operands.significand.T)
    grid = questions.operands.exponent[:, 0] - questions.operands.exponent[:, 1]
    return _on_grid(rounding.to_digits(rounding.divide(a, b)), grid)


def _power(questions: Questions, max_digits: int) -> tuple[Numbers, Flags]:
    """Integer powers by repeated squaring of a base in [1, 10); roots by one Newton step."""
    base = Numbers(questions.operands.significand[:, 0], questions.operands.exponent[:, 0])
    xi, root = questions.params["power"], questions.params["root"] == 1
    x = questions.params["exponent"]
    size = np.abs(base.significand)
    leading = rounding.multiply(rounding.of_ints(size), rounding.ten_to(1 - digit_count(size)))
    value = _integer_power(leading, np.where(root, 1, xi))
    grid = np.where(root, 0, x * xi)
    rows = np.flatnonzero(root)
    rooted = _root(_of_numbers(base.where(rows)), xi[rows], max_digits)
    value.high[rows], value.low[rows] = rooted
    inverse = questions.operands.significand[:, 1] < 0
    reciprocals = rounding.divide(Pair(np.ones(len(x)), np.zeros(len(x))), value)
    high = np.where(inverse, reciprocals.high, value.high)
    low = np.where(inverse, reciprocals.low, value.low)
    answers, proved = _on_grid(rounding.to_digits(Pair(high, low)), np.where(inverse, -grid, grid))
    odd = (base.significand < 0) & (xi % 2 == 1)
    if max_digits < DIGITS:
        proved = proved & ~root
    return answers._replace(significand=np.where(odd, -1, 1) * answers.significand), proved


def _integer_power(base: Pair, power: Ints) -> Pair:
    result = Pair(np.ones(len(power)), np.zeros(len(power)))
    square = base
    for bit in range(int(power.max(initial=1)).bit_length()):
        taken = (power >> bit & 1) == 1
        product = rounding.multiply(result, square)
        result = Pair(*(np.where(taken, p, r) for p, r in zip(product, result, strict=True)))
        square = rounding.multiply(square, square)
    return result


def _root(base: Pair, xi: Ints, max_digits: int) -> Pair:
    """base ^ e for the printed exponent e of 1/ξ, if e has 15 digits.

    With y₀ the float64 root, y₀ · (1 + (base − y₀^ξ) / (ξ · y₀^ξ)) is the ξ-th root but for
    10⁻²⁸ relative; the factor base^(e − 1/ξ) is 1 + (e − 1/ξ) · ln base but for the same.
    """
    start = base.high ** (1 / xi)
    power = _integer_power(Pair(start, np.zeros_like(start)), xi)
    rest = rounding.add(base, rounding.negative(power))
    step: Floats = rest.high / (xi * power.high)
    step = step + _rounding_of_reciprocals(max_digits)[xi] * np.log(base.high)
    return rounding.add(Pair(start, np.zeros_like(start)), Pair(start * step, np.zeros_like(start)))


def _mean(questions: Questions, _max_digits: int) -> tuple[Numbers, Flags]:
    """The sum over the length by long division, since half of all even lengths end in a tie."""
    total, length = questions.operands.significand.sum(axis=1), questions.length
    size = np.abs(total)
    whole = size // length
    spare = digit_count(whole) - DIGITS
    more, less = POWERS[np.maximum(-spare, 0)], POWERS[np.maximum(spare, 0)]
    # At most 15 digits are added behind the point, or the surplus above 15 digits is cut off.
    behind = (size - whole * length) * more
    extended = whole * more + behind // length
    kept = extended // less
    twice_rest = 2 * ((extended - kept * less) * length + behind % length)
    half = length * less
    kept += (twice_rest > half) | ((twice_rest == half) & (kept % 2 == 1))
    exponent = questions.operands.exponent[:, 0] + spare
    return Numbers(np.sign(total) * kept, exponent), np.ones(len(total), np.bool_)


def _std(questions: Questions, _max_digits: int) -> tuple[Numbers, Flags]:
    """√(Σ (l·kᵢ − T)² / l) / l for the units kᵢ, their sum T and their number l."""
    units, length = questions.operands.significand, questions.length
    deviations = length[:, None] * units - units.sum(axis=1)[:, None]
    deviations = np.where(questions.present, deviations, 0)
    zeros = np.zeros(len(questions))
    squares = Pair(zeros, zeros)
    for column in deviations.T:
        deviation = rounding.of_ints(column)
        squares = rounding.add(squares, rounding.multiply(deviation, deviation))
    count = rounding.of_ints(length)
    root = rounding.square_root(rounding.divide(squares, count))
    return _on_grid(
        rounding.to_digits(rounding.divide(root, count)), questions.operands.exponent[:, 0]
    )


_TRUTHS: dict[str, Callable[[Questions, int], tuple[Numbers, Flags]]] = {
    "addition": _sum,
    "multiplication": _product,
    "division": _quotient,
    "exponentiation": _power,
    "mean": _mean,
    "std": _std,
}


def _settle(questions: Questions, rows: Ints, answers: Numbers) -> None:
    """Put the exact answers of some rows in their places."""
    task = TASKS[questions.task]
    few = questions.where(rows)
    texts = iter(plain(few.operands.where(few.present)).to_pylist())
    for row, length, operator in zip(rows, few.length, few.operator, strict=True):
        operands = [next(texts) for _ in range(length)]
        exact = reduced(parse(str(task.truth(task.operators[operator], operands))))
        answers.significand[row], answers.exponent[row] = exact


def _on_grid(rounded: tuple[Numbers, Flags], grid: Ints) -> tuple[Numbers, Flags]:
    answers, proved = rounded
    return answers._replace(exponent=answers.exponent + grid), proved


def _of_numbers(values: Numbers) -> Pair:
    return rounding.multiply(rounding.of_ints(values.significand), rounding.ten_to(values.exponent))


@cache
def _rounding_of_reciprocals(max_digits: int) -> Floats:
    """e − 1/ξ for the printed exponents e, by ξ = 0 … 14 (0 and 1 are not used)."""
    errors = [
        float(Fraction(reciprocal(xi, max_digits)) - Fraction(1, xi))
        for xi in range(2, LARGEST_RESULT + 1)
    ]
    return np.array([0.0, 0.0, *errors])
