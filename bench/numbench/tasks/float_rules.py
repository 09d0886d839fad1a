"""The answers of scaled tasks in floating-point arithmetic (`Task.approximate`).

Operands are rounded before, results after. A rule rounds the results of every operation between.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence

Values = Sequence[float]
Round = Callable[[float], float]

_OPERATIONS: dict[str, Callable[[float, float], float]] = {
    "+": lambda a, b: a + b,
    "-": lambda a, b: a - b,
    "*": lambda a, b: a * b,
    "/": lambda a, b: a / b,
}


def operation(operator: str, values: Values, round_: Round) -> float:
    """Return the rounded result of one of the four basic operations."""
    a, b = values
    return round_(_OPERATIONS[operator](a, b))


def larger(_operator: str, values: Values, _round: Round) -> str:
    """Return the letter of the larger number; A if rounding has made them equal."""
    return "A" if values[0] >= values[1] else "B"


def sort(operator: str, values: Values, _round: Round) -> list[float]:
    """Return the rounded elements in order."""
    return sorted(values, reverse=operator == "descending")


def maximum(_operator: str, values: Values, _round: Round) -> float:
    """Return the largest element."""
    return max(values)


def total(_operator: str, values: Values, round_: Round) -> float:
    """Return the sum, added from left to right."""
    result = 0.0
    for value in values:
        result = round_(result + value)
    return result


def mean(operator: str, values: Values, round_: Round) -> float:
    """Return the sum, added from left to right, over the number of elements."""
    return round_(total(operator, values, round_) / round_(float(len(values))))


def identity(_operator: str, values: Values, _round: Round) -> float:
    """Return the number itself."""
    return values[0]
