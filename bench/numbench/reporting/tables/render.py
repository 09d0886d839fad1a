"""Renderings of a table: CSV, Markdown, LaTeX, JSON, and cells for HTML and the terminal."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from numbench.core.csv_files import encode_csv
from numbench.core.installation import read_toml
from numbench.core.texts import text_template
from numbench.records import Estimate
from numbench.reporting.declarations import Column
from numbench.reporting.tables.model import BuiltTable, Cell, Row
from numbench.stats.multiple_testing import RankSet

if TYPE_CHECKING:
    from rich.table import Table as RichTable

_FOLDER = Path(__file__).parent

UNKNOWN = "–"
PUBLISHED = "published"
"""Mark of a value that was published, and not scored from responses."""

_ESCAPES = {
    name: str.maketrans(characters)
    for name, characters in read_toml(_FOLDER / "escapes.toml").items()
}
_LATEX_SYNTAX: dict[str, Any] = {
    "variable_start_string": "<<", "variable_end_string": ">>",
    "block_start_string": "<%", "block_end_string": "%>",
}  # fmt: skip
"""The usual marks of templates have a meaning in LaTeX."""


def escape_latex(text: str) -> str:
    """Return one line of text for LaTeX's text mode."""
    return " ".join(text.translate(_ESCAPES["latex"]).split())


def escape_markdown(text: str) -> str:
    """Return one line of text for a Markdown paragraph or table cell."""
    return " ".join(text.translate(_ESCAPES["markdown"]).split())


def format_number(value: float, form: str) -> str:
    """Return a number in a format such as `+.1f`; never `-0.0`."""
    if form == "size":
        form = ",.0f" if value >= 99.95 else ".1f"
    elif form == "price":
        form = ",.0f" if value >= 99.95 else "#.3g"
    sign, rest = (form[0], form[1:]) if form[0] in "+-" else ("", form)
    has_zero = rest.endswith(("f", "g"))
    return format(value, f"{sign}{'z' if has_zero else ''}{rest}")


def format_value(column: Column, cell: Cell) -> str:
    """Return a cell as text, without its interval."""
    if cell is None:
        return UNKNOWN
    if isinstance(cell, str):
        return cell
    if isinstance(cell, RankSet):
        return str(cell.best) if cell.best == cell.worst else f"{cell.best}–{cell.worst}"
    value = cell.value if isinstance(cell, Estimate) else cell
    if column.form == "p":
        return "<0.001" if value < 0.001 else f"{value:.3f}"
    if column.form in ("count", "text"):
        return f"{value:,}"
    return format_number(value, column.form)


def format_bounds(column: Column, cell: Cell) -> str:
    """Return an interval as `[85.4, 89.3]`; empty if there is none."""
    if not isinstance(cell, Estimate) or cell.low is None or cell.high is None:
        return ""
    return f"[{format_number(cell.low, column.form)}, {format_number(cell.high, column.form)}]"


def format_cell(column: Column, row: Row) -> str:
    """Return a cell as text: `87.5 [85.4, 89.3]`, `93.0 (published)`, or `–` if it is unknown."""
    cell = row.cells.get(column.field)
    mark = f"({PUBLISHED})" if column.field in row.published and cell is not None else ""
    parts = (format_value(column, cell), format_bounds(column, cell), mark)
    return " ".join(filter(None, parts))


def csv(built: BuiltTable) -> bytes:
    """Return a table as CSV with unrounded numbers, in which no text is a formula.

    An estimate has columns for its value and both ends of its interval, a set of ranks one for the
    best and one for the worst; an unknown value is empty.
    """
    has_references = any(row.kind != "run" for row in built.rows)
    suffixes = {column: _suffixes(built, column) for column in built.columns}
    header = ["group", *["kind"] * has_references]
    header += [column.field + suffix for column in built.columns for suffix in suffixes[column]]
    rows: list[list[object]] = []
    for row in built.rows:
        cells: list[object] = [row.group, *[row.kind] * has_references]
        for column in built.columns:
            cell = row.cells.get(column.field)
            # A bound such as `≥ 4,096` is no number.
            cell = None if isinstance(cell, str) and not column.is_text else cell
            values = cell if isinstance(cell, tuple) else (cell,)
            cells += [*values, *[None] * (len(suffixes[column]) - len(values))]
        rows.append(cells + [" ".join(sorted(row.published))] * has_references)
    return encode_csv([[*header, *[PUBLISHED] * has_references], *rows]).encode()


def _suffixes(built: BuiltTable, column: Column) -> tuple[str, ...]:
    cells = [row.cells.get(column.field) for row in built.rows]
    if any(isinstance(cell, Estimate) for cell in cells):
        return "", "_low", "_high"
    is_ranks = column.form == "ranks" or any(isinstance(cell, RankSet) for cell in cells)
    return ("_best", "_worst") if is_ranks else ("",)


def json_rows(built: BuiltTable) -> list[dict[str, object]]:
    """Return the rows of a table for `report.json`, unrounded."""
    rows = []
    for row in built.rows:
        cells: dict[str, object] = {"group": row.group, "kind": row.kind}
        cells |= {"run": row.run} if row.run is not None else {}
        for column in built.columns:
            cell = row.cells.get(column.field)
            is_record = isinstance(cell, Estimate | RankSet)
            cells[column.field] = cell._asdict() if is_record else cell  # type: ignore[union-attr]
        rows.append(cells | ({PUBLISHED: sorted(row.published)} if row.published else {}))
    return rows


def sort_key(cell: Cell) -> float | None:
    """Return the number by which a cell is sorted; None for text and unknown values."""
    number = cell[0] if isinstance(cell, Estimate | RankSet) else cell
    return float(number) if isinstance(number, int | float) else None


def heat_cell(cell: Cell) -> tuple[int, str]:
    """Return the shade of a percentage, 0 to 10, and its interval as the path of a bar."""
    number = sort_key(cell)
    low, high = (cell.low, cell.high) if isinstance(cell, Estimate) else (None, None)
    bar = "" if low is None or high is None else f"M{low:.1f} 2H{max(high, low + 0.8):.1f}"
    return round(min(max(number or 0.0, 0.0), 100.0) / 10), bar


def markdown(built: BuiltTable) -> str:
    """Return title, caption, notes, and one Markdown table per group of rows."""
    template = text_template(_FOLDER / "table.md.j2", finalize=escape_markdown)
    return template.render(built=built, cell=format_cell)


def latex(built: BuiltTable) -> str:
    """Return a booktabs table for \\input, which breaks across pages."""
    template = text_template(_FOLDER / "table.tex.j2", finalize=escape_latex, **_LATEX_SYNTAX)
    return template.render(built=built, cell=format_cell)


def rich_table(built: BuiltTable, fields: Sequence[str] = ()) -> RichTable:
    """Return a table for the terminal, by default with all columns."""
    from rich.table import Table as RichTable
    from rich.text import Text

    columns = [c for c in built.columns if not fields or c.field in fields]
    table = RichTable(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for column in columns:
        justify = "left" if column.is_text else "right"
        table.add_column(column.title, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    for heading, rows in built.groups.items():
        if heading and len(built.groups) > 1:
            table.add_row(Text(heading, style="dim"))
        for row in rows:
            table.add_row(*(Text(format_cell(column, row)) for column in columns))
    return table
