"""Tables as data: typed cells, rows and columns, from which every rendering is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Literal, NamedTuple

from msgspec.structs import replace

from numbench.records import Estimate
from numbench.reporting.comparisons import ALL, task_name
from numbench.reporting.data import ReportData
from numbench.reporting.declarations import Column, Declaration, declarations
from numbench.stats.multiple_testing import RankSet

Cell = str | int | float | Estimate | RankSet | None
"""A value of a table; None is unknown."""

Columns = Sequence[Column]
RowKind = Literal["run", "reference", "published"]


class Row(NamedTuple):
    """A row of a table.

    cells: field of a column → value. group: the heading that the row stands under. kind: whether
    the row is of a run, of a reference, or only of published values. run: index of the run in
    `ReportData.runs`, and task: its task, by which the page filters. published: the fields whose
    value is the published one, not scored from responses. member: index of the run or reference in
    `ReportData.configurations`, by which the page connects tables and figures. part: how much of
    the dataset its means are over, if not all.
    """

    cells: Mapping[str, Cell]
    group: str = ""
    kind: RowKind = "run"
    run: int | None = None
    task: str = ""
    published: frozenset[str] = frozenset()
    member: int | None = None
    part: str = ""


def task_row(
    data: ReportData, run: int, task: str, cells: Mapping[str, Cell], tasks: int = 0
) -> Row:
    """Return a row about a run on a task, or on a mean over tasks.

    tasks: their number, which the name of the mean says if it is a part of those of the dataset.
    """
    of_run = data.runs[run]
    group = data.group_of(of_run)
    is_part = task == ALL and tasks < len(group.tasks)
    part = f" ({tasks} of {len(group.tasks)} tasks)" if is_part else ""
    named = {"model": of_run.name, "level": of_run.level, "task": task_name(task) + part, **cells}
    return Row(named, group.heading, run=run, task="" if task == ALL else task, member=run)


@dataclass(frozen=True)
class Table:
    """A table of a report. name: stem of its files, and in `tables_and_figures.toml`.

    rows: none if the table does not apply to the data. notes: sentences below the caption. columns:
    from the declared ones, those for the data.
    """

    name: str
    declaration: Declaration
    rows: Callable[[ReportData], Iterable[Row]]
    notes: Callable[[ReportData], Iterable[str]]
    columns: Callable[[Columns, ReportData], Columns]

    def text(self, name: str, /, **values: object) -> str:
        """Return a declared sentence with its values."""
        return self.declaration.texts[name].format(**values)


def declared_table(
    name: str,
    rows: Callable[[ReportData], Iterable[Row]],
    notes: Callable[[ReportData], Iterable[str]] = lambda data: (),
    columns: Callable[[Columns, ReportData], Columns] = lambda declared, data: declared,
    **constants: object,
) -> Table:
    """Return the table of a name in `tables_and_figures.toml`. constants: those in its caption."""
    known = declarations().tables[name]
    declaration = replace(known, caption=known.caption.format(**constants))
    return Table(name, declaration, rows, notes, columns)


class BuiltTable(NamedTuple):
    """A table with its rows."""

    table: Table
    columns: tuple[Column, ...]
    rows: tuple[Row, ...]
    notes: tuple[str, ...]

    @property
    def groups(self) -> dict[str, list[Row]]:
        """Heading → its rows, in the order of their first row."""
        groups: dict[str, list[Row]] = {}
        for row in self.rows:
            groups.setdefault(row.group, []).append(row)
        return groups

    def columns_of(self, rows: Iterable[Row]) -> list[Column]:
        """Return the columns without those of tasks that none of some rows includes."""
        known = {field for row in rows for field, cell in row.cells.items() if cell is not None}
        return [each for each in self.columns if not each.task or each.field in known]


def table_rows(table: Table, data: ReportData) -> tuple[Row, ...]:
    """Return the rows of a table, which are computed once; none if it does not apply."""
    applies = data.runs if table.declaration.needs == "scores" else data.horizons
    return data.once(table.name, lambda: tuple(table.rows(data)) if applies else ())


def build_table(table: Table, data: ReportData) -> BuiltTable | None:
    """Return a table with its rows; None if it does not apply to the data."""
    rows = table_rows(table, data)
    if not rows:
        return None
    columns = table.columns(table.declaration.columns, data)
    return BuiltTable(table, tuple(columns), rows, tuple(table.notes(data)))
