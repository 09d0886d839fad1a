"""Exact answers, compared with an independent computation on committed and new items."""

from decimal import Decimal
from fractions import Fraction
from itertools import islice
from statistics import variance

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.core.decimal_numbers import format_decimal
from numbench.dataset.store import open_dataset
from numbench.tasks import PAPER_TASKS
from numbench.tasks.exact_arithmetic import evaluate, in_range, sample_std
from numbench.tasks.shards import Shard, generate_items
from tests.support import reference_answers
from tests.support.case_tables import each_row

FRESH = 400


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_every_committed_answer_is_exact(task: str) -> None:
    items = open_dataset("v1").by_task[task]
    assert len(items) == 500
    for item in items:
        reference_answers.check(item)


@pytest.mark.parametrize("task", PAPER_TASKS)
@pytest.mark.parametrize("digits", [4, 15, 17])
def test_answers_of_new_items_are_exact(task: str, digits: int) -> None:
    for item in islice(generate_items(Shard(task, 2026, "train", max_digits=digits)), FRESH):
        reference_answers.check(item)


OPERANDS = st.builds(
    lambda significand, exponent: format_decimal(Decimal(f"{significand}e{exponent}")),
    st.integers(-(10**17), 10**17),
    st.integers(-28, 14),
)


@given(OPERANDS, st.sampled_from("+-*/"), OPERANDS)
def test_any_two_operands_give_the_exact_answer(a: str, operator: str, b: str) -> None:
    if operator == "/" and b == "0":
        with pytest.raises(ValueError, match="division by zero"):
            evaluate("/", (a, b))
        return
    expected = reference_answers.answer(f"What is {a} {operator} {b}?")
    assert Fraction(evaluate(operator, (a, b))) == expected


@given(st.lists(OPERANDS, min_size=2, max_size=6), st.sampled_from(["mean", "std"]))
def test_any_list_gives_exact_mean_and_std(numbers: list[str], operator: str) -> None:
    prompt = f"What is the {operator} of the list [{', '.join(numbers)}]?"
    assert Fraction(evaluate(operator, numbers)) == reference_answers.answer(prompt)


@given(st.lists(OPERANDS, min_size=2, max_size=6))
def test_any_list_gives_the_exact_sample_deviation(numbers: list[str]) -> None:
    """The correctly rounded root of the exact sample variance: between its neighbours' squares."""
    exact = variance([Fraction(number) for number in numbers])
    root = sample_std(numbers)
    half = Fraction(10) ** (Decimal(root).adjusted() - 14) / 2
    if exact == 0:
        assert root == "0"
    else:
        assert (Fraction(root) - half) ** 2 <= exact <= (Fraction(root) + half) ** 2
        assert len(Decimal(root).normalize().as_tuple().digits) <= 15


def test_a_sample_deviation_needs_two_numbers() -> None:
    assert sample_std(["1", "2", "3", "4"]) == "1.29099444873581"
    with pytest.raises(ValueError, match="at least two numbers"):
        sample_std(["5"])


@given(st.integers(1, 10**8), st.integers(-8, 4), st.integers(1, 40), st.sampled_from([1, 2, 3]))
def test_powers_of_perfect_squares_and_others_are_exact(
    significand: int, exponent: int, tenths: int, degree: int
) -> None:
    base = format_decimal(Decimal(f"{significand**degree}e{exponent}"))
    power = format_decimal(Decimal(f"{tenths}e-1"))
    expected = reference_answers.answer(f"What is {base} ^ {power}?")
    assert Fraction(evaluate("^", (base, power))) == expected


@each_row(__file__, "known_answers")
def test_known_answers(operands: str, expected: str) -> None:
    first, operator, *others = operands.split()
    assert evaluate(operator, (first, *others)) == expected


@pytest.mark.parametrize(
    ("base", "exponent"), [("-2", "0.5"), ("0", "-1"), ("0", "0"), ("2", "1000"), ("x", "2")]
)
def test_undefined_powers_are_rejected(base: str, exponent: str) -> None:
    with pytest.raises(ValueError):
        evaluate("^", (base, exponent))


@each_row(__file__, "ranges")
def test_range(number: str, inside: bool) -> None:
    assert in_range(number) is inside
