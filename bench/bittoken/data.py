"""Training data as a pure function: seed, number of a chunk, shares → batches.

A chunk is the data of some consecutive steps. Its questions are drawn from random streams of their
own, so that nothing has to be saved to resume a training, and processes can prepare chunks in any
order. Every question is assigned to a split by its content, as in the benchmark's datasets: no
training question is in a test set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from pathlib import Path
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pandas as pd
import pyarrow as pa
from torch.utils.data import DataLoader, Dataset

from bittoken.encodings.base import FloatArray, IntArray
from bittoken.mixture import Mixture
from bittoken.recipe import TEXT, Recipe
from bittoken.text import Split, TextData
from bittoken.tokens import Sample, Samples, Vocabulary, encode_items, group_by_length, pack
from numbench.tasks.decimal_arrays import (
    POWERS_OF_TEN,
    BoolArray,
    DecimalArray,
    digit_count,
)
from numbench.tasks.item_tables import build_item_table
from numbench.tasks.items import SPLIT_BUCKETS
from numbench.tasks.questions import (
    Questions,
    RandomWordArrays,
    in_range,
    in_shard,
    item_hashes,
)
from numbench.tasks.random_words import RandomStream
from numbench.tasks.samplers import pair_questions, with_signs
from numbench.tasks.shards import MIN_BITS, Shard, sample_questions

MAX_LEVELS = 64
"""Maximum number of difficulty levels of a task."""

BINARY_TASKS = ("addition", "multiplication", "division")
"""The tasks that have questions about numbers with few significant bits."""

BINARY_SIZES = (2, 4, 6, 8, 11, 15, 20, 26, 34, 44)
"""The classes of such questions: maximum bits of a significand (division: of divisor, quotient)."""

TEXT_TOKENS_PER_QUESTION = 64
"""The tokens of text that stand for a question in a validation."""

_CHUNK_QUESTIONS, _CHUNK_TOKENS = 1 << 13, 1 << 16
"""A chunk has about so many questions or, where batches are sized in tokens, tokens."""

_COLUMNS = ["id", "operands", "operator", "answer", "difficulty"]
_REFERENCE_ATTEMPTS = 2048
_MIN_QUESTIONS_PER_LEVEL = 64
_MIN_YIELD, _GOOD_YIELD = 0.005, 1 / 32
"""A source that gives fewer questions of a level per attempt is not tried harder; or not used if
another source gives more."""

_FRACTION_BITS, _RANGE_BITS = 10, 49
_FIVES = 5 ** np.arange(_FRACTION_BITS + 1, dtype=np.int64)


class Source(NamedTuple):
    """A distribution of questions about numbers of at most `size` digits or bits.

    kind: "digits": the benchmark's distribution with at most `size` digits. "integers": integers of
    at most `size` bits. "binary": numbers m · 2^e with an m of at most `size` bits; a decimal
    fraction usually needs all 52 bits of the significand of a float64, so that few digits are not
    easier for an encoding in base 2.
    """

    task: str
    kind: Literal["digits", "integers", "binary"]
    size: int

    def draw(self, recipe: Recipe, split: Split, key: int, attempts: int) -> pa.Table:
        """Return the items of a split among these many attempts of the random stream `key`."""
        seed, max_digits = recipe.training.seed, recipe.data.digits
        index = 64 * key + self.size
        if self.kind == "binary":
            stream = RandomStream(seed, f"{self.task} {self.size} bits", split, index)
            questions = _binary_questions(self.task, self.size, stream, attempts, max_digits)
            questions = questions.select(in_shard(questions, split, 0, 1))
        else:
            bits = self.size if self.kind == "integers" else None
            digits = self.size if self.kind == "digits" else 15
            shard = Shard(self.task, seed, split, index, max_digits=digits, max_bits=bits)
            questions = sample_questions(shard, 0, attempts)
        return build_item_table(questions, item_hashes(questions)).select(_COLUMNS)


def sources(recipe: Recipe, task: str, *, easy: bool) -> list[Source]:
    """Return the full distribution of a task and, if `easy`, all easier ones after it.

    Those of a kind are ordered from hard to easy.
    """
    data = recipe.data
    if data.bits is not None:
        easiest = MIN_BITS if easy else data.bits
        return [Source(task, "integers", size) for size in range(data.bits, easiest - 1, -1)]
    found = [Source(task, "digits", size) for size in range(data.digits, 1, -1)]
    if recipe.base == 2 and task in BINARY_TASKS:
        found += [Source(task, "binary", size) for size in reversed(BINARY_SIZES)]
    return found if easy else found[:1]


class TaskQuestions:
    """The questions of one task.

    distribution: the share of each difficulty level in the full distribution; a single level
    without a curriculum. In the paper, every δ is a level. But products of digit counts reach
    thousands, and some δ have so few different questions that none is left for validation.
    """

    def __init__(
        self, recipe: Recipe, task: str, vocabulary: Vocabulary, *, has_levels: bool
    ) -> None:
        self._recipe, self._task, self._vocabulary = recipe, task, vocabulary
        self._sources = sources(recipe, task, easy=has_levels)
        # Key 0 is not used for training: levels do not depend on the split or the step.
        tables = [self._draw(source, "train", 0, _REFERENCE_ATTEMPTS) for source in self._sources]
        full = self._draw(self._sources[0], "train", 0, 16 * _REFERENCE_ATTEMPTS)
        # The full distribution determines the largest δ.
        self._max_difficulty = int(self._difficulties(full).max())
        self._step = -(-(self._max_difficulty + 1) // MAX_LEVELS)
        self._level = np.zeros(MAX_LEVELS, np.int64)
        if has_levels:
            held_out = [self._draw(s, "val", 0, _REFERENCE_ATTEMPTS) for s in self._sources]
            splits = [self._distinct([full, *tables]), self._distinct(held_out)]
            self._level = _merge_sparse(np.stack(splits))
        levels = int(self._level.max()) + 1
        self.distribution = np.bincount(self._levels(full), minlength=levels) / len(full)
        counts = [np.bincount(self._levels(t), minlength=levels) for t in tables]
        self._yields = np.array(counts) / _REFERENCE_ATTEMPTS
        items = pa.concat_tables(tables)
        tokens = [len(sample.tokens) for sample in encode_items(task, items, vocabulary)]
        lengths = np.bincount(self._levels(items), tokens, levels)
        self._lengths = lengths / np.sum(counts, axis=0)

    def _draw(self, source: Source, split: Split, key: int, attempts: float) -> pa.Table:
        """Return questions of a source; other splits are fractions of the training split."""
        factor = len(SPLIT_BUCKETS["train"]) / len(SPLIT_BUCKETS[split])
        return source.draw(self._recipe, split, key, int(factor * attempts))

    def _distinct(self, tables: Sequence[pa.Table]) -> IntArray:
        """Return the number of different questions of each step of δ."""
        items = pa.concat_tables(tables)
        _, first = np.unique(items["id"].to_numpy(), return_index=True)
        return np.bincount(self._steps(self._difficulties(items))[first], minlength=MAX_LEVELS)

    def mean_length(self, shares: FloatArray) -> float:
        """Return the expected tokens of a question if levels have these shares."""
        return float(shares @ self._lengths)

    def draw(
        self, split: Split, key: int, count: int, shares: FloatArray
    ) -> tuple[list[Sample], IntArray]:
        """Return about `count` questions in random order, and their levels.

        shares: of each level. If a level has too few questions, the others get more.
        """
        wanted = count * shares
        tables = [
            self._draw(source, split, key, tries)
            for source, tries in zip(self._sources, self._attempts(wanted), strict=True)
            if tries
        ]
        items = pa.concat_tables(tables)
        order = _shuffled(len(items), f"{self._recipe.training.seed} {self._task} {split} {key}")
        level = self._levels(items)[order]
        # Cumulative rounding, so that the counts add up to `count`.
        counts = np.diff(np.floor(np.cumsum(wanted) + 0.5).astype(np.int64), prepend=0)
        rank = pd.Series(level).groupby(level).cumcount().to_numpy()
        is_chosen = rank < counts[level]
        spare = np.flatnonzero(~is_chosen & (shares[level] > 0))
        is_chosen[spare[: count - is_chosen.sum()]] = True
        chosen = items.take(pa.array(order[is_chosen]))
        return encode_items(self._task, chosen, self._vocabulary), level[is_chosen]

    def _attempts(self, wanted: FloatArray) -> IntArray:
        """Return the attempts for each source.

        Each level comes from the hardest source that is rich in it: easy ones have few questions.
        """
        attempts = np.zeros(len(self._sources))
        for level in np.flatnonzero(wanted):
            source = int(np.minimum(self._yields[:, level], _GOOD_YIELD).argmax())
            needed = wanted[level] / max(self._yields[source, level], _MIN_YIELD)
            attempts[source] = max(attempts[source], 1.2 * needed + 32)
        return np.ceil(attempts).astype(np.int64)

    def _difficulties(self, items: pa.Table) -> IntArray:
        column = items["difficulty"].combine_chunks()
        return np.asarray(column.field(f"base{self._recipe.base}"))

    def _steps(self, delta: IntArray) -> IntArray:
        return np.asarray(np.minimum(delta, self._max_difficulty) // self._step)

    def _levels(self, items: pa.Table) -> IntArray:
        """Return the level of each item; items above the largest δ have the highest level."""
        return np.asarray(self._level[self._steps(self._difficulties(items))])


def _merge_sparse(counts: IntArray) -> IntArray:
    """Return the level of each step of δ.

    Consecutive steps are merged, from the lowest, until a level has _MIN_QUESTIONS_PER_LEVEL in
    every split. If too few remain for another level, they belong to the last one. counts: different
    questions of each split and step, (splits, MAX_LEVELS).
    """
    level, start = np.zeros(MAX_LEVELS, np.int64), 0
    for step in range(1, MAX_LEVELS):
        fewest = min(counts[:, start:step].sum(axis=1).min(), counts[:, step:].sum(axis=1).min())
        is_complete = fewest >= _MIN_QUESTIONS_PER_LEVEL
        level[step] = level[step - 1] + is_complete
        start = step if is_complete else start
    return level


def _shuffled(count: int, name: str) -> IntArray:
    """Return 0 … count − 1 in an order that depends only on the name."""
    words = np.random.Philox(key=RandomStream(0, name, "", 0).philox_key()).random_raw(count)
    return np.argsort(words, kind="stable")


def _binary_questions(
    task: str, size: int, stream: RandomStream, count: int, max_digits: int
) -> Questions:
    """Return questions with operands m · 2^e, printed exactly in plain decimal.

    max_digits: the maximum number of digits of an operand; values above 15 have no effect.
    """
    words = RandomWordArrays(stream, 8, 0, count)
    a, bits_a = _binary_numbers(words, size)
    b, bits_b = _binary_numbers(words, size)
    a, b = with_signs(words, a, b)
    operator = words.randbelow(2) if task == "addition" else 0
    valid = _is_printable(a, max_digits) & _is_printable(b, max_digits)
    if task == "division":
        # The dividend is the product, so that the quotient has few bits too.
        divisor = np.abs(b.significand)
        fits = np.abs(a.significand) < POWERS_OF_TEN[15] // divisor
        product = np.where(fits, a.significand, 1) * np.where(fits, divisor, 1)
        a = DecimalArray(product, a.exponent + b.exponent)
        valid &= fits & _is_printable(a, max_digits)
    params = {"bits_1": bits_a, "bits_2": bits_b}
    return pair_questions(task, (a, b), params, operator).select(valid)


def _binary_numbers(words: RandomWordArrays, size: int) -> tuple[DecimalArray, IntArray]:
    """Return m · 2^e for an odd m of 1 … size bits and a random e in range, and the bits of m."""
    bits = words.randint(1, size)
    m = (np.int64(1) << (bits - 1)) | words.randbelow(np.int64(1) << (bits - 1)) | 1
    e = words.randint(-_FRACTION_BITS, _RANGE_BITS - bits)
    fraction = np.maximum(-e, 0)
    # m · 2^−k is m · 5^k over 10^k.
    whole = m << np.maximum(e, 0)
    fits = m <= POWERS_OF_TEN[15] // _FIVES[fraction]
    significand = np.where(fits, whole * _FIVES[np.where(fits, fraction, 0)], POWERS_OF_TEN[15])
    return DecimalArray(significand, -fraction), bits


def _is_printable(values: DecimalArray, max_digits: int) -> BoolArray:
    """Return whether each number is in range and has at most `max_digits` digits."""
    return np.asarray((digit_count(values.significand) <= min(max_digits, 15)) & in_range(values))


class Batch(NamedTuple):
    """Samples of several tasks, with the task index of each."""

    samples: Samples
    task: IntArray


class TrainingData:
    """The data of all tasks of a recipe."""

    def __init__(
        self, recipe: Recipe, vocabulary: Vocabulary, tokenizer: Path | None = None
    ) -> None:
        """tokenizer: the file of the text vocabulary, if the recipe has text."""
        self._recipe, self._vocabulary = recipe, vocabulary
        tasks = [task for task in recipe.data.tasks if task != TEXT]
        leveled = [task for task in tasks if task in recipe.data.curriculum]
        self._full = {t: TaskQuestions(recipe, t, vocabulary, has_levels=False) for t in tasks}
        self._leveled = {t: TaskQuestions(recipe, t, vocabulary, has_levels=True) for t in leveled}
        self.levels = {task: each.distribution for task, each in self._leveled.items()}
        if tokenizer is not None and recipe.data.text is not None:
            context, seed = recipe.model.context, recipe.training.seed
            self._text = TextData(Path(recipe.data.text), tokenizer, vocabulary, context, seed)

    def steps(self, mixture: Mixture, first: int, last: int) -> Iterator[list[Batch]]:
        """Yield the micro-batches of each of the steps first … last − 1.

        All of them belong to one interval between validations, in which shares do not change.
        """
        training = self._recipe.training
        size = training.batch_questions or training.batch_tokens
        most = _CHUNK_QUESTIONS if training.batch_questions else _CHUNK_TOKENS
        interval = training.validate_every
        length = min(max(most // size, 1), interval)
        start = first - first % interval
        key = 1 + start // interval * -(-interval // length)
        chunks = []
        for number, begin in enumerate(range(start, start + interval, length)):
            steps = min(length, start + interval - begin)
            chosen = range(max(first - begin, 0), min(last - begin, steps))
            if chosen:
                chunks.append((key + number, steps, chosen))
        loader = DataLoader(
            cast(Dataset[Any], chunks),
            batch_size=None,
            collate_fn=partial(self._chunk, mixture),
            num_workers=training.data_workers,
        )
        for prepared in loader:
            yield from prepared

    def _chunk(self, mixture: Mixture, chunk: tuple[int, int, range]) -> list[list[Batch]]:
        """Return the micro-batches of some steps of a chunk.

        chunk: its key, the number of its steps, and the chosen ones.
        """
        key, steps, chosen = chunk
        samples, tasks, positions = list[Sample](), list[int](), list[FloatArray]()
        for index, count in enumerate(self._counts(mixture, steps).tolist()):
            if count:
                task = mixture.tasks[index]
                drawn = self._draw("train", task, key, count, mixture.shares(task))[0]
                samples += drawn
                tasks += [index] * len(drawn)
                # Every step gets the same share of every task.
                positions.append((np.arange(len(drawn)) + 0.5) / len(drawn))
        order, task_of = np.argsort(np.concatenate(positions), kind="stable"), np.array(tasks)
        prepared, limit = [], self._recipe.training.micro_tokens
        for step in chosen:
            rows = order[slice(*(len(order) * k // steps for k in (step, step + 1)))]
            groups = group_by_length([len(samples[row].tokens) for row in rows], limit)
            prepared.append([self._batch(samples, task_of, rows[group]) for group in groups])
        return prepared

    def _batch(self, samples: Sequence[Sample], task_of: IntArray, rows: IntArray) -> Batch:
        return Batch(pack([samples[row] for row in rows], self._vocabulary), task_of[rows])

    def _counts(self, mixture: Mixture, steps: int) -> IntArray:
        """Return the number of questions of each task, for text of tokens, in so many steps."""
        training = self._recipe.training
        counts = mixture.ratios * steps * (training.batch_questions or training.batch_tokens)
        if not training.batch_questions:
            for number, task in enumerate(mixture.tasks):
                if task != TEXT:
                    counts[number] /= self._questions(task).mean_length(mixture.shares(task))
        # Cumulative rounding, so that the questions of all tasks add up.
        ends: IntArray = np.floor(counts.cumsum() + 0.5).astype(np.int64)
        return np.diff(ends, prepend=0)

    def validation(
        self, number: int, task: str, shares: FloatArray | None = None
    ) -> tuple[Samples, IntArray]:
        """Return the questions of a task in a validation, and their levels.

        shares: of the levels. Without them, questions are drawn from the full distribution.
        """
        count = self._recipe.training.validation_items
        if task == TEXT:
            samples, level = self._draw(
                "val", task, number, TEXT_TOKENS_PER_QUESTION * count, np.ones(1)
            )
        elif shares is None:
            samples, level = self._full[task].draw("val", 2 * number, count, np.ones(1))
        else:
            samples, level = self._draw("val", task, 2 * number + 1, count, shares)
        return pack(samples, self._vocabulary), level

    def _questions(self, task: str) -> TaskQuestions:
        return self._leveled.get(task, self._full[task])

    def _draw(
        self, split: Split, task: str, key: int, count: int, shares: FloatArray
    ) -> tuple[list[Sample], IntArray]:
        """Return `count` questions and their levels, or windows of about `count` tokens of text."""
        if task == TEXT:
            windows = self._text.draw(split, key, count)
            return windows, np.zeros(len(windows), np.int64)
        return self._questions(task).draw(split, key, count, shares)
