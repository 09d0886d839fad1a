"""Alignment of an answer with the exact one, and the position of their first difference."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import NamedTuple

from numbench.records import Answer

_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]*)?")
_MAX_SHIFT = 60


class DigitAlignment(NamedTuple):
    """How to align an answer with the exact one, and where they first differ.

    shift: number of spaces before the answer, or, if negative, before the exact answer, that
        align the decimal points. 0 for lists and if one is not a plain decimal number.
    first_difference: column (for lists element) of the first difference, None without one.
    """

    shift: int
    first_difference: int | None


def align_digits(answer: Answer, truth: Answer) -> DigitAlignment:
    """Align `answer` with `truth`, the exact answer, by place value.

    Digits that are not written count as zeros: 5 and 5.00 are equal. Numbers with very different
    numbers of digits are compared from the left.

    >>> align_digits("1234.5", "34.5")
    DigitAlignment(shift=-2, first_difference=0)
    >>> align_digits("34.57", "34.561")
    DigitAlignment(shift=0, first_difference=4)
    """
    if not isinstance(answer, str) or not isinstance(truth, str):
        pairs = zip_longest(_elements(answer), _elements(truth), fillvalue="")
        return DigitAlignment(0, _first_index(not _same(*pair) for pair in pairs))
    shift = _shift(answer, truth)
    if _same(answer, truth):
        return DigitAlignment(shift or 0, None)
    if shift is None:
        return DigitAlignment(0, _first_index(a != b for a, b in zip_longest(answer, truth)))
    texts = (" " * shift + answer, " " * -shift + truth)
    # A missing decimal point, and zeros up to the length of the longer number.
    columns = zip_longest(*(t if "." in t else f"{t}." for t in texts), fillvalue="0")
    return DigitAlignment(shift, _first_index(a != b for a, b in columns))


def _elements(answer: Answer) -> tuple[str, ...]:
    return (answer,) if isinstance(answer, str) else answer


def _same(first: str, second: str) -> bool:
    if first == second:
        return True
    try:
        return Decimal(first) == Decimal(second)
    except InvalidOperation:
        return False


def _shift(answer: str, truth: str) -> int | None:
    """Return the shift that aligns the decimal points, None if there is no sensible one."""
    if not _PLAIN.fullmatch(answer) or not _PLAIN.fullmatch(truth):
        return None
    shift = len(truth.partition(".")[0]) - len(answer.partition(".")[0])
    return shift if abs(shift) <= _MAX_SHIFT else None


def _first_index(differs: Iterable[bool]) -> int | None:
    return next((index for index, is_different in enumerate(differs) if is_different), None)
