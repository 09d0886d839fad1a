"""The `exact` protocol: score a response against the exact truth, in any notation."""

from __future__ import annotations

from decimal import Decimal

from numbench.records import Answer, Completion, ErrorKind, Item, Score, Status
from numbench.scoring.answer_parser import AnswerValue, ParsedAnswer, parse_answer
from numbench.scoring.conventions import convention_error
from numbench.scoring.error_kinds import list_error, number_error, unparsed_error
from numbench.scoring.metrics import comparison_key, correct_digits, log_smape, round_significant
from numbench.scoring.notation import format_number
from numbench.scoring.taxonomy import UNANSWERED_STATUSES, unparsed_status
from numbench.tasks import TASKS


def score_exact(item: Item, response: Completion | None) -> Score:
    """Score one response; None is an item of the run that has no response.

    Numbers match as values rounded half to even to 15 significant digits (5.0 = 5 = 5e0,
    -0 = 0), lists element by element, letters in either case. In a comparison task the answer is
    copied from the question: if rounding makes two different numbers of the question equal, the
    answer must match exactly. A response without a parsed answer matches nothing and has
    log-sMAPE 0.
    """
    if response is None:
        return _score_unparsed(item, "missing", None)
    parsed = parse_answer(response.text, TASKS[item.task].answer_kind)
    if parsed is not None:
        return _score_parsed(item, parsed)
    status = unparsed_status(response)
    if status != "unparseable":
        return _score_unparsed(item, status, None)
    return _score_unparsed(item, status, unparsed_error(response.text, item))


def is_correct(item: Item, completion: Completion) -> bool | None:
    """Return whether the answer matches under the `exact` protocol; None for a failed request.

    Never raises, whatever the text.
    """
    score = score_exact(item, completion)
    return None if score.status in UNANSWERED_STATUSES else score.exact_match


def _score_unparsed(item: Item, status: Status, error: ErrorKind | None) -> Score:
    return Score(
        item_id=item.id,
        protocol="exact",
        status=status,
        exact_match=False,
        log_smape=0.0 if _has_log_smape(item) else None,
        error_kind=error,
    )


def _score_parsed(item: Item, parsed: ParsedAnswer) -> Score:
    """Score a parsed answer of the kind that the task requires."""
    value = parsed.value
    smape, digits = None, None
    if isinstance(value, Decimal):
        error = _number_error(item, value)
        given, truth = round_significant(value), round_significant(Decimal(str(item.answer)))
        digits = correct_digits(given, truth)
        if _has_log_smape(item):
            smape = log_smape(given, truth)
    elif isinstance(value, str):
        error = None if value == item.answer else "choice"
    else:
        error = _list_error(item, value)
    return Score(
        item_id=item.id,
        protocol="exact",
        status="ok",
        exact_match=error is None,
        log_smape=smape,
        parsed=_answer_text(value),
        rule=parsed.rule,
        error_kind=error,
        correct_digits=digits,
    )


def _number_error(item: Item, value: Decimal) -> ErrorKind | None:
    """Return how a number is wrong; None if it is correct."""
    key, truth = comparison_key(item), Decimal(str(item.answer))
    if key(value) == key(truth):
        return None
    is_copy = not _has_log_smape(item)
    if is_copy and key(value) in {key(Decimal(operand)) for operand in item.operands}:
        return "operand"
    return convention_error(item, value) or number_error(value, truth)


def _list_error(item: Item, values: tuple[Decimal, ...]) -> ErrorKind | None:
    """Return how a list is wrong; None if it is correct."""
    key = comparison_key(item)
    given = tuple(map(key, values))
    wanted = tuple(key(Decimal(number)) for number in item.answer)
    return None if given == wanted else list_error(given, wanted)


def _has_log_smape(item: Item) -> bool:
    return TASKS[item.task].metric == "log_smape"


def _answer_text(value: AnswerValue) -> Answer:
    if isinstance(value, Decimal):
        return format_number(value)
    return value if isinstance(value, str) else tuple(map(format_number, value))
