"""The `exact` protocol: a response against the exact truth, whatever its notation."""

from __future__ import annotations

import re
from decimal import Decimal

from bench.records import Answer, Completion, ErrorKind, Item, Score, Status
from bench.scoring import metrics
from bench.scoring.answers import Parsed, Value, parse_answer
from bench.scoring.notation import write_number
from bench.scoring.status import unparsed_status
from bench.tasks import TASKS

# The form that was asked for, with a plain number: most responses, and quick to compare.
_PLAIN_OBJECT = re.compile(r'\s*+\{\s*+"answer"\s*+:\s*+(-?[0-9]++(?:\.[0-9]++)?+)\s*+\}\s*+')


def score_exact(item: Item, response: Completion | None) -> Score:
    """The score of one response; None stands for an item that was asked but has no response.

    Numbers match as values rounded half to even to 15 significant digits (5.0 = 5 = 5e0,
    -0 = 0), lists element by element, letters in any case. In the comparison tasks an answer
    is a copy: where rounding would make one of two different numbers of the question, they must
    match exactly. What is not parsed matches nothing and has log-sMAPE 0.
    """
    if response is None:
        return _unparsed(item, "missing")
    plain = _PLAIN_OBJECT.fullmatch(response.text)
    if plain and plain[1] == item.answer:
        return _right_as_written(item)
    parsed = parse_answer(response.text, TASKS[item.task].answer_kind)
    return _unparsed(item, unparsed_status(response)) if parsed is None else _judge(item, parsed)


def _unparsed(item: Item, status: Status) -> Score:
    measured = TASKS[item.task].metric == "log_smape"
    return Score(
        item_id=item.id,
        protocol="exact",
        status=status,
        exact_match=False,
        log_smape=0.0 if measured else None,
        error_kind="format" if status == "unparseable" else None,
    )


def _right_as_written(item: Item) -> Score:
    """The answer is the truth, character by character."""
    return Score(
        item_id=item.id,
        protocol="exact",
        status="ok",
        exact_match=True,
        log_smape=1.0 if TASKS[item.task].metric == "log_smape" else None,
        parsed=item.answer,
        rule=1,
        correct_digits=metrics.DIGITS,
    )


def _judge(item: Item, parsed: Parsed) -> Score:
    """The score of a parsed answer, which is of the kind that the task asks for."""
    log_smape, digits = None, None
    error: ErrorKind | None = None
    if isinstance(parsed.value, Decimal):
        exact = Decimal(str(item.answer))
        given, truth = metrics.rounded(parsed.value), metrics.rounded(exact)
        right = given == truth and (parsed.value == exact or not _needs_all_digits(item))
        digits = metrics.correct_digits(given, truth)
        if TASKS[item.task].metric == "log_smape":
            log_smape = 1.0 if right else metrics.log_smape(given, truth)
        error = None if right else metrics.number_error(given, truth)
    elif isinstance(parsed.value, str):
        right = parsed.value == item.answer
        error = None if right else "choice"
    else:
        wanted = tuple(map(Decimal, item.answer))
        right = parsed.value == wanted or (
            tuple(map(metrics.rounded, parsed.value)) == tuple(map(metrics.rounded, wanted))
            and not _needs_all_digits(item)
        )
        error = None if right else metrics.list_error(parsed.value, wanted)
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


def _needs_all_digits(item: Item) -> bool:
    """Whether a comparison item lists different numbers that rounding makes equal."""
    if TASKS[item.task].metric == "log_smape":
        return False
    values = {Decimal(operand) for operand in item.operands}
    return len({metrics.rounded(value) for value in values}) < len(values)


def _written(value: Value) -> Answer:
    if isinstance(value, Decimal):
        return write_number(value)
    return value if isinstance(value, str) else tuple(map(write_number, value))
