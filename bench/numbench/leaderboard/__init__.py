"""A leaderboard: a static web site of runs, with a page per run."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import NamedTuple

import msgspec
from markupsafe import Markup

from numbench._version import __version__
from numbench.core import jsonl
from numbench.dataset.store import sha256_of
from numbench.errors import BadInput
from numbench.journal.run_folder import INFO, RESPONSES, utc_time
from numbench.journal.served_models import EARLIER_SERVERS
from numbench.records import RunInfo
from numbench.reporting.answer import answers
from numbench.reporting.build import build_tables, report_json
from numbench.reporting.data import ReportData
from numbench.reporting.figures import RenderedFigure, render
from numbench.reporting.page import (
    PAPER_URL,
    STYLES,
    WEB,
    content_security_policy,
    environment,
    read_web,
)
from numbench.reporting.read import read_report_data
from numbench.reporting.scores_file import write_scores
from numbench.reporting.tables.model import BuiltTable
from numbench.reporting.tables.render import csv
from numbench.reporting.tables.scores import BY_TASK, task_rows
from numbench.reporting.warnings import report_warnings
from numbench.scoring import signature

_HEADING = "How well do language models compute with numbers?"

_WEB = Path(__file__).parent / "web"
_FIGURES = ("horizons", "pareto_tokens", "radar", "pareto_cost", "horizon_curves")
_TABLES = ("summary", "log_smape", "by_task", "horizons")
"""Names of what the first page shows."""

_GENERATOR = "numbench leaderboard"
"""The content of a tag of every page, by which a later build finds the pages of an earlier one."""

_MAX_NAME = 80

_RUN_FILES = (INFO, RESPONSES, "requests.jsonl", "rounds.jsonl")
"""The files of a run that its scores depend on, or that show how it was made."""


class Leaderboard(NamedTuple):
    """A written site.

    out: its folder. runs: shown runs, horizons included. pages: HTML files. incomplete: names of
    the runs that have no rank, because they do not answer their whole dataset.
    """

    out: Path
    runs: int
    pages: int
    incomplete: tuple[str, ...] = ()


def write_leaderboard(
    runs: Sequence[Path],
    out: Path = Path("leaderboard"),
    published: bool = True,
    on_progress: Callable[[str], None] = lambda message: None,
    repository: str | None = None,
) -> Leaderboard:
    """Score runs under the protocol `exact` and write a site of static files to `out`.

    runs: folders that are runs or contain some; an empty folder makes a site without runs.
    published: whether the paper's values are shown too, marked as such and without a rank.
    repository: URL where runs are submitted.

    Raises BadInput if a run cannot be read, or if `out` has files of something else.
    """
    _check_folder(out)
    if repository and not repository.startswith(("https://", "http://")):
        raise BadInput(f"--repository {repository!r} is not a URL; begin with https://")
    folders = [path for path in runs if not path.is_dir() or any(path.rglob(INFO))]
    data = read_report_data(folders, "exact", published, on_progress) if folders else ReportData()
    tables = build_tables(data)
    complete = [run.scored for run in data.runs if run.completeness.is_complete]
    ranked = ReportData(complete, data.horizons, published)
    figures, omitted = render(ranked, (), on_progress, _FIGURES)
    files = {f"data/{name}.csv": csv(built) for name, built in tables.items()}
    files |= {f"data/{figure.stem}.svg": figure.files["svg"] for figure in figures}
    if folders:
        files["data/report.json"] = jsonl.encode(report_json(data, tables, omitted, settings))
    labels = [run.label for run in data.runs]
    names = page_names([*labels, *(f"horizon {run.label}" for run in data.horizons)])
    paths = [run.scored.path for run in data.runs] + [Path(run.path) for run in data.horizons]
    checksums = (
        f"{digest}  {name}/{file}\n"
        for name, path in zip(names, paths, strict=True)
        for file, digest in file_hashes(path).items()
    )
    files["data/checksums.txt"] = "".join(checksums).encode()
    on_progress("writing pages")
    pages = dict(_pages(data, names, tables, figures, _renderer(data, repository)))
    files |= {address: page.encode() for address, page in pages.items()}
    for address, content in files.items():
        jsonl.write_atomically(out / address, content)
    if data.runs:
        write_scores((run.scored for run in data.runs), out / "data/scores.parquet")
    # Pages of runs that an earlier build wrote and this one did not.
    for path in (out / "models").glob("*.html"):
        if f"models/{path.name}" not in pages and _is_own_page(path):
            path.unlink()
    incomplete = tuple(run.label for run in data.runs if not run.completeness.is_complete)
    return Leaderboard(out, len(paths), len(pages), incomplete)


def page_names(labels: Sequence[str]) -> list[str]:
    """Return a file name without ending for each label: ASCII, lower case, and each one different.

    Labels are untrusted; a name has only letters, digits and single hyphens.
    """
    names: list[str] = []
    for label in labels:
        base = re.sub(r"[^a-z0-9]+", "-", label.lower())[:_MAX_NAME].strip("-") or "run"
        name, number = base, 2
        while name in names:
            name, number = f"{base}-{number}", number + 1
        names.append(name)
    return names


def _check_folder(out: Path) -> None:
    """Raise BadInput unless `out` is new, empty or an earlier leaderboard.

    Hidden files, such as those of Git, do not count.
    """
    jsonl.check_output_folder(out)
    files = [path for path in out.iterdir() if path.name[0] != "."] if out.is_dir() else []
    if files and not all(_is_own_page(out / name) for name in ("index.html", "about.html")):
        raise BadInput(f"{out} has files that numbench did not write; choose another --out")


def _is_own_page(path: Path) -> bool:
    return path.is_file() and f'content="{_GENERATOR}"'.encode() in path.read_bytes()


def _pages(
    data: ReportData,
    names: Sequence[str],
    tables: Mapping[str, BuiltTable],
    figures: Sequence[RenderedFigure],
    template: Callable[..., str],
) -> Iterator[tuple[str, str]]:
    """Yield the address and the HTML of each page."""
    created = [run.scored.info.created for run in data.runs]
    created += [run.created for run in data.horizons]
    warnings = report_warnings(data)
    yield (
        "index.html",
        template(
            "index.html.j2",
            answers=answers(data),
            tables=[tables[name] for name in _TABLES if name in tables],
            links={number: f"models/{name}.html" for number, name in enumerate(names)},
            images=figures,
            warnings=warnings,
            newest=max(map(utc_time, created), default="")[:10],
        ),
    )
    yield "about.html", template("about.html.j2")
    findings = {number: found.sentence for number, found in data.findings}
    for number, run in enumerate(data.runs):
        start = f"{run.label}: "
        own = {
            heading: [text.removeprefix(start) for text in texts if text.startswith(start)]
            for heading, texts in warnings.items()
        }
        page = template(
            "model.html.j2",
            root="../",
            run=run,
            scores=score_table(data, number),
            finding=findings.get(number),
            warnings={heading: texts for heading, texts in own.items() if texts},
            settings=settings(run.scored.info),
            hashes=file_hashes(run.scored.path),
            signatures=dict.fromkeys(signature(run.scored, task) for task in run.cells),
        )
        yield f"models/{names[number]}.html", page


def _renderer(data: ReportData, repository: str | None) -> Callable[..., str]:
    """Return a function of template and variables."""
    templates = environment(_WEB, WEB)
    style = read_web(STYLES[:1]) + read_web(("site.css",), _WEB)
    common = {
        "root": "",
        "data": data,
        "generator": _GENERATOR,
        "version": __version__,
        "style": Markup(style),
        "policy": content_security_policy(style, ""),
        "heading": _HEADING,
        "repository": repository,
        "paper_url": PAPER_URL,
    }
    return lambda name, **variables: templates.get_template(name).render(common | variables)


def score_table(data: ReportData, index: int) -> BuiltTable:
    """Return the scores of one run, one row per task."""
    rows = task_rows(data, [data.group_of(data.runs[index])])
    own = [row._replace(group="") for row in rows if row.run == index]
    columns = [
        column for column in BY_TASK.declaration.columns if column.field not in ("model", "level")
    ]
    if not any(row.cells["by_value"] for row in own):
        columns = [column for column in columns if column.field != "by_value"]
    declaration = msgspec.structs.replace(BY_TASK.declaration, title="Scores")
    table = replace(BY_TASK, name="scores", declaration=declaration)
    return BuiltTable(table, tuple(columns), tuple(own), ())


def settings(info: RunInfo) -> dict[str, str]:
    """Return the settings of the requests of a run as texts.

    An address of a server may be one of a private network.
    """
    known = {
        name: "chosen with --base-url" if name in ("base_url", EARLIER_SERVERS) else value
        for name, value in info.settings.items()
    }
    return {
        name: value if isinstance(value, str) else json.dumps(value)
        for name, value in known.items()
        if value is not None
    }


def file_hashes(folder: Path) -> dict[str, str]:
    """Return the SHA-256 of each file of a run folder that documents its scores."""
    return {name: sha256_of(folder / name) for name in _RUN_FILES if (folder / name).is_file()}
