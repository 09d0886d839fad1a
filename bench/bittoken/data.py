"""Training data as a pure function: seed, number of a chunk, shares → batches.

A chunk is the data of some consecutive steps. Its questions are drawn from random streams of their
own, so that nothing has to be saved to resume a training, and processes can prepare chunks in any
order. Every question is assigned to a split by its content, as in the benchmark's datasets: no
training question is in a test set.
"""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from functools import partial
from typing import Any, Literal, NamedTuple, cast

import numpy as np
import pyarrow as pa
from torch.utils.data import DataLoader, Dataset

from bittoken.encodings.base import FloatArray, IntArray
from bittoken.mixture import Mixture
from bittoken.recipe import TEXT, Recipe
from bittoken.text import Split, TextData
from bittoken.tokens import Samples, Vocabulary, encode_batch
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
from numbench.tasks.samplers import SIGN_WEIGHTS, SIGNS
from numbench.tasks.shards import MIN_BITS, Shard, sample_questions

MAX_LEVELS = 64
"""Maximum number of difficulty levels of a task."""

BINARY_TASKS = ("addition", "multiplication", "division")
"""The tasks that have questions about numbers with few significant bits."""

BINARY_SIZES = (2, 4, 6, 8, 11, 15, 20, 26, 34, 44)
"""The classes of such questions: maximum bits of a significand (division: of divisor, quotient)."""

TEXT_TOKENS_PER_QUESTION = 64
"""The tokens of text that stand for a question in a validation."""

_MAX_PADDING = 0.05
"""The padding of a micro-batch, at most, as a share of the tokens of its step."""

_CHUNK_QUESTIONS, _CHUNK_TOKENS = 1 << 13, 1 << 16
"""A chunk has about so many questions or, where batches are sized in tokens, tokens."""

_COLUMNS = ["operands", "operator", "answer", "difficulty"]
_REFERENCE_ATTEMPTS = 2048
_MIN_ITEMS_PER_LEVEL = 32
_MIN_YIELD = 0.005
"""A source that gives fewer questions of a level per attempt is not tried harder."""

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
    """Return the full distribution of a task and, if `easy`, all easier ones after it."""
    data = recipe.data
    if data.bits is not None:
        easiest = MIN_BITS if easy else data.bits
        return [Source(task, "integers", size) for size in range(data.bits, easiest - 1, -1)]
    found = [Source(task, "digits", size) for size in range(data.digits, 1, -1)]
    if recipe.base == 2 and task in BINARY_TASKS:
        found += [Source(task, "binary", size) for size in BINARY_SIZES]
    return found if easy else found[:1]


