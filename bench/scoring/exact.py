"""The `exact` protocol: a response against the exact truth, whatever its notation."""

from __future__ import annotations

from decimal import Decimal

from bench.records import Answer, Completion, ErrorKind, Item, Score, Status
from bench.scoring import metrics
from bench.scoring.answers import Parsed, Value, parse_answer
from bench.scoring.compared import compared_as
from bench.scoring.error_kinds import list_error, number_error
from bench.scoring.notation import write_number
from bench.scoring.prose import holds_truth
from bench.scoring.quick import quick_score
from bench.scoring.rounded import rounded_form
from bench.scoring.status import unparsed_status
from bench.tasks import TASKS


def score_exact(item: Item, response: Completion | None) -> Score:
    """The score of one response; None stands for an item that was asked but has no response.

    Numbers match as values rounded half to even to 15 significant digits (5.0 = 5 = 5e0,
    -0 = 0), lists element by element, letters in any case. In the comparison tasks an answer
    is a copy: where rounding would make one of two different numbers of the question, they must
    match exactly. What is not parsed matches nothing and has log-sMAPE 0.
    """
    if response is None:
        return _unparsed(item, "missing", None)
    return quick_score(item, response.text) or define_score(item, response)


def define_score(item: Item, response: Completion) -> Score:
    """The score of one response by the definition, in decimal arithmetic: `score_exact`, slowly."""
    parsed = parse_answer(response.text, TASKS[item.task].answer_kind)
    if parsed is not None:
        return _judge(item, parsed)
    status = unparsed_status(response)
    if status != "unparseable":
        return _unparsed(item, status, None)
    return _unparsed(item, status, "notation" if holds_truth(response.text, item) else "format")


def _unparsed(item: Item, status: Status, error: ErrorKind | None) -> Score:
    measured = TASKS[item.task].metric == "log_smape"
    return Score(
        item_id=item.id,
        protocol="exact",
        status=status,
        exact_match=False,
        log_smape=0.0 if measured else None,
        error_kind=error,
    )


def _judge(item: Item, parsed: Parsed) -> Score:
    """The score of a parsed answer, which is of the kind that the task asks for."""
    log_smape, digits = None, None
    error: ErrorKind | None = None
    compared = compared_as(item)
    if isinstance(parsed.value, Decimal):
        exact = Decimal(str(item.answer))
        given, truth = metrics.rounded(parsed.value), metrics.rounded(exact)
        right = compared(parsed.value) == compared(exact)
        digits = metrics.correct_digits(given, truth)
        if TASKS[item.task].metric == "log_smape":
            log_smape = 1.0 if right else metrics.log_smape(given, truth)
        error = None if right else _number_error(item, parsed.value)
    elif isinstance(parsed.value, str):
        right = parsed.value == item.answer
        error = None if right else "choice"
    else:
        numbers = tuple(map(compared, parsed.value))
        wanted = tuple(compared(Decimal(number)) for number in item.answer)
        right = numbers == wanted
        error = None if right else list_error(numbers, wanted)
    return Score(
        item_id=item.id,
        protocol="exact",
        status="ok",
        exact_match=right,
        log_smape=log_smape,
        parsed=_written(parsed.value),
        rule=parsed.rule,
        error_kind=error,
        correct_digits=digits,
    )


def _number_error(item: Item, value: Decimal) -> ErrorKind:
    """How a wrong number is wrong."""
    compared = compared_as(item)
    chosen = TASKS[item.task].metric == "exact_match"
    if chosen and compared(value) in {compared(Decimal(operand)) for operand in item.operands}:
        return "operand"
    truth = metrics.rounded(Decimal(str(item.answer)))
    return number_error(rounded_form(metrics.rounded(value)), rounded_form(truth))


def _written(value: Value) -> Answer:
    if isinstance(value, Decimal):
        return write_number(value)
    return value if isinstance(value, str) else tuple(map(write_number, value))
