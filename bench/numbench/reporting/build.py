"""Building of a report: score the runs, make tables and figures, and write every file."""

from __future__ import annotations

import gc
import platform
from collections.abc import Callable, Iterator, Mapping, Sequence
from contextlib import contextmanager
from importlib.metadata import version
from pathlib import Path

from numbench import jsonl
from numbench._version import __version__
from numbench.output_folders import check_output_folder
from numbench.plot_style import check_formats
from numbench.records import ProtocolName
from numbench.reporting import ReportResult
from numbench.reporting.data import Configuration, ReportData
from numbench.reporting.figures import render, write_figures
from numbench.reporting.page.page import render_page
from numbench.reporting.read import read_report_data
from numbench.reporting.scores_file import scores_parquet
from numbench.reporting.tables.model import BuiltTable
from numbench.reporting.tables.registry import build_tables, write_tables
from numbench.reporting.tables.render import json_rows
from numbench.scoring import signature

_LIBRARIES = ("numpy", "matplotlib", "pyarrow", "jinja2", "msgspec")


def build(
    runs: Sequence[Path] | None,
    protocol: ProtocolName,
    references: bool,
    out: Path,
    formats: Sequence[str],
    on_progress: Callable[[str], None],
) -> ReportResult:
    """Implement `numbench.reporting.report`."""
    check_output_folder(out)
    figure_formats = check_formats(formats)
    with _without_collection():
        data = read_report_data(runs, protocol, references, on_progress)
        on_progress("comparing runs and wrong answers")
        tables = build_tables(data)
        write_tables(list(tables.values()), out / "tables")
        figures, omitted = render(data, figure_formats, on_progress)
        write_figures(figures, figure_formats, out / "figures")
        # Another report may have written scores to the same folder.
        (out / "scores.parquet").unlink(missing_ok=True)
        if data.runs:
            on_progress("writing scores.parquet")
            scores = scores_parquet(run.scored for run in data.runs if run.scored)
            jsonl.write_atomically(out / "scores.parquet", scores)
        on_progress("writing report.html")
        page = render_page(data, tables, figures, omitted)
        jsonl.write_atomically(out / "report.html", page.encode())
        jsonl.write_json(out / "report.json", report_json(data, tables, omitted))
    return ReportResult(out, data, tables)


@contextmanager
def _without_collection() -> Iterator[None]:
    """Keep the garbage collector from visiting the responses, all of which are needed to the end.

    With 50,000 of them, its visits take a fifth of a report's time. What it would free is small.
    """
    was_enabled = gc.isenabled()
    gc.disable()
    try:
        yield
    finally:
        if was_enabled:
            gc.enable()


def report_json(
    data: ReportData, tables: Mapping[str, BuiltTable], omitted: Mapping[str, str]
) -> dict[str, object]:
    """Return the content of `report.json`: the runs, and the rows of all tables, unrounded."""
    versions = {name: version(name) for name in _LIBRARIES}
    return {
        "schema": 2,
        "protocol": data.protocol,
        "warnings": [warning.text for warning in data.warnings],
        "figures_left_out": dict(omitted),
        "versions": {"numbench": __version__, "python": platform.python_version(), **versions},
        "runs": [_run_json(run, data) for run in data.runs],
        "tables": {name: json_rows(built) for name, built in tables.items()},
    }


def _run_json(run: Configuration, data: ReportData) -> dict[str, object]:
    scored = run.scored
    assert scored
    info = scored.info
    return {
        "path": scored.path.as_posix(),
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
        "tasks": {task: _task_json(run, data, task) for task in run.cells},
    }


def _task_json(run: Configuration, data: ReportData, task: str) -> dict[str, object]:
    cell = run.cells[task]
    assert run.scored
    estimates = {
        "score": data.score(run, task),
        "exact_match": data.exact_match(run, task),
        "tokens": data.tokens(run, task),
    }
    return {
        "signature": signature(run.scored, task),
        "n": cell.n,
        "counted": cell.counted,
        "statuses": dict(sorted(cell.statuses.items())),
        **{name: known._asdict() for name, known in estimates.items() if known},
    }
