"""Same seed, same bytes: items and datasets are those of the committed hashes."""

import json
from pathlib import Path

import pytest

from numbench.core.csv_files import read_csv
from numbench.records import Difficulty
from numbench.tasks import PAPER_TASKS
from numbench.tasks.prompts import load_prompt_set
from tests.support.case_tables import each_row
from tests.tasks import golden_items

GOLDEN = json.loads(golden_items.PATH.read_text())
SHARDS = golden_items.shards()


def test_the_first_items_of_every_task_and_setting_are_pinned() -> None:
    assert SHARDS.keys() == GOLDEN["items"].keys()
    chosen = [name for name in SHARDS if ", test," in name and "size 1000" not in name]
    for name in chosen:
        count, expected, _ = GOLDEN["items"][name]
        count = min(golden_items.QUICK_ITEMS, count)
        assert golden_items.item_hash(SHARDS[name], count) == (count, expected), name


@pytest.mark.heavy
@pytest.mark.parametrize("name", SHARDS)
def test_all_items_are_pinned(name: str) -> None:
    count, _, expected = GOLDEN["items"][name]
    assert golden_items.item_hash(SHARDS[name], count) == (count, expected)


@pytest.mark.slow
@pytest.mark.parametrize("name", GOLDEN["datasets"])
def test_whole_datasets_are_pinned(name: str) -> None:
    settings = golden_items.datasets()[name]
    assert golden_items.dataset_hash(settings) == GOLDEN["datasets"][name]


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
