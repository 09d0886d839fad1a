"""Evaluate an expression to 60 significant digits, far beyond the range of a dataset.

`numbench.tasks.exact_arithmetic` proves the 15 digits of an answer. This module gives the further
digits that separate an exact value from a floating-point one, and the values of other expressions.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    Context,
    Decimal,
    DivisionByZero,
    InvalidOperation,
    Overflow,
)
from functools import lru_cache

_DIGITS = 60
_LARGEST_EXPONENT = 400
_TRAPS = [InvalidOperation, DivisionByZero, Overflow]
_WORKING = Context(prec=_DIGITS, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=_TRAPS)
# Sums of squares keep all digits of operands that differ by up to 10^60.
_WIDE = Context(prec=240, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=_TRAPS)


def evaluate(operator: str, operands: Sequence[Decimal]) -> Decimal | None:
    """Return the value of an operator of the paper's arithmetic tasks.

    None if it is undefined, above 10^400 in magnitude, or the operator is another one.
    """
    operation = _OPERATIONS.get(operator)
    if operation is None or not operands:
        return None
    try:
        return operation(operands)
    except ArithmeticError:
        return None


def squared_deviations(numbers: Sequence[Decimal], divisor: int) -> Decimal:
    """Return the sum of the squared deviations from the mean, divided by `divisor`."""
    count = Decimal(len(numbers))
    total, squares = Decimal(0), Decimal(0)
    for number in numbers:
        total = _WIDE.add(total, number)
        squares = _WIDE.fma(number, number, squares)
    # n · Σx² − (Σx)² has no rounding before the difference.
    difference = _WIDE.subtract(_WIDE.multiply(count, squares), _WIDE.multiply(total, total))
    return _WORKING.divide(difference, _WIDE.multiply(count, Decimal(divisor)))


def total_of(numbers: Sequence[Decimal]) -> Decimal:
    """Return the sum."""
    total = Decimal(0)
    for number in numbers:
        total = _WIDE.add(total, number)
    return total


# Operands that are shortened to 8, 9 … digits are often the same; a power takes longest.
@lru_cache(maxsize=64)
def _power(base: Decimal, exponent: Decimal) -> Decimal:
    if base and abs(exponent) * (abs(base.adjusted()) + 1) > _LARGEST_EXPONENT:
        raise Overflow
    return _WORKING.power(base, exponent)


_OPERATIONS: dict[str, Callable[[Sequence[Decimal]], Decimal]] = {
    "+": lambda operands: _WORKING.add(*operands),
    "-": lambda operands: _WORKING.subtract(*operands),
    "*": lambda operands: _WORKING.multiply(*operands),
    "/": lambda operands: _WORKING.divide(*operands),
    "^": lambda operands: _power(*operands),
    "mean": lambda operands: _WORKING.divide(total_of(operands), Decimal(len(operands))),
    "std": lambda operands: _WORKING.sqrt(squared_deviations(operands, len(operands))),
}
