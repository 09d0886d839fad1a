"""A report for the terminal: one table of scores for each dataset, and the answer below it."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence

from rich.console import Group, RenderableType
from rich.padding import Padding
from rich.table import Table
from rich.text import Text

from numbench.reporting.answer import answers, best_run, how_to_compare, nearest
from numbench.reporting.build import ReportResult
from numbench.reporting.comparisons import ALL, task_name
from numbench.reporting.data import MAX_TASK_COLUMNS, Configuration, DatasetGroup, ReportData
from numbench.reporting.estimate import Estimate
from numbench.reporting.horizon_runs import HorizonRun
from numbench.reporting.names import shortened
from numbench.reporting.tables import horizons
from numbench.reporting.tables.memory import memory_sentence, memory_warnings
from numbench.reporting.tables.model import BuiltTable, build_table
from numbench.reporting.tables.render import rich_table
from numbench.reporting.warnings import AFFECTS_SCORES, report_warnings
from numbench.tasks import TASKS

WIDTH = 80
"""The tables fit a terminal of this width."""

_NAME_WIDTH = 19
_REFERENCES = "Published models"
_MAX_LISTED_WARNINGS = 5
_HORIZON_FIELDS = ("task", "unit", "h50", "h90", "questions")
_VARIANT_FIELDS = ("model", "level", "variant", "difference", "p", "consistent")


def terminal_report(result: ReportResult, width: int = WIDTH) -> RenderableType:
    """Return the scores, the answer, and the warnings of a report; fits a terminal's width."""
    data = result.data
    parts: list[RenderableType] = [Text(_title(data))] if data.runs else []
    found = {known.group.sha256: known.sentences for known in answers(data)}
    for group in data.datasets:
        shown = _shown_references(data, group)
        parts += [
            Text(),
            Text(group.heading, style="bold"),
            *_score_tables(data, group, shown, width),
        ]
        if shown:
            parts.append(Text(_references_note(data, group, shown), style="dim"))
        parts += [Text(), *map(Text, found.get(group.sha256, ()))]
    if sentence := how_to_compare(data):
        parts.append(Text(sentence))
    parts += _further_tables(result)
    listed = memory_warnings(data)
    sentences = map(memory_sentence, data.memory_tests)
    parts += [Text(sentence) for sentence in sentences if sentence not in listed]
    return Group(*parts, *_warning_lines(data))


def _title(data: ReportData) -> str:
    matched = [TASKS[t].display for t in data.tasks if TASKS[t].metric == "exact_match"]
    about = "log-sMAPE, about the share of 15 digits that are correct"
    parts = [about] if len(matched) < len(data.tasks) else []
    names = ", ".join(matched) if len(matched) <= MAX_TASK_COLUMNS else f"{len(matched)} tasks"
    parts += [f"{names}: exact match" if parts else "exact match"] if matched else []
    return (
        f"Scores in percent ({'; '.join(parts)}) with half of their 95% interval; protocol "
        f"{data.protocol}"
    )


def _score_tables(
    data: ReportData, group: DatasetGroup, shown: Sequence[int], width: int
) -> Iterator[Table]:
    """Yield the table of a dataset, in several parts if it does not fit the width."""
    if group not in data.wide_datasets:
        yield from _tables_by_task(data, group, width)
        return
    members = [data.configurations[index] for index in (*group.runs, *shown)]
    names = shortened([one.model for one in members], _NAME_WIDTH)
    for tasks in _blocks(group.tasks, width):
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        table.add_column("Model", max_width=_NAME_WIDTH, no_wrap=True, overflow="ellipsis")
        for task in (ALL, *tasks):
            table.add_column(task_name(task), justify="right", no_wrap=True)
        for index in group.runs:
            _add_rows(table, data, index, tasks, names)
        if shown:
            table.add_row(Text(_REFERENCES, style="dim"))
        for index in shown:
            _add_rows(table, data, index, tasks, names, "dim")
        yield table


