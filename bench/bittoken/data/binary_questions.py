"""Two-operand questions about numbers with few significant bits.

A decimal fraction usually needs all 52 bits of the significand of a float64, so that a number with
few decimal digits is not easier for an encoding in base 2. Here, operands are m · 2^e with a short
m, so that a curriculum can begin with few bits. Every operand is printed exactly in plain decimal,
and questions are assigned to splits by the same rule as all others.
"""

from __future__ import annotations

import numpy as np

from numbench.tasks import number_sampling
from numbench.tasks.random_words import RandomStream
from numbench.vectorized.decimal_arrays import (
    POWERS_OF_TEN,
    BoolArray,
    DecimalArray,
    IntArray,
    digit_count,
)
from numbench.vectorized.questions import Questions, in_range, in_shard
from numbench.vectorized.random_words import RandomWordArrays

TASKS = ("addition", "multiplication", "division")
"""The tasks that support operands with few bits."""

SIZES = (2, 4, 6, 8, 11, 15, 20, 26, 34, 44)
"""The classes of questions: the maximum bits of m (for division: of divisor and quotient)."""

_WORDS = 8
_FRACTION_BITS, _RANGE_BITS = 10, 49
_FIVES = 5 ** np.arange(_FRACTION_BITS + 1, dtype=np.int64)


def sample(
    task: str,
    size: int,
    *,
    seed: int,
    split: str,
    index: int,
    first: int,
    count: int,
    max_digits: int = 15,
) -> Questions:
    """Return the questions among attempts first … first + count − 1 that belong to the split.

    size: the class, one of `SIZES`. max_digits: the maximum number of digits of a printed operand;
    values above 15 have no effect.
    """
    words = RandomWordArrays(
        RandomStream(seed, f"{task} {size} bits", split, index), _WORDS, first, count
    )
    a, bits_a = _number(words, size)
    b, bits_b = _number(words, size)
    signs = np.array(number_sampling.SIGNS)[words.weighted_index(number_sampling.SIGN_WEIGHTS)]
    operator = words.randbelow(2) if task == "addition" else np.zeros(count, np.int64)
    valid = _is_printable(a, max_digits) & _is_printable(b, max_digits)
    if task == "division":
        a, fits = _exact_product(a, b)
        valid &= fits & _is_printable(a, max_digits)
    both = DecimalArray(
        np.stack([a.significand * signs[:, 0], b.significand * signs[:, 1]], 1),
        np.stack([a.exponent, b.exponent], 1),
    )
    params = {"bits_1": bits_a, "bits_2": bits_b}
    questions = Questions(task, both, np.full(count, 2), operator, params, valid)
    questions = questions.select(valid)
    return questions.select(in_shard(questions, split, 0, 1))


def _number(words: RandomWordArrays, size: int) -> tuple[DecimalArray, IntArray]:
    """Return m · 2^e for an odd m of 1 … size bits and a random e in range, and the bits of m."""
    bits = words.randint(1, size)
    m = (np.int64(1) << (bits - 1)) | words.randbelow(np.int64(1) << (bits - 1)) | 1
    e = words.randint(-_FRACTION_BITS, _RANGE_BITS - bits)
    fraction = np.maximum(-e, 0)
    # m · 2^−k is m · 5^k over 10^k.
    whole = m << np.maximum(e, 0)
    fits = m <= POWERS_OF_TEN[15] // _FIVES[fraction]
    significand = np.where(fits, whole * _FIVES[np.where(fits, fraction, 0)], POWERS_OF_TEN[15])
    return DecimalArray(significand, -fraction), bits


def _is_printable(values: DecimalArray, max_digits: int) -> BoolArray:
    """Return whether each number is in range and has at most `max_digits` digits."""
    flags: BoolArray = (digit_count(values.significand) <= min(max_digits, 15)) & in_range(values)
    return flags


def _exact_product(a: DecimalArray, b: DecimalArray) -> tuple[DecimalArray, BoolArray]:
    """Return a · b, and whether it has at most 15 digits."""
    fits = a.significand < POWERS_OF_TEN[15] // np.maximum(b.significand, 1)
    significand = np.where(fits, a.significand, 1) * np.where(fits, b.significand, 1)
    return DecimalArray(significand, a.exponent + b.exponent), fits
