"""The tables as text: Markdown, CSV, and for a terminal of 80 columns."""

from __future__ import annotations

import csv
import io
from collections.abc import Iterable, Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.bittoken.desiderata.counts import COLUMNS, Counts
from bench.bittoken.desiderata.subjects import Subject
from bench.bittoken.desiderata.table import MEASURES, Figures, shown

TITLE = "Desiderata of number encodings, measured"
COUNTS_TITLE = "Mean tokens per sample, input + output"
MEASURED, PUBLISHED = "measured", "published (paper)"
NOTE = (
    "Empty: a spelled number has no vector of its own (D3, D5–D8), or no trained score was given "
    "(D9)."
)

Rows = list[list[str]]


def desiderata_rows(figures: Figures, listed: Sequence[Subject]) -> Rows:
    """Desideratum (once), measure, then a figure per subject."""
    rows: Rows = []
    before = ""
    for measure in MEASURES:
        first = measure.desideratum if measure.desideratum != before else ""
        row = figures[measure.name]
        rows.append([first, measure.name, *(shown(measure, row[s.name]) for s in listed)])
        before = measure.desideratum
    return rows


def count_rows(counts: Counts) -> Rows:
    """Task, then `input + output` per encoding."""
    return [[task, *(str(row[name]) for name in COLUMNS.values())] for task, row in counts.items()]


def markdown(
    figures: Figures, listed: Sequence[Subject], counts: Counts, published: Counts, dataset: str
) -> str:
    """Both tables, ours beside the published one."""
    header = ["", "measure", *(subject.display for subject in listed)]
    count_header = ["task", *COLUMNS]
    parts = [
        f"# {TITLE}",
        f"Dataset `{dataset}`. What each row means: `docs/encodings.md`. {NOTE}",
        _markdown_table(header, desiderata_rows(figures, listed), 2),
        f"# {COUNTS_TITLE}",
        f"## {MEASURED} on `{dataset}`",
        _markdown_table(count_header, count_rows(counts), 1),
        f"## {PUBLISHED}",
        "The paper's own figures, for its own samples and layout.",
        _markdown_table(count_header, count_rows(published), 1),
    ]
    return "\n\n".join(parts) + "\n"


def desiderata_csv(figures: Figures, listed: Sequence[Subject]) -> str:
    """A row per measure, a column per encoding, nothing rounded; empty where there is nothing."""
    header = ["desideratum", "measure", *(subject.name for subject in listed)]
    rows = (
        [measure.desideratum, measure.name, *(figures[measure.name][s.name] for s in listed)]
        for measure in MEASURES
    )
    return _csv(header, rows)


def counts_csv(counts: Counts) -> str:
    """A row per task and encoding, measured figures alone."""
    rows = (
        [task, name, found.input, found.output]
        for task, row in counts.items()
        for name, found in row.items()
    )
    return _csv(["task", "encoding", "input", "output"], rows)


def terminal(
    figures: Figures, listed: Sequence[Subject], counts: Counts, published: Counts
) -> RenderableType:
    """Both tables within 80 columns."""
    table = _terminal_table(["", "", *(subject.short for subject in listed)], 2)
    for cells in desiderata_rows(figures, listed):
        table.add_row(*cells)
    tokens = _terminal_table(["Task", *COLUMNS], 1)
    for cells in count_rows(counts):
        tokens.add_row(*cells)
    tokens.add_row(Text(PUBLISHED, style="bold dim"))
    for cells in count_rows(published):
        tokens.add_row(*cells, style="dim")
    titles = (Text(title, style="bold") for title in (TITLE, f"\n{COUNTS_TITLE}"))
    return Group(next(titles), table, Text(NOTE), next(titles), tokens)


def _terminal_table(header: Sequence[str], text_columns: int) -> Table:
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    for place, name in enumerate(header):
        justify = "left" if place < text_columns else "right"
        table.add_column(name, justify=justify, no_wrap=True)  # type: ignore[arg-type]
    return table


def _markdown_table(header: Sequence[str], rows: Rows, text_columns: int) -> str:
    lines = [list(header), *rows]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]

    def line(cells: Sequence[str]) -> str:
        padded = (
            cell.ljust(width) if place < text_columns else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        )
        return f"| {' | '.join(padded)} |"

    rules = [
        "-" * width if place < text_columns else "-" * (width - 1) + ":"
        for place, width in enumerate(widths)
    ]
    return "\n".join([line(lines[0]), line(rules), *map(line, rows)])


def _csv(header: Sequence[str], rows: Iterable[Sequence[object]]) -> str:
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()
