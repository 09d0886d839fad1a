"""The protocols `exact` and `lenient`: score a response against the exact truth, in any notation.

They differ only in the reading of the answer: `exact` reads the last answer object of the response
(`answer_parser`), `lenient` also other formats (`lenient_reading`).
"""

from __future__ import annotations

from collections.abc import Callable
from decimal import Decimal
from functools import lru_cache
from typing import Literal

from numbench.core.decimal_numbers import SIGNIFICANT_DIGITS, wide_context
from numbench.records import Answer, Completion, ErrorKind, Item, Score, Status
from numbench.scoring.answer_parser import (
    ParsedAnswer,
    ends_inside_object,
    parse_answer,
    shorten_endless,
)
from numbench.scoring.error_kinds import (
    UNANSWERED_STATUSES,
    convention_error,
    list_error,
    number_error,
    unparsed_status,
)
from numbench.scoring.lenient_reading import read_leniently
from numbench.scoring.metrics import (
    WORKING_CONTEXT,
    comparison_key,
    correct_digits,
    log_smape,
    round_significant,
)
from numbench.scoring.notation import (
    MAX_DIGITS,
    AnswerValue,
    WrittenNumber,
    format_number,
    read_written_number,
)
from numbench.tasks import TASKS, Task
from numbench.tasks.base import AnswerKind
from numbench.thinking_text import separate_thinking

# The product of two numbers with all digits that are read.
_PRODUCTS = wide_context(2 * MAX_DIGITS)

ReadingProtocol = Literal["exact", "lenient"]


def score_exact(item: Item, response: Completion | None) -> Score:
    """Score one response; None is an item of the run that has no response.

    Numbers match as values rounded half to even to 15 significant digits (5.0 = 5 = 5e0,
    -0 = 0), lists element by element, letters in either case. In a comparison task the answer is
    copied from the question: if rounding makes two different numbers of the question equal, the
    answer must match exactly. A response without a parsed answer matches nothing and has
    log-sMAPE 0. Thinking in the text is not an answer. Never raises, whatever the text.
    """
    return _score(item, response, "exact")


def score_lenient(item: Item, response: Completion | None) -> Score:
    """Score one response like `score_exact`, and read other formats if that reads no answer."""
    return _score(item, response, "lenient")


def is_correct(item: Item, completion: Completion) -> bool | None:
    """Return whether the answer matches under the `exact` protocol; None for a failed request.

    Never raises, whatever the text.
    """
    score = score_exact(item, completion)
    return None if score.status in UNANSWERED_STATUSES else score.exact_match


def _score(item: Item, response: Completion | None, protocol: ReadingProtocol) -> Score:
    status, parsed, error = _read(item, response, protocol)
    digits, answer = None, None
    log_smape = 0.0 if TASKS[item.task].metric == "log_smape" else None
    if parsed:
        error, digits, log_smape, answer = _compare(item, parsed.value)
    return Score(
        item_id=item.id,
        protocol=protocol,
        status=status,
        exact_match=parsed is not None and error is None,
        log_smape=log_smape,
        parsed=answer,
        rule=parsed.rule if parsed else None,
        error_kind=error,
        correct_digits=digits,
    )


def _read(
    item: Item, response: Completion | None, protocol: ReadingProtocol
) -> tuple[Status, ParsedAnswer | None, ErrorKind | None]:
    """Return the status of a response and its answer; without one, what is wrong with its text."""
    if response is None:
        return "missing", None, None
    if response.error is not None:
        # Its text is not the answer: a conversation may not have ended.
        return "error", None, None
    kind, is_cut_off = TASKS[item.task].answer_kind, response.finish_reason == "length"
    text, _, is_open = separate_thinking(shorten_endless(response.text))
    if parsed := parse_answer(text, kind, is_cut_off):
        return "ok", parsed, None
    status = _unparsed_status(response, text, is_open)
    if protocol == "lenient" or status == "unparseable":
        parsed = read_leniently(text, kind, is_cut_off, item.prompt)
    if parsed and protocol == "lenient":
        return "ok", parsed, None
    if status != "unparseable":
        return status, None, None
    is_notation = parsed is not None and _compare(item, parsed.value)[0] is None
    return status, None, "notation" if is_notation else "format"


