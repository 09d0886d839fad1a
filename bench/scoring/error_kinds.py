"""In what way a wrong number or list is wrong.

The first kind that applies, in the order of `bench/scoring/taxonomy.py`, which defines them;
`docs/errors.md` has an example of each.
"""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal

from bench.records import ErrorKind
from bench.scoring.metrics import DIGITS
from bench.scoring.rounded import POWERS, Rounded, aligned, idle_zeros

_FARTHEST = DIGITS - 1


def number_error(answer: Rounded, truth: Rounded) -> ErrorKind:
    """The kind of error of a wrong number; both are rounded to 15 digits."""
    if not answer.significand or not truth.significand:
        return "other"
    same_sign = answer.negative == truth.negative
    if answer.significand == truth.significand:
        if answer.place == truth.place:
            return "digit" if same_sign else "sign"
        if same_sign:
            return "magnitude"
    if not same_sign or abs(answer.place - truth.place) > _FARTHEST:
        return "other"
    return _near_error(answer, truth)


def list_error(answer: Sequence[Decimal], truth: Sequence[Decimal]) -> ErrorKind:
    """The kind of error of a wrong list; both as they are compared, rounded or not."""
    if len(answer) != len(truth):
        return "count"
    return "order" if sorted(answer) == sorted(truth) else "altered"


def _near_error(answer: Rounded, truth: Rounded) -> ErrorKind:
    """The kind for two numbers of one sign and of different digits."""
    given, wanted, exponent = aligned(answer, truth)
    gap = abs(given - wanted)
    top = truth.place - exponent
    # The first is the smaller number's last digit: 999.999999999999 instead of 1000.
    if gap in (1, POWERS[top - DIGITS + 1]):
        return "rounding"
    if _is_shortened(given, wanted, _last_place(answer, exponent), top):
        return "precision"
    # Plain notation prints an integer down to its units.
    printed = min(_last_place(truth, exponent), -exponent)
    if _is_carry(gap, printed, top):
        return "carry"
    if answer.place == truth.place:
        if _is_swap(wanted, wanted - given, printed, top):
            return "swap"
        if given // POWERS[top] == wanted // POWERS[top]:
            return "digit"
    return "other"


def _last_place(number: Rounded, exponent: int) -> int:
    """The place of the last digit that is not an idle zero, counted from `exponent`."""
    return number.place - DIGITS + 1 - exponent + idle_zeros(number.significand)


def _is_shortened(given: int, wanted: int, place: int, top: int) -> bool:
    """Whether `given`, which ends at a place, is `wanted` rounded or cut there.

    If `wanted` ended there or before, the two would be a whole unit of that place apart.
    """
    unit = POWERS[min(place, top)]
    return 2 * abs(given - wanted) <= unit or 0 < wanted - given < unit


def _is_carry(gap: int, printed: int, top: int) -> bool:
    """Whether the gap is one unit of a printed place above the last."""
    digits = str(gap)
    return digits.rstrip("0") == "1" and printed < len(digits) - 1 <= top


def _is_swap(wanted: int, excess: int, printed: int, top: int) -> bool:
    """Whether two neighbouring digits of `wanted`, exchanged, make it smaller by `excess`.

    With a digit a before b at the place k, the exchange takes away 9 (a − b) · 10^k.
    """
    ninth, rest = divmod(abs(excess), 9)
    place = len(str(ninth)) - 1
    if rest or ninth % POWERS[place] or not printed <= place < top:
        return False
    before, after = divmod(wanted // POWERS[place] % 100, 10)
    return 9 * (before - after) * POWERS[place] == excess
