"""The measures of the `exact` protocol on decimal values: exact match, log-sMAPE, digits.

Every measure first rounds both numbers half to even to 15 significant digits, the precision of
the truth: who prints more correct digits never scores lower.
"""

from __future__ import annotations

import math
from decimal import MAX_EMAX, MIN_EMIN, ROUND_HALF_EVEN, Context, Decimal

DIGITS = 15
"""Significant digits that count (the paper's M)."""

EPSILON = Decimal("1e-100")

_ROUNDING = Context(prec=DIGITS, rounding=ROUND_HALF_EVEN, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_WORKING = Context(prec=60, Emax=MAX_EMAX, Emin=MIN_EMIN, traps=[])
_FULL_SCORE = Decimal(10) ** -DIGITS


def rounded(value: Decimal) -> Decimal:
    """The value rounded half to even to 15 significant digits."""
    return _ROUNDING.plus(value)


def quotient(numerator: Decimal, denominator: Decimal) -> Decimal:
    """The quotient to 60 digits."""
    return _WORKING.divide(numerator, denominator)


def log_smape(predicted: Decimal, truth: Decimal) -> float:
    """log-sMAPE of rounded numbers, in [0, 1]; 1 is right to 15 digits (paper, "Metrics").

    min(1, lg(|ŷ−y| / (|y|+|ŷ|+ε) + ε) / −15) with ε = 1e−100. The quotient has 60 digits; only
    its logarithm is taken in float64.
    """
    difference = _WORKING.subtract(predicted, truth).copy_abs()
    scale = _WORKING.add(predicted.copy_abs(), truth.copy_abs())
    smape = _WORKING.divide(difference, _WORKING.add(scale, EPSILON))
    if smape <= _FULL_SCORE:
        return 1.0
    # `+ 0.0` turns the -0.0 of an sMAPE of 1 into 0.
    return max(0.0, math.log10(smape) / -DIGITS + 0.0)


def correct_digits(predicted: Decimal, truth: Decimal) -> int:
    """How many leading significant digits of two rounded numbers agree, 0 to 15.

    Both are filled up with zeros to 15 digits. 0 where sign or decimal exponent differ.
    """
    if predicted == truth:
        return DIGITS
    if not predicted or not truth or predicted.adjusted() != truth.adjusted():
        return 0
    if predicted.is_signed() != truth.is_signed():
        return 0
    pairs = zip(_significand(predicted), _significand(truth), strict=True)
    return next(count for count, (one, other) in enumerate(pairs) if one != other)


def _significand(value: Decimal) -> str:
    digits = "".join(map(str, value.as_tuple().digits))
    return digits.ljust(DIGITS, "0")
