"""Sampling of many questions: vectorized equivalents of the samplers in `numbench.tasks`."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context
from functools import cache, partial
from typing import NamedTuple

import numpy as np

from numbench.decimal_numbers import from_decimal, parse_decimal
from numbench.tasks import TASKS, arithmetic, comparison, number_sampling
from numbench.tasks.arithmetic import (
    EXPONENT_SPAN,
    EXPONENT_WEIGHTS,
    MAX_RESULT_EXPONENT,
    reciprocal,
)
from numbench.tasks.number_sampling import MAX_LIST_LENGTH
from numbench.vectorized import double_double
from numbench.vectorized.decimal_arrays import POWERS_OF_TEN, BoolArray, DecimalArray, IntArray
from numbench.vectorized.questions import Questions, in_range
from numbench.vectorized.random_words import RandomWordArrays

IntPair = tuple[IntArray, IntArray]


def addition(words: RandomWordArrays, max_digits: int) -> Questions:
    """Sample questions of addition."""
    digits = _swapped(words, *_pair_digits(words, max_digits))
    x1, candidate, alternative = (_exponent(words) for _ in range(3))
    x2 = np.where(np.abs(candidate - x1) <= np.abs(alternative - x1), candidate, alternative)
    exponents = _swapped(words, x1, x2)
    operator = words.randbelow(2)
    return _pair_with_signs(words, "addition", operator, digits, exponents)


def multiplication(words: RandomWordArrays, max_digits: int) -> Questions:
    """Sample questions of multiplication."""
    digits = _swapped(words, *_pair_digits(words, max_digits))
    exponents = (_exponent(words), _exponent(words))
    return _pair_with_signs(words, "multiplication", np.zeros_like(digits[0]), digits, exponents)


def division(words: RandomWordArrays, max_digits: int) -> Questions:
    """Sample questions of division."""
    digits = _swapped(words, *_pair_digits(words, max_digits))
    quotient = _scaled(words, digits[0])
    divisor = _scaled(words, digits[1])
    dividend = _product(quotient, divisor, max_digits)
    signs = _signs(words)
    valid = in_range(dividend)
    params = {"digits_quotient": digits[0], "digits_divisor": digits[1]}
    operator = np.zeros_like(digits[0])
    return _pair_questions("division", operator, (dividend, divisor), signs, params, valid)


def exponentiation(words: RandomWordArrays, max_digits: int) -> Questions:
    """Sample questions of exponentiation."""
    x = words.weighted_index(EXPONENT_WEIGHTS) - EXPONENT_SPAN
    digits = words.randint(1, max_digits)
    base = DecimalArray(_significand(words, digits), x - digits + 1)
    xi = words.randint(2, MAX_RESULT_EXPONENT // (np.abs(x) + 1))
    root, inverse, negative = (words.randbelow(2) for _ in range(3))
    valid = (base.significand != 1) | (base.exponent != 0)
    flipped = (negative == 1) & (root == 0) & (x >= 0)
    signs = (np.where(flipped, -1, 1), np.where(inverse == 1, -1, 1))
    significands, exponents = _reciprocals(max_digits)
    power = DecimalArray(np.where(root, significands[xi], xi), np.where(root, exponents[xi], 0))
    params = {"digits": digits, "exponent": x, "power": xi, "root": root}
    operator = np.zeros_like(x)
    return _pair_questions("exponentiation", operator, (base, power), signs, params, valid)


def _pair_with_signs(
    words: RandomWordArrays, task: str, operator: IntArray, digits: IntPair, exponents: IntPair
) -> Questions:
    a, b = (
        DecimalArray(_significand(words, p), x - p + 1)
        for p, x in zip(digits, exponents, strict=True)
    )
    signs = _signs(words)
    params = {
        "digits_1": digits[0],
        "digits_2": digits[1],
        "exponent_1": exponents[0],
        "exponent_2": exponents[1],
    }
    valid = np.ones(len(operator), np.bool_)
    return _pair_questions(task, operator, (a, b), signs, params, valid)


def _pair_questions(
    task: str,
    operator: IntArray,
    operands: tuple[DecimalArray, DecimalArray],
    signs: IntPair,
    params: dict[str, IntArray],
    valid: BoolArray,
) -> Questions:
    significands = [n.significand * sign for n, sign in zip(operands, signs, strict=True)]
    both = DecimalArray(np.stack(significands, 1), np.stack([n.exponent for n in operands], 1))
    return Questions(task, both, np.full(len(operator), 2), operator, params, valid)


def _exponent(words: RandomWordArrays) -> IntArray:
    return words.randint(number_sampling.MIN_EXPONENT, number_sampling.MAX_EXPONENT)


def _scaled(words: RandomWordArrays, digits: IntArray) -> DecimalArray:
    significand = _significand(words, digits)
    return DecimalArray(significand, _exponent(words) - digits + 1)


def _significand(words: RandomWordArrays, digits: IntArray) -> IntArray:
    single = digits == 1
    first = POWERS_OF_TEN[np.maximum(digits - 2, 0)]
    drawn = words.randbelow(np.where(single, 9, 81 * first))
    prefix = drawn // 9
    return np.where(single, drawn + 1, (first + prefix) * 10 + (drawn - 9 * prefix) + 1)


def _pair_digits(words: RandomWordArrays, max_digits: int) -> IntPair:
    total_digits = words.randint(2, 2 * max_digits)
    low = (total_digits + 1) // 2
    support = np.minimum(total_digits - 1, max_digits) - low + 1
    table = _triangular_table(max_digits)
    first = low + table[support, words.randbelow(np.maximum(support * (support - 1), 1))]
    return first, total_digits - first


def _swapped(words: RandomWordArrays, a: IntArray, b: IntArray) -> IntPair:
    keep = words.randbelow(2) == 1
    return np.where(keep, a, b), np.where(keep, b, a)


def _signs(words: RandomWordArrays) -> IntPair:
    chosen = np.array(number_sampling.SIGNS)[words.weighted_index(number_sampling.SIGN_WEIGHTS)]
    return chosen[:, 0], chosen[:, 1]


def _product(a: DecimalArray, b: DecimalArray, digits: int) -> DecimalArray:
    """Return products rounded to `digits` digits; near ties are computed exactly."""
    pair = double_double.multiply(
        double_double.from_ints(a.significand), double_double.from_ints(b.significand)
    )
    product, proved = double_double.round_to_digits(pair, digits)
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    for row in np.flatnonzero(~proved):
        exact = context.create_decimal(int(a.significand[row]) * int(b.significand[row]))
        product.significand[row], product.exponent[row] = from_decimal(exact)
    return DecimalArray(product.significand, product.exponent + a.exponent + b.exponent)


@cache
def _triangular_table(max_digits: int) -> IntArray:
    """Return table[n, u], the triangular draw on {0 … n−1} for u below n(n−1)."""
    largest = max_digits // 2 + 2
    table = np.zeros((largest + 1, max(largest * (largest - 1), 1)), np.int64)
    for n in range(2, largest + 1):
        drawn = np.repeat(np.arange(n), number_sampling.triangular_weights(n))
        table[n, : len(drawn)] = drawn
    return table


@cache
def _reciprocals(max_digits: int) -> IntPair:
    """Return significands and exponents of 1/ξ as printed, ξ = 0 … 14 (0 and 1 are not used)."""
    printed = [
        parse_decimal(reciprocal(xi, max_digits)) for xi in range(2, MAX_RESULT_EXPONENT + 1)
    ]
    pairs = np.array([(0, 0), (1, 0), *printed])
    return pairs[:, 0], pairs[:, 1]


class NumberListArrays(NamedTuple):
    """Lists with the elements units · 10^unit_exponent.

    units: shape (rows, 5), 0 beyond `length`. radius: 10^spread in units.
    """

    units: IntArray
    length: IntArray
    unit_exponent: IntArray
    radius: IntArray
    params: dict[str, IntArray]
    valid: BoolArray


def minmax_or_sorting(task: str, words: RandomWordArrays, max_digits: int) -> Questions:
    """Sample questions of minmax or sorting."""
    lists = _sample_lists(words, max_digits, comparison.MAX_ORDERS_ABOVE_MEAN)
    operator = words.randbelow(len(TASKS[task].operators))
    return _list_questions(
        task, lists, lists.units, lists.length, operator, lists.params, lists.valid
    )


def mean_or_std(task: str, words: RandomWordArrays, max_digits: int) -> Questions:
    """Sample questions of mean or std, before the check that both answers are in range."""
    lists = _sample_lists(words, max_digits, arithmetic.MAX_ORDERS_ABOVE_MEAN)
    operator = np.zeros_like(lists.length)
    return _list_questions(
        task, lists, lists.units, lists.length, operator, lists.params, lists.valid
    )


def interval(words: RandomWordArrays, max_digits: int) -> Questions:
    """Sample boundaries in ascending order, and a reference."""
    lists = _sample_lists(words, max_digits, comparison.MAX_ORDERS_ABOVE_MEAN)
    length, rows = lists.length, np.arange(len(lists.length))
    bounds = _separated(lists.units, length)
    position = words.randint(0, length)
    step = np.maximum(1, lists.radius // length)
    inner = (position > 0) & (position < length)
    low = bounds[rows, np.where(inner, position - 1, 0)]
    high = bounds[rows, np.where(inner, position, 0)]
    drawn = low + words.randbelow(np.where(inner, high - low, 1))
    last = bounds[rows, length - 1]
    ends = np.where(position == 0, bounds[:, 0] - step, last + step)
    reference = np.where(inner, drawn, ends)
    units = np.column_stack([reference, np.where(_present(length), bounds, 0)])
    valid = lists.valid & _fits_digits(units, lists, length + 1)
    params = lists.params | {"position": position}
    operator = np.zeros_like(length)
    return _list_questions("interval", lists, units, length + 1, operator, params, valid)


def _sample_lists(
    words: RandomWordArrays, max_digits: int, max_orders_above_mean: int
) -> NumberListArrays:
    length = words.randint(2, MAX_LIST_LENGTH)
    x = words.randint(number_sampling.MIN_EXPONENT, number_sampling.MAX_EXPONENT)
    s = words.randint(
        np.minimum(13, x - min(13, max_digits - 2)), np.minimum(x + max_orders_above_mean, 13)
    )
    digits = words.randint(np.maximum(2, x - s + 2), max_digits)
    unit_exponent = np.maximum(x, s) - digits + 1
    mean_exponent = np.maximum(x, unit_exponent)
    smallest = length * POWERS_OF_TEN[mean_exponent - unit_exponent]
    total = words.randint(smallest, 10 * smallest - 1)
    radius = POWERS_OF_TEN[s - unit_exponent]
    units = _units_with_sum(words, length, total, radius)
    params = {"length": length, "exponent": x, "spread": s, "digits": digits}
    lists = NumberListArrays(units, length, unit_exponent, radius, params, np.empty(0, np.bool_))
    differ = (np.where(_present(length), units, units[:, :1]) != units[:, :1]).any(axis=1)
    return lists._replace(valid=differ & _fits_digits(units, lists, length))


def _units_with_sum(
    words: RandomWordArrays, length: IntArray, total: IntArray, radius: IntArray
) -> IntArray:
    half = radius * length // (2 * (length - 1))
    offsets = np.column_stack([words.randint(-half, half) for _ in range(MAX_LIST_LENGTH)])
    present = _present(length)
    offsets[~present] = 0
    difference = total - offsets.sum(axis=1)
    shift = difference // length
    remainder = difference - shift * length
    units = offsets + shift[:, None] + (np.arange(MAX_LIST_LENGTH) < remainder[:, None])
    return np.where(present, units, 0)


def _separated(units: IntArray, length: IntArray) -> IntArray:
    """Sort each row; raise equal units to one above their predecessor."""
    bounds = np.sort(np.where(_present(length), units, np.iinfo(np.int64).max), axis=1)
    for column in range(1, MAX_LIST_LENGTH):
        present = column < length
        raised = np.maximum(bounds[:, column], bounds[:, column - 1] + 1)
        bounds[:, column] = np.where(present, raised, bounds[:, column])
    return bounds


def _fits_digits(units: IntArray, lists: NumberListArrays, count: IntArray) -> BoolArray:
    size = np.abs(units)
    smallest = POWERS_OF_TEN[np.maximum(0, number_sampling.MIN_EXPONENT - lists.unit_exponent)][
        :, None
    ]
    fits = (size < POWERS_OF_TEN[lists.params["digits"]][:, None]) & (
        (size >= smallest) | (size == 0)
    )
    absent = np.arange(units.shape[1]) >= count[:, None]
    flags: BoolArray = (fits | absent).all(axis=1)
    return flags


def _present(length: IntArray) -> BoolArray:
    flags: BoolArray = np.arange(MAX_LIST_LENGTH) < length[:, None]
    return flags


def _list_questions(
    task: str,
    lists: NumberListArrays,
    units: IntArray,
    length: IntArray,
    operator: IntArray,
    params: dict[str, IntArray],
    valid: BoolArray,
) -> Questions:
    unit_exponent = np.broadcast_to(lists.unit_exponent[:, None], units.shape)
    return Questions(task, DecimalArray(units, unit_exponent), length, operator, params, valid)


SAMPLERS: dict[str, Callable[[RandomWordArrays, int], Questions]] = {
    "minmax": partial(minmax_or_sorting, "minmax"),
    "interval": interval,
    "sorting": partial(minmax_or_sorting, "sorting"),
    "addition": addition,
    "multiplication": multiplication,
    "division": division,
    "exponentiation": exponentiation,
    "mean": partial(mean_or_std, "mean"),
    "std": partial(mean_or_std, "std"),
}
"""The vectorized tasks: each sampler takes random words and max_digits."""
