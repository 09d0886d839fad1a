"""Difficulty: the paper's values for its tasks, and worked examples."""

from __future__ import annotations

from pathlib import Path

import pytest

from numbench.core.csv_files import read_csv
from numbench.records import Difficulty
from numbench.tasks import PAPER_TASKS
from numbench.tasks.prompts import load_prompt_set


@pytest.mark.parametrize(
    ("task", "operator", "operands", "base10", "base2"),
    [
        ("addition", "+", ("105", "-2.03"), 6, 60),
        ("addition", "-", ("0", "0.001"), 5, 62),
        ("addition", "+", ("0.75", "6"), 4, 6),
        ("multiplication", "*", ("6741.74", "-85784589.7707"), 17, 52),
        ("multiplication", "*", ("0.75", "5"), 3, 4),
        ("division", "/", ("1", "8"), 5, 3),
        ("exponentiation", "^", ("92.248", "-2"), 65, 992),
        ("mean", "mean", ("27601000", "36275000", "-65771000", "1658700"), 19, 61),
        ("mean", "mean", ("5231.41", "5231.67", "5231.92"), 12, 36),
        ("std", "std", ("0", "2"), 15, 50),
        ("mean", "mean", ("-1", "1"), 16, 51),
        ("minmax", "minimum", ("1000", "1001", "5000"), 5, 11),
        ("minmax", "maximum", ("7", "7"), 1, 3),
        ("sorting", "ascending", ("1.25", "-1.24", "90"), 8, 63),
        ("interval", "interval", ("12.5", "12.4", "13"), 6, 12),
    ],
)
def test_worked_examples(
    task: str, operator: str, operands: tuple[str, ...], base10: int, base2: int
) -> None:
    answer = PAPER_TASKS[task].exact_answer(operator, operands)
    difficulty = PAPER_TASKS[task].difficulty(operator, operands, answer)
    assert difficulty == Difficulty(base10, base2)


@pytest.mark.parametrize("task", ["Multiplication", "Division"])
def test_decimal_difficulty_equals_the_published_one(paper_results: Path, task: str) -> None:
    file = paper_results / f"{task}_decimal_uniform_test_500_shuffle.csv"
    for line, row in read_csv(file):
        name, operator, operands = load_prompt_set().parse_question(row["text_prompt"])
        difficulty = PAPER_TASKS[name].difficulty(operator, operands, row["answer"])
        assert difficulty.base10 == int(row["difficulty_sd"]), line
