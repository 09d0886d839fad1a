"""The calculator: values, bounds, and results with a wrong digit."""

from __future__ import annotations

import random
from fractions import Fraction
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

VALUES = {
    "48.25 * 17.3": "834.725",
    "0.1 + 0.2": "0.3",
    "-2^2": "-4",
    "2^-3^2": "0.001953125",
    "2 ** 10": "1024",
    "--5 + +3": "8",
    "1/3*3": "1",
    "6 / 2 * 3 - 4 - 5": "0",
    "(1 + 2) * (3 - (4))": "-3",
    "1e3 + 1.5E-2 + .5 + 2.": "1002.515",
    "2 × 3 − 8 ÷ 4": "4",
    "sqrt(2)": "1.4142135623731",
    "sqrt(2)^2": "2",
    "sqrt(0)": "0",
    "4^0.5": "2",
    "27^(1/3)": "3",
    "2^0.333333333333333": "1.25992104989487",
    "0^2": "0",
    "(-1)^1000001": "-1",
    # The last of 16 digits is 5: half to even, and up as soon as anything follows.
    "1.000000000000005": "1",
    "1.000000000000015": "1.00000000000002",
    "sqrt(1.000000000000005^2)": "1",
    "sqrt(1.000000000000005^2 + 1e-300)": "1.00000000000001",
    "mean(1, 2, 3.5)": "2.16666666666667",
    "mean([1, 2], 3)": "2",
    "std(2, 4, 4, 4, 5, 5, 7, 9)": "2",
    "MAX(1, -2) + min(3, 4)": "4",
    "sort(3, -1.50, 2)": "[-1.5, 2, 3]",
    "mean(sort(3, 1))": "2",
    "7 / 1e30": "7e-30",
    "2^100": "1.26765060022823e+30",
}

ERRORS = {
    "": "incomplete",
    "   ": "incomplete",
    "2 +": "incomplete",
    "(1": "incomplete",
    "1)": r"unexpected '\)' at character 2",
    "1 2": "unexpected '2'",
    "2 % 3": "unexpected '%'",
    "2 + 2 =": "unexpected '='",
    "1,2": "unexpected ','",
    "π * 2": "unexpected 'π'",
    "٣ + 1": "unexpected '٣'",
    "__import__('os')": "unknown name '__import__'",
    "sqrt.real": "unexpected '.'",
    "x" * 100: "unknown name",
    "lambda: 1": "unknown name 'lambda'",
    "1 / (2 - 2)": "division by zero",
    "0^0": "undefined",
    "0^-1": "undefined",
    "sqrt(-1)": "not real",
    "(-8)^(1/3)": "no real value",
    "sqrt(1, 2)": "a list has no arithmetic",
    "sort(2, 1) + 1": "a list has no arithmetic",
    "9^9^9^9": "too large",
    "2^99999999999999999999": "too large",
    "1e99999999999": "too large",
    "1e-2001": "too small",
    "10^1e9": "too large",
    "2^(10^10)": "too large",
    "(1e2000)^2": "too large",
    "2.5^10000.5": "too large",
    "1" * 2001: "at most 2000 characters",
    "(" * 500 + "1" + ")" * 500: "nested more than 40 deep",
    "2^" * 500 + "1": "nested more than 40 deep",
    "-(" * 60 + "1" + ")" * 60: "nested more than 40 deep",
    "[" * 500: "nested more than 40 deep",
    f"sort({','.join(['1.2345'] * 250)})": "the list is too long",
}


@pytest.mark.parametrize("expression", VALUES)
def test_values_are_exact_and_rounded_once(expression: str) -> None:
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
