"""Difficulty: the paper's values for its tasks, and worked examples."""

from __future__ import annotations

import struct
from fractions import Fraction
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.csv_files import read_csv
from numbench.decimal_numbers import DecimalNumber, format_decimal
from numbench.tasks import PAPER_TASKS
from numbench.tasks.difficulty import distinguishing_digits, nonzero_digits, printed_digits
from numbench.tasks.prompts import load_prompt_set

OPERANDS = st.builds(
    lambda significand, exponent: format_decimal(DecimalNumber(significand, exponent)),
    st.integers(1, 10**15),
    st.integers(-28, 0),
)


def base10(task: str, operator: str, operands: tuple[str, ...]) -> int:
    answer = PAPER_TASKS[task].exact_answer(operator, operands)
    return PAPER_TASKS[task].difficulty(operator, operands, answer).base10


@pytest.mark.parametrize(
    ("task", "operator", "operands", "expected"),
    [
        ("addition", "+", ("105", "-2.03"), 6),
        ("addition", "-", ("0", "0.001"), 5),
        ("multiplication", "*", ("6741.74", "-85784589.7707"), 17),
        ("division", "/", ("1", "8"), 5),
        ("exponentiation", "^", ("92.248", "-2"), 5 * 1 * 13),
        ("mean", "mean", ("27601000", "36275000", "-65771000", "1658700"), 8 - 4 + 15),
        ("mean", "mean", ("5231.41", "5231.67", "5231.92"), 0 - 3 + 15),
        ("std", "std", ("0", "2"), 0 - 0 + 15),
        ("mean", "mean", ("-1", "1"), 0 + 1 + 15),
        ("minmax", "minimum", ("1000", "1001", "5000"), 4 + 1),
        ("minmax", "maximum", ("7", "7"), 1),
        ("sorting", "ascending", ("1.25", "-1.24", "90"), 3 + 3 + 2),
        ("interval", "interval", ("12.5", "12.4", "13"), 3 + 3),
    ],
)
def test_worked_examples(
    task: str, operator: str, operands: tuple[str, ...], expected: int
) -> None:
    assert base10(task, operator, operands) == expected


@given(OPERANDS)
def test_binary_digits_are_those_of_the_float64(number: str) -> None:
    (bits,) = struct.unpack(">Q", struct.pack(">d", float(number)))
    ones = bin(bits & (1 << 52) - 1).count("1") + 1
    assert nonzero_digits(number).base2 == ones


@given(OPERANDS)
def test_printed_binary_digits_are_those_of_the_float64_written_out(number: str) -> None:
    value, places = Fraction(float(number)), 0
    while value.denominator > 1:
        value, places = value * 2, places + 1
    whole = int(Fraction(float(number)))
    assert printed_digits(number).base2 == max(len(f"{whole:b}"), 1) + places


@given(OPERANDS, OPERANDS)
def test_distinguishing_digits_are_symmetric_and_bounded_by_orders_of_magnitude(
    a: str, b: str
) -> None:
    digits = distinguishing_digits(a, b)
    assert digits == distinguishing_digits(b, a)
    if a != b:
        ratio = max(Fraction(a), Fraction(b)) / abs(Fraction(a) - Fraction(b))
        assert digits.base10 == 1 or Fraction(10) ** (digits.base10 - 2) < ratio
        assert ratio < Fraction(10) ** digits.base10
        assert ratio < Fraction(2) ** digits.base2


@pytest.mark.parametrize("task", ["Multiplication", "Division"])
def test_decimal_difficulty_equals_the_published_one(paper_results: Path, task: str) -> None:
    file = paper_results / f"{task}_decimal_uniform_test_500_shuffle.csv"
    for line, row in read_csv(file):
        name, operator, operands = load_prompt_set().parse_question(row["text_prompt"])
        difficulty = PAPER_TASKS[name].difficulty(operator, operands, row["answer"])
        assert difficulty.base10 == int(row["difficulty_sd"]), line
