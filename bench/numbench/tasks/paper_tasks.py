"""The nine tasks of the paper. `numbench.tasks.samplers` samples their questions, in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from functools import partial
from math import factorial
from typing import Any

from numbench.records import Answer, Difficulty
from numbench.tasks import exact_arithmetic
from numbench.tasks.base import LETTERS, Convention, Task
from numbench.tasks.exact_arithmetic import to_decimal

_WORDS_PER_LIST = 10


def extremum(operator: str, operands: Sequence[str]) -> str:
    """Return the smallest or largest element as printed."""
    return {"minimum": min, "maximum": max}[operator](operands, key=to_decimal)


def ordered(operator: str, operands: Sequence[str]) -> tuple[str, ...]:
    """Return all elements in order, as printed."""
    return tuple(sorted(operands, key=to_decimal, reverse=operator == "descending"))


def _interval_letter(_operator: str, operands: Sequence[str]) -> str:
    """Return the letter of the reference's interval. Raises ValueError for unsorted boundaries."""
    reference, *bounds = map(to_decimal, operands)
    if sorted(set(bounds)) != bounds:
        raise ValueError(f"boundaries are not in ascending order: {', '.join(operands[1:])}")
    return LETTERS[sum(bound <= reference for bound in bounds)]


def _difficulty(task: str, operator: str, operands: Sequence[str], answer: Answer) -> Difficulty:
    # Deferred: it needs the registry of tasks, and libraries that are slow to import.
    from numbench.tasks.item_tables import difficulty_of

    return difficulty_of(task, operator, operands, answer)


def _task(name: str, display: str, words: int, *operators: str, **fields: Any) -> Task:
    return Task(
        name=name,
        display=display,
        words_per_attempt=words,
        operators=operators,
        difficulty=partial(_difficulty, name),
        **fields,
    )


_ARITHMETIC = {"exact_answer": exact_arithmetic.evaluate, "system_prompt": "arithmetic"}

PAPER_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _task(
            "minmax", "MinMax", _WORDS_PER_LIST + 1, "minimum", "maximum",
            exact_answer=extremum, metric="exact_match",
            chance_accuracy=lambda elements: 1 / elements,
        ),
        _task(
            "interval", "Interval", _WORDS_PER_LIST + 2, "interval",
            exact_answer=_interval_letter, answer_kind="letter", metric="exact_match",
            # There are as many intervals as operands: one more than boundaries.
            chance_accuracy=lambda operand_count: 1 / operand_count,
        ),
        _task(
            "sorting", "Sorting", _WORDS_PER_LIST + 1, "ascending", "descending",
            exact_answer=ordered, answer_kind="list", metric="exact_match",
            chance_accuracy=lambda elements: 1 / factorial(elements),
        ),
        _task("addition", "Add", 11, "+", "-", **_ARITHMETIC),
        _task("multiplication", "Mult", 8, "*", **_ARITHMETIC),
        _task("division", "Div", 8, "/", **_ARITHMETIC),
        _task("exponentiation", "Exp", 7, "^", **_ARITHMETIC),
        _task("mean", "Mean", _WORDS_PER_LIST, "mean", stream_name="lists", **_ARITHMETIC),
        _task(
            "std", "Std", _WORDS_PER_LIST, "std", stream_name="lists", **_ARITHMETIC,
            conventions=(
                Convention(
                    "sample deviation",
                    lambda _operator, operands: exact_arithmetic.sample_std(operands), "sample_std",
                ),
            ),
        ),
    )
}  # fmt: skip
"""The nine tasks: the content of `v1`, and `all` of `numbench generate`."""
