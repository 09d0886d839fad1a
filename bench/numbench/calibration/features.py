"""Features of an item that describe how hard it is: digits, magnitudes, operator, spread.

They are computed from what is printed, so items of any generator have them.
"""

from __future__ import annotations

import math
from collections.abc import Callable, Mapping, Sequence
from typing import NamedTuple

from numbench.decimal_numbers import align_exponents, normalize, parse_decimal
from numbench.records import Answer, Item

FULL_DIGITS = 15
"""Answers are rounded to so many significant digits."""

Features = Mapping[str, float]


class PrintedNumber(NamedTuple):
    """A decimal: significant digits, and the powers of ten of its first and last one.

    Zero has one digit at 10⁰.
    """

    digits: int
    exponent: int
    last: int
    is_negative: bool


def printed_number(text: str) -> PrintedNumber:
    """Return the digits, magnitude and sign of a decimal. Raises ValueError if it is none."""
    significand, last = normalize(parse_decimal(text))
    digits = len(str(abs(significand)))
    return PrintedNumber(digits, last + digits - 1, last, significand < 0)


def item_features(item: Item) -> Features:
    """Return the features of an item, the same names for every item of a task.

    Raises ValueError for a task other than the nine of the paper.
    """
    compute = _FEATURES.get(item.task)
    if compute is None:
        raise ValueError(f"task {item.task!r} has no features; use {', '.join(_FEATURES)}")
    return compute(item.operator, item.operands, item.answer)


def _of_pair(operands: Sequence[str], answer: Answer) -> dict[str, float]:
    a, b = map(printed_number, operands)
    result = printed_number(str(answer))
    return {
        "digits of the longer operand": max(a.digits, b.digits),
        "digits of the shorter operand": min(a.digits, b.digits),
        "digits of the answer": min(result.digits, FULL_DIGITS),
        "magnitude of operand 1": a.exponent,
        "magnitude of operand 2": b.exponent,
        "magnitude of the answer": result.exponent,
        "negative operands": a.is_negative + b.is_negative,
    }


def _of_addition(operator: str, operands: Sequence[str], answer: Answer) -> Features:
    a, b = map(printed_number, operands)
    top, bottom = max(a.exponent, b.exponent), min(a.last, b.last)
    overlap = min(a.exponent, b.exponent) - max(a.last, b.last) + 1
    return _of_pair(operands, answer) | {
        "subtracts": float((operator == "-") != (a.is_negative != b.is_negative)),
        "minus sign": float(operator == "-"),
        "places of the exact sum": top - bottom + 1,
        "is rounded": float(top - bottom + 1 > FULL_DIGITS),
        "overlapping places": max(0, overlap),
    }


def _of_multiplication(_operator: str, operands: Sequence[str], answer: Answer) -> Features:
    features = _of_pair(operands, answer)
    long, short = (
        features["digits of the longer operand"],
        features["digits of the shorter operand"],
    )
    return features | {"digit products": long * short, "one digit": float(short == 1)}


def _of_division(_operator: str, operands: Sequence[str], answer: Answer) -> Features:
    dividend, divisor = map(printed_number, operands)
    features = _of_pair(operands, answer)
    return features | {
        "digits of the dividend": dividend.digits,
        "digits of the divisor": divisor.digits,
        "digit products": divisor.digits * features["digits of the answer"],
        "one digit": float(divisor.digits == 1),
    }


def _of_power(_operator: str, operands: Sequence[str], answer: Answer) -> Features:
    base, result = printed_number(operands[0]), printed_number(str(answer))
    exponent = abs(float(operands[1]))
    is_root = exponent < 1
    degree = round(1 / exponent) if is_root else round(exponent)
    return {
        "digits of the base": base.digits,
        "digits of the answer": min(result.digits, FULL_DIGITS),
        "magnitude of the base": base.exponent,
        "magnitude of the answer": result.exponent,
        "root": float(is_root),
        "negative exponent": float(operands[1].startswith("-")),
        "negative base": float(base.is_negative),
        "degree of the power": 0 if is_root else degree,
        "degree of the root": degree if is_root else 0,
        "digits of the exact power": 0 if is_root else min(base.digits * degree, 4 * FULL_DIGITS),
        "square root": float(is_root and degree == 2),
    }


def _of_list(operands: Sequence[str]) -> dict[str, float]:
    """Return the features of a list: `spread` is that of its deviations over its mean, in orders
    of magnitude; for a mean of 0, over one unit of its last digit."""
    numbers = [printed_number(operand) for operand in operands]
    units, unit_exponent = align_exponents([parse_decimal(operand) for operand in operands])
    total = abs(sum(units)) or 1
    deviation = max(abs(len(units) * unit - sum(units)) for unit in units) or 1
    negative = sum(number.is_negative for number in numbers)
    return {
        "length": len(operands),
        "digits": max(number.digits for number in numbers),
        "mean digits": sum(number.digits for number in numbers) / len(numbers),
        "magnitude of the mean": math.log10(total / len(units)) + unit_exponent,
        "spread": math.log10(deviation) - math.log10(total),
        "places": max(n.exponent for n in numbers) - min(n.last for n in numbers) + 1,
        "range of magnitudes": max(n.exponent for n in numbers) - min(n.exponent for n in numbers),
        "negative elements": negative,
        "both signs": float(0 < negative < len(numbers)),
    }


def _of_moment(_operator: str, operands: Sequence[str], answer: Answer) -> Features:
    result = printed_number(str(answer))
    return _of_list(operands) | {"digits of the answer": min(result.digits, FULL_DIGITS)}


def _of_comparison(operator: str, operands: Sequence[str], _answer: Answer) -> Features:
    return _of_list(operands) | {"reversed": float(operator in ("maximum", "descending"))}


def _of_interval(_operator: str, operands: Sequence[str], answer: Answer) -> Features:
    position = ord(str(answer)) - ord("A")
    return _of_list(operands) | {
        "first interval": float(position == 0),
        "last interval": float(position == len(operands) - 1),
    }


_FEATURES: dict[str, Callable[[str, Sequence[str], Answer], Features]] = {
    "minmax": _of_comparison,
    "interval": _of_interval,
    "sorting": _of_comparison,
    "addition": _of_addition,
    "multiplication": _of_multiplication,
    "division": _of_division,
    "exponentiation": _of_power,
    "mean": _of_moment,
    "std": _of_moment,
}
