"""A report for the terminal: one table of scores for each dataset, and the answer below it."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from textwrap import wrap

from rich.console import Group, RenderableType
from rich.table import Table
from rich.text import Text

from numbench.reporting.answer import answers, best_run, how_to_compare, nearest
from numbench.reporting.build import ReportResult
from numbench.reporting.comparisons import ALL, task_name
from numbench.reporting.data import MAX_TASK_COLUMNS, DatasetGroup, ReportData
from numbench.reporting.declarations import Column
from numbench.reporting.horizon_runs import HorizonRun
from numbench.reporting.tables import horizons, scores
from numbench.reporting.tables.memory import memory_sentence, memory_warnings
from numbench.reporting.tables.model import BuiltTable, Cell, Row, build_table
from numbench.reporting.tables.render import PUBLISHED, rich_table
from numbench.reporting.warnings import AFFECTS_SCORES, report_warnings
from numbench.tasks import TASKS

WIDTH = 80
"""The tables fit a terminal of this width."""

_COLUMN_WIDTH = len("100.0 [100.0, 100.0]")
_MAX_LISTED_WARNINGS = 5
_HORIZON_FIELDS = ("task", "unit", "h50", "h90", "questions")
_VARIANT_FIELDS = ("model", "level", "variant", "difference", "p", "consistent")


def terminal_report(
    result: ReportResult, width: int = WIDTH, all_warnings: bool = False
) -> RenderableType:
    """Return the scores, the answer, and the warnings of a report; fits a terminal's width.

    all_warnings: instead of the first ones about scores.
    """
    data = result.data
    parts: list[RenderableType] = [Text(_title(data))] if data.runs else []
    found = {known.group.sha256: known.sentences for known in answers(data)}
    for group in data.datasets:
        shown = _shown_references(data, group)
        parts += [Text(), Text(group.heading, style="bold")]
        parts += _score_tables(data, group, shown, width)
        if shown:
            parts.append(Text(_references_note(data, group, shown), style="dim"))
        parts += [Text(), *map(Text, found.get(group.sha256, ()))]
    if sentence := how_to_compare(data):
        parts.append(Text(sentence))
    parts += _further_tables(result)
    listed = memory_warnings(data)
    sentences = map(memory_sentence, data.memory_tests)
    parts += [Text(sentence) for sentence in sentences if sentence not in listed]
    return Group(*parts, *_warning_lines(data, all_warnings))


def _title(data: ReportData) -> str:
    matched = [TASKS[t].display for t in data.tasks if TASKS[t].metric == "exact_match"]
    about = "log-sMAPE, about the share of 15 digits that are correct"
    parts = [about] if len(matched) < len(data.tasks) else []
    names = ", ".join(matched) if len(matched) <= MAX_TASK_COLUMNS else f"{len(matched)} tasks"
    parts += [f"{names}: exact match" if parts else "exact match"] if matched else []
    return (
        f"Scores in percent ({'; '.join(parts)}) with their 95% intervals; protocol {data.protocol}"
    )


def _score_tables(
    data: ReportData, group: DatasetGroup, shown: Sequence[int], width: int
) -> Iterator[RenderableType]:
    """Yield tables with a row per task and a column per configuration, as many as fit the width."""
    members = [data.configurations[index] for index in (*group.runs, *shown)]
    tasks = [*([ALL] if len(group.tasks) > 1 else []), *group.tasks]
    by_value = any(data.estimate(one, "by_value", task) for one in members for task in one.tasks)
    needed = _COLUMN_WIDTH + 1 + len("By value ") * by_value
    size = max(1, (min(width, WIDTH) - max(map(len, map(task_name, tasks)))) // needed)
    for start in range(0, len(members), size):
        part = members[start : start + size]
        columns, rows = [Column("task", "Task")], []
        for number, one in enumerate(part):
            kind = {"reference": PUBLISHED, "baseline": "baseline"}.get(one.source, "")
            heading = [one.model, one.level, one.note, data.part_of(one), kind]
            lines = [line for text in heading for line in wrap(text, _COLUMN_WIDTH)]
            columns.append(Column(f"score{number}", "\n".join(lines), ".1f"))
            columns += [Column(f"by_value{number}", "By value", ".1f")] * by_value
        for task in tasks:
            cells: dict[str, Cell] = {"task": task_name(task)}
            for number, one in enumerate(part):
                cells[f"score{number}"] = data.estimate(one, "score", task)
                value = data.estimate(one, "by_value", task)
                cells[f"by_value{number}"] = value and value.value
            rows.append(Row(cells))
        yield from [Text()] * (start > 0)
        yield rich_table(BuiltTable(scores.BY_TASK, tuple(columns), tuple(rows), ()))


def _shown_references(data: ReportData, group: DatasetGroup) -> list[int]:
    """Return the best reference, those that the answer names, and baselines."""
    best = best_run(data, group)
    if best is None:
        return []
    closest = nearest(data, group, best)
    named = {closest.left} if closest else set()
    return [
        index
        for index in group.references
        if index in {group.references[0], *named} or data.configurations[index].source == "baseline"
    ]


def _references_note(data: ReportData, group: DatasetGroup, shown: Sequence[int]) -> str:
    """Say what the references are, and how many are not shown."""
    text = f"{data.reference_noun.capitalize()}s answered the same questions"
    if len(shown) < len(group.references):
        text += f"; report.html has {len(group.references) - len(shown)} more"
    if any(data.is_published(data.configurations[index]) for index in shown):
        text += ". A value without an interval is as published, not re-scored"
    return f"{text}."


def _further_tables(result: ReportResult) -> Iterator[RenderableType]:
    """Yield the effects of wordings and notations on all tasks, and the sizes of horizons."""
    variants = result.tables.get("variants")
    if variants and (rows := tuple(row for row in variants.rows if not row.task)):
        yield Text("\nOther wordings and notations", style="bold")
        yield rich_table(variants._replace(rows=rows), _VARIANT_FIELDS)
    if (built := result.tables.get("horizons")) is not None:
        yield Text()
        yield from _horizon_parts(built)


def horizon_table(run: HorizonRun) -> RenderableType:
    """Return the horizons of one measurement, and what to know before using them."""
    data = ReportData([], [run])
    built = build_table(horizons.TABLE, data)
    assert built
    return Group(*_horizon_parts(built), *_warning_lines(data))


def _horizon_parts(built: BuiltTable) -> Iterator[RenderableType]:
    yield Text(f"{built.table.declaration.title} correct answers, with 95% intervals")
    for label, rows in built.groups.items():
        yield Text(label, style="bold")
        yield rich_table(built._replace(rows=tuple(rows)), _HORIZON_FIELDS)
    yield from map(Text, built.notes)


def _warning_lines(data: ReportData, all_warnings: bool = False) -> Iterator[RenderableType]:
    """Yield the number of warnings under each heading, and a table of those to show."""
    warnings = report_warnings(data)
    for heading, texts in warnings.items():
        yield Text(f"! {heading} ({len(texts)})", style="bold yellow")
        table = Table(box=None, show_header=False, padding=(0, 0, 0, 2), style="yellow")
        few = texts[:_MAX_LISTED_WARNINGS] if heading == AFFECTS_SCORES else []
        listed = texts if all_warnings else few
        more = len(texts) - len(listed) if listed else 0
        for text in (*listed, *([f"… and {more} more"] if more else [])):
            table.add_row(Text(text))
        yield table
    if warnings and not all_warnings:
        yield Text("All warnings: --verbose, report.html, report.json", style="dim")
