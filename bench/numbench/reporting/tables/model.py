"""Tables as data: typed cells, rows and columns, from which every rendering is made."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple

from numbench.records import Estimate
from numbench.reporting.comparisons import ALL, task_name
from numbench.reporting.data import ReportData
from numbench.reporting.names import captions
from numbench.stats.multiple_testing import RankSet

Cell = str | int | float | Estimate | RankSet | None
"""A value of a table; None is unknown."""

Columns = Sequence["Column"]
RunKind = Literal["scores", "horizons"]
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


@dataclass(frozen=True)
class Column:
    """A column of a table.

    form: `text`, `count`, `p`, `ranks`, `size` (of problems), `price` (three digits), or a format
    of numbers such as `.1f`. task: the task that its values are about, if it is one. lowest_first:
    whether low values are sought, such as prices.
    """

    field: str
    title: str
    form: str = "text"
    task: str = ""
    lowest_first: bool = False

    @property
    def is_text(self) -> bool:
        """Whether the values are text; the others are aligned right."""
        return self.form == "text"


NAME_COLUMNS = (Column("model", "Model"), Column("level", "Level"))
TASK_COLUMNS = (*NAME_COLUMNS, Column("task", "Task"))
"""The first columns of a table with the rows of `task_row`."""


def task_row(data: ReportData, run: int, task: str, cells: Mapping[str, Cell]) -> Row:
    """Return a row about a run on a task, or on the mean over its tasks."""
    of_run = data.runs[run]
    named = {"model": of_run.name, "level": of_run.level, "task": task_name(task), **cells}
    heading = data.group_of(of_run).heading
    return Row(named, heading, run=run, task="" if task == ALL else task, member=run)


@dataclass(frozen=True)
class Table:
    """The declaration of a table.

    name: stem of its files. title, caption: by default those of the name in `captions.toml`, with
    `constants` in the place of braces. rows: none if the table does not apply to the data. notes:
    sentences below the caption. latex: whether it is also written as LaTeX. needs: the kind of runs
    that it is about. heat: the fields of percentages that the page colors.
    """

    name: str
    columns: Columns | Callable[[ReportData], Columns]
    rows: Callable[[ReportData], Iterable[Row]]
    notes: Callable[[ReportData], Iterable[str]] = lambda data: ()
    latex: bool = False
    needs: RunKind = "scores"
    heat: Callable[[Column], bool] = lambda column: False
    constants: Mapping[str, object] = field(default_factory=dict)
    title: str = ""
    caption: str = ""

    def __post_init__(self) -> None:
        """Take the texts of `captions.toml`, unless others are given."""
        texts = {"title": self.title, "caption": self.caption}
        for name, text in texts.items():
            if not text:
                known = captions()["tables"][self.name][name]
                object.__setattr__(self, name, known.format(**self.constants))


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


def table_rows(table: Table, data: ReportData) -> tuple[Row, ...]:
    """Return the rows of a table, which are computed once; none if it does not apply."""
    applies = data.runs if table.needs == "scores" else data.horizons
    return data.once(table.name, lambda: tuple(table.rows(data)) if applies else ())


def build_table(table: Table, data: ReportData) -> BuiltTable | None:
    """Return a table with its rows; None if it does not apply to the data."""
    rows = table_rows(table, data)
    if not rows:
        return None
    columns = table.columns(data) if callable(table.columns) else table.columns
    return BuiltTable(table, tuple(columns), rows, tuple(table.notes(data)))
