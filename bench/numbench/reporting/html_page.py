"""`report.html`: one self-contained page with tables, figures, all items and signatures."""

from __future__ import annotations

import base64
import hashlib
import re
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from numbench.reporting.coverage import COVERAGE
from numbench.reporting.escape import escape_invisible, json_block
from numbench.reporting.horizon_runs import horizon_tasks
from numbench.reporting.horizon_tables import HORIZONS
from numbench.reporting.html_items import ItemData, item_data
from numbench.reporting.html_tables import (
    html_coverage_table,
    html_horizon_table,
    html_score_tables,
    html_summary_with_published,
    html_text_table,
)
from numbench.reporting.page_heading import PAPER_URL, page_heading
from numbench.reporting.reasoning_texts import script_files
from numbench.reporting.rendering import RenderedFigure
from numbench.reporting.report_data import ReportData
from numbench.reporting.report_warnings import HEADINGS, Severity
from numbench.reporting.summary_table import SUMMARY
from numbench.reporting.table_model import LOG_SMAPE
from numbench.reporting.table_registry import BuiltTable
from numbench.scoring.taxonomy import CATEGORIES
from numbench.tasks import TASKS

WEB = Path(__file__).parent / "web"
STYLES = ("base", "tables", "items", "print")
SCRIPTS = (
    "dom",
    "address",
    "tables",
    "table_filters",
    "cell_tooltips",
    "figure_dialog",
    "item_data",
    "item_filters",
    "response_list",
    "digits",
    "reasoning",
    "item_comparison",
    "response_detail",
    "main",
)

LEADING_FIGURES = ("pareto_tokens",)
"""Stems of the figures that the page shows beside its summary."""

_MAX_PAGE_SIZE = 10_000_000
_SIZE_OF_TABLES = 500_000
_SVG_SIZE = re.compile(r'<svg [^>]*width="([\d.]+)pt" height="([\d.]+)pt"')
_PIXELS_PER_POINT = 16 / 9
"""A third more than in print, so the smallest text of a figure, 7 points, has 12 pixels."""


class HtmlPage(NamedTuple):
    """The page, and the files that it loads on demand: name in `reasoning/` → content."""

    text: str
    files: dict[str, bytes]


class PageFigure(NamedTuple):
    """A figure as an image in the page. width, height: its own, in pixels of CSS."""

    stem: str
    caption: str
    width: int
    height: int
    source: Markup


def render(
    data: ReportData,
    tables: Sequence[BuiltTable],
    figures: Sequence[RenderedFigure],
    omitted: Mapping[str, str],
    warnings: Mapping[Severity, Sequence[str]],
    version: str,
) -> HtmlPage:
    """Return the page.

    omitted: name of each figure that is not drawn, and the reason. The page begins with the summary
    and the figures of `LEADING_FIGURES`. Reasoning texts are in the page if it has at most 10 MB
    with them, and otherwise in files of their own.

    All untrusted text is escaped by jinja2, or added as text by the script.
    """
    style, script = _read_files("style", STYLES, "css"), script_text()
    images = [page_figure(each) for each in figures]
    size = sum(len(image.source) for image in images)
    items = item_data(data.runs, _MAX_PAGE_SIZE - _SIZE_OF_TABLES - size)
    content = {
        "version": version,
        "heading": page_heading(data),
        "paper_url": PAPER_URL,
        "style": Markup(style),
        "script": Markup(script),
        "context": data.context,
        "warnings": {HEADINGS[severity]: texts for severity, texts in warnings.items()},
        **_tables(data, tables),
        "leading": [image for image in images if image.stem in LEADING_FIGURES],
        "figures": [image for image in images if image.stem not in LEADING_FIGURES],
        "omitted": omitted,
        "items": items,
        "page_data": json_block(_page_data(data, items)),
        "signatures": [
            *(line for run in data.runs for line in run.signatures.values()),
            *(run.signature for run in data.horizons),
        ],
        "has_items": bool(data.runs),
    }
    reasoning = {block.name: block.packed for blocks in items.reasoning for block in blocks}
    return _place_reasoning(content, reasoning, style, script)


