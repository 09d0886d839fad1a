"""The exact protocol: one response to one item."""

from __future__ import annotations

from decimal import Decimal
from fractions import Fraction

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.dataset.store import open_dataset
from numbench.records import Completion, Failure, FinishReason, Item, Response
from numbench.scoring import is_correct, score_exact
from numbench.tasks.items import make_item
from tests.scoring.items import LARGEST, LETTER, ORDER, SEVENTH, SUM, answer_response, text_response


@pytest.mark.parametrize("value", ["3.75", "3.7500", "375e-2", '"3.75"', "0.375E+1", "+3.75"])
def test_correct_number_matches_in_any_notation(value: str) -> None:
    score = score_exact(SUM, answer_response(SUM, value))
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
def test_digits_beyond_the_15th_are_rounded_not_truncated(value: str) -> None:
    score = score_exact(SEVENTH, answer_response(SEVENTH, value))
    assert score.exact_match
    assert score.log_smape == 1


def test_ties_round_half_to_even() -> None:
    item = make_item("addition", "+", ("100000000000000", "0.2"), {})
    assert item.answer == "100000000000000"
    assert score_exact(item, answer_response(item, "100000000000000.5")).exact_match
    assert not score_exact(item, answer_response(item, "100000000000000.51")).exact_match


@given(st.decimals(allow_nan=False, allow_infinity=False))
def test_more_correct_digits_never_lower_the_score(noise: Decimal) -> None:
    truth = Decimal(1) / Decimal(7)
    tail = "".join(map(str, noise.as_tuple().digits))
    short, long = "0.142857142857143", f"{truth:.20f}{tail}"
    one, other = (score_exact(SEVENTH, answer_response(SEVENTH, value)) for value in (short, long))
    assert one.exact_match
    assert other.exact_match
    assert one.log_smape == other.log_smape == 1


def test_minus_zero_is_zero() -> None:
    item = make_item("addition", "-", ("1.5", "1.5"), {})
    score = score_exact(item, answer_response(item, "-0.0"))
    assert score.exact_match
    assert score.parsed == "0"


def test_wrong_number_has_an_error_kind_and_a_partial_score() -> None:
    score = score_exact(SUM, answer_response(SUM, "-3.75"))
    assert (score.exact_match, score.error_kind, score.correct_digits) == (False, "sign", 0)
    assert score.log_smape == 0
    near = score_exact(SUM, answer_response(SUM, "3.7501"))
    assert (near.error_kind, near.correct_digits) == ("digit", 4)
    assert near.log_smape == pytest.approx(0.3250, abs=1e-4)


def test_letters_match_in_either_case() -> None:
    assert LETTER.answer == "B"
    assert score_exact(LETTER, answer_response(LETTER, '"b"')).exact_match
    wrong = score_exact(LETTER, answer_response(LETTER, '"C"'))
    assert (wrong.exact_match, wrong.error_kind, wrong.log_smape) == (False, "choice", None)


def test_lists_match_by_value_and_order() -> None:
    right = score_exact(ORDER, answer_response(ORDER, "[-1.0, 25e-1, 3]"))
    assert right.exact_match
    assert right.parsed == ("-1", "2.5", "3")
    assert score_exact(ORDER, answer_response(ORDER, "[3, 2.5, -1]")).error_kind == "order"
    assert score_exact(ORDER, answer_response(ORDER, "[-1, 2.5]")).error_kind == "count"


def test_minmax_compares_values_not_strings() -> None:
    score = score_exact(LARGEST, answer_response(LARGEST, "3.0"))
    assert score.exact_match
    assert score.log_smape is None


