"""The protocols `exact` and `lenient`: score a response against the exact truth, in any notation.

They differ only in the reading of the answer: `exact` reads the requested format and what is
unambiguous in it (`answer_parser`), `lenient` also other formats (`lenient_reading`).
"""

from __future__ import annotations

from decimal import Decimal
from functools import lru_cache
from typing import Literal

from numbench.records import Answer, Completion, ErrorKind, Item, Score, Status
from numbench.scoring.answer_parser import (
    ParsedAnswer,
    ends_inside_object,
    parse_answer,
    parse_requested_format,
)
from numbench.scoring.conventions import convention_error
from numbench.scoring.error_kinds import list_error, number_error, unparsed_error
from numbench.scoring.lenient_reading import read_leniently
from numbench.scoring.metrics import (
    SIGNIFICANT_DIGITS,
    comparison_key,
    correct_digits,
    log_smape,
    round_significant,
)
from numbench.scoring.notation import AnswerValue, format_number
from numbench.scoring.taxonomy import UNANSWERED_STATUSES, unparsed_status
from numbench.tasks import TASKS
from numbench.thinking_text import find_thinking, separate_spans

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
    if response is None:
        return _score_unparsed(item, protocol, "missing", None)
    text, is_open = response.text, False
    kind, is_cut_off = TASKS[item.task].answer_kind, response.finish_reason == "length"
    if parsed := parse_requested_format(text, kind):
        return _score_parsed(item, protocol, parsed)
    if spans := find_thinking(text):
        text, _, is_open = separate_spans(text, spans)
    parsed = parse_answer(text, kind, is_cut_off, item.prompt, item.operator)
    if parsed is None and protocol == "lenient":
        parsed = read_leniently(text, item, is_cut_off)
    if parsed is not None:
        return _score_parsed(item, protocol, parsed)
    status = _unparsed_status(response, text, is_open)
    if status != "unparseable":
        return _score_unparsed(item, protocol, status, None)
    return _score_unparsed(item, protocol, status, unparsed_error(text, item))


def _unparsed_status(response: Completion, text: str, is_open: bool) -> Status:
    """Return the status of a response without a parsed answer.

    A text that ends inside its thinking (`is_open`) or its JSON object is truncated, unless the
    provider says that the model stopped by itself.

    text: the response without its thinking.
    """
    status = unparsed_status(response)
    if status != "unparseable":
        return status
    if (is_open or ends_inside_object(text)) and response.finish_reason != "stop":
        return "truncated"
    return "unparseable" if text.strip() else "empty"


def _score_unparsed(
    item: Item, protocol: ReadingProtocol, status: Status, error: ErrorKind | None
) -> Score:
    return Score(
        item_id=item.id,
        protocol=protocol,
        status=status,
        exact_match=False,
        log_smape=0.0 if _has_log_smape(item) else None,
        error_kind=error,
    )


def _score_parsed(item: Item, protocol: ReadingProtocol, parsed: ParsedAnswer) -> Score:
    """Score a parsed answer of the kind that the task requires."""
    value = parsed.value
    smape, digits = None, None
    if isinstance(value, Decimal):
        error, digits, smape = _compare_numbers(item, value)
    elif isinstance(value, str):
        error = None if value == item.answer else "choice"
    else:
        error = _list_error(item, value)
    return Score(
        item_id=item.id,
        protocol=protocol,
        status="ok",
        exact_match=error is None,
        log_smape=smape,
        parsed=_answer_text(value, TASKS[item.task].every_digit),
        rule=parsed.rule,
        error_kind=error,
        correct_digits=digits,
    )


def _compare_numbers(item: Item, value: Decimal) -> tuple[ErrorKind | None, int, float | None]:
    """Return how a number is wrong (None if it is correct), its correct digits and log-sMAPE."""
    has_log_smape = _has_log_smape(item)
    truth, rounded_truth = _truth(str(item.answer))
    rounded = round_significant(value)
    is_equal = rounded == rounded_truth
    error: ErrorKind | None = None
    if not has_log_smape:
        error = _copy_error(item, value, truth)
    elif not is_equal:
        error = convention_error(item, value) or number_error(value, truth)
    if is_equal:
        return error, SIGNIFICANT_DIGITS, 1.0 if has_log_smape else None
    smape = log_smape(rounded, rounded_truth) if has_log_smape else None
    return error, correct_digits(rounded, rounded_truth), smape


@lru_cache(1 << 16)
def _truth(answer: str) -> tuple[Decimal, Decimal]:
    """Return the value of a true number, exact and rounded."""
    value = Decimal(answer)
    return value, round_significant(value)


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
    given = tuple(map(key, values))
    wanted = tuple(key(Decimal(number)) for number in item.answer)
    return None if given == wanted else list_error(given, wanted)


def _has_log_smape(item: Item) -> bool:
    return TASKS[item.task].metric == "log_smape"


def _answer_text(value: AnswerValue, every_digit: bool) -> Answer:
    if isinstance(value, Decimal):
        return format_number(value, every_digit)
    return value if isinstance(value, str) else tuple(map(format_number, value))
