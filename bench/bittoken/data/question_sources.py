"""Sources of training questions: endless streams of items of one task, generated or stored."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path
from typing import NamedTuple, Protocol

import numpy as np
import pyarrow as pa
import pyarrow.compute as pc
import pyarrow.parquet as pq

from bittoken.data import binary_questions
from bittoken.encodings.base import IntArray
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput
from numbench.tasks.shards import Shard
from numbench.tasks.short_integers import MIN_BITS
from numbench.vectorized.decimal_arrays import DecimalArray
from numbench.vectorized.item_tables import build_item_table, sample_questions
from numbench.vectorized.questions import Questions, in_shard, item_hashes

BLOCK_SIZE = 2048
"""Sampling attempts, or stored items, per block."""


class QuestionSource(Protocol):
    """An endless stream of items of one task, in blocks. Each block is deterministic."""

    def block(self, number: int) -> pa.Table:
        """Return items with at least the columns operands, operator, answer and difficulty."""
        ...


class GeneratedSource(NamedTuple):
    """Generated questions of one task with operands of at most `size` decimal digits, or bits.

    Sampling attempt i is the same in every process. Only items of `split` are returned, whatever
    the seed, so that no training question is in a test set.
    """

    task: str
    size: int
    bits: bool
    split: str
    seed: int
    rank: int = 0
    max_digits: int = 15

    def block(self, number: int) -> pa.Table:
        """Return the items among attempts BLOCK_SIZE · number … BLOCK_SIZE · (number + 1) − 1."""
        first = BLOCK_SIZE * number
        if self.bits:
            questions = binary_questions.sample(
                self.task,
                self.size,
                seed=self.seed,
                split=self.split,
                index=self.rank,
                first=first,
                count=BLOCK_SIZE,
                max_digits=self.max_digits,
            )
        else:
            # Each size has its own random stream: with a common one, questions would be similar.
            stream = self.rank * 64 + self.size
            shard = Shard(self.task, self.seed, self.split, stream, 1, self.size)
            questions = sample_questions(shard, first, BLOCK_SIZE)
        # The exponent of a root is printed with as many digits as the operands of its stream.
        digits = self.max_digits if self.bits else self.size
        return build_item_table(questions, item_hashes(questions), digits)


class ShortIntegerSource(NamedTuple):
    """Generated questions of one task about integers of at most `bits` bits.

    shift: the largest power of ten that divides operands, see `SamplingSettings.max_shift`.
    """

    task: str
    bits: int
    shift: int
    split: str
    seed: int
    rank: int = 0

    def block(self, number: int) -> pa.Table:
        """Return the items among attempts BLOCK_SIZE · number … BLOCK_SIZE · (number + 1) − 1."""
        shard = Shard(
            self.task,
            self.seed,
            self.split,
            self.rank,
            max_bits=self.bits,
            max_shift=self.shift,
        )
        # The index selects the random stream only; every shard contains the whole split.
        questions = sample_questions(shard, BLOCK_SIZE * number, BLOCK_SIZE)
        return build_item_table(questions, item_hashes(questions), shard.max_digits)


def short_integer_sources(
    task: str, *, split: str, seed: int, rank: int, bits: int, shift: int, easy: bool
) -> list[ShortIntegerSource]:
    """Return the questions of at most `bits` bits and, if `easy`, those of fewer bits after it."""
    smallest = MIN_BITS if easy else bits
    return [
        ShortIntegerSource(task, size, shift, split, seed, rank)
        for size in range(bits, smallest - 1, -1)
    ]


def generated_sources(
    task: str, *, split: str, seed: int, rank: int, max_digits: int, easy: bool, base: int
) -> list[GeneratedSource]:
    """Return the full distribution of a task and, if `easy`, all easier ones after it.

    base: 2 adds questions with few significant bits, if the task has them. rank: the process; each
    has its own random streams.
    """
    full = GeneratedSource(task, max_digits, False, split, seed, rank, max_digits)
    if not easy:
        return [full]
    sources = [full._replace(size=size) for size in range(max_digits, 1, -1)]
    if base == 2 and task in binary_questions.TASKS:
        sources += [full._replace(size=size, bits=True) for size in binary_questions.SIZES]
    return sources


def difficulties(items: pa.Table, base: int) -> IntArray:
    """Return δ of each item, computed from its decimal or binary digits."""
    column = items["difficulty"].combine_chunks()
    delta: IntArray = np.asarray(column.field(f"base{base}"))
    return delta


_COLUMNS = ["operands", "operator", "answer", "difficulty"]


class DatasetSource:
    """The items of one task in a Parquet dataset, in order, repeated endlessly.

    Process `rank` of `world_size` reads every `world_size`-th block. `block` raises BadInput if an
    item does not belong to `split`, so that no item of a test set is used for training.
    """

    def __init__(
        self, folder: Path, task: str, *, split: str = "train", rank: int = 0, world_size: int = 1
    ) -> None:
        """Raises BadInput if the dataset lacks the task or is not stored as Parquet."""
        dataset = open_dataset(folder)
        files = [folder / entry.file for entry in dataset.manifest.files if entry.task == task]
        if not files:
            raise BadInput(f"{folder}: no task {task!r}; it has {', '.join(dataset.tasks)}")
        if any(file.suffix != ".parquet" for file in files):
            raise BadInput(f"{folder}: not a Parquet dataset; generate it with --format parquet")
        self._task, self._split, self._files = task, split, files
        self._rank, self._world_size = rank, world_size
        self._cached_key: tuple[int, int] | None = None
        self._cached_rows: pa.Table = pa.table({})

    def block(self, number: int) -> pa.Table:
        """Return block `number` of this process; after the last block, the first one follows."""
        index = (number * self._world_size + self._rank) % len(self._blocks)
        file, group, first = self._blocks[index]
        items = self._row_group(file, group).slice(first, BLOCK_SIZE)
        self._check_split(items, self._files[file], group, first)
        return items

    @cached_property
    def _blocks(self) -> list[tuple[int, int, int]]:
        """The file, row group and first row of every block."""
        blocks = []
        for file, path in enumerate(self._files):
            metadata = _open_parquet(path).metadata
            for group in range(metadata.num_row_groups):
                rows = metadata.row_group(group).num_rows
                blocks += [(file, group, first) for first in range(0, rows, BLOCK_SIZE)]
        if not blocks:
            raise BadInput(f"{self._files[0].parent}: no items of task {self._task!r}")
        return blocks

    def _row_group(self, file: int, group: int) -> pa.Table:
        if self._cached_key != (file, group):
            path = self._files[file]
            try:
                self._cached_rows = _open_parquet(path).read_row_group(group, columns=_COLUMNS)
            except (pa.ArrowInvalid, OSError) as error:
                raise BadInput(f"{path}: cannot read row group {group}: {error}") from error
            self._cached_key = (file, group)
        return self._cached_rows

    def _check_split(self, items: pa.Table, path: Path, group: int, first: int) -> None:
        operands = items["operands"].combine_chunks()
        try:
            values = parse_plain_decimals(operands.flatten())
        except ValueError as error:
            raise BadInput(f"{path}, row group {group}, rows from {first}: {error}") from error
        is_valid = in_shard(_to_questions(self._task, values, operands), self._split, 0, 1)
        if not is_valid.all():
            row = int(np.flatnonzero(~is_valid)[0])
            raise BadInput(
                f"{path}, row group {group}, row {first + row}: the item does not belong to the "
                f"{self._split} split; train on a dataset generated with --split {self._split}"
            )


def _to_questions(task: str, values: DecimalArray, operands: pa.ListArray) -> Questions:
    """Return questions with these operands, complete enough to determine their split."""
    length = np.diff(np.asarray(operands.offsets)).astype(np.int64)
    is_present = np.arange(length.max(initial=1)) < length[:, None]
    matrices = [np.zeros(is_present.shape, np.int64) for _ in values]
    for matrix, part in zip(matrices, values, strict=True):
        matrix[is_present] = part
    operator = np.zeros(len(length), np.int64)
    valid = np.ones(len(length), np.bool_)
    return Questions(task, DecimalArray(*matrices), length, operator, {}, valid)


def _open_parquet(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"{path}: {error}") from error


def parse_plain_decimals(texts: pa.StringArray) -> DecimalArray:
    """Return the values of plain decimals.

    Raises ValueError if a text is not a plain decimal or has more than 18 significant digits.
    """
    is_plain = pc.match_substring_regex(texts, r"^-?\d+(\.\d+)?$")
    if not pc.all(is_plain, min_count=0).as_py():
        invalid = texts.filter(pc.invert(is_plain))[0].as_py()
        raise ValueError(f"{invalid!r} is not a plain decimal")
    is_negative = np.asarray(pc.starts_with(texts, "-"))
    point = np.asarray(pc.find_substring(texts, ".")).astype(np.int64)
    length = np.asarray(pc.binary_length(texts)).astype(np.int64)
    fraction_digits = np.where(point >= 0, length - point - 1, 0)
    digits = pc.utf8_ltrim(pc.replace_substring(pc.utf8_ltrim(texts, "-"), ".", ""), "0")
    digits = pc.if_else(pc.equal(digits, ""), "0", digits)
    if len(digits) and pc.max(pc.binary_length(digits)).as_py() > 18:
        raise ValueError("a number has more than 18 digits")
    significand = np.asarray(pc.cast(digits, pa.int64()))
    return DecimalArray(np.where(is_negative, -significand, significand), -fraction_digits)
