"""The page of all tables: the same runs give the same bytes."""

from __future__ import annotations

import re
from collections.abc import Sequence
from pathlib import Path

from bench.errors import BadInput
from bench.tasks import TASKS
from experiments.cells import FACTS, Kept, caption, chance_of, compared, fact, measured, runs_of
from experiments.layout import Layout, Row, published, rows_of

INTRODUCTION = Path(__file__).with_name("page.md")
FINDINGS = "findings.md"
_READ = (
    "In percent; in brackets the 95 % interval over items, or the figure of each seed. *Italics*: "
    "published. The two are not measured alike (above)."
)


def read_findings(path: Path, layouts: Sequence[Layout]) -> dict[str, str]:
    """Paragraphs written by hand, by the table whose name their `## ` heading is.

    BadInput for a heading that is no table's name.
    """
    if not path.is_file():
        return {}
    parts = re.split(r"^## +(.+?) *$", path.read_text(encoding="utf-8"), flags=re.MULTILINE)
    names = [layout.name for layout in layouts]
    found = dict(zip(parts[1::2], (text.strip() for text in parts[2::2]), strict=True))
    for name in found:
        if name not in names:
            raise BadInput(f"{path}: no table {name!r}: give one of {', '.join(names)}")
    return found


def page(layouts: Sequence[Layout], kept: Kept, findings: dict[str, str]) -> str:
    """The whole page."""
    parts = [INTRODUCTION.read_text(encoding="utf-8").rstrip()]
    for layout in layouts:
        runs = [run for column in layout.columns for run in runs_of(layout, column, kept)]
        parts += [f"## {layout.title}", _table(layout, kept), caption(runs, layout), _READ]
        parts += [layout.note] if layout.note else []
        if findings.get(layout.name):
            parts.append(f"**What it shows.** {findings[layout.name]}")
        if compared(layout, kept):
            parts.append(f"![Learning curves: {layout.title}](curves/{layout.name}.png)")
    return "\n\n".join(parts) + "\n"


def _table(layout: Layout, kept: Kept) -> str:
    header = ["Task", "Metric", "Chance"]
    for column in layout.columns:
        header += [column.title, "*paper*"]
    rows = [_row(layout, row, kept) for row in rows_of(layout)]
    for name, value in FACTS:
        cells = [name, "", ""]
        for column in layout.columns:
            cells += [fact(runs_of(layout, column, kept), name, value), ""]
        rows.append(cells)
    rule = [":--", ":--", *(["--:"] * (len(header) - 2))]
    return "\n".join(f"| {' | '.join(cells)} |" for cells in (header, rule, *rows))


def _row(layout: Layout, row: Row, kept: Kept) -> list[str]:
    cells = [TASKS[row.task].display if row.ours else row.task, row.metric, chance_of(row)]
    for column in layout.columns:
        theirs = published(layout, column, row)
        cells += [measured(column, row, kept), f"*{theirs}*" if theirs else ""]
    return cells
