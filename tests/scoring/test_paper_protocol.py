"""The paper protocol: each fault of the study's scoring, from its description."""

from __future__ import annotations

import math
from dataclasses import replace

import msgspec
import pytest

from numbench.records import Answer
from numbench.scoring import score_paper
from numbench.scoring.paper_protocol import parse_paper
from numbench.tasks import TASKS
from tests.scoring.items import LARGEST, LETTER, ORDER, SEVENTH, SUM, answer_response, text_response


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
        ("addition", 'so 7: {"answer": 3}}', "7.0"),
        ("addition", 'so 7: {{"answer": 3}', "7.0"),
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
        ("interval", 'ok {"a": {"b": "c"}, "answer": "D"} {}', "D"),
        ("interval", "nothing", None),
    ],
)  # fmt: skip
def test_parsed_answer_is_that_of_the_study(task: str, text: str, parsed: str | None) -> None:
    assert parse_paper(text, task) == parsed


def test_digits_are_truncated_not_rounded() -> None:
    assert SEVENTH.answer == "0.142857142857143"
    longer = score_paper(SEVENTH, answer_response(SEVENTH, "0.14285714285714285"))
    assert not longer.exact_match
    assert score_paper(SEVENTH, answer_response(SEVENTH, "0.1428571428571439")).exact_match


def test_numbers_are_compared_by_sign_exponent_and_digits_and_in_float64() -> None:
    matches = {"3.75": True, "375e-2": True, "-3.75": False, "37.5": False, "null": False,
               "[3.75]": False, "[1, 3.75]": True}  # fmt: skip
    for value, is_match in matches.items():
        assert score_paper(SUM, answer_response(SUM, value)).exact_match is is_match, value
    smape = abs(3.7501 - 3.75) / (3.7501 + 3.75 + 1e-100)
    score = score_paper(SUM, answer_response(SUM, "3.7501"))
    assert score.log_smape == math.log10(smape + 1e-100) / -15
    for value in ("1e999", "NaN", "-Infinity", '"3,75"', "null", "[3.75]"):
        assert score_paper(SUM, answer_response(SUM, value)).log_smape == 0


def test_comparison_tasks_match_as_in_the_study() -> None:
    assert score_paper(LARGEST, answer_response(LARGEST, "3")).exact_match
    assert not score_paper(LARGEST, answer_response(LARGEST, "3.0")).exact_match
    assert score_paper(LARGEST, answer_response(LARGEST, '" 3 "')).exact_match
    assert score_paper(LETTER, answer_response(LETTER, '"b"')).exact_match
    assert score_paper(ORDER, answer_response(ORDER, "[-1.0, 2.5, 3]")).exact_match
    assert score_paper(ORDER, answer_response(ORDER, '"-1, 2.5, 3"')).exact_match
    assert not score_paper(ORDER, answer_response(ORDER, "[3, 2.5, -1]")).exact_match
    assert not score_paper(ORDER, text_response(ORDER, "[-1, 2.5, 3]")).exact_match


def test_published_label_replaces_the_exact_answer() -> None:
    response = answer_response(SUM, "3.75")
    assert score_paper(SUM, response).exact_match
    assert not score_paper(SUM, response, "3.76").exact_match


def test_unparsed_responses_score_zero_and_have_a_status() -> None:
    missing, empty = score_paper(SUM, None), score_paper(SUM, text_response(SUM, ""))
    assert (missing.status, empty.status) == ("missing", "empty")
    assert missing.log_smape == empty.log_smape == 0


def test_hostile_text_is_scored_in_linear_time() -> None:
    for text in ("<think>" * 150_000, "{" * 10**6, '{"answer":' * 10**5, "0" * 10**6):
        score_paper(LETTER, text_response(LETTER, text))
        score_paper(SUM, text_response(SUM, text))


def test_task_outside_the_study_is_scored_by_its_kind_of_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    cases: list[tuple[str, Answer, str, str]] = [
        ("interval", "B", '"b"', '"C"'),
        ("minmax", "3", "3", "3.0"),
        ("sorting", ("1", "2"), "[1.0, 2]", "[2, 1]"),
    ]
    for like, answer, correct, wrong in cases:
        monkeypatch.setitem(TASKS, "plugin", replace(TASKS[like], name="plugin"))
        item = msgspec.structs.replace(LETTER, task="plugin", answer=answer)
        assert score_paper(item, answer_response(item, correct)).exact_match
        assert not score_paper(item, answer_response(item, wrong)).exact_match
