"""Exact answers: the value of an expression as printed, rounded once to 15 significant digits.

Operands are decimal strings. Rounding is half to even. Sums, products and quotients are one
correctly rounded `decimal` operation on exact operands; square roots are integer roots with a
remainder; powers with a fractional exponent are computed with guard digits until the rounding
is proved (Ziv's method).
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, Inexact, InvalidOperation
from fractions import Fraction
from functools import reduce
from math import isqrt

from numbench.core.decimal_numbers import (
    SIGNIFICANT_DIGITS,
    DecimalNumber,
    align_exponents,
    format_decimal,
    from_decimal,
    parse_decimal,
)

MIN_ANSWER, MAX_ANSWER = Decimal("1e-14"), Decimal("1e15")

_ROUNDED = Context(
    prec=SIGNIFICANT_DIGITS, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero]
)
_EXACT = Context(prec=20_000, traps=[Inexact, InvalidOperation])
_ZIV_PRECISIONS = (30, 60, 120, 240, 480)
_LARGEST_POWER = 100


def power(base: str, exponent: str) -> str:
    """Return the real value base ^ exponent.

    Raises ValueError if it is undefined or the exponent is above 100 in magnitude.
    """
    b, e = to_decimal(base), to_decimal(exponent)
    if not b and e <= 0:
        raise ValueError(f"undefined power: {base} ^ {exponent}")
    if e == e.to_integral_value():
        return _integer_power(from_decimal(b), int(e))
    if b < 0:
        raise ValueError(f"fractional power of a negative number: {base} ^ {exponent}")
    return _to_text(_fractional_power(b, e)) if b else "0"


def reciprocal(degree: int, max_digits: int) -> str:
    """Return 1 / degree in at most 15 significant digits, as the exponent of a root is printed."""
    rounding = Context(prec=min(SIGNIFICANT_DIGITS, max_digits), rounding=ROUND_HALF_EVEN)
    return _to_text(rounding.divide(Decimal(1), Decimal(degree)))


def mean(numbers: Sequence[str]) -> str:
    """Return the arithmetic mean."""
    return _to_text(_ROUNDED.divide(_sum(numbers), Decimal(len(numbers))))


def _sum(numbers: Sequence[str]) -> Decimal:
    return reduce(_EXACT.add, map(to_decimal, numbers), Decimal(0))


def std(numbers: Sequence[str]) -> str:
    """Return the population standard deviation: √ of the mean squared deviation from the mean."""
    return _deviation(numbers, len(numbers))


def sample_std(numbers: Sequence[str]) -> str:
    """Return the sample standard deviation, whose divisor is n − 1.

    Raises ValueError with fewer than two numbers.
    """
    if len(numbers) < 2:
        raise ValueError("the sample standard deviation needs at least two numbers")
    return _deviation(numbers, len(numbers) - 1)


def _deviation(numbers: Sequence[str], divisor: int) -> str:
    """Return √ of the sum of squared deviations over `divisor`, rounded once."""
    units, exponent = align_exponents([parse_decimal(number) for number in numbers])
    n = len(units)
    numerator = n * sum(unit * unit for unit in units) - sum(units) ** 2
    shift = max(0, 2 * SIGNIFICANT_DIGITS + 4 - len(str(numerator)) // 2 + len(str(n * divisor)))
    scaled, remainder = divmod(numerator * 100**shift, n * divisor)
    root = isqrt(scaled)
    # The root is truncated to more digits than are kept; a further digit for the rest breaks ties.
    digits = root * 10 + bool(remainder or root * root != scaled)
    value = Decimal(digits).scaleb(exponent - shift - 1, _EXACT)
    return _to_text(_ROUNDED.create_decimal(value))


_PAIR = {"+": Context.add, "-": Context.subtract, "*": Context.multiply, "/": Context.divide}


def evaluate(operator: str, operands: Sequence[str]) -> str:
    """Return the value of an operator on numbers, rounded once.

    Raises ValueError if an operand is malformed or the value is undefined.
    """
    return _evaluate(operator, operands, _ROUNDED)


def evaluate_in_full(operator: str, operands: Sequence[str]) -> str:
    """Return the value of `+`, `-`, `*`, `/` or another operator with all of its digits.

    Raises ValueError also for a quotient that has no end.
    """
    try:
        return _evaluate(operator, operands, _EXACT)
    except Inexact:
        raise ValueError(f"no exact value: {' '.join(operands):.80}") from None


def _evaluate(operator: str, operands: Sequence[str], context: Context) -> str:
    if operator == "mean":
        return mean(operands)
    if operator == "std":
        return std(operands)
    if operator == "sum":
        return _to_text(_sum(operands))
    if operator == "^":
        return power(*operands)
    a, b = map(to_decimal, operands)
    if operator == "/" and not b:
        raise ValueError(f"division by zero: {' / '.join(operands)}")
    return _to_text(_PAIR[operator](context, a, b))


def in_range(answer: str) -> bool:
    """Return whether n is 0 or 10⁻¹⁴ ≤ |n| < 10¹⁵ (paper, "Number sampling")."""
    value = abs(Decimal(answer))
    return not value or MIN_ANSWER <= value < MAX_ANSWER


def _integer_power(base: DecimalNumber, exponent: int) -> str:
    if abs(exponent) > _LARGEST_POWER:
        raise ValueError(f"exponent {exponent} is beyond ±{_LARGEST_POWER}")
    significand = base.significand ** abs(exponent)
    magnitude = Decimal(base.exponent * abs(exponent))
    value = _EXACT.scaleb(_EXACT.create_decimal(significand), magnitude)
    return _to_text(_ROUNDED.plus(value) if exponent >= 0 else _ROUNDED.divide(Decimal(1), value))


def _fractional_power(base: Decimal, exponent: Decimal) -> Decimal:
    for precision in _ZIV_PRECISIONS:
        context = Context(prec=precision)
        value = context.exp(context.multiply(exponent, context.ln(base)))
        # ln, multiply and exp are each within half a unit; exp multiplies the relative error of
        # its argument by that argument, which is below 10^6 for every answer in range.
        error_bound = Decimal(1).scaleb(value.adjusted() - precision + 8)
        low = _ROUNDED.create_decimal(context.subtract(value, error_bound))
        high = _ROUNDED.create_decimal(context.add(value, error_bound))
        if low == high:
            return low
        exact = _exact_power(base, exponent, value)
        if exact is not None:
            return _ROUNDED.create_decimal(exact)
    raise ValueError(f"cannot prove the rounding of {base} ^ {exponent}")


def _exact_power(base: Decimal, exponent: Decimal, value: Decimal) -> Decimal | None:
    """Return the power if it is a short decimal, such as 4 ^ 0.5, otherwise None.

    No precision proves the rounding of such a power, because it lies on a boundary itself.
    """
    ratio = Fraction(exponent)
    if ratio.denominator > _LARGEST_POWER or abs(ratio.numerator) > _LARGEST_POWER:
        return None
    candidate = Context(prec=SIGNIFICANT_DIGITS + 5).create_decimal(value)
    if Fraction(candidate) ** ratio.denominator == Fraction(base) ** ratio.numerator:
        return candidate
    return None


def to_decimal(text: str) -> Decimal:
    """Return the exact value of an operand. Raises ValueError for other text."""
    number = parse_decimal(text)
    if abs(number.exponent) > 400:
        raise ValueError(f"{text!r} is out of range")
    return Decimal(text)


def _to_text(value: Decimal) -> str:
    return format_decimal(from_decimal(value))