class TaskQuestions:
    """The questions of one task.

    levels: the number of difficulty levels, 1 without a curriculum. In the paper, every δ is a
    level. But products of digit counts reach thousands, and a curriculum would never advance beyond
    a δ that almost no question has.
    """

    def __init__(
        self, recipe: Recipe, task: str, vocabulary: Vocabulary, *, has_levels: bool
    ) -> None:
        self._recipe, self._task, self._vocabulary = recipe, task, vocabulary
        self._sources = sources(recipe, task, easy=has_levels)
        # Key 0 is not used for training: levels do not depend on the split or the step.
        tables = [s.draw(recipe, "train", 0, _REFERENCE_ATTEMPTS) for s in self._sources]
        deltas = [self._difficulties(table) for table in tables]
        # The full distribution determines the largest δ.
        self._max_difficulty = int(deltas[0].max())
        self._step = -(-(self._max_difficulty + 1) // MAX_LEVELS)
        steps = self._steps(np.concatenate(deltas))
        self._level = _merge_sparse(np.bincount(steps)) if has_levels else np.zeros(MAX_LEVELS, int)
        self.levels = int(self._level.max()) + 1
        counts = [np.bincount(self._levels(t), minlength=self.levels) for t in tables]
        self._yields = np.array(counts) / _REFERENCE_ATTEMPTS
        samples = encode_batch(task, pa.concat_tables(tables), vocabulary)
        lengths = np.bincount(self._level[steps], samples.lengths, self.levels)
        self._lengths = lengths / np.sum(counts, axis=0)

    def mean_length(self, shares: FloatArray) -> float:
        """Return the expected tokens of a question if levels have these shares."""
        return float(shares @ self._lengths)

    def draw(
        self, split: Split, key: int, count: int, shares: FloatArray
    ) -> tuple[Samples, IntArray]:
        """Return about `count` questions in random order, and their levels.

        shares: of each level. If a level has too few questions, the others get more.
        """
        wanted = count * shares
        # Yields are those of the training split, of which the others are a fraction.
        factor = len(SPLIT_BUCKETS["train"]) / len(SPLIT_BUCKETS[split])
        tables = [
            source.draw(self._recipe, split, key, int(factor * tries))
            for source, tries in zip(self._sources, self._attempts(wanted), strict=True)
            if tries
        ]
        items = pa.concat_tables(tables)
        order = _shuffled(len(items), f"{self._recipe.training.seed} {self._task} {split} {key}")
        level = self._levels(items)[order]
        # Cumulative rounding, so that the counts add up to `count`.
        counts = np.diff(np.floor(np.cumsum(wanted) + 0.5).astype(np.int64), prepend=0)
        is_chosen = _rank_within(level) < counts[level]
        spare = np.flatnonzero(~is_chosen & (shares[level] > 0))
        is_chosen[spare[: count - is_chosen.sum()]] = True
        rows = order[is_chosen]
        return encode_batch(self._task, items.take(pa.array(rows)), self._vocabulary), level[
            is_chosen
        ]

    def _attempts(self, wanted: FloatArray) -> IntArray:
        """Return the attempts for each source: each level comes from the source rich in it."""
        attempts = np.zeros(len(self._sources))
        for level in np.flatnonzero(wanted):
            source = int(self._yields[:, level].argmax())
            needed = wanted[level] / max(self._yields[source, level], _MIN_YIELD)
            attempts[source] = max(attempts[source], 1.2 * needed + 32)
        return np.ceil(attempts).astype(np.int64)

    def _difficulties(self, items: pa.Table) -> IntArray:
        column = items["difficulty"].combine_chunks()
        return np.asarray(column.field(f"base{self._recipe.base}"))

    def _steps(self, delta: IntArray) -> IntArray:
        steps: IntArray = np.minimum(delta, self._max_difficulty) // self._step
        return steps

    def _levels(self, items: pa.Table) -> IntArray:
        """Return the level of each item; items above the largest δ have the highest level."""
        level: IntArray = self._level[self._steps(self._difficulties(items))]
        return level


def _merge_sparse(counts: IntArray) -> IntArray:
    """Return the level of each step of δ.

    Consecutive steps are merged, from the lowest, until a level has _MIN_ITEMS_PER_LEVEL items. If
    too few items remain for another level, they belong to the last one.
    """
    level, items = np.zeros(MAX_LEVELS, np.int64), 0
    for step in range(1, MAX_LEVELS):
        items += int(counts[step - 1 : step].sum())
        is_complete = min(items, int(counts[step:].sum())) >= _MIN_ITEMS_PER_LEVEL
        level[step] = level[step - 1] + is_complete
        items = 0 if is_complete else items
    return level


def _rank_within(level: IntArray) -> IntArray:
    """Return how many earlier entries have the same level."""
    order = np.argsort(level, kind="stable")
    rank = np.empty_like(level)
    rank[order] = np.arange(len(level)) - np.searchsorted(level[order], level[order])
    return rank


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
    signs = SIGNS[words.weighted_index(SIGN_WEIGHTS)]
    operator = words.randbelow(2) if task == "addition" else np.zeros(count, np.int64)
    valid = _is_printable(a, max_digits) & _is_printable(b, max_digits)
    if task == "division":
        # The dividend is the product, so that the quotient has few bits too.
        fits = a.significand < POWERS_OF_TEN[15] // np.maximum(b.significand, 1)
        product = np.where(fits, a.significand, 1) * np.where(fits, b.significand, 1)
        a = DecimalArray(product, a.exponent + b.exponent)
        valid &= fits & _is_printable(a, max_digits)
    operands = DecimalArray(
        np.stack([a.significand * signs[:, 0], b.significand * signs[:, 1]], 1),
        np.stack([a.exponent, b.exponent], 1),
    )
    params = {"bits_1": bits_a, "bits_2": bits_b}
    return Questions(task, operands, np.full(count, 2), operator, params, valid).select(valid)


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
    flags: BoolArray = (digit_count(values.significand) <= min(max_digits, 15)) & in_range(values)
    return flags


class Batch(NamedTuple):
    """Samples of several tasks, with the task index of each."""

    samples: Samples
    task: IntArray


class TrainingData:
    """The data of all tasks of a recipe."""

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary, text: TextData | None) -> None:
        self._recipe, self._text = recipe, text
        tasks = [task for task in recipe.data.tasks if task != TEXT]
        leveled = [task for task in tasks if task in recipe.data.curriculum]
        self._full = {t: TaskQuestions(recipe, t, vocabulary, has_levels=False) for t in tasks}
        self._leveled = {t: TaskQuestions(recipe, t, vocabulary, has_levels=True) for t in leveled}
        self.levels = {task: questions.levels for task, questions in self._leveled.items()}

    def steps(self, mixture: Mixture, first: int, last: int) -> Iterator[list[Batch]]:
        """Yield the micro-batches of each of the steps first … last − 1.

        All of them belong to one interval between validations, in which shares do not change.
        """
        training = self._recipe.training
        size = training.batch_questions or training.batch_tokens
        most = _CHUNK_QUESTIONS if training.batch_questions else _CHUNK_TOKENS
        interval, start = training.validate_every, first - first % training.validate_every
        length = min(max(most // size, 1), interval)
        chunks = []
        for number, position in enumerate(range(0, interval, length)):
            steps = min(length, interval - position)
            offset = start + position
            chosen = range(max(first - offset, 0), min(last - offset, steps))
            key = 1 + start // interval * -(-interval // length) + number
            if chosen:
                chunks.append((key, steps, chosen))
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
        counts = self._counts(mixture, steps)
        parts = []
        for task, count in zip(mixture.tasks, counts.tolist(), strict=True):
            if task == TEXT and count:
                parts.append(self._text_batch("train", key, count))
            elif count:
                questions, shares = self._questions(task), _level_shares(mixture, task)
                samples = questions.draw("train", key, count, shares)[0]
                parts.append(self._batch(task, samples))
        # Every step gets the same share of every task.
        position = np.concatenate([(np.arange(len(p.task)) + 0.5) / len(p.task) for p in parts])
        order, limit = np.argsort(position, kind="stable"), self._recipe.training.micro_tokens
        rows = [order[slice(*(len(order) * k // steps for k in (s, s + 1)))] for s in chosen]
        return [micro_batches(parts, row, limit) for row in rows]

    def _counts(self, mixture: Mixture, steps: int) -> IntArray:
        """Return the number of questions of each task, for text of tokens, in so many steps."""
        training = self._recipe.training
        counts = mixture.ratios * steps * (training.batch_questions or training.batch_tokens)
        if not training.batch_questions:
            for number, task in enumerate(mixture.tasks):
                if task != TEXT:
                    shares = _level_shares(mixture, task)
                    counts[number] /= self._questions(task).mean_length(shares)
        # Cumulative rounding, so that the questions of all tasks add up.
        ends: IntArray = np.floor(counts.cumsum() + 0.5).astype(np.int64)
        starts: IntArray = np.r_[0, ends[:-1]]
        return ends - starts

    def validation(self, number: int, task: str) -> Batch:
        """Return the questions of a task in a validation, drawn from its full distribution."""
        items = self._recipe.training.validation_items
        if task == TEXT:
            return self._text_batch("val", number, TEXT_TOKENS_PER_QUESTION * items)
        return self._batch(task, self._full[task].draw("val", 2 * number, items, np.ones(1))[0])

    def leveled_validation(
        self, number: int, task: str, shares: FloatArray
    ) -> tuple[Batch, IntArray]:
        """Return the questions of a task in a validation, drawn by level, and their levels."""
        items = self._recipe.training.validation_items
        samples, level = self._leveled[task].draw("val", 2 * number + 1, items, shares)
        return self._batch(task, samples), level

    def _questions(self, task: str) -> TaskQuestions:
        return self._leveled.get(task, self._full[task])

    def _text_batch(self, split: Split, key: int, tokens: int) -> Batch:
        assert self._text is not None
        return self._batch(TEXT, self._text.draw(split, key, tokens))

    def _batch(self, task: str, samples: Samples) -> Batch:
        index = self._recipe.data.tasks.index(task)
        return Batch(samples, np.full(len(samples.lengths), index))


def _level_shares(mixture: Mixture, task: str) -> FloatArray:
    curriculum = mixture.curricula.get(task)
    return curriculum.shares() if curriculum else np.ones(1)


def micro_batches(parts: Sequence[Batch], rows: IntArray, limit: int = 0) -> list[Batch]:
    """Return some rows of the concatenated parts, grouped by similar length.

    limit: the maximum number of tokens of a group, including padding; 0: no limit.
    """
    starts = np.cumsum([0, *(len(part.task) for part in parts)])
    part_of = np.searchsorted(starts, rows, side="right") - 1
    row_of = rows - starts[part_of]
    lengths = np.concatenate([part.samples.lengths for part in parts])[rows]
    padding, groups = _MAX_PADDING * lengths.sum(), list[Batch]()
    order = np.argsort(lengths, kind="stable")[::-1]
    while len(order):
        longest = int(lengths[order[0]])
        # Rows of the longest group, in which padding costs less than another group.
        count = int(np.searchsorted((longest - lengths[order]).cumsum(), padding, side="right"))
        size = max(limit // longest, 1) if limit else count
        for first in range(0, count, size):
            group = order[first : min(first + size, count)]
            groups.append(_gather(parts, part_of[group], row_of[group], lengths[group]))
        order = order[count:]
    return groups


def _gather(
    parts: Sequence[Batch], part_of: IntArray, row_of: IntArray, lengths: IntArray
) -> Batch:
    """Return the rows `row_of` of the parts `part_of`, padded to the longest."""
    shape = len(lengths), int(lengths.max())
    padded = [np.zeros((*shape, *array.shape[2:]), array.dtype) for array in parts[0].samples[:-1]]
    task = np.empty_like(part_of)
    for number in np.unique(part_of):
        mine = part_of == number
        rows, part = row_of[mine], parts[number]
        for target, array in zip(padded, part.samples[:-1], strict=True):
            width = min(shape[1], array.shape[1])
            target[mine, :width] = array[rows, :width]
        task[mine] = part.task[rows]
    tokens, values, codes, is_target = padded
    return Batch(Samples(tokens, values, codes, is_target, lengths), task)
