"""The truth in texts that hold no answer."""

from __future__ import annotations

import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.records import Item
from bench.scoring import score_exact
from bench.scoring.prose import holds_truth
from bench.tasks.items import make_item
from tests.scoring.items import LETTER, ORDER, SEVENTH, SUM, said

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
def test_the_truth_alone_in_a_text_is_the_right_value_in_wrong_notation(
    item: Item, text: str
) -> None:
    score = score_exact(item, said(item, text))
    assert (score.status, score.exact_match, score.error_kind) == ("unparseable", False, "notation")


@pytest.mark.parametrize(("item", "text"), FORMAT)
def test_any_other_text_without_an_answer_is_unreadable(item: Item, text: str) -> None:
    score = score_exact(item, said(item, text))
    assert (score.status, score.exact_match, score.error_kind) == ("unparseable", False, "format")


def test_numbers_that_rounding_would_confuse_must_be_complete() -> None:
    near = ("563687326.3220608", "563687326.3220606")
    largest = make_item("minmax", "maximum", near, {})
    assert holds_truth(f"It is {near[0]}", largest)
    assert not holds_truth(f"It is {near[1]}", largest)


_PIECES = ["3.75", "15/4", "B", "1,234", "/", ",", ".", "-", " ", "e", "×10^", "\\frac{", "}{", "}"]


@given(st.lists(st.sampled_from(_PIECES)).map("".join) | st.text(),
       st.sampled_from([SUM, LETTER, ORDER]))  # fmt: skip
def test_no_text_makes_the_search_raise(text: str, item: Item) -> None:
    assert holds_truth(text, item) in (True, False)


_MEGABYTE = 10**6
HOSTILE = [
    "1" * _MEGABYTE,
    "1," * (_MEGABYTE // 2),
    "1/" * (_MEGABYTE // 2),
    "1.1" * (_MEGABYTE // 3) + "e",
    "1,111" + ",111" * (_MEGABYTE // 4) + "1",
    "5" + " " * _MEGABYTE + "x",
    "3.75 " * (_MEGABYTE // 5),
    "1" * _MEGABYTE + "/" + "7" * _MEGABYTE,
    "\\frac{" * (_MEGABYTE // 6),
    "B " * (_MEGABYTE // 2),
    "-" * _MEGABYTE,
    "1e999999999999999999/1e-999999999999999999",
    "1/1e999999999999999999",
]


@pytest.mark.parametrize("text", HOSTILE, ids=lambda text: text[:20])
def test_a_hostile_megabyte_is_searched(text: str) -> None:
    """In seconds; effort that grows with the square of the length would need hours."""
    for item in (SUM, LETTER, ORDER):
        holds_truth(text, item)
