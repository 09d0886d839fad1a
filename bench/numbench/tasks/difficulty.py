"""Difficulty δ of a question, computed from its printed digits in base 10 and base 2.

Multiplication, division, exponentiation, mean and std follow the paper ("Problem difficulty").
The paper defines no difficulty for addition and the comparison tasks; it is defined here.

In base 2, counts of digits are those of the float64 nearest to the number, and orders of
magnitude are powers of two.
"""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from math import frexp, prod

from numbench.decimal_numbers import align_exponents, normalize, parse_decimal
from numbench.records import Answer, Difficulty


def nonzero_digits(number: str) -> Difficulty:
    """Count the non-zero digits of a number."""
    mantissa, _ = frexp(float(number))
    base10 = sum(digit in "123456789" for digit in number)
    return Difficulty(base10, int(abs(mantissa) * (1 << 53)).bit_count())


def printed_digits(number: str) -> Difficulty:
    """Count the digits of a number in plain notation, zeros included.

    In base 2, the nearest float64 is written with all its binary places: 0.75 is `0.11`, three
    digits.
    """
    base10 = sum(digit.isdigit() for digit in number)
    numerator, denominator = abs(float(number)).as_integer_ratio()
    places = denominator.bit_length() - 1
    return Difficulty(base10, max((numerator >> places).bit_length(), 1) + places)


def of_product(_operator: str, operands: Sequence[str], _answer: Answer) -> Difficulty:
    """Return δ of multiplication: the non-zero digits of both operands."""
    return _sum(map(nonzero_digits, operands))


def of_printed_digits(_operator: str, operands: Sequence[str], _answer: Answer) -> Difficulty:
    """Return δ of addition and sorting: the digits of all operands as printed."""
    return _sum(map(printed_digits, operands))


def of_quotient(_operator: str, operands: Sequence[str], answer: Answer) -> Difficulty:
    """Return δ of division: the non-zero digits of dividend, divisor and quotient."""
    return _sum(map(nonzero_digits, (*operands, str(answer))))


def of_power(_operator: str, operands: Sequence[str], answer: Answer) -> Difficulty:
    """Return δ of a power: the product of the non-zero digits of base, exponent and result."""
    counts = [nonzero_digits(number) for number in (*operands, str(answer))]
    return Difficulty(prod(c.base10 for c in counts), prod(c.base2 for c in counts))


def of_moments(_operator: str, operands: Sequence[str], _answer: Answer) -> Difficulty:
    """Return δ of mean and std: s − x + 15 for the exponent x of the mean and the spread s.

    10^x ≤ |mean| < 10^(x+1), and s is the smallest integer with every element in mean ± 10^s.
    In base 2, δ is ⌈log2(largest deviation / |mean|)⌉ + 50, since 15 decimal digits are 50 binary
    digits. A list with mean 0 is treated as if its sum were one unit of its last digit.
    """
    units, _ = align_exponents([parse_decimal(number) for number in operands])
    total = abs(sum(units)) or 1
    deviation = max(abs(len(units) * unit - sum(units)) for unit in units) or 1
    # Mean and deviations carry the common factor 1 / len(units).
    base10 = _ceil_log10(deviation, len(units)) - _floor_log10(total, len(units)) + 15
    return Difficulty(max(0, base10), max(0, 50 - _floor_log2(total, deviation)))


def of_extremum(_operator: str, operands: Sequence[str], answer: Answer) -> Difficulty:
    """Return δ of minmax: digits that distinguish the answer from each other element, summed."""
    others = list(operands)
    others.remove(str(answer))
    return _sum(distinguishing_digits(str(answer), other) for other in others)


def of_interval(_operator: str, operands: Sequence[str], _answer: Answer) -> Difficulty:
    """Return δ of interval: digits that distinguish the reference from each boundary, summed."""
    return _sum(distinguishing_digits(operands[0], boundary) for boundary in operands[1:])


def distinguishing_digits(a: str, b: str) -> Difficulty:
    """Count the leading digits that distinguish a from b.

    These are the orders of magnitude from the larger of |a|, |b| down to |a − b|, both included;
    in base 2, the powers of two of their ratio. Equal numbers count to their last non-zero digit.
    """
    (x, y), _ = align_exponents([normalize(parse_decimal(a)), normalize(parse_decimal(b))])
    larger, difference = max(abs(x), abs(y), 1), abs(x - y) or 1
    base10 = len(str(larger)) - len(str(difference)) + 1
    return Difficulty(max(1, base10), max(1, _floor_log2(larger, difference) + 1))


def _sum(parts: Iterable[Difficulty]) -> Difficulty:
    base10 = base2 = 0
    for part in parts:
        base10, base2 = base10 + part.base10, base2 + part.base2
    return Difficulty(base10, base2)


def _floor_log10(numerator: int, denominator: int) -> int:
    """Return ⌊log10(numerator / denominator)⌋ for positive integers."""
    exponent = len(str(numerator)) - len(str(denominator))
    high, low = (1, 10**-exponent) if exponent < 0 else (10**exponent, 1)
    return exponent if numerator * low >= denominator * high else exponent - 1


def _ceil_log10(numerator: int, denominator: int) -> int:
    return -_floor_log10(denominator, numerator)


def _floor_log2(numerator: int, denominator: int) -> int:
    exponent = numerator.bit_length() - denominator.bit_length()
    high, low = (1, 1 << -exponent) if exponent < 0 else (1 << exponent, 1)
    return exponent if numerator * low >= denominator * high else exponent - 1
