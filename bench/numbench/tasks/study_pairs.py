"""Pairs of operands distributed as in the published study's 500-item files.

The files record the magnitudes, digits and precisions that each question was drawn with; the
rules below reproduce their distributions, and `results/study-like/` tests the outcome. They differ
from those of `numbench.tasks.arithmetic`, which follow the paper's text.
"""

from __future__ import annotations

from decimal import Decimal

from numbench.decimal_numbers import DecimalNumber, format_decimal, normalize, parse_decimal
from numbench.tasks import number_sampling
from numbench.tasks.base import SampledQuestion, SamplingSettings
from numbench.tasks.number_sampling import (
    MAX_EXPONENT,
    MIN_EXPONENT,
    scale_to_exponent,
    triangular_weights,
)
from numbench.tasks.random_words import RandomWords

MAX_DIGITS = 17
_MAX_PRECISION = 16
"""The largest precision that is drawn; a second operand gets what the first leaves of the sum."""

_EXPONENTS = range(MIN_EXPONENT, MAX_EXPONENT + 1)

_SIMILARITY_WEIGHTS = [10**6 * 861**gap // 1000**gap for gap in range(len(_EXPONENTS))]
"""Weights of pairs of magnitudes in addition, by their gap: about exp(−0.15 · gap)."""

_ADDITION_MAGNITUDES = [(a, b) for a in _EXPONENTS for b in _EXPONENTS]
_ADDITION_WEIGHTS = [_SIMILARITY_WEIGHTS[abs(a - b)] for a, b in _ADDITION_MAGNITUDES]

_PRODUCT_MAGNITUDES = [(a, b) for a in _EXPONENTS for b in _EXPONENTS if -15 <= a + b <= 14]
# A pair of magnitudes keeps its share although only some of its products are in range: u·v < 10
# has a probability of (10·ln 10 − 9)/81 = 17.3 % for significands u, v uniform over [1, 10).
_PRODUCT_WEIGHTS = [
    {14: 1_000_000 // 173, -15: 1_000_000 // 827}.get(a + b, 1_000) for a, b in _PRODUCT_MAGNITUDES
]

_QUOTIENT_MAGNITUDES = [(a, b) for a in _EXPONENTS for b in _EXPONENTS if -14 <= a - b <= 14]
_DIVISION_TRIES = 12

# The file of division has more digits than uniform precisions give: 9.85 and 10.4 on average in its
# own columns, against 9 and 9.7. These weights have the file's averages.
_QUOTIENT_DIGITS = range(2, _MAX_PRECISION + 1)
_QUOTIENT_DIGIT_WEIGHTS = [13 + digits for digits in _QUOTIENT_DIGITS]
_DIVISION_TOTALS = range(2, 2 * _MAX_PRECISION + 2)
_DIVISION_TOTAL_WEIGHTS = [60 + total for total in _DIVISION_TOTALS]

_ROOT_TEXTS = {degree: repr(1 / degree) for degree in range(2, 14)}
"""1/ξ as the study prints it: the shortest decimal that gives the nearest float64. One correctly
rounded division and its shortest text are the same on every machine."""

_BASE_WEIGHTS = [10**6 * 861 ** abs(x) // 1000 ** abs(x) for x in range(-6, 7)]


def addition(words: RandomWords, _settings: SamplingSettings) -> SampledQuestion:
    """Sample a sum or difference; the second operand is the one with more digits."""
    x1, x2 = _ADDITION_MAGNITUDES[words.weighted_index(_ADDITION_WEIGHTS)]
    longer, shorter = _pair(words, x1, x2)
    operands = _with_signs(words, (as_float64(shorter), as_float64(longer)))
    operator = ("+", "-")[words.randbelow(2)]
    return SampledQuestion(operator, operands, {"exponent_1": x2, "exponent_2": x1})


def multiplication(words: RandomWords, _settings: SamplingSettings) -> SampledQuestion:
    """Sample a product."""
    x1, x2 = _PRODUCT_MAGNITUDES[words.weighted_index(_PRODUCT_WEIGHTS)]
    pair = _pair(words, x1, x2)
    first, second = (0, 1) if words.randbelow(2) else (1, 0)
    operands = _with_signs(words, (pair[first], pair[second]))
    exponents = (x1, x2)
    params = {"exponent_1": exponents[first], "exponent_2": exponents[second]}
    return SampledQuestion("*", operands, params)


def division(words: RandomWords, _settings: SamplingSettings) -> SampledQuestion | None:
    """Sample a quotient uniform over a range of values, a divisor, and their float64 product.

    The quotient's range covers the four orders of magnitude around the wanted one, which
    favours its end; products far from the wanted magnitude of the dividend are drawn again.
    """
    x1, x2 = _QUOTIENT_MAGNITUDES[words.randbelow(len(_QUOTIENT_MAGNITUDES))]
    quotient_digits = _QUOTIENT_DIGITS[words.weighted_index(_QUOTIENT_DIGIT_WEIGHTS)]
    total = _DIVISION_TOTALS[words.weighted_index(_DIVISION_TOTAL_WEIGHTS)]
    divisor_digits = _precision(words, total)
    # In units of 10⁻³⁴, so that every number is an integer.
    low, high = (10 ** (34 + x) for x in (max(x1 - x2 - 2, -14), min(x1 - x2 + 2, 14)))
    found: DecimalNumber | None = None
    divisor = found
    for _ in range(_DIVISION_TRIES):
        quotient = round_digits(low + words.randbelow(high - low), quotient_digits)
        candidate = scale_to_exponent(_significand(words, divisor_digits), x2)
        product = DecimalNumber(quotient * candidate.significand, candidate.exponent - 34)
        if found is None and x1 - 1 <= _magnitude(product) < x1 + 2:
            found, divisor = product, candidate
    if found is None or divisor is None:
        return None
    if not MIN_EXPONENT <= _magnitude(found) <= MAX_EXPONENT:
        return None
    operands = _with_signs(words, (as_float64(found), divisor))
    params = {"digits_quotient": quotient_digits, "digits_divisor": divisor_digits}
    return SampledQuestion("/", operands, params)


def exponentiation(words: RandomWords, _settings: SamplingSettings) -> SampledQuestion | None:
    """Sample an integer power or root; every degree of a base is equally likely.

    Bases of roots are positive. A base is negative with probability (1 − 3^(1 − ξ)) / 2 for an
    integer power ξ: the study flips it at every third degree, on average.
    """
    questions, weights = _POWERS
    x, xi, is_root = questions[words.weighted_index(weights)]
    digits = words.randint(2, _MAX_PRECISION)
    base = scale_to_exponent(_significand(words, digits), x)
    thirds = 3 ** (xi - 1)
    is_negative = words.randbelow(2 * thirds) < thirds - 1 and not is_root
    sign = "-" * words.randbelow(2)
    text = ("-" if is_negative else "") + format_decimal(base)
    if text in ("1", "-1"):
        return None
    params = {"digits": digits, "exponent": x, "power": xi, "root": int(is_root)}
    return SampledQuestion("^", (text, sign + (_ROOT_TEXTS[xi] if is_root else str(xi))), params)


def _powers() -> tuple[list[tuple[int, int, bool]], list[int]]:
    """Return (magnitude of the base, degree, whether it is a root), and their weights."""
    questions, weights = [], []
    for x, weight in zip(range(-6, 7), _BASE_WEIGHTS, strict=True):
        for is_root, most in ((False, 14 // (abs(x) + 1)), (True, 13 // (abs(x) + 1))):
            for degree in range(2, most + 1):
                questions.append((x, degree, is_root))
                weights.append(weight)
    return questions, weights


_POWERS = _powers()


def as_float64(number: DecimalNumber) -> DecimalNumber:
    """Return the shortest decimal that identifies the float64 nearest to a number.

    Numbers of at most 15 digits stay as they are. Correctly rounded conversions in both
    directions give the same text on every machine.
    """
    if len(str(abs(number.significand))) <= 15:
        return number
    nearest = float(f"{number.significand}e{number.exponent}")
    return parse_decimal(format(Decimal(repr(nearest)), "f"))


def round_digits(value: int, digits: int) -> int:
    """Return an integer rounded to significant digits, half to even."""
    size = abs(value)
    excess = len(str(size)) - digits
    if excess <= 0:
        return value
    unit: int = 10**excess
    quotient, remainder = divmod(size, unit)
    quotient += 2 * remainder > unit or (2 * remainder == unit and quotient % 2 == 1)
    return quotient * unit if value > 0 else -quotient * unit


def _pair(words: RandomWords, x1: int, x2: int) -> tuple[DecimalNumber, DecimalNumber]:
    """Return numbers of these magnitudes, the first the longer one. Uses four words.

    The second has the digits that the first leaves of their sum; trailing zeros of the first do
    not count, so the second can have one more than its precision.
    """
    total = words.randint(2, 2 * _MAX_PRECISION + 1)
    first = _significand(words, _precision(words, total))
    used = len(str(normalize(DecimalNumber(first, 0)).significand))
    second = _significand(words, min(total - used, MAX_DIGITS))
    return scale_to_exponent(first, x1), scale_to_exponent(second, x2)


def _precision(words: RandomWords, total: int) -> int:
    """Return the precision of the longer operand: the integer part of a triangular variable from
    half the total, its mode one above. Uses one word."""
    low, high = max(1, total // 2), min(total - 1, MAX_DIGITS)
    return low + words.weighted_index(triangular_weights(max(1, high - low)))


def _significand(words: RandomWords, digits: int) -> int:
    """Return an integer uniform over those of `digits` digits; the last may be 0."""
    return words.randint(10 ** (digits - 1), 10**digits - 1)


def _magnitude(number: DecimalNumber) -> int:
    return len(str(abs(number.significand))) - 1 + number.exponent


def _with_signs(
    words: RandomWords, operands: tuple[DecimalNumber, DecimalNumber]
) -> tuple[str, str]:
    signs = number_sampling.sample_signs(words)
    a, b = (
        format_decimal(DecimalNumber(sign * number.significand, number.exponent))
        for sign, number in zip(signs, operands, strict=True)
    )
    return a, b