def test_numbers_of_the_question_that_round_alike_must_match_exactly() -> None:
    near = ("563687326.3220608", "563687326.3220606")
    largest = make_item("minmax", "maximum", near, {})
    order = make_item("sorting", "ascending", near, {})
    assert score_exact(largest, answer_response(largest, near[0])).exact_match
    wrong = score_exact(largest, answer_response(largest, near[1]))
    assert (wrong.exact_match, wrong.error_kind) == (False, "operand")
    assert score_exact(order, answer_response(order, f"[{near[1]}, {near[0]}]")).exact_match
    assert (
        score_exact(order, answer_response(order, f"[{near[0]}, {near[1]}]")).error_kind == "order"
    )


def test_copied_number_matches_to_15_digits_if_no_other_number_rounds_alike() -> None:
    item = make_item("minmax", "maximum", ("4.5503461730482035", "1"), {})
    assert score_exact(item, answer_response(item, "4.550346173048203")).exact_match
    assert not score_exact(item, answer_response(item, "4.55034617304")).exact_match


@pytest.mark.parametrize("item", [SUM, LETTER, ORDER, LARGEST], ids=lambda item: item.task)
def test_answer_of_another_kind_is_unparseable(item: Item) -> None:
    wrong = '{"answer": "B"}' if item is not LETTER else '{"answer": 5}'
    assert score_exact(item, text_response(item, wrong)).status == "unparseable"


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
def test_status_gives_the_reason_for_a_missing_answer(
    text: str, reason: FinishReason | None, failed: bool, status: str, kind: str | None
) -> None:
    error = Failure(kind="item", message="HTTP 400") if failed else None
    response = Response(item_id=SUM.id, text=text, finish_reason=reason, error=error)
    score = score_exact(SUM, response)
    assert (score.status, score.error_kind) == (status, kind)
    assert score.log_smape == (1.0 if status == "ok" else 0.0)
    assert score.exact_match == (status == "ok")


def test_item_without_a_response_is_missing() -> None:
    score = score_exact(LETTER, None)
    assert (score.status, score.exact_match, score.log_smape) == ("missing", False, None)


@given(st.text(), st.sampled_from([SUM, LETTER, ORDER, LARGEST]))
def test_score_of_any_text_is_within_bounds(text: str, item: Item) -> None:
    score = score_exact(item, text_response(item, text))
    assert score.log_smape is None or 0 <= score.log_smape <= 1
    assert score.exact_match <= (score.status == "ok")
    assert msgspec.json.decode(msgspec.json.encode(score), type=type(score)) == score


ITEMS = [
    make_item("addition", "+", ("1", "1.5"), {}),
    make_item("minmax", "minimum", ("1", "2"), {}),
    make_item("sorting", "ascending", ("2", "1"), {}),
]
FAILED = Failure(kind="item", message="no")


@pytest.mark.parametrize(
    ("completion", "right"),
    [
        (Completion(text='{"answer": 2.50}'), True),
        (Completion(text='{"answer": 2.51}'), False),
        (Completion(text="perhaps"), False),
        (Completion(), False),
        (Completion(finish_reason="length"), False),
        (Completion(finish_reason="refusal"), False),
        (Completion(error=FAILED), None),
    ],
)
def test_is_correct_is_none_only_for_a_failed_request(
    completion: Completion, right: bool | None
) -> None:
    assert is_correct(ITEMS[0], completion) is right


def _rounded(value: Fraction) -> Fraction:
    """Round half to even to 15 significant digits, in integer arithmetic."""
    unit = Fraction(1)
    while abs(value) >= 10**15 * unit:
        unit *= 10
    while value and abs(value) < 10**14 * unit:
        unit /= 10
    return round(value / unit) * unit


@given(
    st.integers(10**14, 10**15 - 1),
    st.integers(-12, 12),
    st.integers(-25, 5),
    st.sampled_from(["{:f}", "{:e}", '"{:,f}"', "{:E}"]),
)
def test_number_is_correct_if_it_rounds_to_the_truth(
    truth: int, distance: int, exponent: int, notation: str
) -> None:
    item = make_item("multiplication", "*", (f"{Decimal(truth).scaleb(exponent):f}", "1"), {})
    answer = (Decimal(truth) + Decimal(distance) / 10).scaleb(exponent)
    expected = _rounded(Fraction(answer)) == Fraction(Decimal(str(item.answer)))
    text = f'{{"answer": {notation.format(answer)}}}'
    assert is_correct(item, Completion(text=text)) is expected


