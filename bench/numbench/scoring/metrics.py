"""The metrics of the `exact` protocol on decimal values: exact match, log-sMAPE, correct digits.

Every metric first rounds both numbers half to even to 15 significant digits, the precision of
the truth. Printing more correct digits therefore never lowers a score.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from itertools import takewhile

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS, wide_context
from numbench.records import Item
from numbench.tasks import TASKS

EPSILON = Decimal("1e-100")

_ROUNDING_CONTEXT = wide_context(SIGNIFICANT_DIGITS)
WORKING_CONTEXT = wide_context(60)
_FULL_SCORE_SMAPE = Decimal(10) ** -SIGNIFICANT_DIGITS


def round_significant(value: Decimal) -> Decimal:
    """Round half to even to 15 significant digits."""
    return _ROUNDING_CONTEXT.plus(value)


def log_smape(predicted: Decimal, truth: Decimal) -> float:
    """Return the log-sMAPE of two rounded numbers, in [0, 1].

    1 means an sMAPE of at most 10⁻¹⁵: all 15 digits are correct, or the last one is off by one or
    two units.

    min(1, lg(|ŷ−y| / (|y|+|ŷ|+ε) + ε) / −15) with ε = 1e−100 (paper, "Metrics"). The quotient
    has 60 digits; only its logarithm is computed in float64.
    """
    difference = WORKING_CONTEXT.subtract(predicted, truth).copy_abs()
    scale = WORKING_CONTEXT.add(predicted.copy_abs(), truth.copy_abs())
    smape = WORKING_CONTEXT.divide(difference, WORKING_CONTEXT.add(scale, EPSILON))
    if smape <= _FULL_SCORE_SMAPE:
        return 1.0
    # `+ 0.0` turns the -0.0 of an sMAPE of 1 into 0.
    return max(0.0, math.log10(smape) / -SIGNIFICANT_DIGITS + 0.0)


def correct_digits(predicted: Decimal, truth: Decimal) -> int:
    """Count the leading significant digits that two rounded numbers share, 0 to 15.

    Both are padded with zeros to 15 digits. 0 if sign or decimal exponent differ.
    """
    if predicted == truth:
        return SIGNIFICANT_DIGITS
    given, wanted = (f"{value:.{SIGNIFICANT_DIGITS - 1}e}" for value in (predicted, truth))
    if given.partition("e")[2] != wanted.partition("e")[2]:
        return 0
    shared = takewhile(lambda pair: pair[0] == pair[1], zip(given, wanted, strict=False))
    return sum(digit.isdigit() for digit, _ in shared)


def comparison_key(item: Item) -> Callable[[Decimal], Decimal]:
    """Return the function that maps answer and truth to the values that must be equal.

    It rounds to 15 significant digits, unless the task requires every digit. In a comparison task
    the answer is copied from the question; if rounding makes two different numbers of the question
    equal, values are compared without rounding.
    """
    task = TASKS[item.task]
    is_copied = task.metric == "exact_match"
    if task.every_digit or (is_copied and _rounding_collides(item.operands)):
        return Decimal
    return round_significant


@lru_cache(1 << 16)
def _rounding_collides(operands: tuple[str, ...]) -> bool:
    """Return whether rounding makes two different numbers equal."""
    values = {Decimal(operand) for operand in operands}
    return len({round_significant(value) for value in values}) < len(values)
