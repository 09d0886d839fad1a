"""Training questions from a dataset on disk, in Parquet, instead of made on the fly."""

from __future__ import annotations

from functools import cached_property
from pathlib import Path

import numpy as np
import pyarrow as pa
import pyarrow.parquet as pq

from bench.batch.fixed import Numbers
from bench.batch.questions import Questions, belongs
from bench.bittoken.data.decimals import numbers_of
from bench.bittoken.data.sources import BLOCK
from bench.dataset.store import open_dataset
from bench.errors import BadInput

_COLUMNS = ["operands", "operator", "answer", "difficulty"]


class FolderSource:
    """The items of one task in a dataset, block by block, over and over.

    Process `index` of `world` reads every `world`-th block. BadInput for an item that does not
    belong to `split`: nothing of a test set is ever trained on.
    """

    def __init__(
        self, folder: Path, task: str, *, split: str = "train", index: int = 0, world: int = 1
    ) -> None:
        dataset = open_dataset(folder)
        files = [folder / e.file for e in dataset.manifest.files if e.task == task]
        if not files:
            raise BadInput(f"{folder} has no task {task!r}: it has {', '.join(dataset.tasks)}")
        if any(file.suffix != ".parquet" for file in files):
            raise BadInput(f"{folder} is not in Parquet: generate it with --format parquet")
        self._task, self._split, self._files = task, split, files
        self._index, self._world = index, world

    def block(self, number: int) -> pa.Table:
        """The items of this process's block `number`; after the last comes the first again."""
        file, group, first = self._blocks[(number * self._world + self._index) % len(self._blocks)]
        items = self._group(file, group).slice(first, BLOCK)
        self._check(items, self._files[file], group, first)
        return items

    @cached_property
    def _blocks(self) -> list[tuple[int, int, int]]:
        """File, row group and first row of every block."""
        found = []
        for file, path in enumerate(self._files):
            parts = _open(path).metadata
            for group in range(parts.num_row_groups):
                rows = parts.row_group(group).num_rows
                found += [(file, group, first) for first in range(0, rows, BLOCK)]
        if not found:
            raise BadInput(f"{self._files[0].parent} holds no items of task {self._task!r}")
        return found

    def _group(self, file: int, group: int) -> pa.Table:
        if getattr(self, "_held", None) != (file, group):
            path = self._files[file]
            try:
                self._rows = _open(path).read_row_group(group, columns=_COLUMNS)
            except (pa.ArrowInvalid, OSError) as error:
                raise BadInput(f"{path}: row group {group} does not read: {error}") from error
            self._held = (file, group)
        return self._rows

    def _check(self, items: pa.Table, path: Path, group: int, first: int) -> None:
        operands = items["operands"].combine_chunks()
        try:
            flat = numbers_of(operands.flatten())
        except ValueError as error:
            raise BadInput(f"{path}, row group {group}, rows from {first}: {error}") from error
        inside = belongs(_questions(self._task, flat, operands), self._split, 0, 1)
        if not inside.all():
            row = int(np.flatnonzero(~inside)[0])
            raise BadInput(
                f"{path}, row group {group}, row {first + row}: the item does not belong to the "
                f"{self._split} split; train on a dataset made with --split {self._split}"
            )


def _questions(task: str, flat: Numbers, operands: pa.ListArray) -> Questions:
    """Enough of the questions to tell their split."""
    length = np.diff(np.asarray(operands.offsets)).astype(np.int64)
    present = np.arange(length.max(initial=1)) < length[:, None]
    matrices = [np.zeros(present.shape, np.int64) for _ in flat]
    for matrix, values in zip(matrices, flat, strict=True):
        matrix[present] = values
    nothing = np.zeros(len(length), np.int64)
    return Questions(task, Numbers(*matrices), length, nothing, {}, np.ones(len(length), np.bool_))


def _open(path: Path) -> pq.ParquetFile:
    try:
        return pq.ParquetFile(path)
    except (pa.ArrowInvalid, OSError) as error:
        raise BadInput(f"{path}: {error}") from error
