"""Figures, tables and a task, as other packages would register them."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from pathlib import Path

import pytest
from matplotlib.figure import Figure

from numbench.reporting.figure_spec import FigureResult, FigureSpec, SkippedFigure
from numbench.reporting.report_data import ReportData
from numbench.reporting.table_model import RowGroup
from numbench.reporting.table_registry import TableContent, TableSpec
from numbench.tasks import TASKS
from tests.reporting import runs


def _draw_counts(data: ReportData) -> FigureResult:
    figure = Figure(figsize=(3, 2))
    figure.add_subplot().bar(range(len(data.runs)), [len(run.cells) for run in data.runs])
    return figure


def _fail(data: ReportData) -> FigureResult:
    raise RuntimeError("first line\nsecond <b>line</b>")


def _skip(data: ReportData) -> FigureResult:
    return SkippedFigure("nothing to draw")


def _draw_radar(data: ReportData) -> FigureResult:
    return {"radar": Figure()}


def _count_tasks(data: ReportData) -> TableContent:
    rows = [[run.entry.name, str(len(run.cells)), "n/a"] for run in data.runs]
    return TableContent(["Model", "Tasks <i>", "Other"], [RowGroup(data.heading, rows)])


def _build_short_row(data: ReportData) -> TableContent:
    return TableContent(["A", "B"], [RowGroup("x", [["one cell"]])])


COUNTS = FigureSpec("task-counts", "Number of tasks per run <b>.", _draw_counts)
FAILING = FigureSpec("failing", "Never drawn.", _fail)
SKIPPED = FigureSpec("skipped", "Never drawn.", _skip)
STOLEN_NAME = FigureSpec("stolen", "Uses the file name of another figure.", _draw_radar)
COUNTS_TABLE = TableSpec("task-counts", "Task counts", "Number of tasks <b>.", _count_tasks)
SHORT_ROW_TABLE = TableSpec("short-row", "Short row", "Never written.", _build_short_row)
NOT_A_SPEC = "text"


def install(folder: Path, monkeypatch: pytest.MonkeyPatch, **entry_points: Sequence[str]) -> None:
    """Install a distribution with entry points: `figures` and `tables`, each `NAME = OBJECT`."""
    info = folder / "site" / "numbench_example-1.0.dist-info"
    info.mkdir(parents=True)
    (info / "METADATA").write_text("Metadata-Version: 2.1\nName: numbench-example\nVersion: 1.0\n")
    lines: list[str] = []
    for group, names in entry_points.items():
        lines.append(f"[numbench.{group}]")
        lines += [f"{name.lower()} = tests.reporting.plugins:{name}" for name in names]
    (info / "entry_points.txt").write_text("\n".join(lines) + "\n")
    monkeypatch.syspath_prepend(folder / "site")


def add_task(monkeypatch: pytest.MonkeyPatch, name: str = "modulo") -> None:
    """Add a task like addition to the registry, and answers for its four items."""
    task = replace(TASKS["addition"], name=name, display="Modulo")
    monkeypatch.setitem(TASKS, name, task)
    monkeypatch.setitem(runs.ANSWERS, name, ("1", "2", "3", "4"))
