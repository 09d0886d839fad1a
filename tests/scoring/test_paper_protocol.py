"""The paper protocol: each fault of the study's scoring, from its description."""

import json
import math
from dataclasses import replace
from pathlib import Path

import msgspec
import pytest

from numbench.records import Answer
from numbench.scoring import score_paper
from numbench.scoring.paper_protocol import parse_paper
from numbench.tasks import TASKS
from tests.scoring.items import LARGEST, LETTER, ORDER, SEVENTH, SUM, answer_response, text_response


def test_parsed_answer_is_that_of_the_study() -> None:
    path = Path(__file__).with_name("paper_readings.jsonl")
    for line in path.read_text(encoding="utf-8").splitlines():
        case = json.loads(line)
        assert parse_paper(case["text"], case["task"]) == case["parsed"], case


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
