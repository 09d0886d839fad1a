"""Whether an answer agrees with a value, to the digits that the answer gives.

An answer of d significant digits agrees with a value that rounds (half to even) or truncates to it
at d digits. Two values of which it agrees with both are not separated by the answer.
"""

from __future__ import annotations

from collections.abc import Collection
from decimal import (
    MAX_EMAX,
    MIN_EMIN,
    ROUND_DOWN,
    ROUND_HALF_EVEN,
    ROUND_HALF_UP,
    Context,
    Decimal,
)
from typing import NamedTuple

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS

FLOAT64_DIGITS = 17
"""Digits that identify a number of the type float64."""


class GivenAnswer(NamedTuple):
    """A number that a model answered, rounded to the digits that are compared.

    digits: significant digits that it gives. truth: the exact value.
    """

    value: Decimal
    digits: int
    truth: Decimal

    @property
    def agrees_with_truth(self) -> bool:
        """Whether the answer is the exact value to the digits that it gives."""
        return self.value in readings((self.truth,), self.digits)


def _contexts(rounding: str) -> list[Context]:
    return [
        Context(prec=max(1, digits), rounding=rounding, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
        for digits in range(FLOAT64_DIGITS + 1)
    ]


_ROUND, _TRUNCATE = _contexts(ROUND_HALF_EVEN), _contexts(ROUND_DOWN)
_HALF_UP = _contexts(ROUND_HALF_UP)[SIGNIFICANT_DIGITS]


def round_to(value: Decimal, digits: int) -> Decimal:
    """Return the value rounded half to even to 1 … 17 significant digits."""
    return _ROUND[digits].plus(value)


def round_half_up(value: Decimal) -> Decimal:
    """Return the value rounded to 15 digits, where a tie is rounded away from 0."""
    return _HALF_UP.plus(value)


def digits_given(answer: Decimal, limit: int) -> int:
    """Return the significant digits of an answer without zeros at the end, 1 … `limit`.

    Zeros at the end, as in 1500 or 0.50, do not say whether they are digits of the result.
    """
    return len(answer.normalize(_ROUND[limit]).as_tuple().digits)


def readings(values: Collection[Decimal], digits: int) -> frozenset[Decimal]:
    """Return the answers of so many digits that agree with any of the values."""
    return frozenset((*map(_ROUND[digits].plus, values), *map(_TRUNCATE[digits].plus, values)))
