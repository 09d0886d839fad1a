"""Fresh items for a frozen dataset: new questions of exactly the same difficulty, item by item.

Items with the same operator, number of operands and difficulty form a stratum. Every fresh item
comes from the stratum of the frozen item at its place, so that the two are draws from the same
distribution: nothing but having seen one of them can make it easier.
"""

from __future__ import annotations

from collections import defaultdict, deque
from collections.abc import Collection, Mapping, Sequence
from itertools import islice
from pathlib import Path
from typing import NamedTuple

from numbench.dataset.settings import (
    DatasetSettings,
    sampling_settings,
    strata_share_per_item,
)
from numbench.dataset.store import Dataset, write_dataset
from numbench.errors import BadInput
from numbench.records import Item
from numbench.tasks.items import content_hash
from numbench.tasks.shards import Shard, generate_items

MAX_CANDIDATES = 300_000
"""After so many items of the stream, the nearest difficulty is taken for strata without an item.

Of the 4,500 items of `v1` at most one or two are in strata so rare.
"""

_SETTINGS = {"size", "max_digits", "format"}, {"size", "question_size", "format"}
"""The settings of datasets for which fresh items can be drawn."""


class ItemStratum(NamedTuple):
    """What an item and its fresh counterpart have in common. difficulty: δ in base 10."""

    operator: str
    operands: int
    difficulty: int


def item_stratum(item: Item) -> ItemStratum:
    """Return the stratum of an item."""
    return ItemStratum(item.operator, len(item.operands), item.difficulty.base10)


def fresh_items(frozen: Dataset, tasks: Sequence[str], seed: int) -> dict[str, list[Item]]:
    """Return, for each task, a fresh item for every item of `frozen`, in its order.

    They are determined by `frozen` and `seed`. No two items of the two datasets have the same
    operands, whatever their task, order, signs and notation. Raises BadInput if `frozen` is not a
    stratified sample of numbench's generator.
    """
    settings = generator_settings(frozen)._replace(seed=seed)
    excluded = {content_hash(item.operands) for items in frozen.by_task.values() for item in items}
    return {
        task: _matched_items(frozen.by_task[task], settings.shard(task), excluded) for task in tasks
    }


def write_fresh_items(
    folder: Path, name: str, frozen: Dataset, items: Mapping[str, Sequence[Item]]
) -> Dataset:
    """Write fresh items as a dataset. Its manifest does not contain the seed."""
    fields = generator_settings(frozen).manifest_fields() | {"name": name, "seed": None}
    fields["settings"] |= {"matched_to": frozen.manifest.sha256}
    return write_dataset(folder, items, **fields)


def generator_settings(frozen: Dataset) -> DatasetSettings:
    """Return the settings that `frozen` was generated with.

    Raises BadInput if it is not a stratified sample of numbench's generator, or has other operands.
    """
    manifest = frozen.manifest
    size, numbers = manifest.settings.get("size"), sampling_settings(manifest)
    if (
        not (strata_share_per_item(manifest) or numbers.question_size)
        or set(manifest.settings) not in _SETTINGS
        or not isinstance(size, int)
    ):
        raise BadInput(
            f"{frozen.name}: no fresh questions of the same difficulty are available; use v1, or a "
            "dataset of numbench generate with fewer than 10,000 questions and with numbers in "
            "digits or questions of given sizes"
        )
    name, split, seed = manifest.name, manifest.split, manifest.seed or 0
    return DatasetSettings(name, frozen.tasks, split, size, seed, **numbers._asdict())


def _matched_items(frozen: Sequence[Item], shard: Shard, excluded: Collection[int]) -> list[Item]:
    """Return the first item of the shard in the stratum of each item, in the order of `frozen`."""
    open_places: dict[ItemStratum, deque[int]] = defaultdict(deque)
    for place, item in enumerate(frozen):
        open_places[item_stratum(item)].append(place)
    chosen: dict[int, Item] = {}
    spares: dict[ItemStratum, Item] = {}
    for item in islice(generate_items(shard), MAX_CANDIDATES):
        stratum = item_stratum(item)
        is_wanted = open_places.get(stratum) or stratum not in spares
        if not is_wanted or content_hash(item.operands) in excluded:
            continue
        if open_places[stratum]:
            chosen[open_places[stratum].popleft()] = item
        else:
            spares[stratum] = item
        if len(chosen) == len(frozen):
            break
    for stratum, places in open_places.items():
        for place in places:
            chosen[place] = spares.pop(_nearest(stratum, spares))
    return [chosen[place] for place in range(len(frozen))]


def _nearest(stratum: ItemStratum, spares: Mapping[ItemStratum, Item]) -> ItemStratum:
    """Return the stratum with a spare item that is nearest in difficulty, the easier one of two."""
    alike = [each for each in spares if each[:2] == stratum[:2]]
    if not alike:
        raise BadInput(
            f"too few different questions with operator {stratum.operator} and {stratum.operands} "
            "operands to match the dataset"
        )
    return min(alike, key=lambda each: (abs(each.difficulty - stratum.difficulty), each))
