"""The exact protocol: one response to one item."""

from __future__ import annotations

from decimal import Decimal

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.records import Failure, FinishReason, Item, Response
from bench.scoring import score_exact
from bench.tasks.items import make_item
from tests.scoring.items import LARGEST, LETTER, ORDER, SEVENTH, SUM, answered, said


@pytest.mark.parametrize("value", ["3.75", "3.7500", "375e-2", '"3.75"', "0.375E+1", "+3.75"])
def test_a_right_number_matches_in_any_notation(value: str) -> None:
    score = score_exact(SUM, answered(SUM, value))
    assert (score.status, score.exact_match, score.log_smape) == ("ok", True, 1.0)
    assert (score.error_kind, score.correct_digits, score.parsed) == (None, 15, "3.75")


@pytest.mark.parametrize(
    "value",
    [
        "0.142857142857143",
        "0.14285714285714285714",
        "0.1428571428571429",
        "0.1428571428571425000001",
    ],
)
def test_more_digits_than_fifteen_are_rounded_not_cut(value: str) -> None:
    score = score_exact(SEVENTH, answered(SEVENTH, value))
    assert score.exact_match
    assert score.log_smape == 1


def test_ties_round_half_to_even() -> None:
    item = make_item("addition", "+", ("100000000000000", "0.2"), {})
    assert item.answer == "100000000000000"
    assert score_exact(item, answered(item, "100000000000000.5")).exact_match
    assert not score_exact(item, answered(item, "100000000000000.51")).exact_match


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_printing_a_number_to_more_digits_never_lowers_its_score(noise: Decimal) -> None:
    truth = Decimal(1) / Decimal(7)
    tail = "".join(map(str, noise.as_tuple().digits))
    short, long = "0.142857142857143", f"{truth:.20f}{tail}"
    one, other = (score_exact(SEVENTH, answered(SEVENTH, value)) for value in (short, long))
    assert one.exact_match
    assert other.exact_match
    assert one.log_smape == other.log_smape == 1


def test_minus_zero_is_zero() -> None:
    item = make_item("addition", "-", ("1.5", "1.5"), {})
    score = score_exact(item, answered(item, "-0.0"))
    assert score.exact_match
    assert score.parsed == "0"


def test_a_wrong_number_says_how_it_is_wrong() -> None:
    score = score_exact(SUM, answered(SUM, "-3.75"))
    assert (score.exact_match, score.error_kind, score.correct_digits) == (False, "sign", 0)
    assert score.log_smape == 0
    near = score_exact(SUM, answered(SUM, "3.7501"))
    assert (near.error_kind, near.correct_digits) == ("digit", 4)
    assert near.log_smape == pytest.approx(0.3250, abs=1e-4)


def test_letters_match_in_any_case() -> None:
    assert LETTER.answer == "B"
    assert score_exact(LETTER, answered(LETTER, '"b"')).exact_match
    wrong = score_exact(LETTER, answered(LETTER, '"C"'))
    assert (wrong.exact_match, wrong.error_kind, wrong.log_smape) == (False, "choice", None)


def test_lists_match_by_value_and_order() -> None:
    right = score_exact(ORDER, answered(ORDER, "[-1.0, 25e-1, 3]"))
    assert right.exact_match
    assert right.parsed == ("-1", "2.5", "3")
    assert score_exact(ORDER, answered(ORDER, "[3, 2.5, -1]")).error_kind == "order"
    assert score_exact(ORDER, answered(ORDER, "[-1, 2.5]")).error_kind == "count"


def test_minmax_compares_values_not_strings() -> None:
    score = score_exact(LARGEST, answered(LARGEST, "3.0"))
    assert score.exact_match
    assert score.log_smape is None


def test_rounding_never_turns_one_listed_number_into_another() -> None:
    near = ("563687326.3220608", "563687326.3220606")
    largest = make_item("minmax", "maximum", near, {})
    order = make_item("sorting", "ascending", near, {})
    assert score_exact(largest, answered(largest, near[0])).exact_match
    wrong = score_exact(largest, answered(largest, near[1]))
    assert (wrong.exact_match, wrong.error_kind) == (False, "operand")
    assert score_exact(order, answered(order, f"[{near[1]}, {near[0]}]")).exact_match
    assert score_exact(order, answered(order, f"[{near[0]}, {near[1]}]")).error_kind == "order"


def test_a_copy_that_agrees_to_fifteen_digits_is_right_where_nothing_else_is_near() -> None:
    item = make_item("minmax", "maximum", ("4.5503461730482035", "1"), {})
    assert score_exact(item, answered(item, "4.550346173048203")).exact_match
    assert not score_exact(item, answered(item, "4.55034617304")).exact_match


@pytest.mark.parametrize("item", [SUM, LETTER, ORDER, LARGEST], ids=lambda item: item.task)
def test_an_answer_of_another_kind_is_unparseable(item: Item) -> None:
    wrong = '{"answer": "B"}' if item is not LETTER else '{"answer": 5}'
    assert score_exact(item, said(item, wrong)).status == "unparseable"


@pytest.mark.parametrize(
    ("text", "reason", "failed", "status", "kind"),
    [
        ("I cannot say", None, False, "unparseable", "format"),
        (" \n", "stop", False, "empty", None),
        ("Token limit reached", "length", False, "truncated", None),
        ("", "length", False, "truncated", None),
        ("I must not", "refusal", False, "refused", None),
        ("", None, True, "error", None),
        ('{"answer": 3.75}', "length", False, "ok", None),
    ],
)
def test_the_status_says_why_there_is_no_answer(
    text: str, reason: FinishReason | None, failed: bool, status: str, kind: str | None
) -> None:
    error = Failure(kind="item", message="HTTP 400") if failed else None
    response = Response(item_id=SUM.id, text=text, finish_reason=reason, error=error)
    score = score_exact(SUM, response)
    assert (score.status, score.error_kind) == (status, kind)
    assert score.log_smape == (1.0 if status == "ok" else 0.0)
    assert score.exact_match == (status == "ok")


def test_an_item_without_a_response_is_missing() -> None:
    score = score_exact(LETTER, None)
    assert (score.status, score.exact_match, score.log_smape) == ("missing", False, None)


@given(st.text(), st.sampled_from([SUM, LETTER, ORDER, LARGEST]))
def test_any_text_gets_a_score_within_bounds(text: str, item: Item) -> None:
    score = score_exact(item, said(item, text))
    assert score.log_smape is None or 0 <= score.log_smape <= 1
    assert score.exact_match <= (score.status == "ok")
    assert msgspec.json.decode(msgspec.json.encode(score), type=type(score)) == score