def _unparsed_status(response: Completion, text: str, is_open: bool) -> Status:
    """Return the status of a response without a parsed answer.

    A text that ends inside its thinking (`is_open`) or its JSON object is truncated, unless the
    provider says that the model stopped by itself, or that it ended the answer for another reason.

    text: the response without its thinking.
    """
    status = unparsed_status(response)
    if status != "unparseable":
        return status
    may_be_cut_off = response.finish_reason not in ("stop", "other")
    if may_be_cut_off and (is_open or ends_inside_object(text)):
        return "truncated"
    return "unparseable" if text.strip() else "empty"


_Comparison = tuple[ErrorKind | None, int | None, float | None, Answer]
"""How an answer is wrong (None if it is correct), correct digits, log-sMAPE, and its text."""


def _compare(item: Item, value: AnswerValue) -> _Comparison:
    """Compare an answer of the kind that the task requires with the truth."""
    task = TASKS[item.task]
    if isinstance(value, Decimal):
        return _compare_numbers(item, task, value)
    if isinstance(value, WrittenNumber):
        return _compare_written(value, task.answer_kind, str(item.answer))
    if isinstance(value, str):
        return None if value == item.answer else "choice", None, None, value
    return _list_error(item, value), None, None, tuple(map(format_number, value))


def _compare_numbers(item: Item, task: Task, value: Decimal) -> _Comparison:
    truth, rounded_truth, text = _truth(str(item.answer), task.every_digit)
    is_graded = task.metric == "log_smape"
    if value == truth:
        return None, SIGNIFICANT_DIGITS, 1.0 if is_graded else None, text
    rounded, text = round_significant(value), format_number(value, task.every_digit)
    digits = correct_digits(rounded, rounded_truth)
    if not is_graded:
        return _copy_error(item, value, truth), digits, None, text
    if rounded == rounded_truth:
        return None, digits, 1.0, text
    error = convention_error(item, rounded) or number_error(rounded, rounded_truth)
    return error, digits, log_smape(rounded, rounded_truth), text


def _compare_written(given: WrittenNumber, kind: AnswerKind, answer: str) -> _Comparison:
    """Compare numbers by value or else by their form."""
    truth = read_written_number(answer)
    assert truth
    rounded = [WORKING_CONTEXT.divide(*number[:2]) for number in (given, truth)]
    digits, error = correct_digits(*map(round_significant, rounded)), None
    if _PRODUCTS.multiply(given[0], truth[1]) != _PRODUCTS.multiply(truth[0], given[1]):
        error = number_error(*rounded)
    # The truth is in lowest terms.
    elif given.form != kind or given.denominator != truth.denominator:
        error = "form"
    text = format_number(given.numerator, every_digit=True)
    if given.form != "fraction":
        text = text if given.form == "plain" else f"{given.numerator:e}".replace("e+", "e")
    else:
        text = f"{text}/{format_number(given.denominator, every_digit=True)}"
    return error, digits, None, text


@lru_cache(1 << 16)
def _truth(answer: str, every_digit: bool) -> tuple[Decimal, Decimal, str]:
    """Return the value of a true number, exact and rounded, and how it is reported."""
    value = Decimal(answer)
    return value, round_significant(value), format_number(value, every_digit)


def _copy_error(item: Item, value: Decimal, truth: Decimal) -> ErrorKind | None:
    """Return how a number that is to be copied from the question is wrong; None if it is not."""
    key = comparison_key(item)
    if key(value) == key(truth):
        return None
    if key(value) in {key(Decimal(operand)) for operand in item.operands}:
        return "operand"
    return number_error(value, truth)


def _list_error(item: Item, values: tuple[Decimal, ...]) -> ErrorKind | None:
    """Return how a list is wrong; None if it is correct."""
    key = comparison_key(item)
    given, wanted = tuple(map(key, values)), _true_list(tuple(item.answer), key)
    return None if given == wanted else list_error(given, wanted)


@lru_cache(1 << 14)
def _true_list(answer: tuple[str, ...], key: Callable[[Decimal], Decimal]) -> tuple[Decimal, ...]:
    """Return the values of a true list as they are compared."""
    return tuple(key(Decimal(number)) for number in answer)
