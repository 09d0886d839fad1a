"""Tables of scores: the summary, the paper's three tables, and the responses behind them."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from typing import Any, get_args

from numbench.records import Status
from numbench.reporting.comparisons import ALL, task_name
from numbench.reporting.data import DatasetGroup, ReportData
from numbench.reporting.declarations import Column
from numbench.reporting.tables.model import (
    Cell,
    Columns,
    Row,
    RowKind,
    Table,
    declared_table,
    table_rows,
    task_row,
)
from numbench.reporting.values import Configuration, Measure, RunConfiguration
from numbench.tasks import TASKS

STATUSES: tuple[Status, ...] = get_args(Status)


def _score_rows(
    data: ReportData, groups: Sequence[DatasetGroup]
) -> Iterator[tuple[int, Configuration, Row]]:
    """Yield each configuration on some datasets with its index and a row with only its name."""
    for group in groups:
        for index in group.members:
            one = data.configurations[index]
            names = {"model": one.name, "level": one.level}
            row = Row(names, group.heading, run=index, member=index, part=data.part_of(one))
            if index not in group.runs:
                heading = "baselines" if one.source == "baseline" else "references"
                kind: RowKind = "reference" if one.values.tasks else "published"
                row = row._replace(group=SUMMARY.text(heading), kind=kind, run=None)
            yield index, one, row


def _summary(data: ReportData) -> Iterator[Row]:
    ranks = data.ranks[ALL]
    for index, one, row in _score_rows(data, data.datasets):
        cells: dict[str, Cell] = {
            **row.cells,
            "score": data.estimate(one),
            "ranks": ranks.get(index),
            "tokens": data.estimate(one, "generated_tokens"),
            "median_tokens": one.median_tokens,
            "cost": data.cost(one),
            "latency": one.median_latency,
        }
        if isinstance(one, RunConfiguration):
            cells["answered"] = one.completeness.answered
            cells["questions"] = one.completeness.total
        published = frozenset({"score", "tokens"} if data.is_published(one) else ())
        yield row._replace(cells=cells, published=published)


def _summary_notes(data: ReportData) -> Iterator[str]:
    """Say which runs have fewer tasks than others on their dataset, and what is published."""
    for one in data.runs:
        tasks = data.group_of(one).tasks
        if len(one.tasks) < len(tasks):
            names = ", ".join(map(task_name, one.tasks)) or "no task"
            count = f"{len(one.tasks)} of {len(tasks)}"
            yield SUMMARY.text("fewer_tasks", run=one.label, count=count, tasks=names)
        elif one.incomplete_tasks:
            yield SUMMARY.text("incomplete", run=one.label, answered=one.completeness)
    if any(map(data.is_published, data.references)):
        yield SUMMARY.text("published")


def _wide_tasks(data: ReportData) -> list[str]:
    """Return the tasks that are columns."""
    known = {task for group in data.wide_datasets for task in group.tasks}
    return [task for task in data.tasks if task in known]


def task_rows(data: ReportData, groups: Sequence[DatasetGroup]) -> Iterator[Row]:
    """Yield a row for each task and configuration on some datasets."""
    for group in groups:
        named = list(_score_rows(data, [group]))
        for task in group.tasks:
            for index, one, row in named:
                if task not in {*one.values.tasks, *one.tasks}:
                    continue
                cells: dict[str, Cell] = {**row.cells, "task": task_name(task)}
                cells |= {measure: data.estimate(one, measure, task) for measure in _MEASURES}
                cells["ranks"] = data.ranks[task].get(index)
                if isinstance(one, RunConfiguration):
                    cells["answered"], cells["questions"] = one.completeness.by_task[task]
                is_published = data.is_published(one, task)
                published = frozenset({"score", "generated_tokens"} if is_published else ())
                yield row._replace(cells=cells, task=task, published=published)


def _task_columns(declared: Columns, data: ReportData) -> Columns:
    """Return the columns that have a value and a meaning of their own."""
    rows = table_rows(BY_TASK, data)
    known = {field for row in rows for field, cell in row.cells.items() if cell is not None}
    if all(TASKS[row.task].metric == "exact_match" for row in rows):
        known -= {"exact_match"}
    return [column for column in declared if column.field in known]


def _task_table(name: str, measure: Measure, form: str) -> Table:
    is_amount = measure == "generated_tokens"

    def columns(declared: Columns, data: ReportData) -> Columns:
        tasks = [
            Column(
                task, task_name(task), form, "" if task == ALL else task, is_amount, not is_amount
            )
            for task in (ALL, *_wide_tasks(data))
        ]
        return (*declared, *tasks)

    def rows(data: ReportData) -> Iterator[Row]:
        for _, one, row in _score_rows(data, data.wide_datasets):
            cells: dict[str, Cell] = {t: data.estimate(one, measure, t) for t in (ALL, *one.tasks)}
            published = frozenset(task for task in cells if data.is_published(one, task))
            if any(cells.values()):
                yield row._replace(cells={**row.cells, **cells}, published=published)

    def notes(data: ReportData) -> Iterator[str]:
        tasks = _wide_tasks(data)
        matched = [TASKS[t].display for t in tasks if TASKS[t].metric == "exact_match"]
        if measure == "score" and matched:
            yield f"The score of these tasks is exact match: {', '.join(matched)}."
        if any(map(data.is_published, data.references)):
            yield SUMMARY.text("published")

    return declared_table(name, rows, notes, columns)


SUMMARY = declared_table("summary", _summary, _summary_notes)
TASK_TABLES = (
    _task_table("log_smape", "score", ".1f"),
    _task_table("exact_match", "exact_match", ".1f"),
    _task_table("tokens", "generated_tokens", ",.0f"),
)

BY_TASK: Table = declared_table(
    "by_task",
    lambda data: task_rows(data, [g for g in data.datasets if g not in data.wide_datasets]),
    columns=_task_columns,
)
_MEASURES: Sequence[Measure] = ("score", "exact_match", "by_value", "generated_tokens")


def _coverage(data: ReportData) -> Iterator[Row]:
    for index, run in enumerate(data.runs):
        for task, cell in run.cells.items():
            formats = run.formats.get(task)
            # Most columns have the names of the fields of a summary.
            cells: dict[str, Any] = {
                **cell._asdict(),
                **{status: cell.statuses.get(status, 0) for status in STATUSES},
                "questions": cell.n,
                "lenient": formats and formats.lenient,
            }
            yield task_row(data, index, task, cells)


COVERAGE = declared_table("coverage", _coverage)
