"""The layout of the tables: their columns, and the published values for comparison."""

from __future__ import annotations

import csv
from collections.abc import Sequence
from decimal import Decimal
from functools import cache
from pathlib import Path
from typing import NamedTuple

from msgspec import Struct

from numbench.errors import BadInput
from numbench.jsonl import read_toml
from numbench.resources import resource_folder
from numbench.tasks import PAPER_TASKS

LAYOUT = Path(__file__).with_name("layout.toml")
EXACT, SMAPE = "exact match", "log-sMAPE"
_METRICS = {"Exact match acc": EXACT, "log-sMAPE": SMAPE}
_BY_DISPLAY = {task.display: name for name, task in PAPER_TASKS.items()}


class LayoutColumn(Struct, frozen=True, forbid_unknown_fields=True):
    """A column of measured scores.

    runs: name of its runs without the seed; {task} is replaced. published: a column of the table's
    files, or `FILE:COLUMN` of another file. only: the tasks it applies to, all if empty.
    """

    title: str
    runs: str
    published: str | None = None
    only: tuple[str, ...] = ()

    def run_name(self, task: str) -> str | None:
        """Return the name of the runs in a task's row without the seed, None if there are none."""
        if self.only and task not in self.only:
            return None
        return self.runs.replace("{task}", task)


class TableLayout(Struct, frozen=True, forbid_unknown_fields=True):
    """A table. published: names of the paper's tables (files in results/published)."""

    name: str
    title: str
    tasks: tuple[str, ...]
    published: tuple[str, ...]
    columns: tuple[LayoutColumn, ...]
    note: str = ""


class _LayoutFile(Struct, frozen=True, forbid_unknown_fields=True):
    tables: tuple[TableLayout, ...]


class LayoutRow(NamedTuple):
    """A task and a metric, by the benchmark's names, or by the paper's if it has no such task."""

    task: str
    metric: str

    @property
    def in_benchmark(self) -> bool:
        """Whether the task is one of the benchmark's tasks."""
        return self.task in PAPER_TASKS


def read_layout(path: Path = LAYOUT) -> tuple[TableLayout, ...]:
    """Return the tables of a layout. Raises BadInput if it is invalid or has unknown columns."""
    layouts = read_toml(path, _LayoutFile).tables
    for layout in layouts:
        for column in layout.columns:
            if column.published is None:
                continue
            files, title = _locate_column(layout, column.published)
            if not any(title in line for file in files for line in _read_published(file).values()):
                names = " or ".join(f"{file}.csv" for file in files)
                raise BadInput(f"{path}: {layout.name}: no column {title!r} in {names}")
    return layouts


def rows_of(layout: TableLayout) -> list[LayoutRow]:
    """Return the rows: headline metrics, then exact matches of numbers, then the paper's extra."""
    smape = [task for task in layout.tasks if PAPER_TASKS[task].metric == "log_smape"]
    rows = [LayoutRow(task, SMAPE if task in smape else EXACT) for task in layout.tasks]
    rows += [LayoutRow(task, EXACT) for task in smape]
    published = [row for name in layout.published for row in _read_published(name)]
    return rows + [row for row in dict.fromkeys(published) if not row.in_benchmark]


def published_cell(layout: TableLayout, column: LayoutColumn, row: LayoutRow) -> str:
    """Return the published value as text, shares in percent; empty if there is none."""
    if column.published is None or (column.only and row.task not in column.only):
        return ""
    files, title = _locate_column(layout, column.published)
    for name in files:
        value = _read_published(name).get(row, {}).get(title)
        if value:
            return f"{100 * Decimal(value):.1f}" if row.metric in (EXACT, SMAPE) else value
    return ""


def _locate_column(layout: TableLayout, published: str) -> tuple[Sequence[str], str]:
    """Return the files of a column `COLUMN` or `FILE:COLUMN`, and its name in them."""
    file, _, title = published.rpartition(":")
    return [file] if file else layout.published, title


@cache
def _read_published(name: str) -> dict[LayoutRow, dict[str, str]]:
    path = resource_folder("published") / f"{name}.csv"
    if not path.is_file():
        raise BadInput(f"{path}: the published table is missing")
    with path.open(encoding="utf-8", newline="") as file:
        return {_row(line): line for line in csv.DictReader(file)}


def _row(line: dict[str, str]) -> LayoutRow:
    display = line["Task"].replace("/", "")
    metric = _METRICS.get(line["Metric"], line["Metric"].lower())
    return LayoutRow(_BY_DISPLAY.get(display, line["Task"]), metric)
