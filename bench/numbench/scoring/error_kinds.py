"""Classify wrong numbers and lists.

The first kind that applies is returned, in the order of `numbench/scoring/taxonomy.py`, which
defines the kinds; `docs/errors.md` shows an example of each.

To compare two numbers of the same sign, both are written as integers over one power of ten, the
unit of the 15th digit of the number with the smaller exponent. Digit positions in this module
are exponents relative to that unit: position 0 is its 15th digit.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

from numbench.records import ErrorKind
from numbench.scoring.metrics import SIGNIFICANT_DIGITS, round_significant

_MAX_EXPONENT_GAP = SIGNIFICANT_DIGITS - 1
_POWERS_OF_TEN: tuple[int, ...] = tuple(10**k for k in range(4 * SIGNIFICANT_DIGITS))


def number_error(answer: Decimal, truth: Decimal) -> ErrorKind:
    """Return the error kind of a wrong number; both values are rounded to 15 digits first."""
    given, wanted = _to_scientific(answer), _to_scientific(truth)
    if not given.significand or not wanted.significand:
        return "other"
    same_sign = given.negative == wanted.negative
    if given.significand == wanted.significand:
        if given.exponent == wanted.exponent:
            # Equal after rounding, but a copy that had to match in all its digits.
            return "digit" if same_sign else "sign"
        if same_sign:
            return "magnitude"
    if not same_sign or abs(given.exponent - wanted.exponent) > _MAX_EXPONENT_GAP:
        return "other"
    return _same_sign_error(given, wanted)


def list_error(answer: Sequence[Decimal], truth: Sequence[Decimal]) -> ErrorKind:
    """Return the error kind of a wrong list; both contain the values as they are compared."""
    if len(answer) != len(truth):
        return "count"
    return "order" if sorted(answer) == sorted(truth) else "altered"


class _Scientific(NamedTuple):
    """The value ± significand · 10^(exponent − 14).

    The significand has exactly 15 digits, padded with zeros; `exponent` is the position of the
    first digit (0 for units, -1 for tenths). Zero has the significand 0.
    """

    negative: bool
    significand: int
    exponent: int


def _to_scientific(value: Decimal) -> _Scientific:
    value = round_significant(value)
    if not value:
        return _Scientific(False, 0, 0)
    sign, digits, _ = value.as_tuple()
    significand = int("".join(map(str, digits)).ljust(SIGNIFICANT_DIGITS, "0"))
    return _Scientific(bool(sign), significand, value.adjusted())


def _same_sign_error(answer: _Scientific, truth: _Scientific) -> ErrorKind:
    """Return the kind for two numbers with the same sign and different digits."""
    unit_exponent = min(answer.exponent, truth.exponent) - SIGNIFICANT_DIGITS + 1
    given, wanted = _as_integer(answer, unit_exponent), _as_integer(truth, unit_exponent)
    gap = abs(given - wanted)
    first = truth.exponent - unit_exponent
    # A gap of 1 is the last digit of the smaller number: 999.999999999999 instead of 1000.
    if gap in (1, _POWERS_OF_TEN[first - SIGNIFICANT_DIGITS + 1]):
        return "rounding"
    if _is_shortened(given, wanted, _last_digit_position(answer, unit_exponent), first):
        return "precision"
    # Plain notation prints an integer down to its units.
    last_printed = min(_last_digit_position(truth, unit_exponent), -unit_exponent)
    if _is_carry(gap, last_printed, first):
        return "carry"
    if answer.exponent == truth.exponent:
        if _is_swap(wanted, wanted - given, last_printed, first):
            return "swap"
        if given // _POWERS_OF_TEN[first] == wanted // _POWERS_OF_TEN[first]:
            return "digit"
    return "other"


def _as_integer(number: _Scientific, unit_exponent: int) -> int:
    """Return the absolute value in units of 10^unit_exponent."""
    shift = number.exponent - SIGNIFICANT_DIGITS + 1 - unit_exponent
    return number.significand * _POWERS_OF_TEN[shift]


def _last_digit_position(number: _Scientific, unit_exponent: int) -> int:
    """Return the position of the last digit other than 0, relative to `unit_exponent`."""
    digits = str(number.significand)
    trailing_zeros = len(digits) - len(digits.rstrip("0"))
    return number.exponent - SIGNIFICANT_DIGITS + 1 - unit_exponent + trailing_zeros


def _is_shortened(given: int, wanted: int, last: int, first: int) -> bool:
    """Return whether `given`, which ends at position `last`, is `wanted` rounded or truncated.

    If `wanted` ended there or before, the two would differ by a whole unit of that position.
    """
    unit = _POWERS_OF_TEN[min(last, first)]
    return 2 * abs(given - wanted) <= unit or 0 < wanted - given < unit


def _is_carry(gap: int, last_printed: int, first: int) -> bool:
    """Return whether the gap is one unit of a printed position other than the last."""
    digits = str(gap)
    return digits.rstrip("0") == "1" and last_printed < len(digits) - 1 <= first


def _is_swap(wanted: int, decrease: int, last_printed: int, first: int) -> bool:
    """Return whether exchanging two neighbouring digits of `wanted` lowers it by `decrease`.

    With digit a at position k + 1 and digit b at k, the exchange subtracts 9 (a − b) · 10^k.
    """
    ninth, remainder = divmod(abs(decrease), 9)
    position = len(str(ninth)) - 1
    if remainder or ninth % _POWERS_OF_TEN[position] or not last_printed <= position < first:
        return False
    left, right = divmod(wanted // _POWERS_OF_TEN[position] % 100, 10)
    return 9 * (left - right) * _POWERS_OF_TEN[position] == decrease
