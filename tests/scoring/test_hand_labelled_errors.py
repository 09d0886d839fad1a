"""Error kinds compared with the labels of 200 wrong answers of the study, given by hand.

The sample is stratified by the program's kind, so it overstates rare kinds. `docs/errors.md` shows
the same confusion.
"""

from __future__ import annotations

import csv
from collections import Counter
from pathlib import Path

import pytest

from numbench.records import Answer, Difficulty, Item
from numbench.scoring import score_exact
from tests.scoring.items import answer_response

LABELS = Path(__file__).with_name("hand_labelled_errors.csv")
DOCS = Path(__file__).parents[2] / "docs" / "errors.md"

DISAGREEMENTS = {("rough", "precision"): 1, ("precision", "rounding"): 1}
"""(Label, kind of the program) → number of answers."""


def _rows() -> list[dict[str, str]]:
    with open(LABELS, newline="", encoding="utf-8") as file:
        return list(csv.DictReader(file))


def _item(row: dict[str, str]) -> Item:
    truth: Answer = tuple(row["truth"].split()) if row["task"] == "sorting" else row["truth"]
    return Item(
        id=row["item"],
        task=row["task"],
        prompt="",
        answer=truth,
        operands=tuple(row["operands"].split()),
        operator=row["operator"],
        difficulty=Difficulty(base10=0, base2=0),
    )


def _kind(row: dict[str, str]) -> str | None:
    answer = row["answer"]
    if row["task"] == "sorting":
        answer = f"[{', '.join(answer.split())}]"
    if row["task"] == "interval":
        answer = f'"{answer}"'
    item = _item(row)
    return score_exact(item, answer_response(item, answer)).error_kind


def test_the_program_agrees_with_198_of_200_labels() -> None:
    confusion = Counter((row["label"], _kind(row)) for row in _rows())
    assert confusion.total() == 200
    disagreements = {pair: count for pair, count in confusion.items() if pair[0] != pair[1]}
    assert disagreements == DISAGREEMENTS


@pytest.mark.parametrize("column", ["label", "program", "both"])
def test_documented_confusion_is_the_one_of_the_labels(column: str) -> None:
    counts = {
        "label": Counter(row["label"] for row in _rows()),
        "program": Counter(map(str, map(_kind, _rows()))),
        "both": Counter(row["label"] for row in _rows() if row["label"] == _kind(row)),
    }
    text = DOCS.read_text(encoding="utf-8")
    rows = text.split("| Kind | Label | Program | Both |\n")[1].split("\n\n")[0].splitlines()[1:]
    position = 1 + list(counts).index(column)
    cells = [row.strip("| ").split(" | ") for row in rows]
    assert {row[0]: int(row[position]) for row in cells} == counts[column]
