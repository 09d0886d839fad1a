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


DatasetOffsets = Mapping[str, Mapping[str, float | None]]
"""Offsets of a dataset in points: table → task → offset, None for a task without an estimate."""


class ItemOffsets(NamedTuple):
    """Offsets of the runs' datasets that have estimates, positive if a dataset is easier."""

    datasets: Mapping[str, DatasetOffsets]

    def note(self, spec: ScoreTableSpec) -> str | None:
        """Return the note of a score table; None for a table without estimates."""
        estimates = [
            _estimate(name, tables[spec.name], spec)
            for name, tables in self.datasets.items()
            if spec.name in tables
        ]
        if not estimates:
            return None
        return " ".join([f"{MARK} Published scores are of other items.", *estimates])


def _estimate(name: str, offsets: Mapping[str, float | None], spec: ScoreTableSpec) -> str:
    """Return a sentence on the offsets of a dataset in one table."""
    columns = [(TASKS[task].display, offsets[task]) for _, task in spec.columns if task in offsets]
    known = [f"{column} {offset:+z.1f}" for column, offset in columns if offset is not None]
    unknown = [column for column, offset in columns if offset is None]
    rest = f" ({', '.join(unknown)}: too few errors to estimate)" if unknown else ""
    return (
        f"Offset of {name} in points, as estimated from the study's responses (positive: {name} is "
        f"easier): {', '.join(known)}{rest}. To compare, subtract it from a score on {name}."
    )


def item_offsets(datasets: Sequence[Dataset]) -> ItemOffsets | None:
    """Return the offsets of the runs' datasets; None if none of them has estimates."""
    names = dict.fromkeys(map(_estimated_name, datasets))
    known = {name: tables for name, tables in _read_offsets().items() if name in names}
    return ItemOffsets(known) if known else None


def _estimated_name(dataset: Dataset) -> str | None:
    """Return `v1` or `study-like` if a dataset is the former, or distributed as the latter."""
    if dataset.manifest.sha256 == RELEASED_DATASETS["v1"]:
        return "v1"
    return "study-like" if dataset.manifest.settings.get("profile") == "study" else None


@cache
def _read_offsets() -> dict[str, DatasetOffsets]:
    path = resource_folder("comparability") / "offsets.csv"
    if not path.is_file():
        raise BadInput(f"{path}: the estimated offsets are missing; reinstall the package")
    tasks = {task.display: task.name for task in TASKS.values()}
    values: dict[str, dict[str, dict[str, float | None]]] = {}
    with path.open(encoding="utf-8", newline="") as file:
        for row in csv.DictReader(file):
            table = values.setdefault(row["Dataset"], {}).setdefault(row["Table"], {})
            table[tasks[row["Task"]]] = float(row["offset"]) if row["offset"] else None
    return dict(values)
