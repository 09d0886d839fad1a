"""The categories of outcomes: complete, exclusive, documented."""

from __future__ import annotations

import re
from pathlib import Path
from typing import get_args

import pytest

from bench.records import ErrorKind, Failure, Item, Response, Score, Status
from bench.scoring import CATEGORIES, outcome, outcomes, score_exact, score_paper, score_run
from bench.study import import_study
from bench.tasks.items import make_item
from tests.scoring.items import LARGEST, LETTER, ORDER, SEVENTH, SUM, answered, said

DOCS = Path(__file__).parents[2] / "docs" / "errors.md"

ITEMS = [
    SUM,
    SEVENTH,
    LETTER,
    ORDER,
    LARGEST,
    make_item("addition", "-", ("2.5", "4"), {}),
    make_item("multiplication", "*", ("12.5", "0.004"), {}),
    make_item("division", "/", ("2", "3"), {}),
    make_item("addition", "+", ("958.7", "275.9"), {}),
    make_item("multiplication", "*", ("37", "43"), {}),
    make_item("multiplication", "*", ("123", "456"), {}),
    make_item("exponentiation", "^", ("1.5", "3"), {}),
]
BY_PROMPT = {item.prompt: item for item in ITEMS}


def test_the_categories_are_all_kinds_and_all_statuses_without_a_kind() -> None:
    names = [category.name for category in CATEGORIES]
    statuses = set(get_args(Status)) - {"ok", "unparseable"}
    assert len(set(names)) == len(names)
    assert set(names) == {"right"} | set(get_args(ErrorKind)) | statuses


def _rows() -> list[list[str]]:
    lines = DOCS.read_text(encoding="utf-8").splitlines()
    return [line.strip("| ").split(" | ") for line in lines if line.startswith("| `")]


def test_the_document_defines_every_category_in_its_order() -> None:
    defined = [(row[0].strip("`"), *row[1:3]) for row in _rows()]
    assert defined == list(CATEGORIES)


@pytest.mark.parametrize("row", [row for row in _rows() if len(row) > 3], ids=lambda row: row[0])
def test_every_example_of_the_document_is_what_it_says(row: list[str]) -> None:
    name, _, _, question, truth, response = (cell.strip("`") for cell in row)
    item = BY_PROMPT[question]
    assert truth == (item.answer if isinstance(item.answer, str) else ", ".join(item.answer))
    assert outcome(score_exact(item, said(item, response))) == name


def test_only_wrong_answers_and_unparseable_texts_have_an_error_kind() -> None:
    failed = Failure(kind="item", message="HTTP 400")
    scores = {
        "right": score_exact(SUM, answered(SUM, "3.75")),
        "format": score_exact(SUM, said(SUM, "no")),
        "truncated": score_exact(SUM, Response(item_id=SUM.id, finish_reason="length")),
        "refused": score_exact(SUM, Response(item_id=SUM.id, finish_reason="refusal")),
        "empty": score_exact(SUM, said(SUM, "")),
        "error": score_exact(SUM, Response(item_id=SUM.id, error=failed)),
        "missing": score_exact(SUM, None),
    }
    assert {name: outcome(score) for name, score in scores.items()} == {n: n for n in scores}
    assert [name for name, score in scores.items() if score.error_kind] == ["format"]
    counts = outcomes(scores.values())
    assert list(counts) == [category.name for category in CATEGORIES]
    assert {name for name, count in counts.items() if count} == scores.keys()


def test_the_paper_protocol_has_no_categories() -> None:
    with pytest.raises(ValueError, match="paper protocol"):
        outcome(score_paper(SUM, answered(SUM, "3.74")))


@pytest.mark.parametrize("chosen", ["2.5", "-1.0", '"2.5"'])
def test_another_number_of_the_question_is_a_wrong_choice(chosen: str) -> None:
    assert score_exact(LARGEST, answered(LARGEST, chosen)).error_kind == "operand"
    assert score_exact(LARGEST, answered(LARGEST, "-3")).error_kind == "sign"


def test_a_number_of_the_question_is_no_choice_where_it_is_to_be_computed() -> None:
    assert score_exact(SUM, answered(SUM, "1.5")).error_kind == "other"


def _has_one_meaning(item: Item, score: Score) -> bool:
    """Whether the kind fits the kind of answer, and is there exactly where it must be."""
    wrong = not score.exact_match and score.status in ("ok", "unparseable")
    letters = {"choice"} if item.task == "interval" else set()
    lists = {"order", "count", "altered"} if item.task == "sorting" else set()
    unparsed = {"notation", "format"}
    numbers = set(get_args(ErrorKind)) - {"choice", "order", "count", "altered"} - unparsed
    if score.status == "unparseable":
        return score.error_kind in unparsed
    if item.task != "minmax":
        numbers -= {"operand"}
    return score.error_kind in (letters or lists or numbers) if wrong else score.error_kind is None


def test_every_response_of_the_study_has_one_category(paper_results: Path, tmp_path: Path) -> None:
    names = {category.name for category in CATEGORIES}
    for folder in import_study(paper_results, tmp_path, lambda _: None):
        for rows in score_run(folder).rows.values():
            assert all(_has_one_meaning(row.item, row.score) for row in rows)
            counts = outcomes(row.score for row in rows)
            assert sum(counts.values()) == len(rows)
            assert counts.keys() == names


def test_a_category_reads_well() -> None:
    for category in CATEGORIES:
        assert re.fullmatch(r"[a-z]+", category.name)
        assert category.definition.endswith(".")
        assert category.definition.count(". ") == 0
