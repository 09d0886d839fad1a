"""Single-step arithmetic: addition and subtraction, multiplication, division."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context

from bench.numerals import Number, number_of, plain
from bench.tasks import difficulty, numbers, truth
from bench.tasks.base import Problem, Sampling, Task
from bench.tasks.draws import Draws


def _sample_addition(draws: Draws, sampling: Sampling) -> Problem | None:
    """Operands of similar magnitude are preferred: the second is the closer of two draws."""
    digits = numbers.swapped(draws, *numbers.pair_digits(draws, sampling.max_digits))
    x1, near, far = (numbers.exponent(draws) for _ in range(3))
    x2 = near if abs(near - x1) <= abs(far - x1) else far
    exponents = numbers.swapped(draws, x1, x2)
    return _pair(draws, ("+", "-")[draws.below(2)], digits, exponents)


def _sample_multiplication(draws: Draws, sampling: Sampling) -> Problem | None:
    digits = numbers.swapped(draws, *numbers.pair_digits(draws, sampling.max_digits))
    return _pair(draws, "*", digits, (numbers.exponent(draws), numbers.exponent(draws)))


def _sample_division(draws: Draws, sampling: Sampling) -> Problem | None:
    """Quotient and divisor are drawn; the dividend is their product in at most max_digits."""
    digits = numbers.swapped(draws, *numbers.pair_digits(draws, sampling.max_digits))
    quotient = numbers.scaled(numbers.significand(draws, digits[0]), numbers.exponent(draws))
    divisor = numbers.scaled(numbers.significand(draws, digits[1]), numbers.exponent(draws))
    rounded = Context(prec=sampling.max_digits, rounding=ROUND_HALF_EVEN)
    product = rounded.create_decimal(quotient.significand * divisor.significand)
    significand, power = number_of(product)
    dividend = Number(significand, power + quotient.exponent + divisor.exponent)
    sign1, sign2 = numbers.signs(draws)
    operands = (_signed(dividend, sign1), _signed(divisor, sign2))
    if not truth.in_range(operands[0]):
        return None
    params = {"digits_quotient": digits[0], "digits_divisor": digits[1]}
    return Problem("/", operands, params)


def _pair(
    draws: Draws, operator: str, digits: tuple[int, int], exponents: tuple[int, int]
) -> Problem:
    a, b = (
        numbers.scaled(numbers.significand(draws, p), x)
        for p, x in zip(digits, exponents, strict=True)
    )
    sign_a, sign_b = numbers.signs(draws)
    params = {
        "digits_1": digits[0],
        "digits_2": digits[1],
        "exponent_1": exponents[0],
        "exponent_2": exponents[1],
    }
    return Problem(operator, (_signed(a, sign_a), _signed(b, sign_b)), params)


def _signed(number: Number, sign: int) -> str:
    return plain(Number(sign * number.significand, number.exponent))


def _sum(operator: str, operands: Sequence[str]) -> str:
    return {"+": truth.add, "-": truth.subtract}[operator](*operands)


ADDITION = Task(
    name="addition",
    display="Add",
    answer_kind="number",
    metric="log_smape",
    system_prompt="arithmetic",
    operators=("+", "-"),
    words=11,
    sample=_sample_addition,
    truth=_sum,
    difficulty=difficulty.of_text,
)

MULTIPLICATION = Task(
    name="multiplication",
    display="Mult",
    answer_kind="number",
    metric="log_smape",
    system_prompt="arithmetic",
    operators=("*",),
    words=8,
    sample=_sample_multiplication,
    truth=lambda _operator, operands: truth.multiply(*operands),
    difficulty=difficulty.of_product,
)

DIVISION = Task(
    name="division",
    display="Div",
    answer_kind="number",
    metric="log_smape",
    system_prompt="arithmetic",
    operators=("/",),
    words=8,
    sample=_sample_division,
    truth=lambda _operator, operands: truth.divide(*operands),
    difficulty=difficulty.of_quotient,
)
