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
from numbench.errors import BadInput
from numbench.journal import find_runs
from numbench.output_folders import check_output_folder
from numbench.plot_style import FigureFormat, check_formats
from numbench.records import ProtocolName
from numbench.reporting import DEFAULT_RUNS, DEMO_RUNS, ReportResult
from numbench.reporting.budget_tables import budget_lines, budgets_json
from numbench.reporting.certificate_tables import certificates_json
from numbench.reporting.comparison_tables import comparisons_json
from numbench.reporting.convention_table import conventions_json
from numbench.reporting.entries import (
    MeasuredRun,
    dataset_label,
    measure,
    published_entries,
    published_models,
)
from numbench.reporting.horizon_files import read_horizon_run, split_folders
from numbench.reporting.horizon_json import horizons_json
from numbench.reporting.horizon_runs import HorizonRun, order_runs
from numbench.reporting.html_page import render
from numbench.reporting.metamorphic import metamorphic_json
from numbench.reporting.other_computations import finding_lines, other_computations_json
from numbench.reporting.prompt_effects import effects_json, spread_values, spreads_json
from numbench.reporting.published_rows import is_comparable
from numbench.reporting.reasoning_texts import FOLDER, write_script_files
from numbench.reporting.rendering import render_figures, write_figures
from numbench.reporting.repeated_samples import repeated_samples_json
from numbench.reporting.report_data import ReportData
from numbench.reporting.report_warnings import by_severity
from numbench.reporting.scores_parquet import scores_parquet
from numbench.reporting.summary_table import ranking
from numbench.reporting.table_registry import build_tables, write_tables
from numbench.scoring import ScoredRun, score_run

_LIBRARIES = ("numpy", "matplotlib", "pyarrow", "jinja2", "msgspec")


def build(
    runs: Sequence[Path] | None,
    protocol: ProtocolName,
    published: bool,
    out: Path,
    formats: Sequence[str],
    on_progress: Callable[[str], None],
) -> ReportResult:
    """Implement `numbench.reporting.report`."""
    check_output_folder(out)
    figure_formats = check_formats(formats)
    with _without_collection():
        data = read_report_data(runs, protocol, published, on_progress)
        return _write_report(data, out, figure_formats, on_progress)


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


def _write_report(
    data: ReportData,
    out: Path,
    figure_formats: Sequence[FigureFormat],
    on_progress: Callable[[str], None],
) -> ReportResult:
    """Write all files of a report."""
    if len(data.runs) > 1:
        on_progress(f"comparing {len(data.runs)} runs")
    if data.runs:
        on_progress("comparing wrong answers with other computations")
    tables, table_warnings = build_tables(data)
    warnings = by_severity([*data.warnings, *table_warnings])
    texts = tuple(text for group in warnings.values() for text in group)
    write_tables(tables, out / "tables")
    figures, omitted = render_figures(data, figure_formats, on_progress)
    write_figures(figures, figure_formats, out / "figures")
    if data.runs:
        on_progress("writing scores.parquet")
        scores = scores_parquet(run.scored for run in data.runs)
        jsonl.write_atomically(out / "scores.parquet", scores)
    else:
        # Another report may have written it to the same folder.
        (out / "scores.parquet").unlink(missing_ok=True)
    on_progress("writing report.html")
    page = render(data, tables, figures, omitted, warnings, __version__)
    write_script_files(page.files, out / FOLDER)
    jsonl.write_atomically(out / "report.html", page.text.encode())
    jsonl.write_json(out / "report.json", report_json(data, texts, omitted))
    return ReportResult(
        out=out,
        protocol=data.protocol,
        entries=data.entries,
        published=data.published,
        warnings=texts,
        tasks=data.tasks,
        horizons=data.horizons,
        variants=data.variant_summaries,
        prompt_spreads=spread_values(data.prompt_spreads),
        certificates=data.certificates,
        findings=tuple(finding_lines(data.matches)),
        budgets=tuple(budget_lines(data.budgets)),
        published_note=data.published_note,
        ranking=tuple(ranking(data)),
        warning_groups=warnings,
    )


def read_report_data(
    runs: Sequence[Path] | None,
    protocol: ProtocolName,
    published: bool,
    on_progress: Callable[[str], None],
) -> ReportData:
    """Score the runs and measurements in `runs`, and return what their report is made from."""
    folders = split_folders(find_run_folders(runs, on_progress))
    scored = _score_runs(folders.scores, protocol, on_progress)
    horizons = _read_horizons(folders.horizons, on_progress)
    on_progress("computing 95 % bounds")
    others = [run for run in scored if not is_comparable(run.dataset)]
    if published and others:
        on_progress(
            f"no published scores: {others[0].path} is on other questions than theirs and v1"
        )
    shown = published_entries() if published and not others else ()
    return ReportData(measure(scored), shown, horizons)


