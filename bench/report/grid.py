"""A table of text cells, written as CSV, Markdown or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from bench.report.escape import latex, markdown

Cells = Sequence[str]


class Block(NamedTuple):
    """Rows under a heading of their own."""

    heading: str
    rows: Sequence[Cells]


class Grid(NamedTuple):
    """A table with `text_columns` columns of text first, then columns of numbers.

    `notes` are paragraphs that stand above (Markdown) or in the caption (LaTeX).
    """

    name: str
    title: str
    header: Cells
    text_columns: int
    blocks: Sequence[Block]
    notes: Sequence[str]


def to_csv(header: Cells, rows: Sequence[Cells]) -> str:
    """The header and the rows, quoted where needed."""
    text = io.StringIO()
    writer = csv.writer(text, lineterminator="\n")
    writer.writerow(header)
    writer.writerows(rows)
    return text.getvalue()


def to_markdown(grid: Grid) -> str:
    """Title, notes, and one aligned table per block under its heading."""
    parts = [f"# {markdown(grid.title)}", *(markdown(note) for note in grid.notes)]
    for block in grid.blocks:
        parts += [f"## {markdown(block.heading)}", _markdown_table(grid, block.rows)]
    return "\n\n".join(parts) + "\n"


def _markdown_table(grid: Grid, rows: Sequence[Cells]) -> str:
    lines = [[markdown(cell) for cell in row] for row in (grid.header, *rows)]
    widths = [max(3, *map(len, column)) for column in zip(*lines, strict=True)]

    def line(cells: Cells) -> str:
        padded = [
            cell.ljust(width) if place < grid.text_columns else cell.rjust(width)
            for place, (cell, width) in enumerate(zip(cells, widths, strict=True))
        ]
        return f"| {' | '.join(padded)} |"

    rules = [
        "-" * width if place < grid.text_columns else "-" * (width - 1) + ":"
        for place, width in enumerate(widths)
    ]
    return "\n".join([line(lines[0]), line(rules), *map(line, lines[1:])])


def to_latex(grid: Grid) -> str:
    """A booktabs table, ready for \\input; blocks are parted by a rule and named."""
    width = len(grid.header)
    lines = [
        r"\begin{table}[ht]",
        r"    \centering",
        r"    \footnotesize",
        r"    \setlength{\tabcolsep}{4pt}",
        r"    \begin{tabular}{" + "l" * grid.text_columns + "r" * (width - grid.text_columns) + "}",
        r"    \toprule",
        "    " + _latex_row(grid.header),
    ]
    for block in grid.blocks:
        heading = rf"\multicolumn{{{width}}}{{l}}{{\emph{{{latex(block.heading)}}}}} \\"
        lines += [r"    \midrule", f"    {heading}"]
        lines += ["    " + _latex_row(row) for row in block.rows]
    caption = " ".join(latex(note) for note in grid.notes)
    label = grid.name.replace("_", "-")
    lines += [
        r"    \bottomrule",
        r"    \end{tabular}",
        rf"    \caption{{{caption}}}",
        rf"    \label{{tab:{label}}}",
        r"\end{table}",
    ]
    return "% Needs \\usepackage{booktabs}.\n" + "\n".join(lines) + "\n"


def _latex_row(cells: Cells) -> str:
    return " & ".join(latex(cell) for cell in cells) + r" \\"
