"""Shards: endless, reproducible streams of distinct items that make up a split."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from dataclasses import dataclass, replace
from itertools import islice
from typing import TYPE_CHECKING

import msgspec

from numbench.errors import BadInput, bad_input_at
from numbench.records import Item
from numbench.tasks import TASKS
from numbench.tasks.base import SamplingSettings, answer_question, sample_question
from numbench.tasks.exact_arithmetic import in_range
from numbench.tasks.items import make_item, shard_of, split_of
from numbench.tasks.random_words import RandomStream, RandomWords, attempts

if TYPE_CHECKING:
    import pyarrow as pa

    from numbench.tasks.questions import Questions

INTEGER_TASKS = ("minmax", "interval", "sorting", "addition", "multiplication", "division")
"""The tasks with questions about integers of few bits (`SamplingSettings.max_bits`)."""

MIN_BITS, MAX_BITS = 2, 24
"""The range of `SamplingSettings.max_bits`; a product of two operands has at most 15 digits."""

MAX_SHIFT = 6
"""The largest `SamplingSettings.max_shift`."""

_WORDS_OF_INTEGERS = 9

_GOLDEN_RATIO = 0x9E3779B97F4A7C15


def check_bits(tasks: Iterable[str], max_bits: int, max_shift: int = 0) -> None:
    """Raise BadInput if one of the tasks has no questions about integers of so few bits."""
    if not MIN_BITS <= max_bits <= MAX_BITS:
        raise BadInput(f"{max_bits} bits: use {MIN_BITS} to {MAX_BITS}")
    if not 0 <= max_shift <= MAX_SHIFT:
        raise BadInput(f"a shift of {max_shift}: use 0 to {MAX_SHIFT}")
    for task in tasks:
        if task not in INTEGER_TASKS:
            raise BadInput(
                f"{task} has no questions about integers of few bits; use "
                f"{', '.join(INTEGER_TASKS)}"
            )


@dataclass(frozen=True)
class Shard:
    """A part of the items of one task and split.

    A shard has its own random stream. It keeps the items of its split whose content hash assigns
    them to it among `count` shards, so that shards share no item.
    """

    task: str
    seed: int = 1
    split: str = "test"
    index: int = 0
    count: int = 1
    max_digits: int = 15
    max_bits: int | None = None
    max_shift: int = 0
    question_size: int | str | None = None

    @property
    def settings(self) -> SamplingSettings:
        """The settings of the task's sampler."""
        return SamplingSettings(self.max_digits, self.max_bits, self.max_shift, self.question_size)

    @property
    def stream(self) -> RandomStream:
        """The random stream of this shard."""
        name = TASKS[self.task].stream_name or self.task
        if self.max_bits is not None:
            name += f" of integers, {self.max_bits} bits, shift {self.max_shift}"
        if self.question_size is not None:
            name += f" of size {self.question_size}"
        return RandomStream(self.seed, name, self.split, self.index)

    @property
    def words_per_attempt(self) -> int:
        """The number of random words of an attempt."""
        task = TASKS[self.task]
        if task.sizes is not None:
            assert isinstance(self.question_size, int)
            return task.sizes.words(self.question_size)
        return task.words_per_attempt if self.max_bits is None else _WORDS_OF_INTEGERS


ATTEMPTS_PER_BATCH = 16_384
"""Attempts per batch: small enough for the cache, large enough to hide Python's overhead."""

_FIRST_ATTEMPTS, _ITEMS_PER_TABLE = 32, 100

EXHAUSTION_WINDOW = 1 << 18
MIN_NEW_FRACTION = 1 / 1000
"""A task sampled in arrays is exhausted if a smaller share of EXHAUSTION_WINDOW consecutive items
(of one of n shards: a window n times as small) is new."""

MAX_ATTEMPTS_WITHOUT_NEW = 1 << 13
"""A task sampled one by one is exhausted after so many attempts without a new item for each of
its shards: there are few questions of one digit, and perhaps none in a split."""


