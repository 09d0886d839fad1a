"""Exact values beyond 15 digits, other computations, and agreement to the digits of an answer."""

from decimal import Decimal
from fractions import Fraction

import mpmath
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.core.decimal_numbers import format_decimal
from numbench.forensics.agreement import digits_given, readings, round_to
from numbench.forensics.computations import COMPUTATIONS, Question, evaluate
from numbench.records import Item
from numbench.tasks.items import make_item
from tests.forensics.simulated import questions
from tests.support.case_tables import each_row

NUMBERS = st.decimals(-(10**14), 10**14, places=9, allow_nan=False).map(format_decimal)


def item_of(task: str, operator: str, *operands: str) -> Item:
    return make_item(task, operator, operands, {})


def values_of(item: Item, label: str | None = None) -> dict[str, list[str]]:
    values = Question(item, label and Decimal(label)).alternatives
    return {
        name: [f"{round_to(value, 15).normalize():f}" for value in known]
        for name, known in values.items()
    }


@pytest.mark.parametrize("task", ["addition", "multiplication", "mean", "std"])
def test_exact_value_rounds_to_the_answer(task: str) -> None:
    known = [q for q in questions() if q.item.task == task]
    assert all(round_to(q.truth, 15) == Decimal(str(q.item.answer)) for q in known)


@given(st.sampled_from("+-*/"), NUMBERS, NUMBERS.filter(lambda text: text != "0"))
def test_value_has_far_more_digits_than_the_answer(operator: str, a: str, b: str) -> None:
    value = evaluate(operator, (Decimal(a), Decimal(b)))
    x, y = Fraction(a), Fraction(b)
    exact = {"+": x + y, "-": x - y, "*": x * y, "/": x / y}[operator]
    assert value is not None
    assert abs(Fraction(value) - exact) <= abs(exact) / 10**50


@given(st.lists(NUMBERS, min_size=2, max_size=6))
def test_deviation_has_far_more_digits_than_the_answer(numbers: list[str]) -> None:
    value = evaluate("std", tuple(map(Decimal, numbers)))
    with mpmath.workdps(150):
        mean = mpmath.fsum(map(mpmath.mpf, numbers)) / len(numbers)
        squares = mpmath.fsum((mpmath.mpf(number) - mean) ** 2 for number in numbers)
        exact = mpmath.sqrt(squares / len(numbers))
        assert abs(mpmath.mpf(str(value)) - exact) <= exact * mpmath.mpf(10) ** -50 + 1e-60


@each_row(__file__, "alternatives")
def test_alternatives_of_a_question(
    task: str,
    operator: str,
    operands: tuple[str, ...],
    label: str | None,
    expected: dict[str, list[str]],
) -> None:
    assert values_of(item_of(task, operator, *operands), label) == expected


def test_float_types_are_those_of_the_baselines() -> None:
    values = Question(item_of("addition", "+", "0.1", "0.2")).alternatives
    assert values["float64"] == (Decimal("0.30000000000000004"),)
    assert values["float32"] == (Decimal("0.3"),)
    cancelled = item_of("std", "std", "100000000", "100000001")
    one_pass = Question(cancelled).alternatives["one_pass"]
    assert one_pass != (Decimal("0.5"),)


def test_every_alternative_applies_to_some_question() -> None:
    applied = {name for q in questions() for name in q.alternatives}
    powers = item_of("exponentiation", "^", "3", "2")
    applied |= set(Question(powers, Decimal(9)).alternatives)
    assert applied == set(COMPUTATIONS)


@given(NUMBERS.filter(lambda text: text != "0"), st.integers(1, 17))
def test_value_agrees_with_its_own_shortened_forms(text: str, digits: int) -> None:
    value = Decimal(text)
    for shortened in readings((value,), digits):
        assert shortened in readings((value,), digits_given(shortened, 17)) or not shortened


@pytest.mark.parametrize(
    ("answer", "digits"), [("1500", 2), ("0.50", 1), ("-12.034", 5), ("0", 1), ("1" * 30, 17)]
)
def test_digits_given(answer: str, digits: int) -> None:
    assert digits_given(Decimal(answer), 17) == digits
