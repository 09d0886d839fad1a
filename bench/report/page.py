"""`report.html`: one self-contained page with tables, figures, every item and every signature."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from pathlib import Path
from types import MappingProxyType
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from bench.report.gallery import plan_of
from bench.report.grid import Grid
from bench.report.layout import Entry
from bench.report.measured import Measured
from bench.report.page_items import ItemData, item_data
from bench.report.page_tables import coverage_table, page_tables, run_table
from bench.report.page_text import content_hash, data_uri, json_block, visible
from bench.report.tables import Context
from bench.scoring.taxonomy import CATEGORIES
from bench.tasks import TASKS

WEB = Path(__file__).parent / "web"
STYLES = ("base", "tables", "items")
SCRIPTS = (
    "dom",
    "tables",
    "table_filters",
    "notes",
    "figures",
    "data",
    "item_filters",
    "list",
    "digits",
    "detail",
    "main",
)


class _Figure(NamedTuple):
    name: str
    caption: str
    source: Markup


def render(
    runs: Sequence[Measured],
    published: Sequence[Entry],
    context: Context,
    warnings: Sequence[str],
    figures: Mapping[str, Mapping[str, bytes]],
    version: str,
    grids: Sequence[Grid] = (),
    left_out: Mapping[str, str] = MappingProxyType({}),
) -> str:
    """The page; `grids` are further tables of one row per run.

    `left_out`: figures that were not drawn, and why.

    jinja2 escapes everything foreign in it, and the script only ever adds it as text.
    """
    environment = Environment(
        loader=FileSystemLoader(WEB),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=visible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    style, script = _joined("style", STYLES, "css"), script_text()
    items = item_data(runs)
    return environment.get_template("page.html.j2").render(
        version=version,
        style=Markup(style),
        script=Markup(script),
        policy=_policy(style, script),
        context=context,
        warnings=warnings,
        tables=[*page_tables(runs, published), *map(run_table, grids)],
        coverage=coverage_table(runs, context),
        figures=[_figure(name, files) for name, files in figures.items()],
        left_out=left_out,
        items=items,
        facts=json_block(_facts(runs, items)),
        signatures=[line for run in runs for line in run.signatures.values()],
    )


def script_text() -> str:
    """The page's whole script, one strict function."""
    return f"(() => {{\n'use strict';\n{_joined('script', SCRIPTS, 'js')}}})();\n"


def _joined(folder: str, names: Sequence[str], ending: str) -> str:
    return "".join((WEB / folder / f"{name}.{ending}").read_text("utf-8") for name in names)


def _policy(style: str, script: str) -> str:
    """Nothing is loaded from anywhere, and only this style and this script hold."""
    return (
        f"default-src 'none'; img-src data:; style-src '{content_hash(style)}'; "
        f"script-src '{content_hash(script)}'; base-uri 'none'; form-action 'none'"
    )


def _facts(runs: Sequence[Measured], items: ItemData) -> dict[str, object]:
    """What the script knows without unpacking the items."""
    return {
        "tasks": {name: task.display for name, task in TASKS.items()},
        "kinds": {one.name: f"{one.display}. {one.definition}" for one in CATEGORIES},
        "responses": items.responses,
        "textLimit": items.text_limit,
        "runs": [
            {
                "key": key,
                "label": visible(run.label),
                "protocol": run.run.protocol,
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
            for key, run in zip(items.keys, runs, strict=True)
        ],
    }


def _figure(name: str, files: Mapping[str, bytes]) -> _Figure:
    """The figure in whichever form is smaller."""
    if len(files["png"]) < len(files["svg"]):
        return _Figure(name, _caption(name), data_uri("image/png", files["png"]))
    return _Figure(name, _caption(name), data_uri("image/svg+xml", files["svg"]))


def _caption(name: str) -> str:
    plan = plan_of(name)
    return plan.caption if plan else f"{name.replace('_', ' ').capitalize()}."
