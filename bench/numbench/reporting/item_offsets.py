"""How much easier a dataset is than the items of the published scores, as estimated.

The estimates are those of `results/comparability/`.
"""

from __future__ import annotations

import csv
from collections.abc import Mapping, Sequence
from functools import cache
from typing import NamedTuple

from numbench.dataset.store import RELEASED_DATASETS, Dataset
from numbench.errors import BadInput
from numbench.reporting.table_model import ScoreTableSpec
from numbench.resources import resource_folder
from numbench.tasks import TASKS

MARK = "†"
"""Marks published scores beside runs on other items."""


class ItemOffsets(NamedTuple):
    """Offsets of a dataset in points, positive if it is easier: table → task → offset.

    A task without an estimate is None.
    """

    dataset: str
    tables: Mapping[str, Mapping[str, float | None]]

    def note(self, spec: ScoreTableSpec) -> str | None:
        """Return the note of a score table; None for a table without estimates."""
        offsets = self.tables.get(spec.name)
        if offsets is None:
            return None
        known = [f"{name} {offsets[task]:+z.1f}" for name, task in self._known(spec, offsets)]
        unknown = [name for name, task in spec.columns if task in offsets]
        unknown = [name for name in unknown if name not in dict(self._known(spec, offsets))]
        rest = f" ({', '.join(unknown)}: too few errors to estimate)" if unknown else ""
        return (
            f"{MARK} Published scores are of other items. Estimated offset of {self.dataset}, in "
            f"points (positive: {self.dataset} is easier): {', '.join(known)}{rest}. To compare, "
            f"subtract it from a score on {self.dataset}; see results/comparability."
        )

    def _known(
        self, spec: ScoreTableSpec, offsets: Mapping[str, float | None]
    ) -> list[tuple[str, str]]:
        return [(name, task) for name, task in spec.columns if offsets.get(task) is not None]


def item_offsets(datasets: Sequence[Dataset]) -> ItemOffsets | None:
    """Return the offsets of the one dataset of all runs; None if it has no estimates."""
    names = {_estimated_name(dataset) for dataset in datasets}
    name = names.pop() if len(names) == 1 else None
    return None if name is None else _read_offsets().get(name)


def _estimated_name(dataset: Dataset) -> str | None:
    """Return `v1` or `study-like` if a dataset is the former, or distributed as the latter."""
    if dataset.manifest.sha256 == RELEASED_DATASETS["v1"]:
        return "v1"
    return "study-like" if dataset.manifest.settings.get("profile") == "study" else None


@cache
def _read_offsets() -> dict[str, ItemOffsets]:
    path = resource_folder("comparability") / "offsets.csv"
    if not path.is_file():
        raise BadInput(f"{path}: the estimated offsets are missing; reinstall the package")
    tasks = {task.display: task.name for task in TASKS.values()}
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            table = values.setdefault(row["Dataset"], {}).setdefault(row["Table"], {})
            table[tasks[row["Task"]]] = float(row["offset"]) if row["offset"] else None
    return {dataset: ItemOffsets(dataset, tables) for dataset, tables in values.items()}
