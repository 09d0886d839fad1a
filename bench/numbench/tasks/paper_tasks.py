"""The nine tasks of the paper. `numbench.tasks.samplers` samples their questions, in arrays."""

from __future__ import annotations

from collections.abc import Sequence
from math import factorial
from typing import Any

from numbench.tasks import difficulty, exact_arithmetic
from numbench.tasks.base import LETTERS, Convention, Task
from numbench.tasks.exact_arithmetic import to_decimal

_PAIR = ("operand 1", "operand 2")
_WORDS_PER_LIST = 10


def _extremum(operator: str, operands: Sequence[str]) -> str:
    """Return the smallest or largest element as printed."""
    return {"minimum": min, "maximum": max}[operator](operands, key=to_decimal)


def _ordered(operator: str, operands: Sequence[str]) -> tuple[str, ...]:
    """Return all elements in order, as printed."""
    return tuple(sorted(operands, key=to_decimal, reverse=operator == "descending"))


def _interval_letter(_operator: str, operands: Sequence[str]) -> str:
    """Return the letter of the reference's interval. Raises ValueError for unsorted boundaries."""
    reference, *bounds = map(to_decimal, operands)
    if sorted(set(bounds)) != bounds:
        raise ValueError(f"boundaries are not in ascending order: {', '.join(operands[1:])}")
    return LETTERS[sum(bound <= reference for bound in bounds)]


def _sample_std(_operator: str, operands: Sequence[str]) -> str:
    return exact_arithmetic.sample_std(operands)


def _arithmetic(name: str, display: str, words: int, *operators: str, **fields: Any) -> Task:
    return Task(
        name=name,
        display=display,
        words_per_attempt=words,
        operators=operators,
        exact_answer=exact_arithmetic.evaluate,
        system_prompt="arithmetic",
        **fields,
    )


def _comparison(name: str, display: str, words: int, *operators: str, **fields: Any) -> Task:
    return Task(
        name=name,
        display=display,
        words_per_attempt=_WORDS_PER_LIST + words,
        operators=operators,
        metric="exact_match",
        system_prompt=name,
        **fields,
    )


_MOMENTS = {"difficulty": difficulty.of_moments, "stream_name": "lists"}

PAPER_TASKS: dict[str, Task] = {
    task.name: task
    for task in (
        _comparison(
            "minmax", "MinMax", 1, "minimum", "maximum",
            exact_answer=_extremum, difficulty=difficulty.of_extremum,
            chance_accuracy=lambda elements: 1 / elements,
        ),
        _comparison(
            "interval", "Interval", 2, "interval",
            exact_answer=_interval_letter, difficulty=difficulty.of_interval,
            answer_kind="letter", operand_names=("reference", "boundaries"),
            # There are as many intervals as operands: one more than boundaries.
            chance_accuracy=lambda operand_count: 1 / operand_count,
        ),
        _comparison(
            "sorting", "Sorting", 1, "ascending", "descending",
            exact_answer=_ordered, difficulty=difficulty.of_printed_digits, answer_kind="list",
            chance_accuracy=lambda elements: 1 / factorial(elements),
        ),
        _arithmetic(
            "addition", "Add", 11, "+", "-",
            difficulty=difficulty.of_printed_digits, operand_names=_PAIR,
        ),
        _arithmetic(
            "multiplication", "Mult", 8, "*",
            difficulty=difficulty.of_product, operand_names=_PAIR,
        ),
        _arithmetic(
            "division", "Div", 8, "/",
            difficulty=difficulty.of_quotient, operand_names=_PAIR,
        ),
        _arithmetic(
            "exponentiation", "Exp", 7, "^",
            difficulty=difficulty.of_power, operand_names=("base", "exponent"),
        ),
        _arithmetic("mean", "Mean", _WORDS_PER_LIST, "mean", **_MOMENTS),
        _arithmetic(
            "std", "Std", _WORDS_PER_LIST, "std", **_MOMENTS,
            conventions=(Convention("sample deviation", _sample_std, "sample_std"),),
        ),
    )
}  # fmt: skip
"""The nine tasks: the content of `v1`, and `all` of `numbench generate`."""
