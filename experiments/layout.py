"""Which tables there are: their columns, and the paper's figures that belong beside them."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from bench.errors import BadInput
from bench.paths import resource
from bench.tasks import TASKS
from experiments.toml_file import read_toml

LAYOUT = Path(__file__).with_name("layout.toml")
EXACT, SMAPE = "exact match", "log-sMAPE"
_METRICS = {"Exact match acc": EXACT, "log-sMAPE": SMAPE}
_BY_DISPLAY = {task.display: name for name, task in TASKS.items()}


class Column(Struct, frozen=True, forbid_unknown_fields=True):
    """runs: the names of its runs without their seed. published: a column of the table's files,
    or `FILE:COLUMN` of another. only: the tasks that it speaks of, all where it is empty.
    """

    title: str
    runs: str
    published: str | None = None
    only: tuple[str, ...] = ()

    def run_name(self, task: str) -> str | None:
        """The runs that a task's row shows, without their seed."""
        if self.only and task not in self.only:
            return None
        return self.runs.replace("{task}", task)


class Layout(Struct, frozen=True, forbid_unknown_fields=True):
    """One table."""

    name: str
    title: str
    tasks: tuple[str, ...]
    published: tuple[str, ...]
    columns: tuple[Column, ...]
    note: str = ""


class _File(Struct, frozen=True, forbid_unknown_fields=True):
    tables: tuple[Layout, ...]


class Row(NamedTuple):
    """A task in a metric, both by our names where we have them, else by the paper's."""

    task: str
    metric: str

    @property
    def ours(self) -> bool:
        return self.task in TASKS


def read_layout(path: Path = LAYOUT) -> tuple[Layout, ...]:
    """BadInput where it is no layout, or names a column that the paper's files have not."""
    layouts = read_toml(path, _File).tables
    for layout in layouts:
        for column in layout.columns:
            if column.published is None:
                continue
            files, title = _where(layout, column.published)
            if not any(title in line for file in files for line in _published(file).values()):
                said = " or ".join(f"{file}.csv" for file in files)
                raise BadInput(f"{path}: {layout.name}: no column {title!r} in {said}")
    return layouts


def rows_of(layout: Layout) -> list[Row]:
    """Each task in its headline metric, then the exact matches of numbers, then the paper's own."""
    smape = [task for task in layout.tasks if TASKS[task].metric == "log_smape"]
    rows = [Row(task, SMAPE if task in smape else EXACT) for task in layout.tasks]
    rows += [Row(task, EXACT) for task in smape]
    theirs = [row for name in layout.published for row in _published(name)]
    return rows + [row for row in dict.fromkeys(theirs) if not row.ours]


def published(layout: Layout, column: Column, row: Row) -> str:
    """The paper's figure as it is shown, shares in percent; empty where there is none."""
    if column.published is None or (column.only and row.task not in column.only):
        return ""
    files, title = _where(layout, column.published)
    for name in files:
        found = _published(name).get(row, {}).get(title)
        if found:
            return f"{100 * Decimal(found):.1f}" if row.metric in (EXACT, SMAPE) else found
    return ""


def _where(layout: Layout, said: str) -> tuple[Sequence[str], str]:
    """The files that have a column, and its name in them."""
    file, _, title = said.rpartition(":")
    return [file] if file else layout.published, title


@cache
def _published(name: str) -> dict[Row, dict[str, str]]:
    path = resource("published") / f"{name}.csv"
    if not path.is_file():
        raise BadInput(f"{path}: the published table is missing")
    with path.open(encoding="utf-8", newline="") as file:
        return {_row(line): line for line in csv.DictReader(file)}


def _row(line: dict[str, str]) -> Row:
    display = line["Task"].replace("/", "")
    metric = _METRICS.get(line["Metric"], line["Metric"].lower())
    return Row(_BY_DISPLAY.get(display, line["Task"]), metric)
