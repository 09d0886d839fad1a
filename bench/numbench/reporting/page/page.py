"""Rendering of `report.html`: the answer first, then tables, figures and all items."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Iterator, Mapping, Sequence
from datetime import UTC, datetime
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from numbench._version import __version__
from numbench.reporting.answer import answers, how_to_compare
from numbench.reporting.data import ReportData
from numbench.reporting.figures import RenderedFigure
from numbench.reporting.page.escape import escape_invisible, json_block
from numbench.reporting.page.items import MAX_REASONING_LENGTH, MAX_TEXT_LENGTH, item_data
from numbench.reporting.tables.model import BuiltTable, Cell, Column, Row, Table
from numbench.reporting.tables.render import HtmlCell, html_cells
from numbench.reporting.warnings import HEADINGS
from numbench.scoring import signature
from numbench.scoring.taxonomy import CATEGORIES
from numbench.tasks import TASKS

PAPER_URL = "https://arxiv.org/abs/2510.06824"
"""The paper whose benchmark this is."""

WEB = Path(__file__).parent / "web"
STYLES = ("page.css", "items.css")
_SCRIPTS = ("dom.js", "tables.js", "items.js")
_LEAD_FIGURES = ("horizons", "pareto_tokens", "radar")
"""Names of the figures that the page begins with, below the summary."""

_SECTIONS: Mapping[str, tuple[str, ...]] = {
    "Tasks": ("log_smape", "exact_match", "tokens", "results", "difficulty"),
    "Comparisons and prices": (
        "comparisons",
        "price",
        "pareto_cost",
        "variants",
        "samples",
        "pass_at_k",
    ),
    "Errors": ("failures", "correct_digits", "findings", "coverage", "memory_tests"),
    "Problem sizes": ("horizons", "horizon_curves"),
}
"""Heading → names of tables and figures, in the order of the page."""

_SVG_SIZE = re.compile(r'<svg [^>]*width="([\d.]+)pt" height="([\d.]+)pt"')
_PIXELS_PER_POINT = 16 / 9
"""A third more than in print, so the smallest text of a figure, 7 points, has 12 pixels."""


class PageFigure(NamedTuple):
    """A figure as an image in the page. width, height: its own, in pixels of CSS."""

    stem: str
    caption: str
    width: int
    height: int
    source: Markup


class PageRow(NamedTuple):
    """A row of a table. link: address of a page about its run, or empty."""

    row: Row
    cells: Sequence[HtmlCell]
    link: str = ""


class PageTable(NamedTuple):
    """A table of the page. columns: the first one names the rows. groups: heading → rows."""

    name: str
    title: str
    caption: str
    notes: Sequence[str]
    columns: Sequence[Column]
    groups: Mapping[str, Sequence[PageRow]]


def render_page(
    data: ReportData,
    tables: Mapping[str, BuiltTable],
    figures: Sequence[RenderedFigure],
    omitted: Mapping[str, str],
) -> str:
    """Return the page. omitted: name of each figure that does not apply, and the reason.

    All untrusted text is escaped by jinja2, or added as text by the script.
    """
    style, script = read_web(STYLES), script_text()
    lead = [page_figure(one) for name in _LEAD_FIGURES for one in figures if one.spec.name == name]
    shown = {name: page_table(built) for name, built in tables.items() if built.table.on_page}
    summary = shown.pop("summary", None)
    known = {name for names in _SECTIONS.values() for name in names}
    parts = {**_SECTIONS, "Further tables": [name for name in shown if name not in known]}
    sections = {
        heading: [
            part
            for name in names
            for part in (
                shown.get(name),
                [page_figure(one) for one in figures if one.spec.name == name not in _LEAD_FIGURES],
            )
            if part
        ]
        for heading, names in parts.items()
    }
    items = item_data([run.scored for run in data.runs if run.scored])
    return environment(WEB).get_template("page.html.j2").render(
        version=__version__,
        heading=dict(zip(("title", "dates"), page_heading(data), strict=True)),
        paper_url=PAPER_URL,
        style=Markup(style),
        script=Markup(script),
        policy=content_security_policy(style, script),
        answers=answers(data),
        how_to_compare=how_to_compare(data),
        summary=summary,
        sizes=sizes_table(tables["horizons"]) if "horizons" in tables else None,
        lead=lead,
        sections={heading: parts for heading, parts in sections.items() if parts},
        warnings=warnings_by_heading(data),
        omitted=omitted,
        items=items,
        limits=(MAX_TEXT_LENGTH, MAX_REASONING_LENGTH),
        page_data=json_block(_page_data(data, items.responses)),
        signatures=list(dict.fromkeys(_signatures(data))),
    )  # fmt: skip


def environment(*folders: Path) -> Environment:
    """Return what renders the templates of the folders, with everything escaped."""
    return Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=escape_invisible,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def page_table(built: BuiltTable, links: Mapping[int, str] | None = None) -> PageTable:
    """Return a table for the page; the level of a model stands below its name.

    links: index of a run → address of a page about it.
    """
    columns, cells = list(built.columns), html_cells(built)
    if [column.field for column in columns[:2]] == ["model", "level"]:
        del columns[1]
        cells = [[row[0]._replace(bounds=row[1].text), *row[2:]] for row in cells]
    groups: dict[str, list[PageRow]] = {}
    for row, of_row in zip(built.rows, cells, strict=True):
        link = (links or {}).get(row.run, "") if row.run is not None else ""
        groups.setdefault(row.group, []).append(PageRow(row, of_row, link))
    table = built.table
    return PageTable(table.name, table.title, table.caption, built.notes, columns, groups)


def sizes_table(built: BuiltTable) -> PageTable:
    """Return the table of horizons with a row per task, and the size at 50% of each run in it."""
    runs = list(dict.fromkeys((row.cells["model"], row.cells["level"]) for row in built.rows))
    tasks: dict[str, dict[str, Cell]] = {}
    for row in built.rows:
        level = row.cells.get("level_at_h50")
        at = f" at {level:.0f}%" if isinstance(level, float) and round(level) != 50 else ""
        name = f"{row.cells['task']}, {row.cells['unit']}{at}"
        cells = tasks.setdefault(str(row.cells["task"]), {"task": name})
        cells[str(runs.index((row.cells["model"], row.cells["level"])))] = row.cells.get("h50")
    columns = [
        Column(str(i), f"{model} ({level})", "size") for i, (model, level) in enumerate(runs)
    ]
    rows = tuple(map(Row, tasks.values()))
    table = built.table
    shown = Table("sizes", "Problem size at 50%", table.caption, (), lambda data: rows)
    return page_table(BuiltTable(shown, (Column("task", "Task"), *columns), rows, built.notes))


def page_figure(figure: RenderedFigure) -> PageFigure:
    """Return a rendered figure as an image."""
    svg = figure.files["svg"]
    size = _SVG_SIZE.search(svg.decode())
    assert size is not None, "matplotlib writes the size in points"
    width, height = (round(float(points) * _PIXELS_PER_POINT) for points in size.groups())
    source = Markup(f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}")
    return PageFigure(figure.stem, figure.spec.caption, width, height, source)


def warnings_by_heading(data: ReportData) -> dict[str, list[str]]:
    """Return heading → warnings, without empty headings."""
    texts = {
        heading: [warning.text for warning in data.warnings if warning.severity == severity]
        for severity, heading in HEADINGS.items()
    }
    return {heading: listed for heading, listed in texts.items() if listed}


def script_text() -> str:
    """Return the script of the page, as one strict function."""
    return f"(() => {{\n'use strict';\n{read_web(_SCRIPTS)}}})();\n"


def read_web(names: Sequence[str], folder: Path = WEB) -> str:
    """Return the contents of files of the page, one after the other."""
    return "".join((folder / name).read_text("utf-8") for name in names)


def content_security_policy(style: str, script: str) -> str:
    """Return a policy that allows this style and script, and images in the page, only."""
    return (
        f"default-src 'none'; img-src data:; style-src '{_content_hash(style)}'; "
        f"script-src '{_content_hash(script)}'; base-uri 'none'; form-action 'none'"
    )


def _content_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _page_data(data: ReportData, responses: int) -> dict[str, object]:
    """Return what the script needs before the items are decompressed."""
    several = len(data.datasets) > 1
    return {
        "tasks": {task: TASKS[task].display for task in data.tasks},
        "kinds": {kind.name: f"{kind.display}. {kind.definition}" for kind in CATEGORIES},
        "responses": responses,
        "runs": [
            {
                "label": escape_invisible(f"{run.label}, {run.dataset}" if several else run.label),
                "samples": run.scored.info.samples if run.scored else 1,
            }
            for run in data.runs
        ],
    }


def _signatures(data: ReportData) -> Iterator[str]:
    for run in data.runs:
        for task in run.cells:
            assert run.scored
            yield signature(run.scored, task)
    yield from (run.signature for run in data.horizons)


def page_heading(data: ReportData) -> tuple[str, str]:
    """Return the title of the page, and the dates of its runs: `2026-11-20 to 2026-11-23`."""
    labels = [run.label for run in data.runs] + [run.label for run in data.horizons]
    created = [run.scored.info.created for run in data.runs if run.scored]
    days = sorted(filter(None, map(_day, [*created, *(run.created for run in data.horizons)])))
    more = f" and {len(labels) - 1} more" if len(labels) > 1 else ""
    return f"numbench: {labels[0]}{more}", " to ".join(dict.fromkeys(days[:1] + days[-1:]))


def _day(created: str) -> str:
    """Return the day of a time in UTC; empty if it is unknown or no time."""
    try:
        moment = datetime.fromisoformat(created)
    except ValueError:
        return ""
    return str((moment.astimezone(UTC) if moment.tzinfo else moment).date())
