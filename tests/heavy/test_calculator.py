"""The calculator on a million expressions from the questions of the tasks, computed twice."""

import re
from collections.abc import Iterator
from decimal import Context, Decimal
from fractions import Fraction
from itertools import pairwise

import pytest

from numbench.tasks.calculator import evaluate
from numbench.tasks.shards import Shard, generate_tables
from tests.support import reference_answers

pytestmark = pytest.mark.heavy
ROWS = 120_000
TASKS = (
    *("addition", "multiplication", "division", "exponentiation"),
    *("mean", "std", "minmax", "sorting"),
)
FUNCTIONS = {"minimum": "min", "maximum": "max", "ascending": "sort", "descending": "sort"}


def expressions(task: str, seed: int, rows: int) -> Iterator[tuple[str, str]]:
    """Yield the question and the expression of each item."""
    for table in generate_tables(Shard(task, seed=seed, split="train"), rows):
        columns = table.select(["prompt", "operator", "operands"]).to_pydict()
        for prompt, operator, operands in zip(*columns.values(), strict=True):
            if operator in "+-*/^":
                yield prompt, f"({operands[0]}) {operator} ({operands[1]})"
            else:
                name = FUNCTIONS.get(operator, operator)
                yield prompt, f"{name}({', '.join(operands)})"


@pytest.mark.parametrize("task", TASKS)
def test_960_000_questions_have_their_exact_answers(task: str) -> None:
    checked = 0
    for prompt, expression in expressions(task, 314_159, ROWS):
        expected = reference_answers.answer(prompt)
        value = evaluate(expression)
        if isinstance(expected, list):
            given = [Fraction(number) for number in value.strip("[]").split(", ")]
            # The calculator sorts in ascending order.
            assert given == sorted(map(rounded, expected)), expression
        else:
            assert Fraction(value) == rounded(Fraction(expected)), expression
        checked += 1
    assert checked == ROWS


def rounded(value: Fraction) -> Fraction:
    number = Context(prec=15).divide(Decimal(value.numerator), Decimal(value.denominator))
    return Fraction(number)


@pytest.mark.parametrize("task", TASKS[:3])
def test_40_000_compositions_have_the_values_of_pythons_fractions(task: str) -> None:
    """Python parses and computes these itself, with `^` as `**`."""
    parts = [expression for _, expression in expressions(task, 271_828, 13_500)]
    for number, (left, right) in enumerate(pairwise(parts)):
        operator = "+-*/"[number % 4]
        expression = f"-({left}) {operator} {right} {'-*'[number % 2]} 3.25e-2 ^ {number % 5 - 2}"
        python = re.sub(r"[\d.]+(e-?\d+)?", r'Fraction("\g<0>")', expression.replace("^", "**"))
        python = re.sub(r"\*\* (-?)Fraction\(\"(\d+)\"\)", r"** \1\2", python)
        expected = rounded(eval(python, {"Fraction": Fraction}))
        assert Fraction(evaluate(expression)) == expected, expression
