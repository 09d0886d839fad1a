"""The items of a measurement: one endless sequence per task and size, the same for every model."""

from __future__ import annotations

import re
from collections.abc import Iterator
from typing import NamedTuple

from msgspec.structs import replace

from numbench.records import Item
from numbench.tasks import SCALED_TASKS
from numbench.tasks.shards import ItemsExhausted, Shard, generate_items

GENERATOR_VERSION = "numbench-scaled 1"
"""Changes whenever an id would mean another item."""

_ID = re.compile(r"([a-z0-9_]+)-([1-9]\d{0,4})-(0|[1-9]\d{0,6})")


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
    if match is None or match[1] not in SCALED_TASKS:
        raise ValueError(f"{item_id[:80]!r} is not the id of an item of a horizon measurement")
    return ItemAddress(match[1], int(match[2]), int(match[3]))


class ItemSequences:
    """The items of all tasks and sizes for one seed, generated as far as they are used."""

    def __init__(self, seed: int = 1) -> None:
        self.seed = seed
        self._streams: dict[tuple[str, int], Iterator[Item]] = {}
        self._items: dict[tuple[str, int], list[Item]] = {}

    def item(self, task: str, size: int, number: int) -> Item | None:
        """Return an item; None if the task has no so many different questions of the size."""
        key = task, size
        items = self._items.setdefault(key, [])
        stream = self._streams.setdefault(
            key, generate_items(Shard(task, seed=self.seed, question_size=size))
        )
        try:
            while len(items) <= number:
                item = next(stream)
                items.append(replace(item, id=ItemAddress(task, size, len(items)).id))
        except (ItemsExhausted, StopIteration):
            return None
        return items[number]

    def by_id(self, item_id: str) -> Item:
        """Return the item of an id. Raises ValueError if there is none."""
        item = self.item(*parse_id(item_id))
        if item is None:
            raise ValueError(f"there is no item {item_id!r}")
        return item
