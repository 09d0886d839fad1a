"""Floating-point arithmetic as a model."""

from __future__ import annotations

import asyncio
import json
import math
import struct
from collections.abc import Callable, Sequence
from dataclasses import replace
from decimal import Decimal
from fractions import Fraction
from typing import Any

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.models import Message, open_model
from numbench.models.baseline import FLOAT_FORMATS, UnsupportedOperator, calculate
from numbench.records import Completion, Usage
from numbench.tasks import PAPER_TASKS, TASKS
from numbench.tasks.prompts import Question, load_prompt_set

FLOAT32, BFLOAT16 = FLOAT_FORMATS["float32"], FLOAT_FORMATS["bfloat16"]
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def question(operator: str, *operands: str) -> Question:
    task = next(name for name, task in PAPER_TASKS.items() if operator in task.operators)
    return Question(task, operator, operands)


@pytest.mark.parametrize(
    ("operator", "operands", "answer"),
    [
        ("+", ("0.1", "0.2"), "0.30000000000000004"),
        ("-", ("5", "7"), "-2"),
        ("*", ("1e200", "1e200"), "null"),
        ("/", ("1", "3"), "0.3333333333333333"),
        ("/", ("1", "0"), "null"),
        ("^", ("2", "-2"), "0.25"),
        ("^", ("-2", "0.5"), "null"),
        ("^", ("0", "-1"), "null"),
        ("^", ("10", "400"), "null"),
        ("mean", ("1", "2", "4.5"), "2.5"),
        ("std", ("2", "4", "4", "4", "5", "5", "7", "9"), "2"),
        ("minimum", ("3", "-1e5", "2"), "-1e+05"),
        ("maximum", ("3", "-1", "2.5"), "3"),
        ("ascending", ("3", "-1.5", "2"), "[-1.5, 2, 3]"),
        ("descending", ("3", "-1.5", "2"), "[3, 2, -1.5]"),
        ("interval", ("0.5", "1", "2"), '"A"'),
        ("interval", ("1", "1", "2"), '"B"'),
        ("interval", ("2.5", "1", "2"), '"C"'),
    ],
)
def test_float64_arithmetic_equals_pythons(
    operator: str, operands: tuple[str, ...], answer: str
) -> None:
    text = calculate(question(operator, *operands), FLOAT_FORMATS["float64"])
    assert text == answer
    json.loads(text)


@given(FINITE)
def test_rounding_to_float32_equals_numpys(value: float) -> None:
    with np.errstate(over="ignore"):
        assert FLOAT32.round(value) == float(np.float32(value))


@given(st.integers(0, 2**32 - 1))
def test_rounding_to_bfloat16_is_to_nearest_even_in_the_bits_of_float32(bits: int) -> None:
    value = struct.unpack("<f", struct.pack("<I", bits))[0]
    if not math.isfinite(value):
        return
    rounded = (bits + 0x7FFF + (bits >> 16 & 1)) & 0xFFFF0000
    assert BFLOAT16.round(value) == struct.unpack("<f", struct.pack("<I", rounded))[0]


@given(FINITE)
def test_rounding_to_float64_changes_nothing(value: float) -> None:
    assert FLOAT_FORMATS["float64"].round(value) == value


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_decimals_are_rounded_once(value: Decimal) -> None:
    if abs(value.adjusted()) > 400:
        return
    for precision in FLOAT_FORMATS.values():
        parsed = precision.parse(str(value))
        if not math.isfinite(parsed) or parsed == 0:
            continue
        # At most half a step away: no neighbour is nearer.
        error = abs(Fraction(parsed) - Fraction(value))
        step = Fraction(2) ** max(math.frexp(parsed)[1] - precision.bits, precision.min_exponent)
        assert error <= step / 2


@given(st.floats(width=32, allow_nan=False, allow_infinity=False))
def test_numbers_are_formatted_as_the_shortest_decimal_that_parses_back(value: float) -> None:
    for precision in (FLOAT32, BFLOAT16):
        number = precision.round(value)
        if not math.isfinite(number):
            continue
        text = precision.format(number)
        assert precision.parse(text) == number
    digits = len(Decimal(FLOAT32.format(value)).normalize().as_tuple().digits)
    numpy_text = np.format_float_scientific(np.float32(value), unique=True, trim="-")
    assert digits <= len(Decimal(numpy_text).as_tuple().digits)


@given(st.lists(st.floats(-1e6, 1e6, width=32), min_size=2, max_size=6))
def test_every_step_of_a_standard_deviation_is_rounded(values: list[float]) -> None:
    numbers = [np.float32(value) for value in values]
    count = np.float32(len(numbers))

    def mean(parts: list[np.float32]) -> np.float32:
        total = np.float32(0)
        for part in parts:
            total = np.float32(total + part)
        return np.float32(total / count)

    center = mean(numbers)
    squares = [np.float32((n - center) * (n - center)) for n in numbers]
    expected = np.sqrt(mean(squares))
    answer = calculate(question("std", *(repr(float(n)) for n in numbers)), FLOAT32)
    assert np.float32(json.loads(answer)) == expected


