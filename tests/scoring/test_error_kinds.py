"""Error kinds of wrong numbers, lists and texts, and answers by another convention of a task."""

import csv
import json
from collections import Counter
from decimal import Decimal
from pathlib import Path
from typing import get_args

import pytest
from msgspec.structs import replace

from numbench.records import Difficulty, ErrorKind, Failure, Item, Response, Status
from numbench.scoring import CATEGORIES, categorize, score_exact, score_paper
from numbench.scoring.error_kinds import list_error, number_error, score_with_conventions
from numbench.tasks import TASKS, Convention, Task
from numbench.tasks.items import make_item
from tests.scoring.items import LARGEST, LETTER, ORDER, SEVENTH, SUM, answer_response, text_response
from tests.support.case_tables import read_lines

NUMBERS = json.loads(Path(__file__).with_name("error_kinds.json").read_text())
"""Kind of error → pairs of an answer and a truth."""


def test_every_kind_of_wrong_number_has_examples_of_either_sign() -> None:
    for kind, pairs in NUMBERS.items():
        for pair in pairs:
            answer, truth = map(Decimal, pair.split())
            assert number_error(answer, truth) == kind, pair
            assert number_error(answer.copy_negate(), truth.copy_negate()) == kind, pair


def test_a_wrong_list_is_in_another_order_of_another_length_or_altered() -> None:
    kinds = {"order": [(2, 1, 2)], "count": [(1, 1, 2), (2, 2, 2), (1, 2), (1, 2, 2, 2), (7,)],
             "altered": [(1, 2, 3), (3, 4, 5)]}  # fmt: skip
    truth = [Decimal(1), Decimal(2), Decimal(2)]
    for kind, lists in kinds.items():
        for answer in lists:
            assert list_error([Decimal(number) for number in answer], truth) == kind, answer


LABELS = Path(__file__).with_name("hand_labelled_errors.csv")


def _labelled_kind(row: dict[str, str]) -> str | None:
    is_list, answer = row["task"] == "sorting", row["answer"]
    if is_list:
        answer = f"[{', '.join(answer.split())}]"
    item = Item(
        id=row["item"],
        task=row["task"],
        prompt="",
        answer=tuple(row["truth"].split()) if is_list else row["truth"],
        operands=tuple(row["operands"].split()),
        operator=row["operator"],
        difficulty=Difficulty(base10=0, base2=0),
    )
    quote = '"' if row["task"] == "interval" else ""
    return score_exact(item, answer_response(item, f"{quote}{answer}{quote}")).error_kind


def test_the_program_agrees_with_198_of_200_labels_given_by_hand() -> None:
    """The sample is stratified by the program's kind, so it overstates rare kinds."""
    with open(LABELS, newline="", encoding="utf-8") as file:
        confusion = Counter((row["label"], _labelled_kind(row)) for row in csv.DictReader(file))
    assert confusion.total() == 200
    disagreements = {pair: count for pair, count in confusion.items() if pair[0] != pair[1]}
    assert disagreements == {("rough", "precision"): 1, ("precision", "rounding"): 1}


STD = make_item("std", "std", ("1", "2", "4"), {})
"""Population deviation 1.24721912892465, sample deviation 1.52752523165195."""


def test_an_answer_by_the_convention_of_a_task_has_its_own_kind() -> None:
    kinds = {"1.52752523165195": "sample_std", "1.5275": "sample_std", "1.529": "sample_std",
             "1.5291": "rough", "1.526": "sample_std", "1.5259": "rough", "-1.5275": "other",
             "15.275": "other", "1.25": "precision", "1.24721912892465": None, "1e400": "other",
             "0": "other"}  # fmt: skip
    for answer, kind in kinds.items():
        assert score_exact(STD, answer_response(STD, answer)).error_kind == kind, answer
    mean = make_item("mean", "mean", ("1", "2", "4"), {})
    assert score_exact(mean, answer_response(mean, "1.52752523165195")).error_kind == "rough"


def test_either_exact_answer_is_accepted_with_conventions() -> None:
    for text, expected in read_lines(__file__, "accepted_answers"):
        score = score_exact(STD, text_response(STD, text))
        assert score_with_conventions(STD, score) == tuple(expected), text
    # The sample deviation of one number is undefined.
    alone = make_item("std", "std", ("5",), {})
    score = score_exact(alone, answer_response(alone, "1"))
    assert score.error_kind == "other" and not score_with_conventions(alone, score).exact_match


