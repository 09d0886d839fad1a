"""The exact protocol: one response to one item."""

import json
from decimal import Decimal
from fractions import Fraction
from pathlib import Path

from hypothesis import given
from hypothesis import strategies as st

from numbench.dataset.store import open_dataset
from numbench.records import Completion, Failure, FinishReason, Response
from numbench.scoring import is_correct, score_exact
from numbench.tasks.items import make_item
from tests.scoring.items import ORDER, SUM, answer_response
from tests.support.case_tables import each_row

CASES = Path(__file__).with_name("exact_cases.jsonl").read_text(encoding="utf-8").splitlines()
"""Questions and answers, whether they match, and the kind of error. Ties are rounded half to even;
numbers of a question that round alike must match exactly."""


def test_an_answer_matches_by_value() -> None:
    for case in map(json.loads, CASES):
        item = make_item(case["task"], case["operator"], tuple(case["operands"]), {})
        score = score_exact(item, answer_response(item, case["answer"]))
        expected = ("ok", case["match"], case.get("kind"))
        assert (score.status, score.exact_match, score.error_kind) == expected, case
        if item.task in ("interval", "sorting", "minmax"):
            assert score.log_smape is None
        elif case["match"]:
            assert (score.log_smape, score.correct_digits) == (1.0, 15)


@each_row(__file__, "missing_answers")
def test_status_gives_the_reason_for_a_missing_answer(
    text: str, reason: FinishReason | None, failed: bool, status: str, kind: str | None
) -> None:
    error = Failure(kind="item", message="HTTP 400") if failed else None
    response = Response(item_id=SUM.id, text=text, finish_reason=reason, error=error)
    score = score_exact(SUM, response)
    assert (score.status, score.error_kind) == (status, kind)
    assert score.log_smape == (1.0 if status == "ok" else 0.0)
    assert score.exact_match == (status == "ok")
    assert is_correct(SUM, response) is (None if failed else status == "ok")


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


PARSED = {
    "3.75": "3.75", "-0.0": "0", "0e5": "0", "007": "7", "+5": "5", ".5": "0.5", "5.": "5",
    "5e-1": "0.5", "-1E-5": "-0.00001", "1e40": "1" + "0" * 40,
    "1e41": "1e+41", "1e-40": "0." + "0" * 39 + "1", "1e-41": "1e-41", "1e999999": "1e+999999",
    "99999999999999994e-20": "0.00099999999999999994",
    "3.7500000000000000000000000000000000000007": "3.750000000000000000000000000000000000001",
}  # fmt: skip


def test_parsed_number_is_reported_in_plain_notation() -> None:
    for literal, parsed in PARSED.items():
        score = score_exact(SUM, answer_response(SUM, literal))
        rule = "object" if literal in ("007", "+5", ".5", "5.") else "json"
        assert (score.rule, score.parsed) == (rule, parsed)
    assert score_exact(ORDER, answer_response(ORDER, "[-1.0, 3]")).parsed == ("-1", "3")


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
