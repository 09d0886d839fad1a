"""Building of a report: score the runs, make tables and figures, and write every file."""

from __future__ import annotations

import gc
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from dataclasses import dataclass
from importlib.metadata import version
from itertools import chain
from operator import attrgetter
from pathlib import Path

from numbench._version import __version__
from numbench.core import jsonl
from numbench.plot_style import check_formats
from numbench.records import ProtocolName, RunInfo
from numbench.reporting.answer import answers
from numbench.reporting.data import ReportData
from numbench.reporting.figures import render, write_figures
from numbench.reporting.page import render_page
from numbench.reporting.read import read_report_data
from numbench.reporting.scores_file import write_scores
from numbench.reporting.tables import (
    comparisons,
    findings,
    horizons,
    memory,
    samples,
    scores,
    tools,
    trend,
    variants,
)
from numbench.reporting.tables.model import BuiltTable, build_table
from numbench.reporting.tables.render import csv, escape_markdown, json_rows, latex, markdown
from numbench.reporting.values import Measure, RunConfiguration
from numbench.reporting.warnings import report_warnings
from numbench.scoring import signature

TABLES = (
    scores.SUMMARY,
    *scores.TASK_TABLES,
    scores.BY_TASK,
    comparisons.COMPARISONS,
    comparisons.PRICE,
    tools.TABLE,
    trend.TABLE,
    samples.TABLE,
    variants.TABLE,
    findings.TABLE,
    memory.TABLE,
    horizons.TABLE,
    scores.COVERAGE,
)
"""The tables of a report, in the order in which they are shown."""

Settings = Callable[[RunInfo], Mapping[str, object]]

_LIBRARIES = ("numpy", "matplotlib", "pyarrow", "jinja2", "msgspec")


@dataclass(frozen=True, eq=False, repr=False)
class ReportResult:
    """A written report.

    out: its folder. data: what it is made from. tables: name → table, with unrounded values.
    """

    out: Path
    data: ReportData
    tables: dict[str, BuiltTable]

    @property
    def warnings(self) -> tuple[str, ...]:
        """What affects how the numbers can be read, the most severe first."""
        return tuple(chain.from_iterable(report_warnings(self.data).values()))

    def __repr__(self) -> str:
        runs = len(self.data.runs) + len(self.data.horizons)
        return f"ReportResult({str(self.out)!r}, {runs} run{'s' * (runs != 1)})"

    def _repr_markdown_(self) -> str:
        """Return the answer, and the table of scores or of problem sizes, for a notebook."""
        texts = [text for known in answers(self.data) for text in known.sentences]
        names = ("log_smape", "by_task", "horizons")
        shown = [self.tables[name] for name in names if name in self.tables]
        return "\n\n".join([*map(escape_markdown, texts), *map(markdown, shown)])


def report(
    runs: Sequence[Path] | None = None,
    protocol: ProtocolName = "exact",
    references: bool = True,
    out: Path = Path("results/report"),
    formats: Sequence[str] = ("svg",),
    on_progress: Callable[[str], None] = lambda message: None,
) -> ReportResult:
    """Score runs and write a report.

    Writes to `out`: tables/, figures/, scores.parquet (unless all runs measure horizons),
    report.json and report.html.

    runs: folders that are runs or contain some, and files of baselines; by default, all runs under
        results/ except for the demo's (results/demo), unless there are no others.
    references: whether runs on the dataset `paper` are compared with the published configurations.
    formats: of the figures in figures/: svg, png, pdf.
    on_progress: is called with a short message before each step.

    Raises BadInput if there is no run, if one cannot be read, or for another format.
    """
    jsonl.check_output_folder(out, "report.json", "tables")
    figure_formats = check_formats(formats)
    with _without_collection():
        data = read_report_data(runs, protocol, references, on_progress)
        on_progress("comparing runs and wrong answers")
        tables = build_tables(data)
        write_tables(tables, out / "tables")
        figures, omitted = render(data, figure_formats, on_progress)
        write_figures(figures, figure_formats, out / "figures")
        # Another report may have written scores to the same folder.
        (out / "scores.parquet").unlink(missing_ok=True)
        if data.runs:
            on_progress("writing scores.parquet")
            write_scores((run.scored for run in data.runs), out / "scores.parquet")
        on_progress("writing report.html")
        page = render_page(data, tables, figures, omitted)
        jsonl.write_atomically(out / "report.html", page.encode())
        jsonl.write_json(out / "report.json", report_json(data, tables, omitted))
    return ReportResult(out, data, tables)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep the garbage collector from visiting records, of which few are in cycles.

    Its visits take a seventh of the time of a report of 100,000 answers.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def build_tables(data: ReportData) -> dict[str, BuiltTable]:
    """Return name → table, for the tables that apply to the data."""
    every = [build_table(table, data) for table in TABLES]
    return {built.table.name: built for built in every if built}


def write_tables(tables: Mapping[str, BuiltTable], folder: Path) -> None:
    """Write each table as CSV and Markdown, and some as LaTeX; delete those of other reports."""
    files: dict[str, bytes] = {}
    for name, built in tables.items():
        files[f"{name}.csv"] = csv(built)
        files[f"{name}.md"] = markdown(built).encode()
        if built.table.declaration.latex:
            files[f"{name}.tex"] = latex(built).encode()
    folder.mkdir(parents=True, exist_ok=True)
    for table in TABLES:
        for suffix in ("csv", "md", "tex"):
            if (name := f"{table.name}.{suffix}") not in files:
                (folder / name).unlink(missing_ok=True)
    for name, content in files.items():
        jsonl.write_atomically(folder / name, content)


def report_json(
    data: ReportData,
    tables: Mapping[str, BuiltTable],
    omitted: Mapping[str, str],
    settings: Settings = attrgetter("settings"),
) -> dict[str, object]:
    """Return the content of `report.json`: the runs, and the rows of all tables, unrounded.

    settings: returns those of a run.
    """
    versions = {name: version(name) for name in _LIBRARIES}
    return {
        "schema": 2,
        "protocol": data.protocol,
        "warnings": list(chain.from_iterable(report_warnings(data).values())),
        "figures_left_out": dict(omitted),
        "versions": {"numbench": __version__, "python": platform.python_version(), **versions},
        "runs": [_run_json(run, data, settings) for run in data.runs],
        "tables": {name: json_rows(built) for name, built in tables.items()},
    }


def _run_json(run: RunConfiguration, data: ReportData, settings: Settings) -> dict[str, object]:
    info = run.scored.info
    return {
        "path": run.scored.path.as_posix(),
        "model": info.model,
        "display": info.display,
        "reasoning": info.reasoning,
        "note": run.note,
        "source": info.source,
        "dataset": run.dataset,
        "created": info.created,
        "samples": info.samples,
        "prompts": info.prompt.label,
        "transform": info.transform,
        "limit": info.limit,
        "shard": None if info.shard is None else str(info.shard),
        "settings": settings(info),
        "tasks": {task: _task_json(run, data, task) for task in run.cells},
    }


def _task_json(run: RunConfiguration, data: ReportData, task: str) -> dict[str, object]:
    cell = run.cells[task]
    measures: Mapping[str, Measure] = {
        "score": "score", "exact_match": "exact_match", "tokens": "generated_tokens",
    }  # fmt: skip
    estimates = {name: data.estimate(run, measure, task) for name, measure in measures.items()}
    return {
        "signature": signature(run.scored, task),
        "n": cell.n,
        "counted": cell.counted,
        "statuses": dict(sorted(cell.statuses.items())),
        **{name: known._asdict() for name, known in estimates.items() if known},
    }
