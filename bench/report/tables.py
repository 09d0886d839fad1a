"""The paper's three tables from entries: values, bounds, and both for reading."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import NamedTuple

from bench.report.grid import Block, Grid, to_csv, to_latex, to_markdown
from bench.report.layout import TABLES, Entry, Estimate, TableSpec, shown

PUBLISHED_HEADING = "published (paper)"
_PUBLISHED_NOTE = (
    "Rows under “published (paper)” are the paper's own figures, by its own scoring "
    "against its own labels."
)
_BOUNDS_NOTE = (
    "Value with 95 % bounds over items: Wilson's interval for proportions, percentile bootstrap "
    "with 10,000 resamples for other means."
)


class Context(NamedTuple):
    """What every table says of itself: how its measured rows are called, and made."""

    heading: str
    notes: tuple[str, ...]


def write_tables(
    entries: Sequence[Entry], published: Sequence[Entry], context: Context
) -> Iterator[tuple[str, str]]:
    """File name and content of each table. CSV files hold measured entries only."""
    for spec in TABLES:
        header = ["Model", "Reasoning", *(name for name, _ in spec.columns)]
        rows = [[entry.name, entry.reasoning, *_values(spec, entry)] for entry in entries]
        yield f"{spec.name}.csv", to_csv(header, rows)
        grid = value_grid(spec, entries, published, context)
        yield f"{spec.name}.md", to_markdown(grid)
        yield f"{spec.name}.tex", to_latex(grid)
        yield f"{spec.name}_ci.csv", _bounds_csv(spec, entries)
        bounds = bounds_grid(spec, entries, context)
        yield f"{spec.name}_ci.md", to_markdown(bounds)
        yield f"{spec.name}_ci.tex", to_latex(bounds)


def value_grid(
    spec: TableSpec, entries: Sequence[Entry], published: Sequence[Entry], context: Context
) -> Grid:
    """Measured entries in one block, published ones in another that says so."""
    blocks = [Block(context.heading, _rows(spec, entries))]
    notes = [spec.caption, *context.notes]
    if published:
        blocks.append(Block(PUBLISHED_HEADING, _rows(spec, published)))
        notes.append(_PUBLISHED_NOTE)
    header = ["Model", "Reasoning", *(name for name, _ in spec.columns)]
    return Grid(spec.name, spec.title, header, 2, blocks, notes)


def bounds_grid(spec: TableSpec, entries: Sequence[Entry], context: Context) -> Grid:
    """Each value with its bounds, `87.5 [85.4, 89.3]`."""
    rows = [
        [entry.name, entry.reasoning, *(with_bounds(spec, e) for e in _estimates(spec, entry))]
        for entry in entries
    ]
    header = ["Model", "Reasoning", *(name for name, _ in spec.columns)]
    notes = (spec.caption, _BOUNDS_NOTE, *context.notes)
    name = f"{spec.name}_ci"
    title = f"{spec.title} with 95 % bounds"
    return Grid(name, title, header, 2, [Block(context.heading, rows)], notes)


def with_bounds(spec: TableSpec, estimate: Estimate | None) -> str:
    """`87.5 [85.4, 89.3]`; the value alone without bounds; empty without a value."""
    if estimate is None:
        return ""
    value = shown(estimate.value, spec.decimals)
    return f"{value} {bounds(spec, estimate)}".rstrip()


def bounds(spec: TableSpec, estimate: Estimate) -> str:
    """`[85.4, 89.3]`, or nothing where the bounds are not known."""
    if estimate.low is None or estimate.high is None:
        return ""
    return f"[{shown(estimate.low, spec.decimals)}, {shown(estimate.high, spec.decimals)}]"


def _bounds_csv(spec: TableSpec, entries: Sequence[Entry]) -> str:
    header = ["Model", "Reasoning"]
    for name, _ in spec.columns:
        header += [f"{name}_low", f"{name}_high"]
    rows = []
    for entry in entries:
        row = [entry.name, entry.reasoning]
        for estimate in _estimates(spec, entry):
            low, high = (estimate.low, estimate.high) if estimate else (None, None)
            row += [shown(low, spec.decimals), shown(high, spec.decimals)]
        rows.append(row)
    return to_csv(header, rows)


def _rows(spec: TableSpec, entries: Sequence[Entry]) -> list[list[str]]:
    return [[entry.name, entry.reasoning, *_values(spec, entry)] for entry in entries]


def _values(spec: TableSpec, entry: Entry) -> list[str]:
    return [shown(e.value if e else None, spec.decimals) for e in _estimates(spec, entry)]


def _estimates(spec: TableSpec, entry: Entry) -> list[Estimate | None]:
    row = entry.tables.get(spec.name, {})
    return [row.get(task) for _, task in spec.columns]
