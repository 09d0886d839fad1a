"""The items of a measurement as a dataset: they are generated again from their ids."""

from __future__ import annotations

import hashlib
from collections.abc import Iterable, Mapping, Sequence
from functools import cached_property
from pathlib import Path

from numbench.dataset.store import Dataset
from numbench.errors import BadInput
from numbench.horizon.items import GENERATOR_VERSION, ItemSequences, parse_id
from numbench.records import DatasetRef, Item, Manifest, RunInfo
from numbench.tasks import TASKS

DATASET_NAME = "horizon"


class AskedItems(Dataset):
    """Some items of the endless sequences, in the folder of the run that asked them."""

    def __init__(
        self, path: Path, items: ItemSequences, item_ids: Mapping[str, Sequence[str]]
    ) -> None:
        """item_ids: by task."""
        self.path = path
        self.items = items
        self._item_ids = item_ids
        identity = f"{GENERATOR_VERSION}, seed {items.seed}"
        self.manifest = Manifest(
            name=DATASET_NAME,
            generator=GENERATOR_VERSION,
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
    def by_task(self) -> dict[str, list[Item]]:
        """The items per task. Raises BadInput for an id that names none."""
        try:
            return {task: [*map(self.items.by_id, self._item_ids[task])] for task in self.tasks}
        except ValueError as error:
            raise BadInput(f"{self.path}: {error}") from error

    def task_of(self, item_id: str) -> str:
        """Return the task of any item of the sequences. Raises BadInput for another id."""
        try:
            return parse_id(item_id).task
        except ValueError as error:
            raise BadInput(f"{self.path}: {error}") from error

    def ref(self, relative_to: Path) -> DatasetRef:
        """Return the reference that a run folder stores: the items have no folder."""
        return DatasetRef(name=self.name, path="", sha256=self.manifest.sha256)


def asked_items(folder: Path, info: RunInfo, item_ids: Iterable[str]) -> AskedItems:
    """Return the items of the measurement in `folder` with these ids, in their order.

    Raises BadInput if another version of numbench generated them.
    """
    assert info.horizon is not None
    if info.horizon.generator != GENERATOR_VERSION:
        raise BadInput(
            f"{folder}: its items are those of {info.horizon.generator!r}, this numbench has "
            f"{GENERATOR_VERSION!r}; use the version in run.json"
        )
    by_task: dict[str, list[str]] = {task: [] for task in info.tasks}
    for item_id in item_ids:
        try:
            by_task.setdefault(parse_id(item_id).task, []).append(item_id)
        except ValueError as error:
            raise BadInput(f"{folder}: {error}") from error
    return AskedItems(folder, ItemSequences(info.horizon.question_seed), by_task)