def test_a_plugin_can_declare_a_convention(monkeypatch: pytest.MonkeyPatch) -> None:
    """Rounded-down quotients instead of quotients, without an error kind of their own."""
    floor = Convention("floor", lambda _, operands: str(int(operands[0]) // int(operands[1])))
    division = TASKS["division"]
    fields = {"name": "ratio", "operators": ("/",), "sample": division.sample,
              "exact_answer": division.exact_answer, "conventions": (floor,)}  # fmt: skip
    monkeypatch.setitem(TASKS, "ratio", Task(**fields))  # type: ignore[arg-type]
    item = replace(make_item("division", "/", ("70", "8"), {}), task="ratio")
    score = score_exact(item, answer_response(item, "8"))
    assert (score.exact_match, score.error_kind) == (False, "other")
    assert score_with_conventions(item, score) == (1, True, True)
    with pytest.raises(ValueError, match="conventions need metric log_smape"):
        Task(**fields | {"metric": "exact_match", "answer_kind": "letter"})  # type: ignore[arg-type]


def test_categories_are_all_error_kinds_and_all_statuses_without_one() -> None:
    names = {"right", *get_args(ErrorKind), *get_args(Status)} - {"ok", "unparseable"}
    assert {category.name for category in CATEGORIES} == names
    for field in ("name", "display", "definition"):
        # Charts add up the shares of categories by their label.
        assert len({getattr(category, field) for category in CATEGORIES}) == len(CATEGORIES), field


DOCS = Path(__file__).parents[2] / "docs" / "scoring.md"
ITEMS = [
    SUM, SEVENTH, LETTER, ORDER, LARGEST, STD,
    make_item("addition", "-", ("2.5", "4"), {}),
    make_item("multiplication", "*", ("12.5", "0.004"), {}),
    make_item("division", "/", ("2", "3"), {}),
    make_item("addition", "+", ("958.7", "275.9"), {}),
    make_item("multiplication", "*", ("37", "43"), {}),
    make_item("multiplication", "*", ("123", "456"), {}),
    make_item("exponentiation", "^", ("1.5", "3"), {}),
    make_item("divide_integer", "/", ("66", "84"), {}),
]  # fmt: skip


def test_documentation_defines_every_category_in_order_with_a_true_example() -> None:
    text = DOCS.read_text(encoding="utf-8").partition("## Kinds of errors")[2]
    rows = [line.strip("| ").split(" | ") for line in text.splitlines() if line.startswith("| `")]
    assert [(row[0].strip("`"), *row[1:3]) for row in rows] == list(CATEGORIES)
    by_prompt = {item.prompt: item for item in ITEMS}
    for row in rows:
        if len(row) > 3:
            name, _, _, question, truth, response = (cell.strip("`") for cell in row)
            item = by_prompt[question]
            wanted = item.answer if isinstance(item.answer, str) else ", ".join(item.answer)
            assert truth == wanted, name
            assert categorize(score_exact(item, text_response(item, response))) == name


def test_only_wrong_answers_and_unparseable_texts_have_an_error_kind() -> None:
    failed = Failure(kind="item", message="HTTP 400")
    scores = {
        "right": score_exact(SUM, answer_response(SUM, "3.75")),
        "format": score_exact(SUM, text_response(SUM, "no")),
        "truncated": score_exact(SUM, Response(item_id=SUM.id, finish_reason="length")),
        "refused": score_exact(SUM, Response(item_id=SUM.id, finish_reason="refusal")),
        "empty": score_exact(SUM, text_response(SUM, "")),
        "error": score_exact(SUM, Response(item_id=SUM.id, error=failed)),
        "missing": score_exact(SUM, None),
    }
    assert {name: categorize(score) for name, score in scores.items()} == {n: n for n in scores}
    assert [name for name, score in scores.items() if score.error_kind] == ["format"]
    assert scores.keys() <= {category.name for category in CATEGORIES}
    with pytest.raises(ValueError, match="paper protocol does not classify"):
        categorize(score_paper(SUM, answer_response(SUM, "3.74")))


def test_another_number_of_the_question_is_an_operand_error_in_comparison_tasks() -> None:
    for chosen in ("2.5", "-1.0", '"2.5"'):
        assert score_exact(LARGEST, answer_response(LARGEST, chosen)).error_kind == "operand"
    assert score_exact(LARGEST, answer_response(LARGEST, "-3")).error_kind == "sign"
    assert score_exact(SUM, answer_response(SUM, "1.5")).error_kind == "rough"
