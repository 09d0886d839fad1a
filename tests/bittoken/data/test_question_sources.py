"""Training questions are exact and never belong to a test set."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from bittoken.data import binary_questions
from bittoken.data.question_sources import GeneratedSource, difficulties, generated_sources
from numbench.dataset.store import open_dataset
from numbench.decimal_numbers import normalize, parse_decimal
from numbench.records import Item
from numbench.tasks import PAPER_TASKS
from numbench.tasks.items import split_of
from numbench.vectorized import item_tables
from numbench.vectorized.decimal_arrays import DecimalArray
from numbench.vectorized.questions import Questions
from numbench.vectorized.random_words import RandomWordArrays

ALL = [
    source
    for task in PAPER_TASKS
    for source in generated_sources(
        task, split="train", seed=5, rank=1, max_digits=15, easy=True, base=2
    )
]


def check_items(table: pa.Table, max_digits: int) -> int:
    """Compare each item with the scalar definitions; return the number of items."""
    for item in table.to_pylist():
        operands, answer = tuple(item["operands"]), item["answer"]
        answer = tuple(answer) if isinstance(answer, list) else answer
        task = PAPER_TASKS[item["task"]]
        assert split_of(operands) == "train"
        assert answer == task.exact_answer(item["operator"], operands)
        plain = task.difficulty(item["operator"], operands, answer)
        assert item["difficulty"] == {"base10": plain.base10, "base2": plain.base2}
        for operand in operands:
            assert len(str(abs(normalize(parse_decimal(operand)).significand))) <= max_digits
    return len(table)


@pytest.mark.parametrize("source", ALL, ids=lambda s: f"{s.task}-{s.size}{'b' * s.bits}")
def test_items_are_exact_and_belong_to_the_training_split(source: GeneratedSource) -> None:
    # Numbers of a list may have three digits even if the size is two.
    is_list = source.task in ("minmax", "interval", "sorting", "mean", "std")
    digits = 15 if source.bits else max(source.size, 3 if is_list else 0)
    assert check_items(source.block(2).slice(0, 60), digits) >= 20


@pytest.mark.parametrize("task", PAPER_TASKS)
@pytest.mark.parametrize("base", [2, 10])
def test_operands_have_at_most_max_digits(task: str, base: int) -> None:
    sources = generated_sources(
        task, split="train", seed=5, rank=0, max_digits=4, easy=True, base=base
    )
    assert sum(check_items(source.block(0).slice(0, 60), 4) for source in sources) > 150


def test_processes_and_splits_have_different_items() -> None:
    source = GeneratedSource("multiplication", 15, False, "train", seed=1)
    others = [
        source._replace(rank=1),
        source._replace(split="val"),
        source._replace(seed=2),
        source._replace(size=14),
    ]
    ids = set(source.block(0)["id"].to_pylist())
    assert ids == set(source.block(0)["id"].to_pylist())
    for other in others:
        assert not ids & set(other.block(0)["id"].to_pylist())
    assert not ids & set(source.block(1)["id"].to_pylist())


def test_difficulties_match_the_scalar_definition() -> None:
    items = GeneratedSource("addition", 15, False, "train", seed=1).block(0)
    for base in (2, 10):
        plain = [row["difficulty"][f"base{base}"] for row in items.to_pylist()]
        assert difficulties(items, base).tolist() == plain


@pytest.fixture(scope="module")
def benchmark() -> dict[str, list[Item]]:
    return open_dataset("v1").by_task


def test_no_item_of_the_benchmark_is_among_50_000_for_training(
    benchmark: dict[str, list[Item]],
) -> None:
    held_out = {item.id for items in benchmark.values() for item in items}
    assert len(held_out) == 4500
    count = 0
    for task in PAPER_TASKS:
        source = GeneratedSource(task, 15, False, "train", seed=0)
        for number in range(5):
            ids = source.block(number)["id"].to_pylist()
            count += len(ids)
            assert not held_out.intersection(ids)
    assert count >= 50_000


Params = list[dict[str, int]]


def make_questions(task: str, operands: list[tuple[str, ...]], params: Params) -> Questions:
    """Return candidates with exactly these operands."""
    length = np.array([len(texts) for texts in operands])
    shape = (len(operands), int(length.max()))
    significand, exponent = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, texts in enumerate(operands):
        numbers = [parse_decimal(text) for text in texts]
        grid = min(number.exponent for number in numbers)
        for column, number in enumerate(numbers):
            # The numbers of a list share an exponent; operands of a pair have their own.
            common = grid if len(texts) > 2 or task in ("minmax", "sorting") else number.exponent
            significand[row, column] = number.significand * 10 ** (number.exponent - common)
            exponent[row, column] = common
    columns = {name: np.array([row[name] for row in params]) for name in params[0]}
    operator = np.zeros(len(operands), np.int64)
    valid = np.ones(len(operands), np.bool_)
    return Questions(task, DecimalArray(significand, exponent), length, operator, columns, valid)


def generated_values(source: GeneratedSource) -> set[tuple[Fraction, ...]]:
    rows = source.block(0)["operands"].to_pylist()
    return {tuple(Fraction(operand) for operand in operands) for operands in rows}


def to_values(operands: list[tuple[str, ...]]) -> set[tuple[Fraction, ...]]:
    return {tuple(Fraction(text) for text in texts) for texts in operands}


@pytest.mark.parametrize("task", PAPER_TASKS)
def test_a_planted_test_item_never_leaves(
    task: str, benchmark: dict[str, list[Item]], monkeypatch: pytest.MonkeyPatch
) -> None:
    test = [item.operands for item in benchmark[task]]
    params = [item.params for item in benchmark[task]]
    others = GeneratedSource(task, 15, False, "train", seed=99).block(0).slice(0, 500).to_pylist()
    control = [tuple(other["operands"]) for other in others]

    def propose(words: RandomWordArrays, max_digits: int) -> Questions:
        return make_questions(task, test + control, params + [other["params"] for other in others])

    monkeypatch.setitem(item_tables.SAMPLERS, task, propose)
    result = generated_values(GeneratedSource(task, 15, False, "train", seed=0))
    assert not result & to_values(test)
    assert to_values(control) <= result


@pytest.mark.parametrize("task", ["addition", "multiplication"])
def test_proposed_test_items_with_few_bits_are_dropped(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = {}
    for split in ("test", "train"):
        rows = GeneratedSource(task, 6, True, split, seed=3).block(0)["operands"].to_pylist()
        pairs[split] = [tuple(text.lstrip("-") for text in operands) for operands in rows]
    assert min(map(len, pairs.values())) > 20
    both = pairs["test"] + pairs["train"]
    numbers = make_questions(task, both, [{} for _ in both]).operands
    columns = iter([0, 1])

    def propose_numbers(words: RandomWordArrays, size: int) -> tuple[DecimalArray, np.ndarray]:
        words.randint(1, 2), words.randbelow(2), words.randint(1, 2)
        column = next(columns)
        values = DecimalArray(*(part[:, column] for part in numbers))
        repeats = np.resize(np.arange(len(values.significand)), words.randbelow(1).size)
        return values.select(repeats), np.ones(len(repeats), np.int64)

    monkeypatch.setattr(binary_questions, "_number", propose_numbers)
    monkeypatch.setattr(binary_questions, "_WORDS", 12)
    rows = GeneratedSource(task, 6, True, "train", seed=0).block(0)["operands"].to_pylist()
    result = {tuple(abs(Fraction(text)) for text in operands) for operands in rows}
    assert not result & to_values(pairs["test"])
    assert result == to_values(pairs["train"])
