"""Tables of the page: cells that know their value for sorting, and whose score they hold."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.report.coverage import coverage_grid
from bench.report.grid import Grid
from bench.report.layout import TABLES, Entry, Estimate, TableSpec, level_rank, shown
from bench.report.measured import Measured
from bench.report.tables import PUBLISHED_HEADING, Context, bounds


class Column(NamedTuple):
    """A column; `task` is set where it holds the scores of one task."""

    name: str
    numeric: bool
    task: str = ""


class Cell(NamedTuple):
    """What a cell shows, and small below it its bounds.

    sort: the exact number by which it is sorted, None where it is text or empty.
    """

    text: str
    sort: float | None = None
    bounds: str = ""


class TableRow(NamedTuple):
    """One row. run: place of the run among those measured, None for a published row."""

    model: str
    cells: list[Cell]
    run: int | None
    published: bool = False
    task: str = ""


class PageTable(NamedTuple):
    """One table of the page; its first column names the model."""

    name: str
    title: str
    caption: str
    columns: list[Column]
    rows: list[TableRow]


def page_tables(runs: Sequence[Measured], published: Sequence[Entry]) -> list[PageTable]:
    """The tables of scores, measured rows before published ones."""
    return [
        PageTable(
            spec.name,
            spec.title,
            f"{spec.caption} Small print: 95 % bounds.",
            [
                Column("Model", False),
                Column("Reasoning", False),
                Column("Source", False),
                *(Column(name, True, task) for name, task in spec.columns),
            ],
            list(_rows(spec, runs, published)),
        )
        for spec in TABLES
    ]


def coverage_table(runs: Sequence[Measured], context: Context) -> PageTable:
    """What became of every item that was asked."""
    grid = coverage_grid(runs, context)
    whose = [(place, task) for place, run in enumerate(runs) for task in run.cells]
    (block,) = grid.blocks
    return PageTable(
        grid.name,
        grid.title,
        grid.notes[0],
        _columns(grid),
        [
            TableRow(row[0], _counts(row, grid.text_columns), place, task=task)
            for row, (place, task) in zip(block.rows, whose, strict=True)
        ],
    )


def run_table(grid: Grid) -> PageTable:
    """A table of one row per run, in the order of the runs."""
    (block,) = grid.blocks
    rows = [
        TableRow(row[0], _counts(row, grid.text_columns), place)
        for place, row in enumerate(block.rows)
    ]
    return PageTable(grid.name, grid.title, grid.notes[0], _columns(grid), rows)


def _columns(grid: Grid) -> list[Column]:
    return [Column(name, place >= grid.text_columns) for place, name in enumerate(grid.header)]


def _rows(
    spec: TableSpec, runs: Sequence[Measured], published: Sequence[Entry]
) -> Iterator[TableRow]:
    for place, run in enumerate(runs):
        yield TableRow(run.entry.model, _cells(spec, run.entry, run.run.info.source), place)
    for entry in published:
        yield TableRow(entry.model, _cells(spec, entry, PUBLISHED_HEADING), None, published=True)


def _cells(spec: TableSpec, entry: Entry, source: str) -> list[Cell]:
    estimates = [entry.tables.get(spec.name, {}).get(task) for _, task in spec.columns]
    level = Cell(entry.reasoning, level_rank(entry.reasoning))
    return [Cell(entry.name), level, Cell(source), *(_score(spec, one) for one in estimates)]


def _score(spec: TableSpec, estimate: Estimate | None) -> Cell:
    if estimate is None:
        return Cell("")
    return Cell(shown(estimate.value, spec.decimals), estimate.value, bounds(spec, estimate))


def _counts(row: Sequence[str], text_columns: int) -> list[Cell]:
    """Text first, then numbers, empty where they are not known."""
    return [
        Cell(text, _number(text) if place >= text_columns else None)
        for place, text in enumerate(row)
    ]


def _number(text: str) -> float | None:
    """What a cell is sorted by: its number, or the one that its words begin with."""
    return float(text.split()[0]) if text else None
