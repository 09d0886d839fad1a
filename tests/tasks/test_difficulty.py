"""Difficulty: the paper's values for its tasks, and worked examples."""

from pathlib import Path

import pytest

from numbench.core.csv_files import read_csv
from numbench.records import Difficulty
from numbench.tasks import PAPER_TASKS
from numbench.tasks.prompts import load_prompt_set
from tests.support.case_tables import each_row


@each_row(__file__, "difficulties")
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
