"""A whole report: score the runs, draw, write every file atomically."""

from __future__ import annotations

import platform
from collections.abc import Sequence
from importlib.metadata import version
from pathlib import Path

from bench import __version__, jsonl
from bench.errors import BadInput
from bench.journal import find_runs
from bench.records import ProtocolName
from bench.report import ReportResult, figures
from bench.report.comparison_json import comparisons_json
from bench.report.comparison_tables import (
    overall_grid,
    ranks_grid,
    smallest_note,
    write_comparisons,
)
from bench.report.comparisons import Comparisons, compare_runs
from bench.report.coverage import coverage_grid, warnings
from bench.report.gallery import FIGURES, LeftOut, Material, plan_of
from bench.report.grid import to_csv, to_latex, to_markdown
from bench.report.items import scores_parquet
from bench.report.layout import Estimate
from bench.report.measured import Measured, dataset_label, measure
from bench.report.page import render
from bench.report.published import published_entries
from bench.report.tables import Context, write_tables
from bench.scoring import score_run

DEFAULT_RUNS = Path("results")
_COVERAGE_NOTE = "What was left out or could not be read stands in the table coverage."
_LIBRARIES = ("numpy", "matplotlib", "pyarrow", "jinja2", "msgspec")


def build(
    runs: Sequence[Path] | None, protocol: ProtocolName, published: bool, out: Path
) -> ReportResult:
    """As `bench.report.report`."""
    measured = measure([score_run(path, protocol) for path in _run_folders(runs)])
    entries = tuple(run.entry for run in measured)
    paper = published_entries() if published else ()
    compared = compare_runs([run.run for run in measured])
    context = _context(measured, protocol, compared)
    facts = warnings(measured)
    for name, text in write_tables(entries, paper, context):
        jsonl.write_atomically(out / "tables" / name, text.encode())
    for name, text in write_comparisons(measured, compared, context):
        jsonl.write_atomically(out / "tables" / name, text.encode())
    _write_coverage(measured, context, out / "tables")
    drawn, left_out = _draw(Material(measured, paper, context.heading))
    _write_figures(drawn, out / "figures")
    jsonl.write_atomically(out / "scores.parquet", scores_parquet(measured))
    of_runs = [grid(measured, compared, context) for grid in (overall_grid, ranks_grid)]
    page = render(measured, paper, context, facts, drawn, __version__, of_runs, left_out)
    jsonl.write_atomically(out / "report.html", page.encode())
    summary = _summary(measured, protocol, published, facts, left_out)
    summary["comparisons"] = comparisons_json(measured, compared)
    jsonl.write_json(out / "report.json", summary)
    return ReportResult(out, protocol, entries, paper, facts)


def _run_folders(runs: Sequence[Path] | None) -> list[Path]:
    if runs:
        # In the order given, each once.
        return list(dict.fromkeys(folder for path in runs for folder in find_runs([path])))
    if not DEFAULT_RUNS.is_dir() or not any(DEFAULT_RUNS.rglob("run.json")):
        raise BadInput(
            f"no run under {DEFAULT_RUNS}/: make one with `numbench run --model ...`, or name "
            "run folders: `numbench report RUN ...`"
        )
    return find_runs([DEFAULT_RUNS])


def _context(runs: Sequence[Measured], protocol: ProtocolName, compared: Comparisons) -> Context:
    sources = {run.run.info.source for run in runs}
    heading = " and ".join(s for s in ("measured", "imported") if s in sources).capitalize()
    datasets = list(dict.fromkeys(dataset_label(run.run) for run in runs))
    sizes = {cell.n for run in runs for cell in run.cells.values()}
    items = " to ".join(str(size) for size in sorted({min(sizes), max(sizes)}))
    data = f"Dataset {datasets[0]}, {items} items per task."
    if len(datasets) > 1:
        names = ", ".join(datasets)
        data = f"The runs answer different datasets ({names}), {items} items per task."
    ways = {
        "exact": "Protocol exact: answers scored against exact truth, rounded to 15 digits.",
        "paper": "Protocol paper: the published study's own scoring, its known faults included.",
    }
    smallest = smallest_note(runs, compared)
    notes = (ways[protocol], data, smallest, _COVERAGE_NOTE)
    return Context(heading, tuple(note for note in notes if note))


def _write_coverage(runs: Sequence[Measured], context: Context, folder: Path) -> None:
    grid = coverage_grid(runs, context)
    (block,) = grid.blocks
    jsonl.write_atomically(folder / "coverage.csv", to_csv(grid.header, block.rows).encode())
    jsonl.write_atomically(folder / "coverage.md", to_markdown(grid).encode())
    jsonl.write_atomically(folder / "coverage.tex", to_latex(grid).encode())


def _draw(material: Material) -> tuple[dict[str, dict[str, bytes]], dict[str, str]]:
    """Files of each figure by its name, and for each that is left out the reason."""
    drawn, left_out = {}, {}
    with figures.style():
        for plan in FIGURES:
            found = plan.draw(material)
            if isinstance(found, LeftOut):
                left_out[plan.name] = found.reason
            else:
                drawn.update({name: figures.rendered(own) for name, own in found.items()})
    return drawn, left_out


def _write_figures(drawn: dict[str, dict[str, bytes]], folder: Path) -> None:
    """Write the figures; those that only an earlier report here had are removed."""
    written = set()
    for name, files in drawn.items():
        for form, data in files.items():
            jsonl.write_atomically(folder / f"{name}.{form}", data)
            written.add(f"{name}.{form}")
    for path in folder.iterdir():
        ours = path.suffix[1:] in figures.FORMATS and plan_of(path.stem) is not None
        if ours and path.name not in written:
            path.unlink()


def _summary(
    runs: Sequence[Measured],
    protocol: ProtocolName,
    published: bool,
    facts: Sequence[str],
    left_out: dict[str, str],
) -> dict[str, object]:
    """What `report.json` holds. Percentages 0 … 100, bounds at 95 %."""
    versions = {name: version(name) for name in _LIBRARIES}
    return {
        "schema": 1,
        "protocol": protocol,
        "published": published,
        "warnings": facts,
        "figures_left_out": left_out,
        "versions": {"numbench": __version__, "python": platform.python_version(), **versions},
        "runs": [_run_summary(run) for run in runs],
    }


def _run_summary(run: Measured) -> dict[str, object]:
    info = run.run.info
    return {
        "path": run.run.path.as_posix(),
        "model": info.model,
        "display": info.display,
        "reasoning": info.reasoning,
        "source": info.source,
        "dataset": dataset_label(run.run),
        "created": info.created,
        "tasks": {task: _cell_summary(run, task) for task in run.cells},
    }


def _cell_summary(run: Measured, task: str) -> dict[str, object]:
    cell = run.cells[task]
    return {
        "signature": run.signatures[task],
        "n": cell.n,
        "counted": cell.counted,
        "statuses": dict(sorted(cell.statuses.items())),
        "compliance": cell.compliance,
        "tokens_unknown": cell.tokens_unknown,
        **{table: _bounded(row[task]) for table, row in run.entry.tables.items() if task in row},
    }


def _bounded(estimate: Estimate) -> dict[str, float | None]:
    return estimate._asdict()
