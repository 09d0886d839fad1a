"""Tables of the HTML page: cells with the values they are sorted by, and their run and task."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from numbench.reporting.published_rows import MARK
from numbench.reporting.report_data import ReportData
from numbench.reporting.summary_table import (
    published_ranking,
    published_summary_notes,
    ranked_runs,
)
from numbench.reporting.table_model import (
    PUBLISHED_HEADING,
    SCORE_TABLES,
    Entry,
    Estimate,
    ScoreTableSpec,
    format_bounds,
    format_value,
)
from numbench.reporting.table_registry import BuiltTable
from numbench.tasks import TASKS


class HtmlColumn(NamedTuple):
    """A column; `task` is set if it contains the scores of one task. link: as of a cell."""

    name: str
    numeric: bool
    task: str = ""
    link: str = ""


class HtmlCell(NamedTuple):
    """The text of a cell, and its bounds (of a name: its level and source) in small type.

    sort: the exact number by which it is sorted, None for text and empty cells. link: relative
    address of a page, empty for none.
    """

    text: str
    sort: float | None = None
    bounds: str = ""
    link: str = ""


class HtmlRow(NamedTuple):
    """A row. model: what the model filter applies to, empty if it does not apply to the row.

    run: index of the run, None for a published row or one that belongs to no run.
    """

    model: str
    cells: list[HtmlCell]
    run: int | None
    published: bool = False
    task: str = ""


class HtmlTable(NamedTuple):
    """A table of the page."""

    name: str
    title: str
    caption: str
    columns: list[HtmlColumn]
    rows: list[HtmlRow]


def html_score_tables(data: ReportData) -> list[HtmlTable]:
    """Return the score tables, with measured rows before published ones; none without runs."""
    if not data.runs:
        return []
    return [_score_table(spec.with_tasks(data.tasks), data) for spec in SCORE_TABLES]


def html_summary_table(table: BuiltTable, data: ReportData) -> HtmlTable:
    """Return the summary's rows of the runs, with the level below the model's name."""
    ranked = ranked_runs(data)
    rows = []
    for row, index in zip(table.text.rows[: len(ranked)], ranked, strict=True):
        run = data.runs[index]
        name = _name_cell(run.entry, run.scored.info.source)
        rows.append(HtmlRow(run.entry.model, [name, *_summary_cells(row)], index))
    html = _html_table(table, rows)
    return html._replace(columns=[html.columns[0], *html.columns[2:]])


def html_summary_with_published(table: BuiltTable, data: ReportData) -> HtmlTable:
    """Return the summary with the published rows below those of the runs."""
    runs = html_summary_table(table, data)
    published = published_ranking(data)
    source = published_source(data)
    rows = [
        HtmlRow(
            entry.model, [_name_cell(entry, source), *_summary_cells(row)], None, published=True
        )
        for row, (entry, _, _) in zip(table.text.rows[len(runs.rows) :], published, strict=True)
    ]
    caption = " ".join([runs.caption, *published_summary_notes(data)])
    return runs._replace(caption=caption, rows=[*runs.rows, *rows])


def published_source(data: ReportData) -> str:
    """Return the source of published rows, marked beside runs on other questions."""
    return f"{PUBLISHED_HEADING} {MARK}" if data.published_note else PUBLISHED_HEADING


def _summary_cells(row: Sequence[str]) -> list[HtmlCell]:
    """Return the numbers of a summary row, with a dash for what is not known."""
    values = _text_cells(row, text_columns=2)[2:]
    return [_with_small_bounds(cell) if cell.text else HtmlCell("–") for cell in values]


def html_coverage_table(table: BuiltTable, data: ReportData) -> HtmlTable:
    """Return the coverage table, which has one row per run and task."""
    row_keys = [(index, task) for index, run in enumerate(data.runs) for task in run.cells]
    rows = [
        HtmlRow(row[0], _text_cells(row, table.text.text_columns), index, task=task)
        for row, (index, task) in zip(table.text.rows, row_keys, strict=True)
    ]
    return _html_table(table, rows)


def html_horizon_table(table: BuiltTable, data: ReportData) -> HtmlTable:
    """Return the table of horizons, which has one row per run and task."""
    tasks = [task for run in data.horizons for task in run.horizons]
    rows = [
        HtmlRow(row[0], list(map(_with_small_bounds, cells)), None, task=task)
        for row, task in zip(table.text.rows, tasks, strict=True)
        for cells in [_text_cells(row, table.text.text_columns)]
    ]
    return _html_table(table, rows)


def _with_small_bounds(cell: HtmlCell) -> HtmlCell:
    """Return a cell such as `6.3 [5.9, 6.8]` with its bounds in small type."""
    value, bracket, bounds = cell.text.partition(" [")
    return cell._replace(text=value, bounds=f"[{bounds}" if bracket else "")


def html_text_table(table: BuiltTable) -> HtmlTable:
    """Return a table as its registry entry describes it."""
    rows = [
        HtmlRow(
            row[0] if table.spec.row_per_run else "",
            _text_cells(row, table.text.text_columns),
            index if table.spec.row_per_run else None,
        )
        for index, row in enumerate(table.text.rows)
    ]
    return _html_table(table, rows)


def _html_table(table: BuiltTable, rows: list[HtmlRow]) -> HtmlTable:
    text = table.text
    columns = [
        HtmlColumn(name, index >= text.text_columns) for index, name in enumerate(text.header)
    ]
    return HtmlTable(text.name, text.title, table.spec.caption, columns, rows)


def _score_table(spec: ScoreTableSpec, data: ReportData) -> HtmlTable:
    columns = [
        HtmlColumn("Model", False),
        *(HtmlColumn(TASKS[task].display, True, task) for _, task in spec.columns),
    ]
    caption = f"{spec.caption} Small type: 95 % bounds. {data.published_note}".rstrip()
    return HtmlTable(spec.name, spec.title, caption, columns, list(_score_rows(spec, data)))


def _score_rows(spec: ScoreTableSpec, data: ReportData) -> Iterator[HtmlRow]:
    for index, run in enumerate(data.runs):
        cells = _entry_cells(spec, run.entry, run.scored.info.source)
        yield HtmlRow(run.entry.model, cells, index)
    for entry in data.published:
        cells = _entry_cells(spec, entry, published_source(data))
        yield HtmlRow(entry.model, cells, None, published=True)


def _entry_cells(spec: ScoreTableSpec, entry: Entry, source: str) -> list[HtmlCell]:
    estimates = entry.estimates(spec)
    return [
        _name_cell(entry, source),
        *(_score_cell(spec, estimates.get(task)) for _, task in spec.columns),
    ]


def _name_cell(entry: Entry, source: str) -> HtmlCell:
    return HtmlCell(entry.name, bounds=f"{entry.reasoning}, {source}")


def _score_cell(spec: ScoreTableSpec, estimate: Estimate | None) -> HtmlCell:
    if estimate is None:
        return HtmlCell("")
    text = format_value(estimate.value, spec.decimals)
    return HtmlCell(text, estimate.value, format_bounds(spec, estimate))


def _text_cells(row: Sequence[str], text_columns: int) -> list[HtmlCell]:
    return [
        HtmlCell(text, _number(text) if index >= text_columns else None)
        for index, text in enumerate(row)
    ]


def _number(text: str) -> float | None:
    """Return the number that a text starts with, after `≥` or `<`; None if there is none."""
    words = text.removeprefix("≥").removeprefix("<").split()
    try:
        return float(words[0].replace(",", "")) if words else None
    except ValueError:
        return None
