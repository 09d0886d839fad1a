"""A stock of questions: each given once, of the levels that are wanted."""

from __future__ import annotations

import json
from dataclasses import dataclass

import msgspec
import numpy as np
import pyarrow as pa
import pytest

from bench.bittoken.data.pool import LEVELS, Pool, Scale
from bench.bittoken.data.sources import Source, sources


@dataclass
class Numbered:
    """Blocks of items that bear a number each, with δ drawn from `deltas` in turn."""

    name: str
    deltas: tuple[int, ...]
    size: int = 100
    read: int = 0

    def block(self, number: int) -> pa.Table:
        self.read += 1
        own = np.arange(number * self.size, (number + 1) * self.size)
        delta = np.array(self.deltas)[own % len(self.deltas)]
        names = [f"{self.name}{i}" for i in own]
        return pa.table(
            {
                "operands": [[name] for name in names],
                "operator": pa.array(["+"] * self.size),
                "answer": [str(d) for d in delta],
                "difficulty": pa.StructArray.from_arrays([delta, 2 * delta], ["base10", "base2"]),
            }
        )


def scale(*deltas: int) -> Scale:
    return Scale([Numbered("scale", deltas, size=64 * len(deltas))], 10)


def names(items: pa.Table) -> list[str]:
    return [row[0] for row in items["operands"].to_pylist()]


def levels(items: pa.Table) -> list[int]:
    return [int(delta) for delta in items["answer"].to_pylist()]


def test_no_item_is_given_twice() -> None:
    pool = Pool([Numbered("a", (0, 1, 2, 2)), Numbered("b", (2, 1))], scale(0, 1, 2))
    given: list[str] = []
    for wanted in ([30, 30, 30], [0, 90, 5], [200, 0, 0], [1, 1, 400]):
        items, _ = pool.take(np.array(wanted))
        given += names(items)
    assert len(given) == 90 + 95 + 200 + 402
    assert len(set(given)) == len(given)


def test_exactly_the_levels_wanted_are_given() -> None:
    pool = Pool([Numbered("a", (0, 0, 0, 1)), Numbered("b", (2, 2, 2, 1))], scale(0, 1, 2))
    for wanted in ([3, 40, 9], [60, 1, 0], [0, 0, 70], [100, 100, 100]):
        items, level = pool.take(np.array(wanted))
        assert np.bincount(level, minlength=3).tolist() == wanted
        assert levels(items) == level.tolist()


def test_a_level_without_items_is_made_up_from_the_other_wanted_ones() -> None:
    pool = Pool([Numbered("a", (0, 1, 2))], scale(0, 1, 2, 3))
    _, level = pool.take(np.array([0, 20, 10, 30]))
    given = np.bincount(level, minlength=4)
    assert given.sum() == 60
    assert given[0] == given[3] == 0
    assert given[1] >= 20
    assert given[2] >= 10


def test_the_oldest_of_a_level_go_first() -> None:
    pool = Pool([Numbered("a", (0,))], None)
    assert names(pool.take(np.array([5]))[0]) == [f"a{i}" for i in range(5)]
    assert names(pool.take(np.array([5]))[0]) == [f"a{i}" for i in range(5, 10)]


def test_the_source_that_gives_most_is_read() -> None:
    rich, poor = Numbered("rich", (1,)), Numbered("poor", (0, 0, 0, 1))
    Pool([poor, rich], scale(0, 1)).take(np.array([0, 300]))
    assert (poor.read, rich.read) == (1, 3)


@pytest.mark.parametrize("wanted", [3000, 25_000])
@pytest.mark.parametrize("split", ["train", "val"])
def test_a_large_batch_is_given_whole(wanted: int, split: str) -> None:
    source = Source("addition", 15, False, split, seed=1)
    items, _ = Pool([source], None).take(np.array([wanted]))
    assert len(items) == wanted


def test_a_restored_pool_goes_on_as_if_nothing_had_been() -> None:
    found = sources(
        "multiplication", split="train", seed=3, process=0, max_digits=15, easy=True, base=2
    )
    measure = Scale(found, 2)
    pool, wanted = Pool(found, measure), np.full(measure.levels, 7)
    pool.take(wanted)
    given, stock = pool.state()
    other = Pool(found, measure)
    other.restore(json.loads(msgspec.json.encode(given)), stock)
    for _ in range(3):
        (mine, level), (theirs, their_level) = pool.take(wanted), other.take(wanted)
        assert mine.equals(theirs)
        assert level.tolist() == their_level.tolist()
    assert other.state()[0] == pool.state()[0]


def test_a_pool_that_was_never_asked_is_saved_and_restored() -> None:
    pool, other = (Pool([Numbered("a", (0,))], None) for _ in range(2))
    given, stock = pool.state()
    other.restore(json.loads(msgspec.json.encode(given)), stock)
    assert names(other.take(np.array([3]))[0]) == names(pool.take(np.array([3]))[0])


def test_levels_follow_difficulty_and_none_is_without_questions() -> None:
    for task in ("exponentiation", "mean"):
        for digits in (2, 15):
            for base in (2, 10):
                found = sources(
                    task,
                    split="train",
                    seed=3,
                    process=0,
                    max_digits=digits,
                    easy=True,
                    base=base,
                )
                measure = Scale(found, base)
                blocks = [source.block(0) for source in found]
                items = pa.concat_tables(block.select(["difficulty"]) for block in blocks)
                level = measure.level(items)
                delta = np.array([row[f"base{base}"] for row in items["difficulty"].to_pylist()])
                order = np.argsort(delta, kind="stable")
                assert (np.diff(level[order]) >= 0).all()
                counts = np.bincount(level)
                assert len(counts) == measure.levels <= LEVELS
                assert counts.min() >= 32
                assert level.min() == 0


def test_steps_of_difficulty_with_few_questions_are_joined() -> None:
    # 64 questions of δ 1, 2 and 9 each: a level ends where it has enough.
    measure = scale(1, 2, 9)
    assert measure.levels == 3
    items = Numbered("any", (0, 1, 2, 3, 8, 9, 10, 200), size=8).block(0)
    assert measure.level(items).tolist() == [0, 0, 1, 2, 2, 2, 2, 2]


def test_too_few_hard_questions_are_no_level_of_their_own() -> None:
    measure = Scale([Numbered("scale", (1,) * 50 + (2,) * 49 + (3,))], 10)
    assert measure.levels == 2
    assert measure.level(Numbered("any", (1, 2, 3), size=3).block(0)).tolist() == [0, 1, 1]


def test_large_difficulties_share_levels() -> None:
    # 0 … 199 in at most 64 levels: 4 to a step, 50 levels.
    measure = scale(*range(200))
    assert (measure.step, measure.levels) == (4, 50)
    items = Numbered("any", (0, 3, 4, 199, 5000), size=5).block(0)
    assert measure.level(items).tolist() == [0, 0, 1, 49, 49]
