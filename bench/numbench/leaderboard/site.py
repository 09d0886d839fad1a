"""Building of a leaderboard's files."""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from jinja2 import Environment, FileSystemLoader, StrictUndefined
from markupsafe import Markup

from numbench import jsonl
from numbench._version import __version__
from numbench.errors import BadInput
from numbench.journal import INFO
from numbench.leaderboard import Leaderboard, provenance, score_pages
from numbench.leaderboard.addresses import page_names
from numbench.leaderboard.output_folder import (
    GENERATOR,
    check_site_folder,
    remove_earlier_pages,
)
from numbench.reporting.build import read_report_data, report_json
from numbench.reporting.coverage import coverage_warnings
from numbench.reporting.entries import MeasuredRun
from numbench.reporting.escape import escape_invisible
from numbench.reporting.horizon_tables import HORIZONS
from numbench.reporting.html_page import WEB as REPORT_WEB
from numbench.reporting.html_page import content_security_policy, page_figure
from numbench.reporting.html_tables import html_horizon_table
from numbench.reporting.rendering import RenderedFigure, render_figures
from numbench.reporting.report_data import ReportData
from numbench.reporting.report_warnings import by_severity
from numbench.reporting.scores_parquet import scores_parquet
from numbench.reporting.table_registry import build_table, build_tables
from numbench.scoring.completeness import completeness
from numbench.tasks import TASKS

_WEB = Path(__file__).parent / "web"
_STYLES = ("base", "tables", "print")
_FIGURES = ("pareto_tokens", "pareto_cost", "horizons", "horizon_curves", "horizon_tokens")


class SiteOptions(NamedTuple):
    """What a site shows besides the runs, as in `write_leaderboard`."""

    published: bool
    title: str
    repository: str | None


class _Site(NamedTuple):
    """The contents of a site.

    ranked: all that is ranked, compared and drawn, without the incomplete runs. incomplete: the
    runs below the ranking. names: folder of a run → file name of its page.
    """

    ranked: ReportData
    incomplete: Sequence[MeasuredRun]
    names: Mapping[Path, str]
    options: SiteOptions


def write_site(
    runs: Sequence[Path], out: Path, options: SiteOptions, on_progress: Callable[[str], None]
) -> Leaderboard:
    """Implement `numbench.leaderboard.write_leaderboard`."""
    check_site_folder(out)
    if options.repository and not options.repository.startswith(("https://", "http://")):
        raise BadInput(f"--repository {options.repository!r} is not a URL; begin with https://")
    site = _read_site(runs, options, on_progress)
    data = site.ranked
    tables, table_warnings = build_tables(data)
    figures, omitted = render_figures(data, (), on_progress, _FIGURES)
    on_progress("writing pages")
    warnings = by_severity([*data.warnings, *table_warnings, *coverage_warnings(site.incomplete)])
    texts = tuple(text for group in warnings.values() for text in group)
    pages = dict(_pages(site, figures, texts))
    files = {address: page.encode() for address, page in pages.items()}
    for name, text in (pair for table in tables for pair in table.files.items()):
        if name.endswith(".csv"):
            files[f"data/{name}"] = text.encode()
    files |= {f"data/{figure.stem}.svg": figure.files["svg"] for figure in figures}
    files["data/report.json"] = jsonl.encode(report_json(data, texts, omitted))
    every = [*data.runs, *site.incomplete]
    horizons = [f"horizon {run.label}" for run in data.horizons]
    names = page_names([*site.names.values(), *horizons])
    folders = [run.scored.path for run in every] + [Path(run.path) for run in data.horizons]
    files["data/checksums.txt"] = provenance.checksums(names, folders).encode()
    if data.runs:
        files["data/scores.parquet"] = scores_parquet(run.scored for run in data.runs)
    for address, content in files.items():
        jsonl.write_atomically(out / address, content)
    remove_earlier_pages(out, pages)
    labels = tuple(run.label for run in site.incomplete)
    return Leaderboard(out, len(folders), len(pages), labels)


