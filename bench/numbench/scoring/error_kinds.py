"""The categories of responses: correct, wrong in one of several ways, or without an answer.

The categories of `categories.toml` are mutually exclusive; their shares of all counted items add up
to 100%. The first kind of error that applies to a wrong number or list is its kind, in the order of
that file; `docs/scoring.md` shows an example of each.

To compare the digits of two numbers, both are written as integers over one power of ten, the unit
of the 15th digit of the number with the smaller exponent. Digit positions in this module are
exponents relative to that unit: position 0 is its 15th digit.

A convention is another definition of a task's answer, such as the sample instead of the population
deviation. An answer by one of them is wrong, with an error kind of its own;
`score_with_conventions` is the score if every convention of the task were accepted.
"""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence
from decimal import Decimal
from functools import lru_cache
from typing import NamedTuple

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS
from numbench.core.installation import PACKAGE, read_toml
from numbench.records import Completion, ErrorKind, Item, Score, Status
from numbench.scoring.metrics import (
    WORKING_CONTEXT,
    log_smape,
    round_significant,
)
from numbench.scoring.notation import read_number
from numbench.tasks import TASKS, Convention

UNANSWERED_STATUSES: frozenset[Status] = frozenset({"missing", "error"})
"""Statuses of items without any output of the model; the `exact` means leave them out."""


class Category(NamedTuple):
    """name: identifier in files. display: label in charts. definition: one sentence."""

    name: str
    display: str
    definition: str


CATEGORIES = tuple(
    Category(name, **texts)
    for name, texts in read_toml(PACKAGE / "scoring" / "categories.toml").items()
)
"""All categories in chart order. A wrong answer belongs to the first kind that applies."""


def categorize(score: Score) -> str:
    """Return the name of the category of a score under the `exact` or `lenient` protocol.

    Raises ValueError for the `paper` protocol, which does not classify errors.
    """
    if score.protocol == "paper":
        raise ValueError(
            f"the {score.protocol} protocol does not classify errors; use protocol exact"
        )
    if score.exact_match:
        return "right"
    return score.error_kind or score.status


def unparsed_status(response: Completion) -> Status:
    """Return the status of a response without a parsed answer: the first cause that applies."""
    if response.error is not None:
        return "error"
    if response.finish_reason == "refusal":
        return "refused"
    if response.finish_reason == "length":
        return "truncated"
    return "unparseable" if response.text.strip() else "empty"


_MAX_EXPONENT_GAP = SIGNIFICANT_DIGITS - 1
# Numbers are close if they differ by at most 1% of the truth, and by 0.1% in a convention.
_CLOSE = 100
_CONVENTION = 1000
# Fewer unchanged digits than these could agree by chance.
_MIN_UNCHANGED_DIGITS = 2
_MIN_UNCHANGED_DIGITS_IF_SHORTENED = 3


def number_error(answer: Decimal, truth: Decimal) -> ErrorKind:
    """Return the error kind of a wrong number; both values are rounded to 15 digits first."""
    given, wanted = round_significant(answer), round_significant(truth)
    if not given or not wanted:
        return "other"
    if given.is_signed() != wanted.is_signed():
        return "sign" if _is_near(given.copy_negate(), wanted, _CLOSE) else "other"
    gap = wanted.adjusted() - given.adjusted()
    if not _is_near(given, wanted, _CLOSE):
        # 999 is close to 1000 as well: the power of ten may be one more, or one less.
        powers = (WORKING_CONTEXT.scaleb(given, gap + extra) for extra in (0, -1, 1))
        if any(_is_near(power, wanted, _CLOSE) for power in powers):
            return "magnitude"
        if abs(gap) > _MAX_EXPONENT_GAP:
            return "other"
    return _digits_error(given.copy_abs(), wanted.copy_abs())


def list_error(answer: Sequence[Decimal], truth: Sequence[Decimal]) -> ErrorKind:
    """Return the error kind of a wrong list; both contain the values as they are compared."""
    given, wanted = Counter(answer), Counter(truth)
    if given == wanted:
        return "order"
    if len(answer) != len(truth) or given.keys() <= wanted.keys():
        return "count"
    return "altered"


def convention_error(item: Item, answer: Decimal) -> ErrorKind | None:
    """Return the error kind of the convention that a wrong number follows, None if there is none.

    A number follows a convention if it is within 0.1% of the answer by it, and closer to that
    than to the truth.
    """
    if not TASKS[item.task].conventions:
        return None
    truth = Decimal(str(item.answer))
    for convention, alternative in _alternatives(item.task, item.operator, item.operands):
        is_near = _is_near(round_significant(answer), alternative, _CONVENTION)
        if alternative and is_near and abs(answer - alternative) < abs(answer - truth):
            return convention.error_kind
    return None


class ConventionScore(NamedTuple):
    """A score with every convention accepted. log_smape: in [0, 1].

    follows: whether the answer is wrong, within 0.1% of the answer by another convention, and
    closer to that than to the truth.
    """

    log_smape: float
    exact_match: bool
    follows: bool


