"""Training questions: exact, of their split alone, and never one of a test set."""

from __future__ import annotations

from fractions import Fraction

import numpy as np
import pyarrow as pa
import pytest

from bench.batch import rows
from bench.batch.fixed import Numbers
from bench.batch.questions import Questions
from bench.batch.words import Words
from bench.bittoken.data import binary
from bench.bittoken.data.sources import Source, difficulties, sources
from bench.dataset.store import open_dataset
from bench.numerals import parse, reduced
from bench.records import Item
from bench.tasks import TASKS
from bench.tasks.items import split_of

ALL = [
    source
    for task in TASKS
    for source in sources(task, split="train", seed=5, process=1, max_digits=15, easy=True, base=2)
]


def checked(table: pa.Table, max_digits: int) -> int:
    """How many items there are, after each was held against the plain definitions."""
    for item in table.to_pylist():
        operands, answer = tuple(item["operands"]), item["answer"]
        answer = tuple(answer) if isinstance(answer, list) else answer
        task = TASKS[item["task"]]
        assert split_of(operands) == "train"
        assert answer == task.truth(item["operator"], operands)
        plain = task.difficulty(item["operator"], operands, answer)
        assert item["difficulty"] == {"base10": plain.base10, "base2": plain.base2}
        for operand in operands:
            assert len(str(abs(reduced(parse(operand)).significand))) <= max_digits
    return len(table)


@pytest.mark.parametrize("source", ALL, ids=lambda s: f"{s.task}-{s.size}{'b' * s.bits}")
def test_items_are_exact_and_of_the_training_split(source: Source) -> None:
    # The largest numbers of a list have three digits where two are asked for.
    of_lists = source.task in ("minmax", "interval", "sorting", "mean", "std")
    digits = 15 if source.bits else max(source.size, 3 if of_lists else 0)
    assert checked(source.block(2).slice(0, 60), digits) >= 20


@pytest.mark.parametrize("task", TASKS)
@pytest.mark.parametrize("base", [2, 10])
def test_no_operand_has_more_digits_than_asked_for(task: str, base: int) -> None:
    few = sources(task, split="train", seed=5, process=0, max_digits=4, easy=True, base=base)
    assert sum(checked(source.block(0).slice(0, 60), 4) for source in few) > 150


def test_each_process_and_split_has_items_of_its_own() -> None:
    source = Source("multiplication", 15, False, "train", seed=1)
    others = [
        source._replace(process=1),
        source._replace(split="val"),
        source._replace(seed=2),
        source._replace(size=14),
    ]
    mine = set(source.block(0)["id"].to_pylist())
    assert mine == set(source.block(0)["id"].to_pylist())
    for other in others:
        assert not mine & set(other.block(0)["id"].to_pylist())
    assert not mine & set(source.block(1)["id"].to_pylist())


def test_difficulties_are_those_of_the_base() -> None:
    items = Source("addition", 15, False, "train", seed=1).block(0)
    for base in (2, 10):
        plain = [row["difficulty"][f"base{base}"] for row in items.to_pylist()]
        assert difficulties(items, base).tolist() == plain


@pytest.fixture(scope="module")
def benchmark() -> dict[str, list[Item]]:
    return open_dataset("v1").by_task


def test_no_item_of_the_benchmark_is_among_200_000_for_training(
    benchmark: dict[str, list[Item]],
) -> None:
    held_out = {item.id for items in benchmark.values() for item in items}
    assert len(held_out) == 4500
    made = 0
    for task in TASKS:
        source = Source(task, 15, False, "train", seed=0)
        for number in range(18):
            ids = source.block(number)["id"].to_pylist()
            made += len(ids)
            assert not held_out.intersection(ids)
    assert made >= 200_000


Params = list[dict[str, int]]


def planted(task: str, operands: list[tuple[str, ...]], params: Params) -> Questions:
    """Candidates with exactly these operands."""
    length = np.array([len(texts) for texts in operands])
    shape = (len(operands), int(length.max()))
    significand, exponent = np.zeros(shape, np.int64), np.zeros(shape, np.int64)
    for row, texts in enumerate(operands):
        numbers = [parse(text) for text in texts]
        grid = min(number.exponent for number in numbers)
        for column, number in enumerate(numbers):
            # The numbers of a list lie on one grid; operands of a pair keep their own.
            own = grid if len(texts) > 2 or task in ("minmax", "sorting") else number.exponent
            significand[row, column] = number.significand * 10 ** (number.exponent - own)
            exponent[row, column] = own
    columns = {name: np.array([row[name] for row in params]) for name in params[0]}
    operator = np.zeros(len(operands), np.int64)
    valid = np.ones(len(operands), np.bool_)
    return Questions(task, Numbers(significand, exponent), length, operator, columns, valid)


def leaving(source: Source) -> set[tuple[Fraction, ...]]:
    found = source.block(0)["operands"].to_pylist()
    return {tuple(Fraction(operand) for operand in operands) for operands in found}


def of_value(operands: list[tuple[str, ...]]) -> set[tuple[Fraction, ...]]:
    return {tuple(Fraction(text) for text in texts) for texts in operands}


@pytest.mark.parametrize("task", TASKS)
def test_a_planted_test_item_never_leaves(
    task: str, benchmark: dict[str, list[Item]], monkeypatch: pytest.MonkeyPatch
) -> None:
    test = [item.operands for item in benchmark[task]]
    params = [item.params for item in benchmark[task]]
    others = Source(task, 15, False, "train", seed=99).block(0).slice(0, 500).to_pylist()
    control = [tuple(other["operands"]) for other in others]

    def proposing(words: Words, max_digits: int) -> Questions:
        return planted(task, test + control, params + [other["params"] for other in others])

    monkeypatch.setitem(rows.SAMPLERS, task, proposing)
    out = leaving(Source(task, 15, False, "train", seed=0))
    assert not out & of_value(test)
    assert of_value(control) <= out


@pytest.mark.parametrize("task", ["addition", "multiplication"])
def test_a_planted_test_item_of_few_bits_never_leaves(
    task: str, monkeypatch: pytest.MonkeyPatch
) -> None:
    pairs = {}
    for split in ("test", "train"):
        short = Source(task, 6, True, split, seed=3).block(0)["operands"].to_pylist()
        pairs[split] = [tuple(text.lstrip("-") for text in operands) for operands in short]
    assert min(map(len, pairs.values())) > 20
    both = pairs["test"] + pairs["train"]
    numbers = planted(task, both, [{} for _ in both]).operands
    columns = iter([0, 1])

    def proposed(words: Words, size: int) -> tuple[Numbers, np.ndarray]:
        words.between(1, 2), words.below(2), words.between(1, 2)
        column = next(columns)
        own = Numbers(*(part[:, column] for part in numbers))
        repeats = np.resize(np.arange(len(own.significand)), words.below(1).size)
        return own.where(repeats), np.ones(len(repeats), np.int64)

    monkeypatch.setattr(binary, "_number", proposed)
    monkeypatch.setattr(binary, "_WORDS", 12)
    found = Source(task, 6, True, "train", seed=0).block(0)["operands"].to_pylist()
    out = {tuple(abs(Fraction(text)) for text in operands) for operands in found}
    assert not out & of_value(pairs["test"])
    assert out == of_value(pairs["train"])