def generate_items(shard: Shard) -> Iterator[Item]:
    """Yield the distinct items of a shard in order, until hardly any further item is new.

    Those of several sizes take turns, until one size has no further item.

    Raises BadInput if the task samples a question that has no exact answer.
    """
    if isinstance(shard.question_size, str):
        sizes = [int(size) for size in shard.question_size.split(",")]
        # Scattered, so that the first items of a task, `--limit`, are of small and large sizes.
        sizes.sort(key=lambda size: size * _GOLDEN_RATIO % 2**64)
        of_sizes = [generate_items(replace(shard, question_size=size)) for size in sizes]
        for items in zip(*of_sizes, strict=False):
            yield from items
        return
    if TASKS[shard.task].sample:
        yield from _one_by_one(shard)
        return
    for table in _in_arrays(shard, ATTEMPTS_PER_BATCH, _FIRST_ATTEMPTS):
        yield from msgspec.convert(table.to_pylist(), list[Item])


def generate_tables(shard: Shard, rows: int) -> Iterator[pa.Table]:
    """Yield the first `rows` items of a shard in order, or all, in tables of some thousands."""
    for whole in _in_tables(shard) if TASKS[shard.task].sample else _in_arrays(shard, rows):
        table = whole.slice(0, rows)
        yield table
        rows -= len(table)
        if not rows:
            return


def sample_questions(shard: Shard, first: int, count: int) -> Questions:
    """Return the questions of attempts first … first + count − 1 that belong to a shard.

    The task is one of the paper.
    """
    from numbench.tasks.questions import RandomWordArrays, in_shard
    from numbench.tasks.samplers import sample

    words = RandomWordArrays(shard.stream, shard.words_per_attempt, first, count)
    questions = sample(shard.task, words, shard.settings)
    return questions.select(in_shard(questions, shard.split, shard.index, shard.count))


def _in_arrays(shard: Shard, rows: int, batch: int = ATTEMPTS_PER_BATCH) -> Iterator[pa.Table]:
    """Yield all items of a task of the paper. The first batch has `batch` attempts."""
    from numbench.tasks.item_tables import build_item_table
    from numbench.tasks.questions import SeenHashes, item_hashes

    seen = SeenHashes(rows)
    candidates = new = first = 0
    while True:
        questions = sample_questions(shard, first, batch)
        first, batch = first + batch, min(2 * batch, ATTEMPTS_PER_BATCH)
        hashes = item_hashes(questions)
        fresh = seen.add(hashes)
        candidates, new = candidates + len(fresh), new + int(fresh.sum())
        yield build_item_table(questions.select(fresh), hashes[fresh])
        if not seen.count and first >= EXHAUSTION_WINDOW * shard.count:
            return
        if candidates >= EXHAUSTION_WINDOW / shard.count:
            if new < candidates * MIN_NEW_FRACTION:
                return
            candidates = new = 0


def _in_tables(shard: Shard) -> Iterator[pa.Table]:
    """Yield all items of a task with a scalar sampler."""
    import pyarrow as pa

    items = generate_items(shard)
    while batch := list(islice(items, _ITEMS_PER_TABLE)):
        yield pa.Table.from_pylist(msgspec.to_builtins(batch))


def _one_by_one(shard: Shard) -> Iterator[Item]:
    """Yield all items of a task with a scalar sampler. Raises BadInput for a fault of the task."""
    seen: set[str] = set()
    params: set[str] | None = None
    since_new = 0
    # A plugin may discard most attempts; and one of n shards has a question n times as rarely.
    limit = MAX_ATTEMPTS_WITHOUT_NEW * (shard.count if shard.question_size else 8 * shard.count)
    for words in attempts(shard.stream, shard.words_per_attempt):
        since_new += 1
        if since_new > limit:
            return
        with bad_input_at(f"task {shard.task!r}", ValueError):
            item = _make_attempt(shard, words)
            if item is not None and params not in (None, set(item.params)):
                raise ValueError("Task.sample has to return the same keys of params each time")
        if item is not None and item.id not in seen:
            seen.add(item.id)
            params, since_new = set(item.params), 0
            yield item


def _make_attempt(shard: Shard, words: RandomWords) -> Item | None:
    """Return the item of one attempt; None if it breaks a rule or is not part of the shard."""
    task = TASKS[shard.task]
    question = sample_question(task, words, shard.settings)
    if question is None or split_of(question.operands) != shard.split:
        return None
    if shard.count > 1 and shard_of(question.operands, shard.count) != shard.index:
        return None
    answer = answer_question(task, question)
    if task.metric == "log_smape" and not in_range(str(answer)):
        return None
    return make_item(task.name, *question, answer=answer)
