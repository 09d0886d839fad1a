"""Correct values in texts without a parsed answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.records import Item
from numbench.scoring import score_exact
from numbench.scoring.free_text import contains_correct_answer
from numbench.tasks.items import make_item
from tests.scoring.items import LETTER, ORDER, SEVENTH, SUM, text_response

THOUSANDS = make_item("sorting", "ascending", ("1234", "5678"), {})
FRACTION = make_item("addition", "+", ("1", "0.2345"), {})
SMALL = make_item("multiplication", "*", ("0.00015", "0.001"), {})

NOTATION = [
    (SUM, "It is 3.75"),
    (SUM, "It is 3.75. Yes, **3.750**!"),
    (SUM, '{"answer": 15/4}'),
    (SUM, '{"answer": 3.75 (rounded)}'),
    (SUM, r"The sum is $\frac{15}{4}$."),
    (SUM, "00003.75}"),
    (SUM, "about 3,75"),
    (SEVENTH, '{"answer": 1/7}'),
    (SEVENTH, "1 / 7"),
    (SMALL, "We get 1.5 × 10^-7 here"),
    (SMALL, r"so $1.5 \times 10^{-7}$"),
    (FRACTION, "1,2345"),
    (LETTER, "It is (B)"),
    (LETTER, '{"answer": "B: 1 <= x < 9"}'),
    (ORDER, "-1 2.5 3"),
    (ORDER, "-1, 2.5, and 3"),
    (ORDER, "Sorted: [-1, 2.5, 3], that is −1 < 2.5 < 3"),
    (THOUSANDS, "1,234, 5,678"),
    (THOUSANDS, "[1,234, 5,678]"),
]

FORMAT = [
    (SUM, "1.5 + 2.25 = 3.75"),
    (SUM, "It is 3.76"),
    (SUM, "It is 3.75 or 3.76"),
    (SUM, "I cannot say"),
    (SUM, '{"answer": null}'),
    (SUM, "x1 = 3.75"),
    (SUM, "3.75kg"),
    (SUM, "-3.75 it is"),
    (SUM, "It is 15/4/1"),
    (SUM, "It is 3.75/0"),
    (SUM, "3.75 × 10^"),
    (LETTER, "It is a B or C"),
    (LETTER, "A number in B"),
    (LETTER, "5"),
    (LETTER, "it is b"),
    (ORDER, "3 2.5 -1"),
    (ORDER, "1. -1 2. 2.5 3. 3"),
    (ORDER, "-1 2.5"),
    (ORDER, "none"),
]


@pytest.mark.parametrize(("item", "text"), NOTATION)
def test_truth_as_the_only_value_is_a_notation_error(item: Item, text: str) -> None:
    score = score_exact(item, text_response(item, text))
    assert (score.status, score.exact_match, score.error_kind) == ("unparseable", False, "notation")


@pytest.mark.parametrize(("item", "text"), FORMAT)
def test_any_other_unparseable_text_is_a_format_error(item: Item, text: str) -> None:
    score = score_exact(item, text_response(item, text))
    assert (score.status, score.exact_match, score.error_kind) == ("unparseable", False, "format")


def test_numbers_of_the_question_that_round_alike_must_match_exactly() -> None:
    near = ("563687326.3220608", "563687326.3220606")
    largest = make_item("minmax", "maximum", near, {})
    assert contains_correct_answer(f"It is {near[0]}", largest)
    assert not contains_correct_answer(f"It is {near[1]}", largest)


_PIECES = ["3.75", "15/4", "B", "1,234", "/", ",", ".", "-", " ", "e", "×10^", "\\frac{", "}{", "}"]


@given(st.lists(st.sampled_from(_PIECES)).map("".join) | st.text(),
       st.sampled_from([SUM, LETTER, ORDER]))  # fmt: skip
def test_correct_value_is_found_only_in_a_text_that_contains_it(text: str, item: Item) -> None:
    # No combination of the pieces is the sorted list.
    truths = {"addition": ("3.75", "15/4"), "interval": ("B",), "sorting": ()}[item.task]
    if contains_correct_answer(text, item):
        assert any(truth in text for truth in truths)


_LENGTH = 300_000
HOSTILE = [
    "1" * _LENGTH,
    "1," * (_LENGTH // 2),
    "1/" * (_LENGTH // 2),
    "1.1" * (_LENGTH // 3) + "e",
    "1,111" + ",111" * (_LENGTH // 4) + "1",
    "5" + " " * _LENGTH + "x",
    "3.75 " * (_LENGTH // 5),
    "1" * _LENGTH + "/" + "7" * _LENGTH,
    "\\frac{" * (_LENGTH // 6),
    "B " * (_LENGTH // 2),
    "-" * _LENGTH,
    "1e999999999999999999/1e-999999999999999999",
    "1/1e999999999999999999",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_hostile_text_is_searched_in_linear_time(text: str) -> None:
    """Quadratic effort would take many minutes and hit the watchdog."""
    for item in (SUM, LETTER, ORDER):
        contains_correct_answer(text, item)
