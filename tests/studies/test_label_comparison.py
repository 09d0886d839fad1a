"""Answers to questions with a wrong label: exact, as the label, or undecided."""

from __future__ import annotations

from decimal import Decimal

import pytest

from numbench.forensics.answers import NumericAnswer
from numbench.forensics.computations import Question
from numbench.tasks.items import make_item
from studies.forensics.controls import exact_answers, float64_answers
from studies.forensics.label_comparison import compare_with_labels, has_wrong_label, is_float64

OPERANDS = ("38451.94393773702", "-38451.94393773377")
EXACT, LABEL = "0.000000001625", "0.00000000162617652677"
QUESTION = Question(make_item("mean", "mean", OPERANDS, {}), Decimal(LABEL))


@pytest.mark.parametrize(
    ("number", "agreement"),
    [
        (EXACT, "exact"),
        (LABEL, "label"),
        ("0.00000000162500", "exact"),
        ("0.0000000016262", "label_short"),
        ("0.0000000016", "both_short"),
        ("0.0000000017", "neither"),
        ("-0.000000001625", "neither"),
    ],
)
def test_answer_agrees_with_label_or_exact_value(number: str, agreement: str) -> None:
    (comparison,) = compare_with_labels({"mean": [NumericAnswer(QUESTION, Decimal(number))]})
    assert [name for name, count in comparison.counts.items() if count] == [agreement]
    assert comparison.answers == 1
    assert comparison.for_exact == agreement.startswith("exact")
    assert comparison.for_label == agreement.startswith("label")


def test_fewer_digits_of_the_exact_value_only() -> None:
    # The label is 2 units of its 14th digit too large.
    question = Question(
        make_item("addition", "+", ("1", "0.23456789012345"), {}), Decimal("1.23456789012365")
    )
    answer = NumericAnswer(question, Decimal("1.2345678901234"))
    (comparison,) = compare_with_labels({"addition": [answer]})
    assert comparison.counts["exact_short"] == comparison.for_exact == 1


def test_tie_rounded_up_is_marked() -> None:
    # 0.1234567890123425 is a tie: half to even it ends in 2.
    operands = ("0.1", "0.0234567890123425")
    question = Question(make_item("addition", "+", operands, {}), Decimal("0.123456789012343"))
    answer = NumericAnswer(question, Decimal("0.123456789012343"))
    (comparison,) = compare_with_labels({"addition": [answer]})
    assert (comparison.counts["label"], comparison.ties) == (1, 1)


def test_correct_labels_are_left_out() -> None:
    question = Question(make_item("addition", "+", ("1", "2"), {}), Decimal("3.0"))
    assert not has_wrong_label(question)
    assert compare_with_labels({"addition": [NumericAnswer(question, Decimal(3))]}) == []


def test_controls_are_told_from_each_other() -> None:
    assert has_wrong_label(QUESTION) and is_float64(QUESTION)
    (float64,) = compare_with_labels(float64_answers([QUESTION]))
    (exact,) = compare_with_labels(exact_answers([QUESTION]))
    assert (float64.for_label, float64.for_exact) == (1, 0)
    assert (exact.for_label, exact.for_exact) == (0, 1)
