"""The `exact` scores of answers in the asked-for form, without a JSON parser or Decimal.

Most responses are `{"answer": 12.5}` and little else. What is given here is field by field what
`bench.scoring.exact.define_score` gives; None stands for all that must go the long way.
"""

from __future__ import annotations

import math
import re
from decimal import Decimal
from functools import lru_cache

from bench.numerals import Number, plain
from bench.records import Answer, Item, Score
from bench.scoring.error_kinds import number_error
from bench.scoring.metrics import DIGITS, rounded
from bench.scoring.notation import KEPT_DIGITS
from bench.scoring.rounded import POWERS, Rounded, aligned, rounded_form
from bench.tasks import TASKS
from bench.tasks.base import Task

_LITERAL = r"(-)?(0|[1-9][0-9]{0,39})(?:\.([0-9]{1,60}))?(?:[eE]([+-]?[0-9]{1,3}))?"
_TRUTH = re.compile(_LITERAL)
# What `write_number` leaves as it is.
_WRITTEN = re.compile(r"0|-?(?:0\.[0-9]{0,39}[1-9]|[1-9][0-9]{0,19}(?:\.[0-9]{0,19}[1-9])?)")
# JSON's own blanks and numbers: what departs from them takes another rule.
_OPENS = r'\s*+\{[ \t\n\r]*+"answer"[ \t\n\r]*+:[ \t\n\r]*+'
_CLOSES = r"[ \t\n\r]*+\}\s*+"
_NUMBER = re.compile(rf"{_OPENS}({_LITERAL}){_CLOSES}")
_LETTER = re.compile(rf'{_OPENS}"([A-Fa-f])"{_CLOSES}')
_LIST = re.compile(rf"{_OPENS}\[([-+.0-9eE, \t\n\r]*+)\]{_CLOSES}")
_BLANKS = " \t\n\r"

_TRUTHS = 1 << 16
# How far the exponents of two numbers may lie apart, and how small both may be, for the float64
# quotient of integers to be that of 60 digits, and ε to vanish in it.
_FARTHEST = 15
_SMALLEST = -20


def quick_score(item: Item, text: str) -> Score | None:
    """The score of a response that is an object with a plain answer; None for any other."""
    task = TASKS[item.task]
    if task.answer_kind == "number":
        match = _NUMBER.fullmatch(text)
        return _score_number(item, task, match) if match else None
    if task.answer_kind == "letter":
        match = _LETTER.fullmatch(text)
        return _score_letter(item, match[1].upper()) if match else None
    match = _LIST.fullmatch(text)
    return _score_list(item, match[1]) if match else None


def _score_number(item: Item, task: Task, match: re.Match[str]) -> Score | None:
    literal, sign, whole, fraction, power = match.groups()
    measured = task.metric == "log_smape"
    if literal == item.answer and _WRITTEN.fullmatch(literal):
        return _right(item, literal, 1.0 if measured else None, DIGITS)
    # A copied number may have to match in all its digits, and be another one of the question.
    number = _read(sign, whole, fraction or "", int(power or 0)) if measured else None
    if number is None:
        return None
    form, written = number
    truth = _truth(str(item.answer))
    if form == truth:
        return _right(item, written, 1.0, DIGITS)
    log_smape = _log_smape(form, truth)
    if log_smape is None:
        return None
    return Score(
        item_id=item.id,
        protocol="exact",
        status="ok",
        exact_match=False,
        log_smape=log_smape,
        parsed=written,
        rule=1,
        error_kind=number_error(form, truth),
        correct_digits=_correct_digits(form, truth),
    )


def _score_letter(item: Item, letter: str) -> Score:
    if letter == item.answer:
        return _right(item, letter, None, None)
    return Score(
        item_id=item.id,
        protocol="exact",
        status="ok",
        exact_match=False,
        parsed=letter,
        rule=1,
        error_kind="choice",
    )


def _score_list(item: Item, text: str) -> Score | None:
    given = tuple([element.strip(_BLANKS) for element in text.split(",")])
    if given != item.answer or not all(map(_WRITTEN.fullmatch, given)):
        return None
    return _right(item, given, None, None)


def _right(item: Item, parsed: Answer, log_smape: float | None, digits: int | None) -> Score:
    return Score(
        item_id=item.id,
        protocol="exact",
        status="ok",
        exact_match=True,
        log_smape=log_smape,
        parsed=parsed,
        rule=1,
        correct_digits=digits,
    )


@lru_cache(_TRUTHS)
def _truth(answer: str) -> Rounded:
    """The answer of an item, rounded."""
    match = _TRUTH.fullmatch(answer)
    if match:
        sign, whole, fraction, power = match.groups()
        number = _read(sign, whole, fraction or "", int(power or 0))
        if number is not None:
            return number[0]
    return rounded_form(rounded(Decimal(answer)))


def _read(sign: str | None, whole: str, fraction: str, power: int) -> tuple[Rounded, str] | None:
    """A literal rounded to 15 digits, and as `write_number` writes it.

    None for zero, more than 40 digits, and values beyond 10^±40.
    """
    digits = (whole + fraction).lstrip("0")
    length = len(digits)
    place = length - 1 - len(fraction) + power
    if not 0 < length <= KEPT_DIGITS or not -KEPT_DIGITS <= place <= KEPT_DIGITS:
        return None
    negative = sign is not None
    if power:
        value = int(digits)
        written = plain(Number(-value if negative else value, power - len(fraction)))
    else:
        fraction = fraction.rstrip("0")
        written = f"{sign or ''}{whole}.{fraction}" if fraction else f"{sign or ''}{whole}"
    significand = int(digits[:DIGITS]) * POWERS[max(DIGITS - length, 0)]
    rest = digits[DIGITS:]
    if rest and _rounds_up(significand, rest):
        significand += 1
        if significand == POWERS[DIGITS]:
            significand, place = POWERS[DIGITS - 1], place + 1
    return Rounded(negative, significand, place), written


def _rounds_up(significand: int, rest: str) -> bool:
    """Whether half-to-even rounding goes up, given the digits behind the significand."""
    if rest[0] != "5":
        return rest[0] > "5"
    return significand % 2 == 1 or rest.strip("0") != "5"


def _log_smape(answer: Rounded, truth: Rounded) -> float | None:
    """As `metrics.log_smape`; None where that needs more than float64 of integers."""
    high, low = max(answer.place, truth.place), min(answer.place, truth.place)
    if not truth.significand or high - low > _FARTHEST or low < _SMALLEST:
        return None
    if answer.negative != truth.negative:
        return 0.0
    given, wanted, _ = aligned(answer, truth)
    difference, scale = abs(given - wanted), given + wanted
    if difference * POWERS[DIGITS] <= scale:
        return 1.0
    return max(0.0, math.log10(difference / scale) / -DIGITS + 0.0)


def _correct_digits(answer: Rounded, truth: Rounded) -> int:
    """As `metrics.correct_digits`, for numbers that differ."""
    if answer.place != truth.place or answer.negative != truth.negative:
        return 0
    given, wanted = str(answer.significand), str(truth.significand)
    count = 0
    while given[count] == wanted[count]:
        count += 1
    return count