def _read_site(
    runs: Sequence[Path], options: SiteOptions, on_progress: Callable[[str], None]
) -> _Site:
    folders = [path for path in runs if not path.is_dir() or any(path.rglob(INFO))]
    if not folders:
        return _Site(ReportData(()), (), {}, options)
    data = read_report_data(folders, "exact", options.published, on_progress)
    complete = [run for run in data.runs if completeness(run.scored).is_complete]
    incomplete = [run for run in data.runs if not completeness(run.scored).is_complete]
    every = [*complete, *incomplete]
    addresses = page_names([run.label for run in every])
    names = {run.scored.path: name for run, name in zip(every, addresses, strict=True)}
    return _Site(ReportData(complete, data.published, data.horizons), incomplete, names, options)


def _pages(
    site: _Site, figures: Sequence[RenderedFigure], texts: Sequence[str]
) -> Iterator[tuple[str, str]]:
    """Yield the address and the HTML of each page."""
    data = site.ranked
    render = _renderer(site)
    names = [site.names[run.scored.path] for run in data.runs]
    horizons = build_table(HORIZONS, data) if data.horizons else None
    incomplete = score_pages.incomplete_table(site.incomplete, site.names)
    created = [run.scored.info.created for run in (*data.runs, *site.incomplete)]
    created += [run.created for run in data.horizons]
    yield (
        "index.html",
        render(
            "index.html.j2",
            "",
            ranking=score_pages.ranking(data, names) if data.runs else None,
            overview=score_pages.task_overview(data, names) if data.runs else None,
            horizons=html_horizon_table(horizons, data) if horizons is not None else None,
            incomplete=incomplete if site.incomplete else None,
            figures=[page_figure(figure) for figure in figures],
            notes=data.context.notes,
            warnings=texts,
            newest=max(created, default="")[:10],
        ),
    )
    yield "about.html", render("about.html.j2", "", notes=data.context.notes, data=data)
    yield from _task_pages(data, names, render)
    # The findings of the incomplete runs are their own; they take part in no comparison.
    for part in (data, ReportData(site.incomplete)):
        yield from _run_pages(part, site, render, texts)


def _task_pages(
    data: ReportData, names: Sequence[str], render: Callable[..., str]
) -> Iterator[tuple[str, str]]:
    for task in data.tasks:
        rows = next((run.scored.rows[task] for run in data.runs if task in run.cells), [])
        yield (
            f"tasks/{task}.html",
            render(
                "task.html.j2",
                "../",
                title=TASKS[task].display,
                table=score_pages.task_table(data, task, names),
                example=rows[0].item if rows else None,
                signatures=[run.signatures[task] for run in data.runs if task in run.signatures],
            ),
        )


def _run_pages(
    data: ReportData, site: _Site, render: Callable[..., str], texts: Sequence[str]
) -> Iterator[tuple[str, str]]:
    is_ranked = data is site.ranked
    findings = {id(match.run): match.findings.sentence for match in data.matches}
    for run in data.runs:
        errors = score_pages.error_table(run)
        yield (
            f"models/{site.names[run.scored.path]}.html",
            render(
                "model.html.j2",
                "../",
                title=run.label,
                unranked="" if is_ranked else str(completeness(run.scored)),
                scores=score_pages.run_table(data, run, is_ranked, site.ranked.tasks),
                errors=errors,
                definitions=score_pages.definitions(errors),
                finding=findings.get(id(run)),
                warnings=[
                    text.removeprefix(f"{run.label}: ")
                    for text in texts
                    if text.startswith(f"{run.label}: ")
                ],
                settings=provenance.settings(run.scored.info),
                hashes=provenance.file_hashes(run.scored.path),
                signatures=dict.fromkeys(run.signatures.values()),
            ),
        )


def _renderer(site: _Site) -> Callable[..., str]:
    """Return a function of template, path to the root, and variables."""
    environment = Environment(
        loader=FileSystemLoader([_WEB, REPORT_WEB]),
        autoescape=True,
        undefined=StrictUndefined,
        finalize=escape_invisible,
        trim_blocks=True,
        lstrip_blocks=True,
    )
    paths = [*(REPORT_WEB / "style" / f"{name}.css" for name in _STYLES), _WEB / "site.css"]
    style = "".join(path.read_text("utf-8") for path in paths)

    def render(template: str, root: str, **variables: object) -> str:
        return environment.get_template(template).render(
            root=root,
            generator=GENERATOR,
            version=__version__,
            style=Markup(style),
            policy=content_security_policy(style, ""),
            tasks={task: TASKS[task].display for task in site.ranked.tasks},
            has_scores=bool(site.ranked.runs),
            heading=site.options.title,
            repository=site.options.repository,
            **variables,
        )

    return render