@given(st.text(alphabet='{}[]"answer:.eE-+×^⁰², \n`Zz'), st.sampled_from(ITEMS))
def test_text_without_a_digit_is_never_a_correct_number(text: str, item: Item) -> None:
    for completion in (Completion(text=text), Completion(text=f'{{"answer": {text}}}')):
        assert is_correct(item, completion) is False


@pytest.mark.parametrize(
    ("literal", "rule", "parsed"),
    [
        ("-0.0", "json", "0"),
        ("0e5", "json", "0"),
        ("007", "object", "7"),
        ("+5", "object", "5"),
        (".5", "object", "0.5"),
        ("5.", "object", "5"),
        ("-1E-5", "json", "-0.00001"),
        ("1e40", "json", "1" + "0" * 40),
        ("1e41", "json", "1e+41"),
        ("1e-40", "json", "0." + "0" * 39 + "1"),
        ("1e-41", "json", "1e-41"),
        ("1e999999", "json", "1e+999999"),
        ("99999999999999994e-20", "json", "0.00099999999999999994"),
        (
            "3.7500000000000000000000000000000000000007",
            "json",
            "3.750000000000000000000000000000000000001",
        ),
    ],
)
def test_parsed_number_is_reported_in_plain_notation(literal: str, rule: str, parsed: str) -> None:
    score = score_exact(SUM, answer_response(SUM, literal))
    assert (score.rule, score.parsed) == (rule, parsed)


@pytest.mark.parametrize(
    ("operands", "answer", "exact_match", "error"),
    [
        (("999.5", "0.5"), "999.9999999999996", True, None),
        (("999.5", "0.5"), "999.9999999999995", True, None),
        (("999.5", "0.5"), "999.9999999999994", False, "rounding"),
        (("999.5", "0.5"), "9.999999999999996e2", True, None),
        (("100000000000000", "1"), "100000000000001.5", False, "rounding"),
        (("100000000000000", "2"), "100000000000001.5", True, None),
        (("100000000000000", "2"), "100000000000002.5", True, None),
        (("100000000000000", "2"), "100000000000002.500000001", False, "rounding"),
    ],
)
def test_rounding_to_15_digits_decides_the_match(
    operands: tuple[str, str], answer: str, exact_match: bool, error: str | None
) -> None:
    item = make_item("addition", "+", operands, {})
    score = score_exact(item, answer_response(item, answer))
    assert (score.exact_match, score.error_kind) == (exact_match, error)


@pytest.mark.parametrize("answer", ["5e0", "1e45", "0.5000", "-0"])
def test_truth_in_unusual_notation_matches_itself(answer: str) -> None:
    """Datasets from other sources may write numbers in other ways."""
    number = msgspec.structs.replace(SUM, answer=answer)
    numbers = msgspec.structs.replace(ORDER, answer=(answer, "1"))
    assert score_exact(number, answer_response(number, answer)).log_smape == 1.0
    assert score_exact(number, answer_response(number, answer)).exact_match
    assert score_exact(numbers, answer_response(numbers, f"[{answer}, 1]")).exact_match


def test_truth_of_every_benchmark_item_is_correct_and_a_changed_digit_is_not() -> None:
    for items in open_dataset("v1").by_task.values():
        for item in items[:60]:
            text = item.answer if isinstance(item.answer, str) else f"[{', '.join(item.answer)}]"
            quoted = f'"{text}"'
            assert is_correct(item, Completion(text=f'{{"answer": {quoted}}}')), item
            for old, new in (("1", "7"), ("5", "6"), ("B", "C")):
                if old in text:
                    changed = f'"{text.replace(old, new, 1)}"'
                    assert not is_correct(item, Completion(text=f'{{"answer": {changed}}}')), item
