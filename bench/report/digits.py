"""Where the digits part: the first place at which an answer is not the truth."""

from __future__ import annotations

import re
from collections.abc import Iterable
from decimal import Decimal, InvalidOperation
from itertools import zip_longest
from typing import NamedTuple

from bench.records import Answer

_PLAIN = re.compile(r"-?[0-9]+(?:\.[0-9]*)?")
_WIDEST_SHIFT = 60


class Parting(NamedTuple):
    """How to write an answer under the truth, and where the two first differ.

    shift: blanks before the answer, or, if negative, before the truth, that bring two decimal
        points into one column. 0 for lists and for what is not a plain decimal number.
    at: the column of the first difference (for lists the element), None where there is none.
    """

    shift: int
    at: int | None


def parting(answer: Answer, truth: Answer) -> Parting:
    """Where `answer` leaves `truth`, place value by place value.

    What a number does not spell out counts as the zero it stands for: 5 and 5.00 do not part.
    Numbers of very different length are compared from the left.

    >>> parting("1234.5", "34.5")
    Parting(shift=-2, at=0)
    >>> parting("34.57", "34.561")
    Parting(shift=0, at=4)
    """
    if not isinstance(answer, str) or not isinstance(truth, str):
        pairs = zip_longest(_elements(answer), _elements(truth), fillvalue="")
        return Parting(0, _first(not _same(*pair) for pair in pairs))
    shift = _shift(answer, truth)
    if _same(answer, truth):
        return Parting(shift or 0, None)
    if shift is None:
        return Parting(0, _first(a != b for a, b in zip_longest(answer, truth)))
    columns = zip(*_spelt_out(" " * shift + answer, " " * -shift + truth), strict=True)
    return Parting(shift, _first(a != b for a, b in columns))


def _elements(answer: Answer) -> tuple[str, ...]:
    return (answer,) if isinstance(answer, str) else answer


def _same(one: str, other: str) -> bool:
    if one == other:
        return True
    try:
        return Decimal(one) == Decimal(other)
    except InvalidOperation:
        return False


def _shift(answer: str, truth: str) -> int | None:
    """What brings the decimal points together; None where nothing sensible does."""
    if not _PLAIN.fullmatch(answer) or not _PLAIN.fullmatch(truth):
        return None
    shift = len(truth.partition(".")[0]) - len(answer.partition(".")[0])
    return shift if abs(shift) <= _WIDEST_SHIFT else None


def _spelt_out(one: str, other: str) -> tuple[str, str]:
    """Both with a point, and with zeros up to the length of the longer one."""
    one, other = (text if "." in text else f"{text}." for text in (one, other))
    width = max(len(one), len(other))
    return one.ljust(width, "0"), other.ljust(width, "0")


def _first(differs: Iterable[bool]) -> int | None:
    return next((place for place, one in enumerate(differs) if one), None)
