"""The items of a measurement: one endless sequence per task and size, the same for every model."""

from __future__ import annotations

import hashlib
import re
from collections.abc import Iterable, Iterator, Mapping, Sequence
from functools import cached_property
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from msgspec.structs import replace

from numbench.dataset.store import Dataset
from numbench.errors import BadInput, bad_input_at
from numbench.records import DatasetRef, Item, Manifest, RunInfo
from numbench.tasks import TASKS
from numbench.tasks.shards import Shard, generate_items

SEQUENCES_VERSION = "numbench-scaled 1"
"""Changes whenever an id would mean another item."""

DATASET_NAME = "horizon"

# Items are generated up to the largest number: four digits bound their work.
_ID = re.compile(r"([a-z0-9_]+)-([1-9]\d{0,4})-(0|[1-9]\d{0,3})", re.ASCII)


class ItemAddress(NamedTuple):
    """Which item of a measurement: its number, from 0, among those of a task and size."""

    task: str
    size: int
    number: int

    @property
    def id(self) -> str:
        """The id of the item."""
        return f"{self.task}-{self.size}-{self.number}"


def parse_id(item_id: str) -> ItemAddress:
    """Return the address that an id names. Raises ValueError for other ids."""
    match = _ID.fullmatch(item_id)
    axis = TASKS[match[1]].sizes if match and match[1] in TASKS else None
    if match is None or axis is None or int(match[2]) > axis.maximum:
        raise ValueError(f"{item_id[:80]!r} is not the id of an item of a horizon measurement")
    return ItemAddress(match[1], int(match[2]), int(match[3]))


class ItemSequences:
    """The items of all tasks and sizes for one seed, generated as far as they are used."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self._streams: dict[tuple[str, int], Iterator[Item]] = {}
        self._items: dict[tuple[str, int], list[Item]] = {}

    def item(self, task: str, size: int, number: int) -> Item | None:
        """Return an item; None if the task has too few different questions of the size."""
        key = task, size
        items = self._items.setdefault(key, [])
        stream = self._streams.setdefault(
            key, generate_items(Shard(task, seed=self.seed, question_size=size))
        )
        for item in islice(stream, max(0, number + 1 - len(items))):
            items.append(replace(item, id=ItemAddress(task, size, len(items)).id))
        return items[number] if number < len(items) else None

    def by_id(self, item_id: str) -> Item:
        """Return the item of an id. Raises ValueError if there is none."""
        item = self.item(*parse_id(item_id))
        if item is None:
            raise ValueError(f"there is no question {item_id!r}")
        return item


class AskedItems(Dataset):
    """Some items of the endless sequences, in the folder of the run that asked them."""

    def __init__(
        self, path: Path, items: ItemSequences, item_ids: Mapping[str, Sequence[str]]
    ) -> None:
        """item_ids: by task."""
        self.path = path
        self.items = items
        self._item_ids = item_ids
        identity = f"{SEQUENCES_VERSION}, seed {items.seed}"
        self.manifest = Manifest(
            name=DATASET_NAME,
            generator=SEQUENCES_VERSION,
            seed=items.seed,
            split="test",
            settings={},
            files=(),
            sha256=hashlib.sha256(identity.encode()).hexdigest(),
        )

    @property
    def tasks(self) -> tuple[str, ...]:
        """The tasks in registry order."""
        return tuple(task for task in TASKS if task in self._item_ids)

    @cached_property
    def by_task(self) -> dict[str, Sequence[Item]]:
        """The items per task. Raises BadInput for an id that names none."""
        with bad_input_at(self.path, ValueError):
            return {task: [*map(self.items.by_id, self._item_ids[task])] for task in self.tasks}

    def task_of(self, item_id: str) -> str:
        """Return the task of any item of the sequences. Raises BadInput for another id."""
        with bad_input_at(self.path, ValueError):
            return parse_id(item_id).task

    def ref(self, relative_to: Path) -> DatasetRef:
        """Return the reference that a run folder stores: the items have no folder."""
        return DatasetRef(name=self.name, path="", sha256=self.manifest.sha256)


def asked_items(folder: Path, info: RunInfo, item_ids: Iterable[str]) -> AskedItems:
    """Return the items of the measurement in `folder` with these ids, in their order.

    Raises BadInput if another version of numbench generated them.
    """
    assert info.horizon is not None
    if info.horizon.generator != SEQUENCES_VERSION:
        raise BadInput(
            f"{folder}: its questions are those of {info.horizon.generator!r}, but this numbench "
            f"has {SEQUENCES_VERSION!r}; use the version in run.json"
        )
    by_task: dict[str, list[str]] = {task: [] for task in info.tasks}
    asked = AskedItems(folder, ItemSequences(info.horizon.question_seed), by_task)
    for item_id in item_ids:
        by_task.setdefault(asked.task_of(item_id), []).append(item_id)
    return asked
