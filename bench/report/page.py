"""`report.html`: one self-contained page with the tables, figures and signatures."""

from __future__ import annotations

import base64
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined

from bench.report.coverage import HEADER, coverage_rows
from bench.report.gallery import plan_of
from bench.report.layout import TABLES, Entry, TableSpec, shown
from bench.report.measured import Measured
from bench.report.tables import PUBLISHED_HEADING, Context, bounds


class _Cell(NamedTuple):
    value: str
    bounds: str


class _Row(NamedTuple):
    name: str
    reasoning: str
    cells: list[_Cell]


class _Table(NamedTuple):
    title: str
    caption: str
    header: list[str]
    blocks: list[tuple[str, list[_Row]]]


class _Figure(NamedTuple):
    name: str
    caption: str
    source: str


def render(
    runs: Sequence[Measured],
    published: Sequence[Entry],
    context: Context,
    warnings: Sequence[str],
    figures: Mapping[str, Mapping[str, bytes]],
    version: str,
) -> str:
    """The page; everything foreign in it is escaped by jinja2."""
    environment = Environment(
        loader=FileSystemLoader(Path(__file__).parent),
        autoescape=True,
        undefined=StrictUndefined,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    measured = [run.entry for run in runs]
    return environment.get_template("page.html.j2").render(
        version=version,
        context=context,
        warnings=warnings,
        tables=[_table(spec, measured, published, context) for spec in TABLES],
        figures=[_figure(name, files["svg"]) for name, files in figures.items()],
        coverage_header=HEADER,
        coverage=coverage_rows(runs),
        signatures=[line for run in runs for line in run.signatures.values()],
    )


def _table(
    spec: TableSpec, measured: Sequence[Entry], published: Sequence[Entry], context: Context
) -> _Table:
    blocks = [(context.heading, [_row(spec, entry) for entry in measured])]
    if published:
        blocks.append((PUBLISHED_HEADING, [_row(spec, entry) for entry in published]))
    return _Table(spec.title, spec.caption, [name for name, _ in spec.columns], blocks)


def _row(spec: TableSpec, entry: Entry) -> _Row:
    estimates = [entry.tables.get(spec.name, {}).get(task) for _, task in spec.columns]
    cells = [
        _Cell(shown(e.value, spec.decimals), bounds(spec, e)) if e else _Cell("", "")
        for e in estimates
    ]
    return _Row(entry.name, entry.reasoning, cells)


def _figure(name: str, svg: bytes) -> _Figure:
    plan = plan_of(name)
    caption = plan.caption if plan else ""
    source = f"data:image/svg+xml;base64,{base64.b64encode(svg).decode()}"
    return _Figure(name, caption, source)
