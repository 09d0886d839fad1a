"""Building of a leaderboard's files."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from pathlib import Path
from typing import NamedTuple

from markupsafe import Markup

from numbench import jsonl
from numbench._version import __version__
from numbench.errors import BadInput
from numbench.journal import INFO
from numbench.leaderboard import run_tables
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
    warnings_by_heading,
)
from numbench.reporting.read import read_report_data
from numbench.reporting.scores_file import scores_parquet
from numbench.reporting.tables.model import BuiltTable
from numbench.reporting.tables.render import csv
from numbench.scoring import signature

DEFAULT_TITLE = "How well do language models compute with numbers?"

_WEB = Path(__file__).parent / "web"
_FIGURES = ("horizons", "pareto_tokens", "radar", "pareto_cost", "horizon_curves")
_TABLES = ("summary", "log_smape", "horizons")
"""Names of what the first page shows."""

_GENERATOR = "numbench leaderboard"
"""The content of a tag of every page, by which a later build finds the pages of an earlier one."""

_MAX_NAME = 80


class Leaderboard(NamedTuple):
    """A written site.

    out: its folder. runs: shown runs, horizons included. pages: HTML files. incomplete: names of
    the runs that have no rank, because they do not answer their whole dataset.
    """

    out: Path
    runs: int
    pages: int
    incomplete: tuple[str, ...] = ()


class _Part(NamedTuple):
    """The ranked or the incomplete runs of a site, with the names of their pages."""

    data: ReportData
    names: list[str]
    is_ranked: bool

    def links(self) -> dict[int, str]:
        return {index: f"models/{name}.html" for index, name in enumerate(self.names)}


def write_leaderboard(
    runs: Sequence[Path],
    out: Path = Path("leaderboard"),
    published: bool = True,
    on_progress: Callable[[str], None] = lambda message: None,
    title: str = DEFAULT_TITLE,
    repository: str | None = None,
) -> Leaderboard:
    """Score runs under the protocol `exact` and write a site of static files to `out`.

    runs: folders that are runs or contain some; an empty folder makes a site without runs.
    published: whether the paper's values are shown too, marked as such and without a rank. title:
    heading of the first page. repository: URL where runs are submitted.

    Raises BadInput if a run cannot be read, or if `out` has files of something else.
    """
    _check_folder(out)
    if repository and not repository.startswith(("https://", "http://")):
        raise BadInput(f"--repository {repository!r} is not a URL; begin with https://")
    folders = [path for path in runs if not path.is_dir() or any(path.rglob(INFO))]
    parts = list(_read_parts(folders, published, on_progress)) if folders else []
    files: dict[str, bytes] = {}
    tables: dict[str, BuiltTable] = {}
    figures: list[RenderedFigure] = []
    names = [name for part in parts for name in part.names]
    paths = [run.scored.path for part in parts for run in part.data.runs if run.scored]
    for ranked in (part.data for part in parts if part.is_ranked):
        tables = build_tables(ranked)
        figures, omitted = render(ranked, (), on_progress, _FIGURES)
        files |= {f"data/{name}.csv": csv(built) for name, built in tables.items()}
        files |= {f"data/{figure.stem}.svg": figure.files["svg"] for figure in figures}
        files["data/report.json"] = jsonl.encode(report_json(ranked, tables, omitted))
        if ranked.runs:
            scored = (run.scored for run in ranked.runs if run.scored)
            files["data/scores.parquet"] = scores_parquet(scored)
        names = page_names([*names, *(f"horizon {run.label}" for run in ranked.horizons)])
        paths += [Path(run.path) for run in ranked.horizons]
    checksums = (
        f"{digest}  {name}/{file}\n"
        for name, path in zip(names, paths, strict=True)
        for file, digest in run_tables.file_hashes(path).items()
    )
    files["data/checksums.txt"] = "".join(checksums).encode()
    on_progress("writing pages")
    index = []
    for part in parts:
        shown = [tables[name] for name in _TABLES if name in tables]
        shown = shown if part.is_ranked else [run_tables.incomplete_table(part.data)]
        index += [(table, part.links()) for table in shown]
    template = _renderer(title, repository)
    pages = dict(_pages(parts, index, figures, template))
    for address, content in (files | {name: page.encode() for name, page in pages.items()}).items():
        jsonl.write_atomically(out / address, content)
    # Pages of runs that an earlier build wrote and this one did not.
    for page in (out / "models").glob("*.html"):
        if f"models/{page.name}" not in pages and _is_own_page(page):
            page.unlink()
    incomplete = [run.label for part in parts if not part.is_ranked for run in part.data.runs]
    return Leaderboard(out, len(paths), len(pages), tuple(incomplete))


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


def _read_parts(
    folders: Sequence[Path], published: bool, on_progress: Callable[[str], None]
) -> Iterator[_Part]:
    """Yield the ranked runs, and those that are not complete."""
    data = read_report_data(folders, "exact", published, on_progress)
    groups = {
        is_complete: [run for run in data.runs if run.completeness.is_complete == is_complete]
        for is_complete in (True, False)
    }
    names = page_names([run.label for group in groups.values() for run in group])
    for is_ranked, group in groups.items():
        own, names = names[: len(group)], names[len(group) :]
        scored = [run.scored for run in group if run.scored]
        if is_ranked and (scored or data.horizons):
            yield _Part(ReportData(scored, data.horizons, published, data.skipped), own, True)
        elif scored:
            yield _Part(ReportData(scored, (), False, ()), own, False)


def _pages(
    parts: Sequence[_Part],
    tables: Sequence[object],
    images: Sequence[object],
    template: Callable[..., str],
) -> Iterator[tuple[str, str]]:
    """Yield the address and the HTML of each page."""
    ranked = next((part.data for part in parts if part.is_ranked), None)
    created = [run.scored.info.created for part in parts for run in part.data.runs if run.scored]
    created += [run.created for part in parts for run in part.data.horizons]
    warnings: dict[str, list[str]] = {}
    for part in parts:
        for heading, texts in warnings_by_heading(part.data).items():
            warnings.setdefault(heading, []).extend(texts)
    yield (
        "index.html",
        template(
            "index.html.j2",
            answers=answers(ranked) if ranked else (),
            tables=tables,
            images=images,
            warnings=warnings,
            newest=max(created, default="")[:10],
        ),
    )
    yield (
        "about.html",
        template(
            "about.html.j2",
            has_references=bool(ranked and ranked.references),
            has_scores=bool(ranked and ranked.runs),
            has_data=ranked is not None,
        ),
    )
    for part in parts:
        findings = {index: found.sentence for index, found in part.data.findings}
        for index, run in enumerate(part.data.runs):
            assert run.scored
            own = {
                heading: [
                    text.removeprefix(f"{run.label}: ")
                    for text in texts
                    if text.startswith(f"{run.label}: ")
                ]
                for heading, texts in warnings.items()
            }
            page = template(
                "model.html.j2",
                root="../",
                title=run.label,
                dataset=part.data.group_of(run).heading,
                unranked="" if part.is_ranked else str(run.completeness),
                scores=run_tables.score_table(part.data, index, part.is_ranked),
                finding=findings.get(index),
                warnings={heading: texts for heading, texts in own.items() if texts},
                settings=run_tables.settings(run.scored.info),
                hashes=run_tables.file_hashes(run.scored.path),
                signatures=dict.fromkeys(signature(run.scored, task) for task in run.cells),
            )
            yield f"models/{part.names[index]}.html", page


def _renderer(title: str, repository: str | None) -> Callable[..., str]:
    """Return a function of template and variables."""
    templates = environment(_WEB, WEB)
    style = read_web(STYLES[:1]) + read_web(("site.css",), _WEB)
    common = {
        "root": "",
        "generator": _GENERATOR,
        "version": __version__,
        "style": Markup(style),
        "policy": content_security_policy(style, ""),
        "heading": title,
        "repository": repository,
        "paper_url": PAPER_URL,
    }
    return lambda name, **variables: templates.get_template(name).render(common | variables)
