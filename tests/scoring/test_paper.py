"""The paper protocol: the study's faults, one by one, from its description."""

from __future__ import annotations

import math

import msgspec
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.records import Item
from bench.scoring import score_paper
from bench.scoring.paper_parse import parse_paper
from bench.tasks.items import make_item
from tests.scoring.items import LARGEST, LETTER, ORDER, SEVENTH, SUM, answered, said


@pytest.mark.parametrize(
    ("task", "text", "parsed"),
    [
        ("addition", '{"answer": 3}', "3.0"),
        ("addition", '{"answer": "3"}', "3"),
        ("addition", '{"answer": null}', "None"),
        ("addition", '{"answer": 0.1234567890123456789}', "0.12345678901234568"),
        ("addition", '{"answer": [1, 2]}', "[1.0, 2.0]"),
        ("addition", '```json\n{"answer": 1e30}\n```', "1e+30"),
        ("addition", 'so 7 it is: {"answer": 3}', "3.0"),
        ("addition", '{"a": 7}, {"answer": 3}', "7.0"),
        ("addition", "3 + 4 = 7", "3.0"),
        ("addition", "1,234.5", "1.0"),
        ("addition", "-.5e3", "-500.0"),
        ("addition", "007", "0.0"),
        ("addition", "0.5", "0.5"),
        ("addition", "[3, 4]", "3.0"),
        ("addition", '{"answer": 0.12' + "0" * 99, "0.12"),
        ("addition", "Token limit reached", None),
        ("addition", "", None),
        ("addition", "no idea", None),
        ("minmax", '{"answer": 3.10}', "3.10"),
        ("minmax", '{"answer": 00044}', "0.0"),
        ("minmax", "3", "3.0"),
        ("sorting", '{"answer": [1.50, 2]}', "['1.50', '2']"),
        ("sorting", "```\n[1.50, 2]\n```", "1.5"),
        ("interval", '{"answer": "B"}', "B"),
        ("interval", '"C"}', "C"),
        ("interval", "It is a B", "A"),
        ("interval", "ABBA, then F", "F"),
        ("interval", "<think>{}</think>JSON {\"answer\": \"D\"}", "D"),
        ("interval", '```json\n{"answer": "E"} {}\n```', "E"),
        ("interval", "nothing", None),
    ],
)  # fmt: skip
def test_the_study_reads_this_as(task: str, text: str, parsed: str | None) -> None:
    assert parse_paper(text, task) == parsed


def test_digits_are_cut_not_rounded() -> None:
    assert SEVENTH.answer == "0.142857142857143"
    longer = score_paper(SEVENTH, answered(SEVENTH, "0.14285714285714285"))
    assert not longer.exact_match
    assert score_paper(SEVENTH, answered(SEVENTH, "0.1428571428571439")).exact_match


@pytest.mark.parametrize(
    ("value", "match"), [("3.75", True), ("375e-2", True), ("-3.75", False), ("37.5", False),
                         ("null", False), ("[3.75]", False), ("[1, 3.75]", True)],
)  # fmt: skip
def test_exact_match_looks_at_sign_exponent_and_digits(value: str, match: bool) -> None:
    assert score_paper(SUM, answered(SUM, value)).exact_match == match


def test_log_smape_is_the_formula_in_float64() -> None:
    score = score_paper(SUM, answered(SUM, "3.7501"))
    smape = abs(3.7501 - 3.75) / (3.7501 + 3.75 + 1e-100)
    assert score.log_smape == math.log10(smape + 1e-100) / -15


@pytest.mark.parametrize("value", ["1e999", "NaN", "-Infinity", '"3,75"', "null", "[3.75]"])
def test_what_is_no_finite_float_scores_zero(value: str) -> None:
    assert score_paper(SUM, answered(SUM, value)).log_smape == 0


def test_comparison_tasks_are_judged_as_the_study_did() -> None:
    assert score_paper(LARGEST, answered(LARGEST, "3")).exact_match
    assert not score_paper(LARGEST, answered(LARGEST, "3.0")).exact_match
    assert score_paper(LARGEST, answered(LARGEST, '" 3 "')).exact_match
    assert score_paper(LETTER, answered(LETTER, '"b"')).exact_match
    assert score_paper(ORDER, answered(ORDER, "[-1.0, 2.5, 3]")).exact_match
    assert score_paper(ORDER, answered(ORDER, '"-1, 2.5, 3"')).exact_match
    assert not score_paper(ORDER, answered(ORDER, "[3, 2.5, -1]")).exact_match
    assert not score_paper(ORDER, said(ORDER, "[-1, 2.5, 3]")).exact_match


def test_a_published_label_overrides_the_exact_answer() -> None:
    response = answered(SUM, "3.75")
    assert score_paper(SUM, response).exact_match
    assert not score_paper(SUM, response, "3.76").exact_match
    own = msgspec.structs.replace(response, extra={"study_label": "3.75"})
    assert score_paper(SUM, own, "3.76").exact_match


def test_unparsed_responses_score_nothing_and_say_why() -> None:
    missing, empty = score_paper(SUM, None), score_paper(SUM, said(SUM, ""))
    assert (missing.status, empty.status) == ("missing", "empty")
    assert missing.log_smape == empty.log_smape == 0


def test_a_megabyte_of_tags_is_no_trap() -> None:
    item = make_item("interval", "interval", ("5", "1", "9"), {})
    for text in ("<think>" * 150_000, "{" * 10**6, '{"answer":' * 10**5, "0" * 10**6):
        score_paper(item, said(item, text))
        score_paper(SUM, said(SUM, text))


@given(st.text(), st.sampled_from([SUM, LETTER, ORDER, LARGEST]))
def test_any_text_gets_a_score_within_bounds(text: str, item: Item) -> None:
    for whole in (text, f'{{"answer": {text}}}', f'{{"answer": "{text}"}}'):
        score = score_paper(item, said(item, whole))
        assert score.log_smape is None or 0 <= score.log_smape <= 1
