"""Floating-point arithmetic as a model."""

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
from tests.support.case_tables import each_case

FLOAT32, BFLOAT16 = FLOAT_FORMATS["float32"], FLOAT_FORMATS["bfloat16"]
FINITE = st.floats(allow_nan=False, allow_infinity=False)


def question(operator: str, *operands: str) -> Question:
    tasks = (name for name, task in PAPER_TASKS.items() if operator in task.operators)
    task = next(tasks, "")
    return Question(task, operator, operands)


@each_case(__file__, "arithmetic")
def test_operations_give_the_expected_answers(case: Any) -> None:
    """As Python for float64; the answers of scaled tasks have all digits."""
    asked = question(case["operator"], *case["operands"])
    asked = asked._replace(task=case.get("task", asked.task))
    for name in FLOAT_FORMATS.keys() & case.keys():
        text = calculate(asked, FLOAT_FORMATS[name])
        assert text == case[name]
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


def answer(prompt: str, model: str = "baseline/bfloat16") -> Completion:
    opened = open_model(model)
    messages = [Message("system", "x"), Message("user", prompt)]
    return asyncio.run(opened.model.answer(messages, opened.description.settings))


def test_the_model_answers_questions_in_words_and_no_other_text() -> None:
    completion = answer(load_prompt_set().format_question("addition", "+", ("256", "1")))
    assert completion.text == '{"answer": 256}'
    assert completion.usage == Usage()
    assert completion.error is None
    error = answer("Who are you?").error
    assert error is not None and error.kind == "item"


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
