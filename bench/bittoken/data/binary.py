"""Two-operand questions about numbers with few significant bits.

A decimal fraction has all 52 bits of its float64 significand set, so that decimal digits order
nothing for an encoding in base 2. Here operands are m · 2^e with a short m: training with few bits
comes before training on all of them. Every operand is printed exactly in plain decimal, and the
rule of the splits holds as for every other question.
"""

from __future__ import annotations

import numpy as np

from bench.batch.fixed import POWERS, Flags, Ints, Numbers, digit_count
from bench.batch.questions import Questions, belongs, in_range
from bench.batch.words import Words
from bench.tasks import numbers
from bench.tasks.draws import Stream

TASKS = ("addition", "multiplication", "division")
"""The tasks that can be asked with short numbers in base 2."""

SIZES = (2, 4, 6, 8, 11, 15, 20, 26, 34, 44)
"""Most bits of an operand's m (for division: of divisor and quotient), the classes of questions."""

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
    """Attempts first … first + count − 1 of a class, as far as they belong to the split.

    max_digits: of an operand, as printed; never more than 15.
    """
    words = Words(Stream(seed, f"{task} {size} bits", split, index), _WORDS, first, count)
    a, bits_a = _number(words, size)
    b, bits_b = _number(words, size)
    signs = np.array(numbers.SIGNS)[words.weighted(numbers.SIGN_WEIGHTS)]
    operator = words.below(2) if task == "addition" else np.zeros(count, np.int64)
    valid = _printable(a, max_digits) & _printable(b, max_digits)
    if task == "division":
        a, fits = _exact_product(a, b)
        valid &= fits & _printable(a, max_digits)
    both = Numbers(
        np.stack([a.significand * signs[:, 0], b.significand * signs[:, 1]], 1),
        np.stack([a.exponent, b.exponent], 1),
    )
    params = {"bits_1": bits_a, "bits_2": bits_b}
    questions = Questions(task, both, np.full(count, 2), operator, params, valid)
    questions = questions.where(valid)
    return questions.where(belongs(questions, split, 0, 1))


def _number(words: Words, size: int) -> tuple[Numbers, Ints]:
    """m · 2^e and the bits of m: an odd m of 1 … size bits, e as far as the range goes."""
    bits = words.between(1, size)
    m = (np.int64(1) << (bits - 1)) | words.below(np.int64(1) << (bits - 1)) | 1
    e = words.between(-_FRACTION_BITS, _RANGE_BITS - bits)
    fraction = np.maximum(-e, 0)
    # m · 2^−k is m · 5^k over 10^k.
    whole = m << np.maximum(e, 0)
    fits = m <= POWERS[15] // _FIVES[fraction]
    significand = np.where(fits, whole * _FIVES[np.where(fits, fraction, 0)], POWERS[15])
    return Numbers(significand, -fraction), bits


def _printable(values: Numbers, max_digits: int) -> Flags:
    """Whether a number is in range and has few enough digits before and behind the point."""
    flags: Flags = (digit_count(values.significand) <= min(max_digits, 15)) & in_range(values)
    return flags


def _exact_product(a: Numbers, b: Numbers) -> tuple[Numbers, Flags]:
    """a · b, and where it has at most 15 digits."""
    fits = a.significand < POWERS[15] // np.maximum(b.significand, 1)
    significand = np.where(fits, a.significand, 1) * np.where(fits, b.significand, 1)
    return Numbers(significand, a.exponent + b.exponent), fits