def score_with_conventions(item: Item, score: Score) -> ConventionScore:
    """Return the best score of the answer among the task's definition and its conventions.

    item: of a task with conventions. score: its score by any protocol but `paper`.
    """
    answer = read_number(score.parsed) if isinstance(score.parsed, str) else None
    best = score.log_smape or 0.0
    if answer is None or score.exact_match:
        return ConventionScore(best, score.exact_match, False)
    rounded = round_significant(answer)
    known = _alternatives(item.task, item.operator, item.operands)
    return ConventionScore(
        max([best, *(log_smape(rounded, alternative) for _, alternative in known)]),
        any(rounded == alternative for _, alternative in known),
        convention_error(item, answer) is not None,
    )


@lru_cache(1 << 14)
def _alternatives(
    task: str, operator: str, operands: tuple[str, ...]
) -> list[tuple[Convention, Decimal]]:
    """Return the task's conventions with their answers, rounded to 15 digits."""
    alternatives = []
    for convention in TASKS[task].conventions:
        try:
            answer = Decimal(convention.exact_answer(operator, operands))
        except ValueError:
            continue
        alternatives.append((convention, round_significant(answer)))
    return alternatives


def _is_near(answer: Decimal, target: Decimal, parts: int) -> bool:
    """Return whether two rounded values differ by at most 1 / parts of the target."""
    difference = WORKING_CONTEXT.subtract(answer, target).copy_abs()
    return WORKING_CONTEXT.multiply(difference, parts) <= target.copy_abs()


def _digits_error(answer: Decimal, truth: Decimal) -> ErrorKind:
    """Return the kind for two positive numbers whose exponents differ by 14 at most."""
    unit_exponent = min(answer.adjusted(), truth.adjusted()) - SIGNIFICANT_DIGITS + 1
    first = truth.adjusted() - unit_exponent
    given, wanted = (
        int(WORKING_CONTEXT.scaleb(value, -unit_exponent)) for value in (answer, truth)
    )
    gap = abs(given - wanted)
    # A gap of 1 is the last digit of the smaller number: 999.999999999999 instead of 1000.
    if gap in (1, 10 ** (first - SIGNIFICANT_DIGITS + 1)):
        return "rounding"
    last_given = _last_digit_position(given)
    # If the answer equals the truth, it is a copy that had to match in all its digits.
    if gap and _is_shortened(given, wanted, last_given, first):
        return "precision"
    last_wanted = _last_digit_position(wanted)
    # Most gaps are neither about a power of ten nor a multiple of 9.
    may_carry = gap and (gap < 1000 or str(gap)[:3] in ("100", "999"))
    if may_carry and _is_carry(given, wanted, last_given, max(last_given, last_wanted), first):
        return "carry"
    may_swap = gap % 9 == 0 and answer.adjusted() == truth.adjusted()
    # Plain notation prints an integer down to its units.
    if may_swap and _is_swap(wanted, wanted - given, min(last_wanted, -unit_exponent), first):
        return "swap"
    if _CLOSE * gap <= wanted:
        return "digit"
    return "rough" if given < 10 * wanted and wanted < 10 * given else "other"


def _last_digit_position(number: int) -> int:
    """Return the position of the last digit other than 0."""
    digits = str(number)
    return len(digits) - len(digits.rstrip("0"))


def _is_shortened(given: int, wanted: int, last: int, first: int) -> bool:
    """Return whether `given`, which ends at position `last`, is `wanted` rounded or truncated.

    If `wanted` ended there or before, the two would differ by a whole unit of that position.
    """
    unit: int = 10 ** min(last, first)
    return 2 * abs(given - wanted) <= unit or 0 < wanted - given < unit


def _is_carry(given: int, wanted: int, last_given: int, last: int, first: int) -> bool:
    """Return whether one unit of a position separates the answer from the truth.

    last: the position at which both have ended.

    The digits after the position are those of the truth; the answer may have fewer of them.
    """
    difference = given - wanted
    digits = len(str(abs(difference)))
    # One unit, rounded or truncated, has as many digits as the unit, or one fewer.
    for position in (digits - 1, digits):
        after = position - last
        shifted = wanted + (10**position if difference > 0 else -(10**position))
        if position <= first and after >= _MIN_UNCHANGED_DIGITS:
            is_long = after >= _MIN_UNCHANGED_DIGITS_IF_SHORTENED
            if given == shifted or (is_long and _is_shortened(given, shifted, last_given, first)):
                return True
    return False


def _is_swap(wanted: int, decrease: int, last_printed: int, first: int) -> bool:
    """Return whether exchanging two neighboring digits of `wanted` lowers it by `decrease`.

    At least two more digits are printed. With digit a at position k + 1 and digit b at k, the
    exchange subtracts 9 (a − b) · 10^k.

    decrease: a multiple of 9.
    """
    if first - last_printed + 1 < 2 + _MIN_UNCHANGED_DIGITS:
        return False
    ninth = abs(decrease) // 9
    position = len(str(ninth)) - 1
    unit: int = 10**position
    if ninth % unit or not last_printed <= position < first:
        return False
    left, right = divmod(wanted // unit % 100, 10)
    return 9 * (left - right) * unit == decrease
