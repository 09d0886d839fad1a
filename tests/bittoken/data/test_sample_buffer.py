"""The sample buffer returns each question once, of the requested levels."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from bittoken.data.question_sources import (
    GeneratedSource,
    difficulties,
    generated_sources,
)
from bittoken.data.sample_buffer import MAX_LEVELS, DifficultyLevels, SampleBuffer


@dataclass
class CountingSource:
    """A source of numbered items whose δ cycles through `deltas`."""

    name: str
    deltas: tuple[int, ...]
    size: int = 100
    blocks_read: int = 0

    def block(self, number: int) -> pa.Table:
        self.blocks_read += 1
        numbers = np.arange(number * self.size, (number + 1) * self.size)
        delta = np.array(self.deltas)[numbers % len(self.deltas)]
        names = [f"{self.name}{i}" for i in numbers]
        return pa.table(
            {
                "operands": [[name] for name in names],
                "operator": pa.array(["+"] * self.size),
                "answer": [str(d) for d in delta],
                "difficulty": pa.StructArray.from_arrays([delta, 2 * delta], ["base10", "base2"]),
            }
        )


def scale(*deltas: int) -> DifficultyLevels:
    return DifficultyLevels([CountingSource("scale", deltas, size=64 * len(deltas))], 10)


def names(items: pa.Table) -> list[str]:
    return [row[0] for row in items["operands"].to_pylist()]


def levels(items: pa.Table) -> list[int]:
    return [int(delta) for delta in items["answer"].to_pylist()]


def test_items_are_never_repeated() -> None:
    buffer = SampleBuffer(
        [CountingSource("a", (0, 1, 2, 2)), CountingSource("b", (2, 1))], scale(0, 1, 2)
    )
    taken: list[str] = []
    for requested in ([30, 30, 30], [0, 90, 5], [200, 0, 0], [1, 1, 400]):
        items, _ = buffer.take(np.array(requested))
        taken += names(items)
    assert len(taken) == 90 + 95 + 200 + 402
    assert len(set(taken)) == len(taken)


def test_take_returns_the_requested_levels() -> None:
    buffer = SampleBuffer(
        [CountingSource("a", (0, 0, 0, 1)), CountingSource("b", (2, 2, 2, 1))], scale(0, 1, 2)
    )
    for requested in ([3, 40, 9], [60, 1, 0], [0, 0, 70], [100, 100, 100]):
        items, level = buffer.take(np.array(requested))
        assert np.bincount(level, minlength=3).tolist() == requested
        assert levels(items) == level.tolist()


def test_other_requested_levels_replace_an_empty_one() -> None:
    buffer = SampleBuffer([CountingSource("a", (0, 1, 2))], scale(0, 1, 2, 3))
    _, level = buffer.take(np.array([0, 20, 10, 30]))
    counts = np.bincount(level, minlength=4)
    assert counts.sum() == 60
    assert counts[0] == counts[3] == 0
    assert counts[1] >= 20
    assert counts[2] >= 10


def test_oldest_items_of_a_level_are_returned_first() -> None:
    buffer = SampleBuffer([CountingSource("a", (0,))], None)
    assert names(buffer.take(np.array([5]))[0]) == [f"a{i}" for i in range(5)]
    assert names(buffer.take(np.array([5]))[0]) == [f"a{i}" for i in range(5, 10)]


def test_source_with_the_largest_expected_gain_is_read() -> None:
    rich, poor = CountingSource("rich", (1,)), CountingSource("poor", (0, 0, 0, 1))
    SampleBuffer([poor, rich], scale(0, 1)).take(np.array([0, 300]))
    assert (poor.blocks_read, rich.blocks_read) == (1, 3)


@pytest.mark.parametrize("requested", [3000, 10_000])
@pytest.mark.parametrize("split", ["train", "val"])
def test_large_requests_are_fulfilled(requested: int, split: str) -> None:
    source = GeneratedSource("addition", 15, False, split, seed=1)
    items, _ = SampleBuffer([source], None).take(np.array([requested]))
    assert len(items) == requested


def test_restored_buffers_return_the_same_items() -> None:
    sources = generated_sources(
        "multiplication", split="train", seed=3, rank=0, max_digits=15, easy=True, base=2
    )
    scale = DifficultyLevels(sources, 2)
    buffer, requested = SampleBuffer(sources, scale), np.full(scale.levels, 7)
    buffer.take(requested)
    state, items = buffer.state()
    other = SampleBuffer(sources, scale)
    other.restore(json.loads(msgspec.json.encode(state)), items)
    for _ in range(3):
        (items, level), (other_items, other_level) = buffer.take(requested), other.take(requested)
        assert items.equals(other_items)
        assert level.tolist() == other_level.tolist()
    assert other.state()[0] == buffer.state()[0]


def test_unused_buffers_are_restored() -> None:
    buffer, other = (SampleBuffer([CountingSource("a", (0,))], None) for _ in range(2))
    state, items = buffer.state()
    other.restore(json.loads(msgspec.json.encode(state)), items)
    assert names(other.take(np.array([3]))[0]) == names(buffer.take(np.array([3]))[0])


@pytest.mark.parametrize(
    ("task", "digits", "base"), [("exponentiation", 15, 2), ("mean", 2, 10), ("mean", 15, 2)]
)
def test_levels_increase_with_difficulty_and_are_not_empty(
    task: str, digits: int, base: int
) -> None:
    sources = generated_sources(
        task, split="train", seed=3, rank=0, max_digits=digits, easy=True, base=base
    )
    levels_of = DifficultyLevels(sources, base)
    blocks = [source.block(0) for source in sources]
    items = pa.concat_tables(block.select(["difficulty"]) for block in blocks)
    level = levels_of.level(items)
    delta = difficulties(items, base)
    order = np.argsort(delta, kind="stable")
    assert (np.diff(level[order]) >= 0).all()
    counts = np.bincount(level)
    assert len(counts) == levels_of.levels <= MAX_LEVELS
    assert counts.min() >= 32
    assert level.min() == 0


def test_steps_with_few_questions_are_merged() -> None:
    # 64 questions for each δ of 1, 2 and 9: a level is complete with 32.
    levels_of = scale(1, 2, 9)
    assert levels_of.levels == 3
    items = CountingSource("any", (0, 1, 2, 3, 8, 9, 10, 200), size=8).block(0)
    assert levels_of.level(items).tolist() == [0, 0, 1, 2, 2, 2, 2, 2]


def test_too_few_hard_questions_belong_to_the_level_below() -> None:
    levels_of = DifficultyLevels([CountingSource("scale", (1,) * 50 + (2,) * 49 + (3,))], 10)
    assert levels_of.levels == 2
    assert levels_of.level(CountingSource("any", (1, 2, 3), size=3).block(0)).tolist() == [0, 1, 1]


def test_large_difficulties_are_grouped() -> None:
    # 0 … 199 in at most 64 levels: 50 levels of 4 steps each.
    levels_of = scale(*range(200))
    assert (levels_of.step, levels_of.levels) == (4, 50)
    items = CountingSource("any", (0, 3, 4, 199, 5000), size=5).block(0)
    assert levels_of.level(items).tolist() == [0, 0, 1, 49, 49]