def _tables_by_task(data: ReportData, group: DatasetGroup, width: int) -> Iterator[Table]:
    """Yield tables with a row per task and a column per run, as many as fit the width."""
    runs = [data.runs[index] for index in group.runs]
    by_value = any(data.estimate(run, "by_value", t) for run in runs for t in run.tasks)
    size = max(1, (min(width, WIDTH) - _NAME_WIDTH) // (_NAME_WIDTH + 1))
    names = shortened([run.name for run in runs], _NAME_WIDTH)
    for start in range(0, len(runs), size):
        table = Table(box=None, pad_edge=False, padding=(0, 1, 0, 0), header_style="bold")
        table.add_column("Task", no_wrap=True)
        for run in runs[start : start + size]:
            heading = f"{names[run.name]}\n{run.level}{', by value' * by_value}"
            table.add_column(heading, justify="right", no_wrap=True)
        for task in (ALL, *group.tasks):
            cells = [
                _score_by_task(data, run, task, by_value) for run in runs[start : start + size]
            ]
            table.add_row(task_name(task), *cells, style="bold" if task == ALL else "")
        yield table


def _score_by_task(data: ReportData, run: Configuration, task: str, by_value: bool) -> str:
    """Return the score with half of its interval, and the score by value."""
    known = data.estimate(run, "score", task)
    text = f"{_score(known)} {_half(known):>4}"
    return f"{text} {_score(data.estimate(run, 'by_value', task)):>5}" if by_value else text


def _blocks(tasks: Sequence[str], width: int) -> Iterator[Sequence[str]]:
    """Yield the tasks in parts that fit the width beside names and means."""
    block: list[str] = []
    room = left = min(width, WIDTH) - _NAME_WIDTH - 6
    for task in tasks:
        needed = max(len(task_name(task)), 4) + 1
        if block and needed > left:
            yield block
            block, left = [], room
        block.append(task)
        left -= needed
    yield block


def _shown_references(data: ReportData, group: DatasetGroup) -> list[int]:
    """Return the best reference, and those that the answer names."""
    best = best_run(data, group)
    if best is None:
        return []
    closest = nearest(data, group, best)
    named = {closest.left} if closest else set()
    return [index for index in group.references if index in {group.references[0], *named}]


def _references_note(data: ReportData, group: DatasetGroup, shown: Sequence[int]) -> str:
    """Say what the published models are, and how many are not shown."""
    text = f"{_REFERENCES} answered the same questions"
    if len(shown) < len(group.references):
        text += f"; {len(group.references) - len(shown)} more: report.html"
    if any(data.is_published(data.configurations[index]) for index in shown):
        text += ". pub.: as published, not re-scored"
    return f"{text}."


def _add_rows(
    table: Table,
    data: ReportData,
    index: int,
    tasks: Sequence[str],
    names: Mapping[str, str],
    style: str = "",
) -> None:
    """Add a line with the name and the scores, one with the level and the intervals, and notes."""
    one = data.configurations[index]
    values: list[Text] = []
    halves: list[Text] = []
    for task in (ALL, *tasks):
        estimate = data.estimate(one, "score", task)
        values.append(Text(_score(estimate), style="" if values else "bold"))
        half = "pub." if data.is_published(one, task) else _half(estimate)
        halves.append(Text(half, style="dim"))
    table.add_row(Text(names[one.model]), *values, style=style)
    every = len(data.group_of(one).tasks)
    fewer = f"{len(one.tasks)} of {every} tasks" if len(one.tasks) < every else ""
    table.add_row(Text(f" {one.level}", style="dim"), *halves)
    for note in filter(None, (one.note, fewer)):
        note = f" {note}"
        table.add_row(Text(shortened([note], _NAME_WIDTH)[note], style="dim"))


def _score(estimate: Estimate | None) -> str:
    return "–" if estimate is None else f"{estimate.value:z.1f}".replace("100.0", "100")


def _half(estimate: Estimate | None) -> str:
    """Return half of the interval's width in at most four characters."""
    if estimate is None or estimate.low is None or estimate.high is None:
        return ""
    half = (estimate.high - estimate.low) / 2
    return f"±{half:.1f}" if half < 9.95 else f"±{half:.0f}"


def _further_tables(result: ReportResult) -> Iterator[RenderableType]:
    """Yield the effects of wordings and notations on all tasks, and the sizes of horizons."""
    if (variants := result.tables.get("variants")) is not None:
        rows = tuple(row for row in variants.rows if not row.task)
        if rows:
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
    yield Text(f"{built.table.title} correct answers, with 95% intervals")
    for label, rows in built.groups.items():
        yield Text(label, style="bold")
        yield rich_table(built._replace(rows=tuple(rows)), _HORIZON_FIELDS)
    yield from map(Text, built.notes)


def _warning_lines(data: ReportData) -> Iterator[RenderableType]:
    """Yield the number of warnings under each heading, and the first ones about scores."""
    warnings = report_warnings(data)
    for heading, texts in warnings.items():
        yield Text(f"! {heading} ({len(texts)})", style="bold yellow")
        listed = texts[:_MAX_LISTED_WARNINGS] if heading == AFFECTS_SCORES else []
        for text in listed:
            yield Padding(Text(text), (0, 0, 0, 2), style="yellow", expand=False)
        if listed and len(texts) > len(listed):
            yield Text(f"  … and {len(texts) - len(listed)} more", style="yellow")
    if warnings:
        yield Text("All warnings: report.html, report.json", style="dim")
