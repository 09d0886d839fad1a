"""Sampling of two-operand questions in batches: twins of the samplers in `bench.tasks`."""

from __future__ import annotations

from collections.abc import Callable
from decimal import ROUND_HALF_EVEN, Context
from functools import cache

import numpy as np

from bench.batch import rounding
from bench.batch.fixed import POWERS, Flags, Ints, Numbers
from bench.batch.questions import Questions, in_range
from bench.batch.words import Words
from bench.numerals import number_of, parse
from bench.tasks import numbers
from bench.tasks.multi_step import (
    EXPONENT_SPAN,
    EXPONENT_WEIGHTS,
    LARGEST_RESULT,
    reciprocal,
)

Two = tuple[Ints, Ints]


def addition(words: Words, max_digits: int) -> Questions:
    digits = _swapped(words, *_pair_digits(words, max_digits))
    x1, near, far = (_exponent(words) for _ in range(3))
    x2 = np.where(np.abs(near - x1) <= np.abs(far - x1), near, far)
    exponents = _swapped(words, x1, x2)
    operator = words.below(2)
    return _pair(words, "addition", operator, digits, exponents)


def multiplication(words: Words, max_digits: int) -> Questions:
    digits = _swapped(words, *_pair_digits(words, max_digits))
    exponents = (_exponent(words), _exponent(words))
    return _pair(words, "multiplication", np.zeros_like(digits[0]), digits, exponents)


def division(words: Words, max_digits: int) -> Questions:
    digits = _swapped(words, *_pair_digits(words, max_digits))
    quotient = _scaled(words, digits[0])
    divisor = _scaled(words, digits[1])
    dividend = _product(quotient, divisor, max_digits)
    signs = _signs(words)
    valid = in_range(dividend)
    params = {"digits_quotient": digits[0], "digits_divisor": digits[1]}
    operator = np.zeros_like(digits[0])
    return _questions("division", operator, (dividend, divisor), signs, params, valid)


def exponentiation(words: Words, max_digits: int) -> Questions:
    x = words.weighted(EXPONENT_WEIGHTS) - EXPONENT_SPAN
    digits = words.between(1, max_digits)
    base = Numbers(_significand(words, digits), x - digits + 1)
    xi = words.between(2, LARGEST_RESULT // (np.abs(x) + 1))
    root, inverse, negative = (words.below(2) for _ in range(3))
    valid = (base.significand != 1) | (base.exponent != 0)
    flipped = (negative == 1) & (root == 0) & (x >= 0)
    signs = (np.where(flipped, -1, 1), np.where(inverse == 1, -1, 1))
    significands, exponents = _reciprocals(max_digits)
    power = Numbers(np.where(root, significands[xi], xi), np.where(root, exponents[xi], 0))
    params = {"digits": digits, "exponent": x, "power": xi, "root": root}
    operator = np.zeros_like(x)
    return _questions("exponentiation", operator, (base, power), signs, params, valid)


SAMPLERS: dict[str, Callable[[Words, int], Questions]] = {
    "addition": addition,
    "multiplication": multiplication,
    "division": division,
    "exponentiation": exponentiation,
}


def _pair(words: Words, task: str, operator: Ints, digits: Two, exponents: Two) -> Questions:
    a, b = (
        Numbers(_significand(words, p), x - p + 1) for p, x in zip(digits, exponents, strict=True)
    )
    signs = _signs(words)
    params = {
        "digits_1": digits[0],
        "digits_2": digits[1],
        "exponent_1": exponents[0],
        "exponent_2": exponents[1],
    }
    valid = np.ones(len(operator), np.bool_)
    return _questions(task, operator, (a, b), signs, params, valid)


def _questions(
    task: str,
    operator: Ints,
    operands: tuple[Numbers, Numbers],
    signs: Two,
    params: dict[str, Ints],
    valid: Flags,
) -> Questions:
    significands = [n.significand * sign for n, sign in zip(operands, signs, strict=True)]
    both = Numbers(np.stack(significands, 1), np.stack([n.exponent for n in operands], 1))
    return Questions(task, both, np.full(len(operator), 2), operator, params, valid)


def _exponent(words: Words) -> Ints:
    return words.between(numbers.LOWEST_EXPONENT, numbers.HIGHEST_EXPONENT)


def _scaled(words: Words, digits: Ints) -> Numbers:
    significand = _significand(words, digits)
    return Numbers(significand, _exponent(words) - digits + 1)


def _significand(words: Words, digits: Ints) -> Ints:
    single = digits == 1
    first = POWERS[np.maximum(digits - 2, 0)]
    drawn = words.below(np.where(single, 9, 81 * first))
    prefix = drawn // 9
    return np.where(single, drawn + 1, (first + prefix) * 10 + (drawn - 9 * prefix) + 1)


def _pair_digits(words: Words, max_digits: int) -> Two:
    together = words.between(2, 2 * max_digits)
    low = (together + 1) // 2
    support = np.minimum(together - 1, max_digits) - low + 1
    table = _triangular_table(max_digits)
    first = low + table[support, words.below(np.maximum(support * (support - 1), 1))]
    return first, together - first


def _swapped(words: Words, a: Ints, b: Ints) -> Two:
    keep = words.below(2) == 1
    return np.where(keep, a, b), np.where(keep, b, a)


def _signs(words: Words) -> Two:
    chosen = np.array(numbers.SIGNS)[words.weighted(numbers.SIGN_WEIGHTS)]
    return chosen[:, 0], chosen[:, 1]


def _product(a: Numbers, b: Numbers, digits: int) -> Numbers:
    """Products rounded to `digits` digits; ties and their neighbours by exact arithmetic."""
    pair = rounding.multiply(rounding.of_ints(a.significand), rounding.of_ints(b.significand))
    product, proved = rounding.to_digits(pair, digits)
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    for row in np.flatnonzero(~proved):
        exact = context.create_decimal(int(a.significand[row]) * int(b.significand[row]))
        product.significand[row], product.exponent[row] = number_of(exact)
    return Numbers(product.significand, product.exponent + a.exponent + b.exponent)


@cache
def _triangular_table(max_digits: int) -> Ints:
    """table[n, u] is the triangular draw on {0 … n−1} that belongs to u below n(n−1)."""
    largest = max_digits // 2 + 2
    table = np.zeros((largest + 1, max(largest * (largest - 1), 1)), np.int64)
    for n in range(2, largest + 1):
        drawn = np.repeat(np.arange(n), numbers.triangular_weights(n))
        table[n, : len(drawn)] = drawn
    return table


@cache
def _reciprocals(max_digits: int) -> Two:
    """Significand and exponent of 1/ξ as printed, for ξ = 0 … 14 (0 and 1 are not used)."""
    printed = [parse(reciprocal(xi, max_digits)) for xi in range(2, LARGEST_RESULT + 1)]
    pairs = np.array([(0, 0), (1, 0), *printed])
    return pairs[:, 0], pairs[:, 1]
