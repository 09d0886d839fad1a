"""The arithmetic tasks of the paper: addition to standard deviation."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal

from numbench.decimal_numbers import DecimalNumber, format_decimal, from_decimal
from numbench.tasks import difficulty, exact_arithmetic, number_sampling
from numbench.tasks.base import Convention, SampledQuestion, SamplingSettings, Task
from numbench.tasks.number_sampling import (
    randomly_swapped,
    sample_digit_counts,
    sample_exponent,
    sample_significand,
    scale_to_exponent,
)
from numbench.tasks.random_words import RandomWords

MAX_ORDERS_ABOVE_MEAN = 17
"""Orders of magnitude by which the spread of a list may exceed its mean (mean and std)."""

EXPONENT_SPAN = 6
EXPONENT_WEIGHTS = [2 ** (EXPONENT_SPAN - abs(x)) for x in range(-EXPONENT_SPAN, EXPONENT_SPAN + 1)]
MAX_RESULT_EXPONENT = 14


def _sample_addition(words: RandomWords, settings: SamplingSettings) -> SampledQuestion | None:
    """Prefer operands of similar magnitude: of two exponents, the second operand has the closer."""
    digits = randomly_swapped(words, *sample_digit_counts(words, settings.max_digits))
    x1, candidate, alternative = (sample_exponent(words) for _ in range(3))
    x2 = candidate if abs(candidate - x1) <= abs(alternative - x1) else alternative
    exponents = randomly_swapped(words, x1, x2)
    return _pair_question(words, ("+", "-")[words.randbelow(2)], digits, exponents)


def _sample_multiplication(
    words: RandomWords, settings: SamplingSettings
) -> SampledQuestion | None:
    digits = randomly_swapped(words, *sample_digit_counts(words, settings.max_digits))
    exponents = (sample_exponent(words), sample_exponent(words))
    return _pair_question(words, "*", digits, exponents)


def _sample_division(words: RandomWords, settings: SamplingSettings) -> SampledQuestion | None:
    """Draw quotient and divisor; the dividend is their product, rounded to max_digits digits."""
    digits = randomly_swapped(words, *sample_digit_counts(words, settings.max_digits))
    quotient, divisor = (
        scale_to_exponent(sample_significand(words, count), sample_exponent(words))
        for count in digits
    )
    rounding = Context(prec=settings.max_digits, rounding=ROUND_HALF_EVEN)
    product = rounding.create_decimal(quotient.significand * divisor.significand)
    significand, power = from_decimal(product)
    dividend = DecimalNumber(significand, power + quotient.exponent + divisor.exponent)
    sign1, sign2 = number_sampling.sample_signs(words)
    operands = (_signed(dividend, sign1), _signed(divisor, sign2))
    if not exact_arithmetic.in_range(operands[0]):
        return None
    params = {"digits_quotient": digits[0], "digits_divisor": digits[1]}
    return SampledQuestion("/", operands, params)


def _pair_question(
    words: RandomWords, operator: str, digits: tuple[int, int], exponents: tuple[int, int]
) -> SampledQuestion:
    a, b = (
        scale_to_exponent(sample_significand(words, p), x)
        for p, x in zip(digits, exponents, strict=True)
    )
    sign_a, sign_b = number_sampling.sample_signs(words)
    params = {
        "digits_1": digits[0],
        "digits_2": digits[1],
        "exponent_1": exponents[0],
        "exponent_2": exponents[1],
    }
    return SampledQuestion(operator, (_signed(a, sign_a), _signed(b, sign_b)), params)


def _signed(number: DecimalNumber, sign: int) -> str:
    return format_decimal(DecimalNumber(sign * number.significand, number.exponent))


def _add_or_subtract(operator: str, operands: Sequence[str]) -> str:
    return {"+": exact_arithmetic.add, "-": exact_arithmetic.subtract}[operator](*operands)


def _sample_exponentiation(
    words: RandomWords, settings: SamplingSettings
) -> SampledQuestion | None:
    """Draw integer powers and integer roots ξ in equal shares, with exponents of either sign.

    The base's magnitude x has weight 2^−|x|; ξ ~ U{2 … ⌊14 / (|x|+1)⌋}. Bases above 1 are
    negative half the time if the exponent is an integer.
    """
    x = words.weighted_index(EXPONENT_WEIGHTS) - EXPONENT_SPAN
    digits = words.randint(1, settings.max_digits)
    base = scale_to_exponent(sample_significand(words, digits), x)
    xi = words.randint(2, MAX_RESULT_EXPONENT // (abs(x) + 1))
    root, inverse, negative = (words.randbelow(2) for _ in range(3))
    if format_decimal(base) == "1":
        return None
    if negative and not root and x >= 0:
        base = DecimalNumber(-base.significand, base.exponent)
    exponent = reciprocal(xi, settings.max_digits) if root else str(xi)
    params = {"digits": digits, "exponent": x, "power": xi, "root": root}
    return SampledQuestion("^", (format_decimal(base), "-" * inverse + exponent), params)


def reciprocal(xi: int, max_digits: int) -> str:
    """Return 1/ξ as printed, in at most 15 significant digits."""
    context = Context(prec=min(exact_arithmetic.DIGITS, max_digits), rounding=ROUND_HALF_EVEN)
    return format_decimal(from_decimal(context.divide(Decimal(1), Decimal(xi))))


def _sample_list(
    words: RandomWords, settings: SamplingSettings, operator: str
) -> SampledQuestion | None:
    """Draw the lists that `mean` and `std` share: both answers are in range."""
    numbers = number_sampling.sample_list(words, settings.max_digits, MAX_ORDERS_ABOVE_MEAN)
    if numbers is None:
        return None
    operands = numbers.texts()
    if not (
        exact_arithmetic.in_range(exact_arithmetic.mean(operands))
        and exact_arithmetic.in_range(exact_arithmetic.std(operands))
    ):
        return None
    return SampledQuestion(operator, operands, numbers.params)


ADDITION = Task(
    name="addition",
    display="Add",
    operators=("+", "-"),
    sample=_sample_addition,
    exact_answer=_add_or_subtract,
    difficulty=difficulty.of_printed_digits,
    words_per_attempt=11,
    system_prompt="arithmetic",
    operand_names=("operand 1", "operand 2"),
)

MULTIPLICATION = Task(
    name="multiplication",
    display="Mult",
    operators=("*",),
    sample=_sample_multiplication,
    exact_answer=lambda _operator, operands: exact_arithmetic.multiply(*operands),
    difficulty=difficulty.of_product,
    words_per_attempt=8,
    system_prompt="arithmetic",
    operand_names=("operand 1", "operand 2"),
)

DIVISION = Task(
    name="division",
    display="Div",
    operators=("/",),
    sample=_sample_division,
    exact_answer=lambda _operator, operands: exact_arithmetic.divide(*operands),
    difficulty=difficulty.of_quotient,
    words_per_attempt=8,
    system_prompt="arithmetic",
    operand_names=("operand 1", "operand 2"),
)

EXPONENTIATION = Task(
    name="exponentiation",
    display="Exp",
    operators=("^",),
    sample=_sample_exponentiation,
    exact_answer=lambda _operator, operands: exact_arithmetic.power(*operands),
    difficulty=difficulty.of_power,
    words_per_attempt=7,
    system_prompt="arithmetic",
    operand_names=("base", "exponent"),
)

MEAN = Task(
    name="mean",
    display="Mean",
    operators=("mean",),
    sample=lambda words, settings: _sample_list(words, settings, "mean"),
    exact_answer=lambda _operator, operands: exact_arithmetic.mean(operands),
    difficulty=difficulty.of_moments,
    words_per_attempt=number_sampling.WORDS_PER_LIST,
    stream_name="lists",
    system_prompt="arithmetic",
)

STD = Task(
    name="std",
    display="Std",
    operators=("std",),
    sample=lambda words, settings: _sample_list(words, settings, "std"),
    exact_answer=lambda _operator, operands: exact_arithmetic.std(operands),
    conventions=(
        Convention(
            "sample deviation",
            lambda _operator, operands: exact_arithmetic.sample_std(operands),
            error_kind="sample_std",
        ),
    ),
    difficulty=difficulty.of_moments,
    words_per_attempt=number_sampling.WORDS_PER_LIST,
    stream_name="lists",
    system_prompt="arithmetic",
)
