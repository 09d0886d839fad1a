"""Rendering of `report.html`: the answer first, then tables, figures and all items."""

from __future__ import annotations

import base64
import hashlib
from collections import defaultdict
from collections.abc import Iterator, Mapping, Sequence
from pathlib import Path

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from numbench._version import __version__
from numbench.journal.run_folder import utc_time
from numbench.reporting.answer import answers, how_to_compare
from numbench.reporting.data import ReportData
from numbench.reporting.declarations import declarations
from numbench.reporting.figures import RenderedFigure
from numbench.reporting.names import escape_invisible, json_block
from numbench.reporting.page.items import MAX_REASONING_LENGTH, MAX_TEXT_LENGTH, item_data
from numbench.reporting.tables.model import BuiltTable
from numbench.reporting.tables.render import format_bounds, format_value, heat_cell, sort_key
from numbench.reporting.warnings import report_warnings
from numbench.scoring import signature
from numbench.scoring.error_kinds import CATEGORIES
from numbench.tasks import TASKS

PAPER_URL = "https://arxiv.org/abs/2510.06824"
"""The paper whose benchmark this is."""

WEB = Path(__file__).parent / "web"
STYLES = ("page.css", "items.css")
_SCRIPTS = ("dom.js", "state.js", "tables.js", "figures.js", "items.js")


def render_page(
    data: ReportData,
    tables: Mapping[str, BuiltTable],
    figures: Sequence[RenderedFigure],
    omitted: Mapping[str, str],
) -> str:
    """Return the page. omitted: name of each figure that does not apply, and the reason.

    All untrusted text is escaped by jinja2, or added as text by the script.
    """
    style = read_web(STYLES)
    script = f"(() => {{\n'use strict';\n{read_web(_SCRIPTS)}}})();\n"
    sections: dict[str, list[BuiltTable | list[RenderedFigure]]] = {}
    # With other tasks than those of numbers, the table of scores has the same values.
    is_shown = {"exact_match": any(TASKS[task].metric == "log_smape" for task in data.tasks)}
    lead = declarations().lead
    for heading, names in declarations().sections.items():
        for name in names:
            images = [one for one in figures if one.spec.name == name not in lead]
            built = tables.get(name)
            # Published configurations alone, which are folded, would leave an empty table.
            has_runs = built is not None and any(row.kind == "run" for row in built.rows)
            parts = [built] if built and has_runs and is_shown.get(name, True) else []
            sections.setdefault(heading, []).extend([*parts, *([images] if images else [])])
    items = item_data([run.scored for run in data.runs])
    return (
        environment(WEB)
        .get_template("page.html.j2")
        .render(
            version=__version__,
            heading=_heading(data),
            paper_url=PAPER_URL,
            style=Markup(style),
            script=Markup(script),
            policy=content_security_policy(style, script),
            answers=answers(data),
            by_task={task: answers(data, task) for task in data.tasks},
            how_to_compare=how_to_compare(data),
            summary=tables.get("summary"),
            lead=[one for name in lead for one in figures if one.spec.name == name],
            sections={heading: parts for heading, parts in sections.items() if parts},
            has_references=bool(data.references),
            references=f"{data.reference_noun}s".capitalize(),
            warnings=report_warnings(data),
            omitted=omitted,
            items=items,
            limits=(MAX_TEXT_LENGTH, MAX_REASONING_LENGTH),
            page_data=json_block(_page_data(data, items.responses)),
            signatures=list(_signatures(data)),
        )
    )


def environment(*folders: Path) -> Environment:
    """Return what renders the templates of the folders, with everything escaped."""
    templates = Environment(
        loader=FileSystemLoader(folders),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=escape_invisible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    templates.globals |= {
        "value": format_value, "bounds": format_bounds, "sort_key": sort_key, "heat": heat_cell,
    }  # fmt: skip
    return templates


def read_web(names: Sequence[str], folder: Path = WEB) -> str:
    """Return the contents of files of the page, one after the other."""
    return "".join((folder / name).read_text("utf-8") for name in names)


def content_security_policy(style: str, script: str) -> str:
    """Return a policy that allows this style and script, and images in the page, only."""
    known = (hashlib.sha256(text.encode()).digest() for text in (style, script))
    style_hash, script_hash = (f"'sha256-{base64.b64encode(one).decode()}'" for one in known)
    return (
        f"default-src 'none'; img-src data:; style-src {style_hash}; "
        f"script-src {script_hash}; base-uri 'none'; form-action 'none'"
    )


def _page_data(data: ReportData, responses: int) -> dict[str, object]:
    """Return what the script needs before the items are decompressed."""
    several = len(data.datasets) > 1
    labels = [one.label for one in data.configurations] + [one.label for one in data.horizons]
    return {
        "tasks": {task: TASKS[task].display for task in data.tasks},
        "kinds": {kind.name: f"{kind.display}. {kind.definition}" for kind in CATEGORIES},
        "responses": responses,
        "members": list(map(escape_invisible, labels)),
        "runs": [
            {
                "label": escape_invisible(f"{run.label}, {run.dataset}" if several else run.label),
                "samples": run.scored.info.samples,
            }
            for run in data.runs
        ],
    }


def _signatures(data: ReportData) -> Iterator[str]:
    """Yield the signatures of each run, with its name and the tasks that a signature is for."""
    for run in data.runs:
        tasks = defaultdict[str, list[str]](list)
        for task in run.cells:
            tasks[signature(run.scored, task)].append(TASKS[task].display)
        for text, names in tasks.items():
            yield f"{run.label}, {', '.join(names)}: {text}"
    yield from (f"{run.label}: {run.signature}" for run in data.horizons)


def _heading(data: ReportData) -> dict[str, str]:
    """Return the title of the page, and the dates of its runs: `2026-11-20 to 2026-11-23`."""
    labels = [run.label for run in data.runs] + [run.label for run in data.horizons]
    created = [run.scored.info.created for run in data.runs]
    created += [run.created for run in data.horizons]
    days = sorted({day for time in created if (day := utc_time(time)[:10])})
    more = labels[1:] if len(labels) == 2 else [f"{len(labels) - 1} more"] * (len(labels) > 1)
    title = f"numbench: {' and '.join([labels[0], *more])}"
    return {"title": title, "dates": " to ".join(dict.fromkeys(days[:1] + days[-1:]))}
