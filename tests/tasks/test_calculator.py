"""The calculator: values, bounds, and results with a wrong digit."""

import json
import random
from fractions import Fraction
from pathlib import Path
from time import process_time

import pytest

from numbench.errors import BadInput
from numbench.records import ToolCall
from numbench.tasks.calculator import (
    MAX_RESULT_CHARACTERS,
    Calculator,
    CalculatorError,
    evaluate,
    parse_calculator,
)

CASES = json.loads(Path(__file__).with_name("calculator.json").read_text(encoding="utf-8"))
VALUES: dict[str, str] = CASES["values"]

ERRORS: dict[str, str] = CASES["errors"] | {
    "x" * 100: "unknown name",
    "1" * 2001: "at most 2000 characters",
    "(" * 500 + "1" + ")" * 500: "nested more than 40 deep",
    "2^" * 500 + "1": "nested more than 40 deep",
    "-(" * 60 + "1" + ")" * 60: "nested more than 40 deep",
    "[" * 500: "nested more than 40 deep",
    f"sort({','.join(['1.2345'] * 250)})": "the list is too long",
}


@pytest.mark.parametrize("expression", VALUES)
def test_values_are_exact_and_rounded_once(expression: str) -> None:
    """Where the last of 16 digits is 5: half to even, and up as soon as anything follows."""
    assert evaluate(expression) == VALUES[expression]


@pytest.mark.parametrize("expression", ERRORS)
def test_what_has_no_value_gets_a_message(expression: str) -> None:
    with pytest.raises(CalculatorError, match=ERRORS[expression]):
        evaluate(expression)


def test_no_text_takes_long_or_raises_anything_else() -> None:
    rng = random.Random(0)
    words = ["9.999999999999999", "1e2000", "1e-2000", "7", "sqrt(", "std(", "mean(", "sort(", "("]
    words += [*")),,+-*/^^", "^0.123456789", "^(1/97)", "^2", "^-99", " ", "[", "]", "e", "\x00"]
    worst = ["+".join(f"1/{n}7" for n in range(1001, 1240)), "9^.3+" * 300 + "1"]
    worst += ["sqrt(" * 38 + "2" + ")" * 38, "*".join(["7^97"] * 30), "^(1/97)".join(["3"] * 30)]
    random_texts = ["".join(rng.choices(words, k=rng.randrange(1, 80))) for _ in range(1000)]
    for text in worst + random_texts:
        start = process_time()
        try:
            assert len(evaluate(text)) <= MAX_RESULT_CHARACTERS
        except CalculatorError as error:
            assert len(str(error)) < 200
        assert process_time() - start < 2


def changed(result: str, seed: int) -> tuple[str, int]:
    call = ToolCall(name="calculator", arguments=f'{{"expression": "{result}"}}')
    answered = Calculator(1.0, seed).answer(call, "q", 0)
    assert answered.correct_result == evaluate(result)
    assert answered.result is not None and answered.changed_digit is not None
    return answered.result, answered.changed_digit


@pytest.mark.parametrize(
    ("result", "digits"), [("0.00450", 2), ("-12.03", 4), ("0", 1), ("7e-30", 1), ("5", 1)]
)
def test_one_digit_of_a_faulty_result_is_changed(result: str, digits: int) -> None:
    """Every digit can be; the value keeps its magnitude."""
    places = set()
    for seed in range(60):
        wrong, place = changed(result, seed)
        correct = evaluate(result)
        assert sum(a != b for a, b in zip(wrong, correct, strict=True)) == 1
        assert Fraction(wrong) and (place > 1 or wrong.strip("-0.")[0] != "0")
        places.add(place)
    assert places == set(range(1, digits + 1))


def test_the_share_of_faulty_results_is_as_given() -> None:
    call = ToolCall(name="calculator", arguments='{"expression": "1/7"}')
    answers = [Calculator(0.1).answer(call, f"q{n}", 0) for n in range(5000)]
    assert 400 < sum(each.changed_digit is not None for each in answers) < 600


@pytest.mark.parametrize(
    "text",
    ["", "calc", "calculator:", *(f"calculator:{x}" for x in ("faulty=1.5", "x", "faulty=."))],
)
def test_other_tools_are_refused(text: str) -> None:
    with pytest.raises(BadInput, match="give calculator"):
        parse_calculator(text)
