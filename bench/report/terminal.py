"""The report's main table for a terminal of 80 columns."""

from __future__ import annotations

from collections.abc import Sequence

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from bench.report import ReportResult
from bench.report.comparison_tables import difference_shown, p_shown, task_name
from bench.report.comparisons import BETTER, OVERALL, WORSE
from bench.report.layout import LOG_SMAPE, Entry, shown
from bench.report.regression import Regression
from bench.tasks import TASKS

_LEVELS = {"maximal": "max", "minimal": "min", "medium": "med"}
_WIDEST_MODEL = 20
_VERDICT_STYLES = {BETTER: "green", WORSE: "red"}


def terminal_table(result: ReportResult) -> RenderableType:
    """Headline scores, measured rows before published ones, and the warnings below."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("Model", max_width=_WIDEST_MODEL, no_wrap=True, overflow="ellipsis")
    table.add_column("Rsn", max_width=4, no_wrap=True, overflow="ellipsis")
    for task in TASKS.values():
        table.add_column(_short(task.display), justify="right", no_wrap=True)
    _add(table, result.entries)
    if result.published:
        table.add_row(Text("published (paper)", style="bold dim"))
        _add(table, result.published, "dim")
    title = f"log-sMAPE in percent; MinMax, Interval, Sorting: exact match; {result.protocol}"
    warnings = [Text(f"! {warning}", style="yellow") for warning in result.warnings]
    return Group(Text(title), table, *warnings)


def regression_table(found: Regression) -> RenderableType:
    """The new run against the old one, a row per task, and what one must know of it below."""
    table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
    table.add_column("Task", no_wrap=True)
    for name in ("Items", "Old", "New", "New - old", "Holm p"):
        table.add_column(name, justify="right", no_wrap=True)
    table.add_column("New run is", no_wrap=True)
    for contrast in found.contrasts:
        new, old = contrast.means or (None, None)
        table.add_row(
            "All" if contrast.task == OVERALL else task_name(contrast.task),
            str(contrast.found.n if contrast.found else 0),
            shown(old, 1),
            shown(new, 1),
            Text(difference_shown(contrast)),
            p_shown(contrast.p_tasks),
            Text(contrast.verdict, style=_VERDICT_STYLES.get(contrast.verdict, "")),
        )
    notes = [Text(f"! {note}", style="yellow") for note in found.notes]
    return Group(table, *notes)


def _add(table: Table, entries: Sequence[Entry], style: str = "") -> None:
    for entry in entries:
        row = entry.tables.get(LOG_SMAPE.name, {})
        scores = [row[task].value if task in row else None for task in TASKS]
        table.add_row(
            Text(_cut(entry.name)),
            Text(_LEVELS.get(entry.reasoning, entry.reasoning)),
            *(shown(score, LOG_SMAPE.decimals) for score in scores),
            style=style,
        )


def _cut(name: str) -> str:
    """A long name without its middle: what tells two alike is mostly at the end."""
    half = (_WIDEST_MODEL - 1) // 2
    return name if len(name) <= _WIDEST_MODEL else f"{name[:half]}…{name[-half:]}"


def _short(display: str) -> str:
    """A task's name in at most five letters, the width of `100.0`."""
    short = {"MinMax": "MnMx", "Interval": "Intvl", "Sorting": "Sort"}
    return short.get(display, display[:5])
