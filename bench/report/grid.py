"""A table of text cells, written as CSV, Markdown or LaTeX."""

from __future__ import annotations

import csv
import io
from collections.abc import Sequence
from typing import NamedTuple

from bench.report.escape import latex, markdown

Cells = Sequence[str]

_ROWS_A_PAGE = 45


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
    """A booktabs table, ready for \\input; a long one breaks across pages."""
    rows = sum(len(block.rows) for block in grid.blocks)
    return _long_table(grid) if rows > _ROWS_A_PAGE else _floating_table(grid)


def _floating_table(grid: Grid) -> str:
    lines = [
        "% Needs \\usepackage{booktabs}.",
        r"\begin{table}[ht]",
        r"    \centering",
        r"    \footnotesize",
        r"    \setlength{\tabcolsep}{4pt}",
        rf"    \begin{{tabular}}{{{_alignment(grid)}}}",
        r"    \toprule",
        "    " + _latex_row(grid.header),
        *_latex_blocks(grid),
        r"    \bottomrule",
        r"    \end{tabular}",
        "    " + _caption(grid),
        r"\end{table}",
    ]
    return "\n".join(lines) + "\n"


def _long_table(grid: Grid) -> str:
    lines = [
        "% Needs \\usepackage{booktabs,longtable}.",
        r"{\scriptsize\setlength{\tabcolsep}{3pt}",
        rf"\begin{{longtable}}{{{_alignment(grid)}}}",
        "    " + _caption(grid) + r" \\",
        r"    \toprule",
        "    " + _latex_row(grid.header),
        r"    \midrule",
        r"    \endhead",
        *_latex_blocks(grid)[1:],
        r"    \bottomrule",
        r"\end{longtable}}",
    ]
    return "\n".join(lines) + "\n"


def _latex_blocks(grid: Grid) -> list[str]:
    """The blocks, each after a rule and under its heading."""
    lines = []
    for block in grid.blocks:
        heading = rf"\multicolumn{{{len(grid.header)}}}{{l}}{{\emph{{{latex(block.heading)}}}}} \\"
        lines += [r"    \midrule", f"    {heading}"]
        lines += ["    " + _latex_row(row) for row in block.rows]
    return lines


def _alignment(grid: Grid) -> str:
    return "l" * grid.text_columns + "r" * (len(grid.header) - grid.text_columns)


def _caption(grid: Grid) -> str:
    label = grid.name.replace("_", "-")
    notes = " ".join(latex(note) for note in grid.notes)
    return rf"\caption{{{notes}}}\label{{tab:{label}}}"


def _latex_row(cells: Cells) -> str:
    return " & ".join(latex(cell) for cell in cells) + r" \\"
