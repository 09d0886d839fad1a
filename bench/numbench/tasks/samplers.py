"""The samplers of the paper's tasks: many questions at a time, in arrays.

Digits, magnitudes and signs follow the paper ("Number sampling"). With
`SamplingSettings.max_bits`, operands are integers of few bits instead, or the same integers divided
by powers of ten: an encoding in base 2 writes such an integer with few significant bits, but nearly
every decimal fraction with all 52 bits of the significand of a float64.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable
from decimal import ROUND_HALF_EVEN, Context
from functools import cache

import numpy as np

from numbench.core.decimal_numbers import parse_decimal, split_decimal
from numbench.tasks import TASKS
from numbench.tasks.base import MAX_EXPONENT, MIN_EXPONENT, SamplingSettings
from numbench.tasks.decimal_arrays import (
    POWERS_OF_TEN,
    BoolArray,
    DecimalArray,
    IntArray,
    bit_length,
    round_to_digits,
)
from numbench.tasks.exact_arithmetic import reciprocal
from numbench.tasks.questions import Questions, RandomWordArrays, in_range

IntPair = tuple[IntArray, IntArray]
Sampler = Callable[[str, RandomWordArrays, SamplingSettings], Questions]

_SIGNS = np.array([(1, 1), (-1, 1), (1, -1), (-1, -1)])
_SIGN_WEIGHTS = (40, 20, 20, 20)

MAX_LIST_LENGTH = 5

COMPARISON_ORDERS, MOMENT_ORDERS = 2, 17
"""Orders of magnitude by which the spread of a list may exceed its mean."""

EXPONENT_SPAN = 6
EXPONENT_WEIGHTS = [2 ** (EXPONENT_SPAN - abs(x)) for x in range(-EXPONENT_SPAN, EXPONENT_SPAN + 1)]
MAX_RESULT_EXPONENT = 14


def sample(task: str, words: RandomWordArrays, settings: SamplingSettings) -> Questions:
    """Return the questions of a task of the paper: of the attempts that break no rule."""
    if settings.max_bits is not None and task in ("addition", "multiplication", "division"):
        return _integer_pairs(task, words, settings)
    return _SAMPLERS.get(task, _lists)(task, words, settings)


def _pair(task: str, words: RandomWordArrays, settings: SamplingSettings) -> Questions:
    """Draw digits and magnitudes of two operands, those of a sum with similar magnitudes."""
    p1, p2 = _pair_digits(words, settings.max_digits)
    x1, x2 = _exponent(words), _exponent(words)
    operator: IntArray | int = 0
    if task == "addition":
        # Of two exponents, the second operand has the one closer to that of the first.
        alternative = _exponent(words)
        x2 = np.where(np.abs(x2 - x1) <= np.abs(alternative - x1), x2, alternative)
        x1, x2 = _swapped(words, x1, x2)
        operator = words.randbelow(2)
    a = DecimalArray(_significand(words, p1), x1 - p1 + 1)
    b = DecimalArray(_significand(words, p2), x2 - p2 + 1)
    params = {"digits_1": p1, "digits_2": p2, "exponent_1": x1, "exponent_2": x2}
    return pair_questions(task, with_signs(words, a, b), params, operator)


def _division(task: str, words: RandomWordArrays, settings: SamplingSettings) -> Questions:
    """Draw quotient and divisor; the dividend is their product, rounded to max_digits digits."""
    digits = _pair_digits(words, settings.max_digits)
    quotient, divisor = (
        DecimalArray(_significand(words, p), _exponent(words) - p + 1) for p in digits
    )
    dividend = _product(quotient, divisor, settings.max_digits)
    params = {"digits_quotient": digits[0], "digits_divisor": digits[1]}
    questions = pair_questions(task, with_signs(words, dividend, divisor), params)
    return questions.select(in_range(dividend))


def _exponentiation(task: str, words: RandomWordArrays, settings: SamplingSettings) -> Questions:
    """Draw integer powers and integer roots ξ in equal shares, with exponents of either sign.

    The base's magnitude x has weight 2^−|x|; ξ ~ U{2 … ⌊14 / (|x|+1)⌋}. Bases above 1 are
    negative half the time if the exponent is an integer.
    """
    x = words.weighted_index(EXPONENT_WEIGHTS) - EXPONENT_SPAN
    digits = words.randint(1, settings.max_digits)
    size = _significand(words, digits)
    xi = words.randint(2, MAX_RESULT_EXPONENT // (np.abs(x) + 1))
    root, inverse, negative = (words.randbelow(2) for _ in range(3))
    flipped = (negative == 1) & (root == 0) & (x >= 0)
    base = DecimalArray(np.where(flipped, -size, size), x - digits + 1)
    significands, exponents = _reciprocals(settings.max_digits)
    degree = np.where(root, significands[xi], xi)
    power = DecimalArray(np.where(inverse, -degree, degree), np.where(root, exponents[xi], 0))
    params = {"digits": digits, "exponent": x, "power": xi, "root": root}
    questions = pair_questions(task, (base, power), params)
    return questions.select((size != 1) | (base.exponent != 0))


def _integer_pairs(task: str, words: RandomWordArrays, settings: SamplingSettings) -> Questions:
    """Draw two integers, divided by powers of ten; the dividend is their product."""
    a, b = _integer(words, settings), _integer(words, settings)
    shift_a, shift_b = _shift(words, settings), _shift(words, settings)
    operator = words.randbelow(2 if task == "addition" else 1)
    params = {"bits_1": bit_length(a), "bits_2": bit_length(b)}
    if task == "division":
        a, shift_a = a * b, shift_a + shift_b
    operands = (DecimalArray(a, -shift_a), DecimalArray(b, -shift_b))
    return pair_questions(task, operands, params, operator)


def _integer(words: RandomWordArrays, settings: SamplingSettings) -> IntArray:
    return words.randint(1, 2 ** (settings.max_bits or 0) - 1)


def _shift(words: RandomWordArrays, settings: SamplingSettings) -> IntArray:
    """Return the power of ten that divides an operand: uniform on {1 … max_shift}, or 0."""
    return words.randint(min(1, settings.max_shift), settings.max_shift)


def pair_questions(
    task: str,
    operands: Iterable[DecimalArray],
    params: dict[str, IntArray],
    operator: IntArray | int = 0,
) -> Questions:
    """Return questions with two operands each, given as columns."""
    both = DecimalArray(*(np.stack(parts, 1) for parts in zip(*operands, strict=True)))
    count = len(both.significand)
    return Questions(task, both, np.full(count, 2), np.full(count, operator), params)


def _exponent(words: RandomWordArrays) -> IntArray:
    return words.randint(MIN_EXPONENT, MAX_EXPONENT)


def _significand(words: RandomWordArrays, digits: IntArray) -> IntArray:
    """Return integers uniform over those of so many digits with a last digit other than 0."""
    single = digits == 1
    first = POWERS_OF_TEN[np.maximum(digits - 2, 0)]
    drawn = words.randbelow(np.where(single, 9, 81 * first))
    prefix = drawn // 9
    return np.where(single, drawn + 1, (first + prefix) * 10 + (drawn - 9 * prefix) + 1)


def _pair_digits(words: RandomWordArrays, max_digits: int) -> IntPair:
    """Return the digits of two operands in random order.

    Their sum is uniform on {2 … 2·max_digits}, and the larger number is triangular.
    """
    total_digits = words.randint(2, 2 * max_digits)
    low = (total_digits + 1) // 2
    support = np.minimum(total_digits - 1, max_digits) - low + 1
    table = _triangular_table(max_digits)
    first = low + table[support, words.randbelow(np.maximum(support * (support - 1), 1))]
    return _swapped(words, first, total_digits - first)


def _swapped(words: RandomWordArrays, a: IntArray, b: IntArray) -> IntPair:
    """Return each (a, b) or (b, a) with equal probability."""
    keep = words.randbelow(2) == 1
    return np.where(keep, a, b), np.where(keep, b, a)


def with_signs(words: RandomWordArrays, *operands: DecimalArray) -> list[DecimalArray]:
    """Return two operands with random signs: 40% ++, 20% −+, 20% +−, 20% −−."""
    signs = _SIGNS[words.weighted_index(_SIGN_WEIGHTS)].T
    return [
        DecimalArray(n.significand * sign, n.exponent)
        for n, sign in zip(operands, signs, strict=True)
    ]


def _product(a: DecimalArray, b: DecimalArray, digits: int) -> DecimalArray:
    """Return products rounded to `digits` digits; near ties are computed exactly."""
    factors = (values.significand.astype(np.longdouble) for values in (a, b))
    product, proved = round_to_digits(np.multiply(*factors), digits)
    context = Context(prec=digits, rounding=ROUND_HALF_EVEN)
    for row in np.flatnonzero(~proved):
        exact = context.create_decimal(int(a.significand[row]) * int(b.significand[row]))
        product.significand[row], product.exponent[row] = split_decimal(exact)
    return DecimalArray(product.significand, product.exponent + a.exponent + b.exponent)


@cache
def _triangular_table(max_digits: int) -> IntArray:
    """Return table[n, u]: for u uniform below n(n−1), the integer part of a triangular variable on
    [0, n) with mode 1, whose values have the weights n−1, 2n−3, 2n−5, …, 1; 0 for n = 1."""
    largest = max_digits // 2 + 2
    table = np.zeros((largest + 1, largest * (largest - 1)), np.int64)
    for n in range(2, largest + 1):
        drawn = np.repeat(np.arange(n), [n - 1, *range(2 * n - 3, 0, -2)])
        table[n, : len(drawn)] = drawn
    return table


@cache
def _reciprocals(max_digits: int) -> IntPair:
    """Return significands and exponents of 1/ξ as printed, ξ = 0 … 14 (0 and 1 are not used)."""
    degrees = range(2, MAX_RESULT_EXPONENT + 1)
    printed = [split_decimal(parse_decimal(reciprocal(xi, max_digits))) for xi in degrees]
    pairs = np.array([(0, 0), (1, 0), *printed])
    return pairs[:, 0], pairs[:, 1]


def _lists(task: str, words: RandomWordArrays, settings: SamplingSettings) -> Questions:
    questions, is_valid = _all_lists(task, words, settings)
    return questions.select(is_valid)


def _all_lists(
    task: str, words: RandomWordArrays, settings: SamplingSettings
) -> tuple[Questions, BoolArray]:
    """Draw lists with a spread of at most some orders above the mean, and their operators.

    length l ~ U{2…5}; x ~ U{−14…14}; s ~ U{min(13, x−13) … min(x+orders, 13)} (x−13 rises with
    fewer digits, so that every spread can be represented); p ~ U{max(2, x−s+2) … max_digits}. The
    sum is drawn so that 10^x ≤ mean < 10^(x+1), or one unit if the last digit is above 10^x. Of
    mean and std, which share their lists, the check that both answers are in range comes later.
    Returns in addition which lists are valid.
    """
    length = words.randint(2, MAX_LIST_LENGTH)
    params, absent = {"length": length}, ~_is_present(length)
    if settings.max_bits is not None:
        units = np.column_stack([_integer(words, settings) for _ in range(MAX_LIST_LENGTH)])
        units[absent] = 0
        unit_exponent = -_shift(words, settings)
        valid = np.ones(len(length), np.bool_)
    else:
        x, max_digits = _exponent(words), settings.max_digits
        orders = MOMENT_ORDERS if task in ("mean", "std") else COMPARISON_ORDERS
        s = words.randint(np.minimum(13, x - min(13, max_digits - 2)), np.minimum(x + orders, 13))
        digits = words.randint(np.maximum(2, x - s + 2), max_digits)
        unit_exponent = np.maximum(x, s) - digits + 1
        smallest = length * POWERS_OF_TEN[np.maximum(x, unit_exponent) - unit_exponent]
        total = words.randint(smallest, 10 * smallest - 1)
        units = _units_with_sum(words, length, total, POWERS_OF_TEN[s - unit_exponent])
        params |= {"exponent": x, "spread": s, "digits": digits}
        valid = _fits_digits(units, absent, unit_exponent, digits)
    valid &= (np.where(absent, units[:, :1], units) != units[:, :1]).any(axis=1)
    operators = len(TASKS[task].operators)
    operator = words.randbelow(operators) if operators > 1 else np.zeros_like(length)
    operands = DecimalArray(units, np.broadcast_to(unit_exponent[:, None], units.shape))
    return Questions(task, operands, length, operator, params), valid


def _interval(task: str, words: RandomWordArrays, settings: SamplingSettings) -> Questions:
    """Draw boundaries in ascending order, and a reference in a uniformly drawn interval.

    A reference below or above all boundaries has a fixed distance from them; that of integers of
    few bits is uniform.
    """
    drawn, is_list_valid = _all_lists(task, words, settings)
    length, rows = drawn.length, np.arange(len(drawn))
    present, unit_exponent = drawn.present, drawn.operands.exponent[:, 0]
    largest = np.iinfo(np.int64).max
    bounds = np.sort(np.where(present, drawn.operands.significand, largest), axis=1)
    if settings.max_bits is None:
        bounds = _separated(bounds, length)
    position = words.randint(0, length)
    is_first, is_last = position == 0, position == length
    low = bounds[rows, np.maximum(position - 1, 0)]
    high = bounds[rows, np.minimum(position, MAX_LIST_LENGTH - 1)]
    if settings.max_bits is None:
        radius = POWERS_OF_TEN[drawn.params["spread"] - unit_exponent]
        step = np.maximum(1, radius // length)
        low = np.where(is_first, high - step, np.where(is_last, low + step, low))
        high = np.where(is_first | is_last, low + 1, high)
    else:
        low = np.where(is_first, 0, low)
        high = np.where(is_last, 2**settings.max_bits, high)
    reference = low + words.randbelow(np.maximum(high - low, 1))
    units = np.column_stack([reference, np.where(present, bounds, 0)])
    if settings.max_bits is None:
        absent = np.column_stack([np.zeros(len(drawn), np.bool_), ~present])
        valid = _fits_digits(units, absent, unit_exponent, drawn.params["digits"])
    else:
        repeats = (np.diff(bounds, axis=1) == 0) & present[:, 1:]
        valid = ~repeats.any(axis=1) & (low < high)
    exponents = np.broadcast_to(unit_exponent[:, None], units.shape)
    params = drawn.params | {"position": position}
    questions = Questions(task, DecimalArray(units, exponents), length + 1, drawn.operator, params)
    return questions.select(is_list_valid & valid)


def _units_with_sum(
    words: RandomWordArrays, length: IntArray, total: IntArray, radius: IntArray
) -> IntArray:
    """Return `length` integers of sum `total`, each within `radius` (+1) of total / length.

    Uniform offsets are shifted to the required sum; their range is reduced by 2(l−1)/l, the
    largest possible shift.
    """
    half, present = radius * length // (2 * (length - 1)), _is_present(length)
    offsets = np.column_stack([words.randint(-half, half) for _ in range(MAX_LIST_LENGTH)])
    offsets[~present] = 0
    shift, remainder = np.divmod(total - offsets.sum(axis=1), length)
    units = offsets + shift[:, None] + (np.arange(MAX_LIST_LENGTH) < remainder[:, None])
    return np.where(present, units, 0)


def _separated(bounds: IntArray, length: IntArray) -> IntArray:
    """Return ascending rows with equal units raised to one above their predecessor."""
    for column in range(1, MAX_LIST_LENGTH):
        raised = np.maximum(bounds[:, column], bounds[:, column - 1] + 1)
        bounds[:, column] = np.where(column < length, raised, bounds[:, column])
    return bounds


def _fits_digits(
    units: IntArray, absent: BoolArray, unit_exponent: IntArray, digits: IntArray
) -> BoolArray:
    """Return whether all elements have at most the drawn digits and are 0 or at least 10⁻¹⁴."""
    size = np.abs(units)
    smallest = POWERS_OF_TEN[np.maximum(0, MIN_EXPONENT - unit_exponent)][:, None]
    fits = (size < POWERS_OF_TEN[digits][:, None]) & ((size >= smallest) | (size == 0))
    return np.asarray((fits | absent).all(axis=1))


def _is_present(length: IntArray) -> BoolArray:
    return np.asarray(np.arange(MAX_LIST_LENGTH) < length[:, None])


_SAMPLERS: dict[str, Sampler] = {
    "interval": _interval,
    "addition": _pair,
    "multiplication": _pair,
    "division": _division,
    "exponentiation": _exponentiation,
}
"""The samplers by task; all others have lists."""
