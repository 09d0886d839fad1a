"""Exact answers: the value of an expression as printed, rounded once to 15 significant digits.

Operands are decimal strings. Rounding is half to even. Sums, products and quotients are one
correctly rounded `decimal` operation on exact operands; integer powers are fractions; roots are
integer roots with a remainder; other powers are computed with guard digits until the rounding is
proved (Ziv's method).
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import ROUND_HALF_EVEN, Context, Decimal, DivisionByZero, Inexact, InvalidOperation
from fractions import Fraction
from functools import reduce

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS, format_decimal, parse_decimal

MIN_ANSWER, MAX_ANSWER = Decimal("1e-14"), Decimal("1e15")

_ROUNDED = Context(
    prec=SIGNIFICANT_DIGITS, rounding=ROUND_HALF_EVEN, traps=[InvalidOperation, DivisionByZero]
)
_EXACT = Context(prec=20_000, traps=[Inexact, InvalidOperation])
_ZIV_PRECISIONS = (30, 60, 120, 240, 480)
_LARGEST_POWER = 100

GUARD_DIGITS = 60
"""The correct digits of a root that is not exact, at least."""


def power(base: str, exponent: str) -> str:
    """Return the real value base ^ exponent.

    Raises ValueError if it is undefined or the exponent is an integer above 100 in magnitude.
    """
    b, e = Fraction(to_decimal(base)), Fraction(to_decimal(exponent))
    if not b and e <= 0:
        raise ValueError(f"undefined power: {base} ^ {exponent}")
    if b < 0 and e.denominator > 1:
        raise ValueError(f"fractional power of a negative number: {base} ^ {exponent}")
    if max(abs(e.numerator), e.denominator) <= _LARGEST_POWER:
        value = b**e.numerator
        return _rounded(value if e.denominator == 1 else root(value, e.denominator))
    if e.denominator == 1:
        raise ValueError(f"exponent {e} is beyond ±{_LARGEST_POWER}")
    return format_decimal(_fractional_power(to_decimal(base), to_decimal(exponent))) if b else "0"


def reciprocal(degree: int, max_digits: int) -> str:
    """Return 1 / degree in at most 15 significant digits, as the exponent of a root is printed."""
    rounding = Context(prec=min(SIGNIFICANT_DIGITS, max_digits), rounding=ROUND_HALF_EVEN)
    return format_decimal(rounding.divide(Decimal(1), Decimal(degree)))


def mean(numbers: Sequence[str]) -> str:
    """Return the arithmetic mean."""
    return format_decimal(_ROUNDED.divide(_sum(numbers), Decimal(len(numbers))))


def _sum(numbers: Sequence[str]) -> Decimal:
    return reduce(_EXACT.add, map(to_decimal, numbers), Decimal(0))


def sample_std(numbers: Sequence[str]) -> str:
    """Return the sample standard deviation, whose divisor is n − 1.

    Raises ValueError with fewer than two numbers.
    """
    if len(numbers) < 2:
        raise ValueError("the sample standard deviation needs at least two numbers")
    return _deviation(numbers, len(numbers) - 1)


def _deviation(numbers: Sequence[str], divisor: int) -> str:
    """Return √ of the sum of squared deviations from the mean over `divisor`, rounded once."""
    values = [Fraction(to_decimal(number)) for number in numbers]
    mean = sum(values, Fraction()) / len(values)
    squares = sum(((value - mean) ** 2 for value in values), Fraction())
    return _rounded(root(squares / divisor, 2))


def root(value: Fraction, degree: int) -> Fraction:
    """Return a root of a value that is not negative: exact, or truncated to `GUARD_DIGITS` digits
    at least, with a further digit that breaks ties."""
    if not value:
        return value
    bits = value.numerator.bit_length() - value.denominator.bit_length()
    # Of the digits of the root, at least `GUARD_DIGITS` are before the point of the scaled one.
    shift = max(0, GUARD_DIGITS - bits * 3 // (10 * degree) + 2)
    scaled, remainder = divmod(value.numerator * 10 ** (shift * degree), value.denominator)
    truncated = _integer_root(scaled, degree)
    is_exact = not remainder and truncated**degree == scaled
    return Fraction(truncated * 10 + (not is_exact), 10 ** (shift + 1))


def _integer_root(value: int, degree: int) -> int:
    """Return the largest integer whose power is at most `value`, by Newton's method from above."""
    better = 1 << -(-value.bit_length() // degree)
    result = better + 1
    while better < result:
        result = better
        better = ((degree - 1) * result + value // result ** (degree - 1)) // degree
    return result


_PAIR = {"+": Context.add, "-": Context.subtract, "*": Context.multiply, "/": Context.divide}
_FUNCTIONS: dict[str, Callable[[Sequence[str]], str]] = {
    "mean": mean,
    "std": lambda numbers: _deviation(numbers, len(numbers)),
    "sum": lambda numbers: format_decimal(_sum(numbers)),
    "^": lambda pair: power(*pair),
}


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
    if operator in _FUNCTIONS:
        return _FUNCTIONS[operator](operands)
    a, b = map(to_decimal, operands)
    if operator == "/" and not b:
        raise ValueError(f"division by zero: {' / '.join(operands)}")
    return format_decimal(_PAIR[operator](context, a, b))


def in_range(answer: str) -> bool:
    """Return whether n is 0 or 10⁻¹⁴ ≤ |n| < 10¹⁵ (paper, "Number sampling")."""
    value = abs(Decimal(answer))
    return not value or MIN_ANSWER <= value < MAX_ANSWER


def _fractional_power(base: Decimal, exponent: Decimal) -> Decimal:
    """Return a power that is no short decimal, so that some precision proves its rounding."""
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
    raise ValueError(f"cannot prove the rounding of {base} ^ {exponent}")


def to_decimal(text: str) -> Decimal:
    """Return the exact value of an operand. Raises ValueError for other text."""
    number = parse_decimal(text)
    if abs(int(number.as_tuple().exponent)) > 400:
        raise ValueError(f"{text!r} is out of range")
    return number


def _rounded(value: Fraction) -> str:
    return format_decimal(_ROUNDED.divide(Decimal(value.numerator), Decimal(value.denominator)))