@given(FINITE, FINITE, st.sampled_from("+-*/"))
def test_float32_operations_equal_numpys(a: float, b: float, operator: str) -> None:
    with np.errstate(all="ignore"):
        x, y = np.float32(a), np.float32(b)
        if not (np.isfinite(x) and np.isfinite(y)):
            return
        results = {"+": x + y, "-": x - y, "*": x * y, "/": x / y}
    answer = calculate(question(operator, repr(float(x)), repr(float(y))), FLOAT32)
    expected = results[operator]
    if np.isfinite(expected):
        assert np.float32(json.loads(answer)) == expected
    else:
        assert answer == "null"


def test_comparisons_use_rounded_values() -> None:
    # Both round to 256 in bfloat16.
    assert calculate(question("interval", "256.4", "256.5"), BFLOAT16) == '"B"'
    assert calculate(question("maximum", "256.4", "3"), BFLOAT16) == "256"


def answer(prompt: str, model: str = "baseline/bfloat16") -> Completion:
    opened = open_model(model)
    messages = [Message("system", "x"), Message("user", prompt)]
    return asyncio.run(opened.model.answer(messages, opened.description.settings))


def test_the_model_answers_questions_in_words() -> None:
    completion = answer(load_prompt_set().format_question("addition", "+", ("256", "1")))
    assert completion.text == '{"answer": 256}'
    assert completion.usage == Usage()
    assert completion.error is None


def test_a_text_that_is_not_a_question_is_an_item_failure() -> None:
    completion = answer("Who are you?")
    assert completion.error is not None
    assert completion.error.kind == "item"


def modulo_task(monkeypatch: pytest.MonkeyPatch, **fields: Any) -> None:
    """Register a task outside the paper, with the operators + and mod."""
    task = replace(
        PAPER_TASKS["addition"], name="modulo", operators=("+", "mod"), prompts=None, **fields
    )
    monkeypatch.setitem(TASKS, "modulo", task)


def test_an_operator_of_another_task_without_approximation_is_not_guessed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    modulo_task(monkeypatch)
    asked = Question("modulo", "mod", ("5", "3"))
    monkeypatch.setattr(load_prompt_set(), "parse_question", lambda _: asked)
    error = answer("5 mod 3").error
    assert error is not None and error.kind == "item"
    for operator in ("+", "mod"):
        with pytest.raises(UnsupportedOperator, match="the task modulo has no `approximate`"):
            calculate(Question("modulo", operator, ("5", "3")), FLOAT32)


def test_another_task_is_calculated_by_its_approximation_and_rounded(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    def approximate(
        operator: str, values: Sequence[float], rounded: Callable[[float], float]
    ) -> float:
        if operator != "mod":
            raise NotImplementedError
        return rounded(math.fmod(*values)) + 0.1

    modulo_task(monkeypatch, approximate=approximate)
    assert calculate(Question("modulo", "mod", ("5", "3")), BFLOAT16) == "2.1"
    assert calculate(Question("modulo", "mod", ("5", "0")), BFLOAT16) == "null"
    with pytest.raises(UnsupportedOperator, match=r"no floating-point rule for '\+'"):
        calculate(Question("modulo", "+", ("5", "3")), BFLOAT16)


@pytest.mark.parametrize(
    ("task", "operator", "operands", "answers"),
    [
        ("copy", "copy", ("90071992547409931",), ("90071992547409936", "90071992547409920")),
        ("long_addition", "+", ("16777217", "1"), ("16777218", "16777216")),
        ("long_multiplication", "*", ("4097", "4099"), ("16793603", "16793604")),
        ("long_comparison", "larger", ("16777216", "16777217"), ('"B"', '"A"')),
        ("long_sorting", "descending", ("5", "16777217"), ("[16777217, 5]", "[16777216, 5]")),
        ("long_max", "maximum", ("5", "16777217"), ("16777217", "16777216")),
        ("long_sum", "sum", ("16777216", "1", "1"), ("16777218", "16777216")),
        ("long_mean", "mean", ("100000", "100003"), ("100001.5", "100001.5")),
        ("chain", "chain", ("16777216", "1", "-2"), ("16777215", "16777214")),
        ("nested", "nested", ("16777216", "1", "2", "21000"), ("16777215", "16777214")),
    ],
)
def test_scaled_tasks_are_answered_with_all_digits(
    task: str, operator: str, operands: tuple[str, ...], answers: tuple[str, str]
) -> None:
    for name, answer_text in zip(("float64", "float32"), answers, strict=True):
        text = calculate(Question(task, operator, operands), FLOAT_FORMATS[name])
        assert text == answer_text