def _place_reasoning(
    content: Mapping[str, object], reasoning: Mapping[str, Markup], style: str, script: str
) -> HtmlPage:
    """Return the page with the reasoning texts in it if they fit, otherwise in files."""
    template = _environment().get_template("page.html.j2")
    policy = content_security_policy(style, script)
    page = template.render(content, policy=policy, reasoning={})
    if not reasoning:
        return HtmlPage(page, {})
    if len(page.encode()) + sum(map(len, reasoning.values())) <= _MAX_PAGE_SIZE:
        return HtmlPage(template.render(content, policy=policy, reasoning=reasoning), {})
    policy = content_security_policy(style, script, "'self'")
    return HtmlPage(template.render(content, policy=policy, reasoning={}), script_files(reasoning))


def _environment() -> Environment:
    return Environment(
        loader=FileSystemLoader(WEB),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=escape_invisible,
        trim_blocks=True,
        lstrip_blocks=True,
    )


def _tables(data: ReportData, tables: Sequence[BuiltTable]) -> dict[str, object]:
    """Return the tables by their place in the page."""
    on_page = [html_text_table(table) for table in tables if table.spec.on_page]
    horizons = [html_horizon_table(table, data) for table in tables if table.spec == HORIZONS]
    return {
        "summary": [
            html_summary_with_published(table, data) for table in tables if table.spec == SUMMARY
        ],
        "tables": [*html_score_tables(data), *horizons, *on_page],
        "coverage_tables": [
            html_coverage_table(table, data) for table in tables if table.spec == COVERAGE
        ],
    }


def script_text() -> str:
    """Return the script of the page, as one strict function."""
    return f"(() => {{\n'use strict';\n{_read_files('script', SCRIPTS, 'js')}}})();\n"


def _read_files(folder: str, names: Sequence[str], ending: str) -> str:
    return "".join((WEB / folder / f"{name}.{ending}").read_text("utf-8") for name in names)


def content_security_policy(style: str, script: str, *sources: str) -> str:
    """Return a policy that allows this style and script, and scripts of `sources`, only."""
    scripts = " ".join([f"'{_content_hash(script)}'", *sources])
    return (
        f"default-src 'none'; img-src data:; style-src '{_content_hash(style)}'; "
        f"script-src {scripts}; base-uri 'none'; form-action 'none'"
    )


def _content_hash(text: str) -> str:
    return f"sha256-{base64.b64encode(hashlib.sha256(text.encode()).digest()).decode()}"


def _page_data(data: ReportData, items: ItemData) -> dict[str, object]:
    """Return what the script needs before the items are decompressed."""
    columns = LOG_SMAPE.with_tasks(data.tasks).columns if data.runs else ()
    tasks = [*(task for _, task in columns), *horizon_tasks(data.horizons)]
    return {
        "tasks": {task: TASKS[task].display for task in tasks},
        "kinds": {kind.name: f"{kind.display}. {kind.definition}" for kind in CATEGORIES},
        "responses": items.responses,
        "textLimit": items.text_limit,
        "runs": [
            {
                "key": key,
                "label": escape_invisible(run.label),
                "protocol": run.scored.protocol,
                "samples": run.scored.info.samples,
                "reasoning": [(block.start, block.name) for block in blocks],
                "signatures": run.signatures,
                "cells": {
                    task: {
                        "n": cell.n,
                        "counted": cell.counted,
                        "tokensUnknown": cell.tokens_unknown,
                        "statuses": cell.statuses,
                    }
                    for task, cell in run.cells.items()
                },
            }
            for key, run, blocks in zip(items.keys, data.runs, items.reasoning, strict=True)
        ],
    }


def page_figure(figure: RenderedFigure) -> PageFigure:
    svg = figure.files["svg"]
    size = _SVG_SIZE.search(svg.decode())
    assert size is not None, "matplotlib writes the size in points"
    width, height = (round(float(points) * _PIXELS_PER_POINT) for points in size.groups())
    source = Markup(f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}")
    return PageFigure(figure.stem, figure.caption, width, height, source)