def find_run_folders(
    runs: Sequence[Path] | None, on_message: Callable[[str], None] = lambda _: None
) -> list[Path]:
    """Return the run folders in `runs`. Raises BadInput if there are none.

    By default those under results/, without the demo's unless there are no others; on_message
    receives a note if they are left out.
    """
    if runs:
        # In the given order, each once.
        return list(dict.fromkeys(folder for path in runs for folder in find_runs([path])))
    if not DEFAULT_RUNS.is_dir() or not any(DEFAULT_RUNS.rglob("run.json")):
        raise BadInput(
            f"no runs found under {DEFAULT_RUNS}/: run `numbench run --model ...` first, or name "
            "run folders: `numbench report RUN ...`"
        )
    found = find_runs([DEFAULT_RUNS])
    folders = [folder for folder in found if not folder.is_relative_to(DEMO_RUNS)]
    if not folders:
        return found
    if len(folders) < len(found):
        on_message(
            f"the demo's runs in {DEMO_RUNS} are not included; to include them: "
            f"numbench report {DEFAULT_RUNS}"
        )
    return folders


def _score_runs(
    folders: Sequence[Path], protocol: ProtocolName, on_progress: Callable[[str], None]
) -> list[ScoredRun]:
    scored = []
    for number, folder in enumerate(folders, 1):
        on_progress(f"scoring run {number} of {len(folders)}: {folder}")
        scored.append(score_run(folder, protocol))
    return scored


def _read_horizons(folders: Sequence[Path], on_progress: Callable[[str], None]) -> list[HorizonRun]:
    read = []
    for number, folder in enumerate(folders, 1):
        on_progress(f"estimating horizons {number} of {len(folders)}: {folder}")
        read.append(read_horizon_run(folder))
    return order_runs(read, published_models())


def report_json(
    data: ReportData, warnings: Sequence[str], omitted: Mapping[str, str]
) -> dict[str, object]:
    """Return the content of `report.json`. Percentages are 0 … 100, bounds at 95 %."""
    versions = {name: version(name) for name in _LIBRARIES}
    return {
        "schema": 1,
        "protocol": data.protocol,
        "published": bool(data.published),
        "warnings": warnings,
        "figures_left_out": omitted,
        "versions": {"numbench": __version__, "python": platform.python_version(), **versions},
        "runs": [_run_summary(run, data) for run in data.runs],
        "comparisons": comparisons_json(data.runs, data.comparisons),
        "repeated_samples": repeated_samples_json(data.runs, data.repeated_samples),
        "prompt_effects": effects_json(data.runs, data.prompt_effects),
        "prompt_spread": spreads_json(data.runs, data.prompt_spreads),
        "metamorphic": metamorphic_json(data.runs, data.metamorphic_results),
        "reasoning_budgets": budgets_json(data.budgets),
        "other_computations": other_computations_json(data.matches),
        "horizons": horizons_json(data.horizons),
        "certificates": certificates_json(data.certificates),
    }


def _run_summary(run: MeasuredRun, data: ReportData) -> dict[str, object]:
    conventions = conventions_json([cell for cell in data.conventions if cell.run is run])
    info = run.scored.info
    return {
        "path": run.scored.path.as_posix(),
        "model": info.model,
        "display": info.display,
        "reasoning": info.reasoning,
        "source": info.source,
        "dataset": dataset_label(run.scored),
        "created": info.created,
        "samples": info.samples,
        "prompts": info.prompt.label,
        "transform": info.transform,
        "tasks": {task: _cell_summary(run, task) | conventions.get(task, {}) for task in run.cells},
    }


def _cell_summary(run: MeasuredRun, task: str) -> dict[str, object]:
    cell = run.cells[task]
    formats = run.formats.get(task)
    return {
        "signature": run.signatures[task],
        "n": cell.n,
        "counted": cell.counted,
        "statuses": dict(sorted(cell.statuses.items())),
        "compliance": cell.compliance,
        "lenient_exact_match": formats and formats.lenient,
        "tokens_unknown": cell.tokens_unknown,
        **{table: row[task]._asdict() for table, row in run.entry.tables.items() if task in row},
    }
