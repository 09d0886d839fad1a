"""Runs with a calculator: how often it was called, with what, and what became of its results."""

from __future__ import annotations

import math
from collections.abc import Iterator, Sequence
from itertools import chain

import msgspec
import numpy as np

from numbench.records import Completion, Estimate, Item, ToolCall
from numbench.reporting.comparisons import ALL
from numbench.reporting.data import ReportData, amount_estimate, score_estimate
from numbench.reporting.names import is_higher, level_rank
from numbench.reporting.tables.model import (
    Cell,
    Columns,
    Row,
    declared_table,
    table_rows,
    task_row,
)
from numbench.reporting.values import RunConfiguration, row_stratum
from numbench.scoring import ScoredItem, ScoredRun, score_exact
from numbench.stats.design import Stratum
from numbench.tasks import TASKS


def calls_of(row: ScoredItem) -> list[ToolCall]:
    """Return all calls in the conversation about a question."""
    response = row.response
    replies = (*response.turns, response) if response else ()
    return [call for reply in replies for call in reply.calls]


def _facts(row: ScoredItem) -> dict[str, float]:
    """Return what a question counts for, by the fields of its columns."""
    calls, is_correct = calls_of(row), row.score.exact_match
    done = [call for call in calls if call.result is not None]
    has_number = TASKS[row.item.task].answer_kind in ("number", "list")
    facts: dict[str, float] = {"called": bool(calls), "calls": len(calls), "results": len(done)}
    facts |= {name: sum(getattr(call, name) for call in calls) for name in _SHARES}
    if not calls:
        return facts | {"correct_alone": is_correct}
    values = [call.correct_result or call.result for call in done if not call.failed]
    if has_number and values:
        facts["wrong_expression"] = not any(_is_answer(value, row.item) for value in values)
    if has_number and any(_is_answer(call.result, row.item) for call in done):
        facts["copied_wrong"] = not is_correct
    if any(call.changed_digit for call in done):
        is_believed = any(
            _is_believed(call, calls[number + 1 :], row)
            for number, call in enumerate(done)
            if call.changed_digit
        )
        facts |= {"believed": is_believed, "noticed": not is_believed, "corrected": is_correct}
    return facts


def _is_answer(result: str | None, item: Item) -> bool:
    """Return whether a result is the exact answer of an item; lists in either order."""
    backwards = ", ".join((result or "").strip("[]").split(", ")[::-1])
    replies = (Completion(text=f'{{"answer": {each}}}') for each in (result, f"[{backwards}]"))
    return any(score_exact(item, each).exact_match for each in replies)


def _is_believed(call: ToolCall, later: Sequence[ToolCall], row: ScoredItem) -> bool:
    """Return whether a changed result became the answer, or a number of a later expression."""
    told = call.result or ""
    numbers = tuple(told.strip("[]").split(", "))
    answer = numbers if told.startswith("[") else told
    is_answer = score_exact(msgspec.structs.replace(row.item, answer=answer), row.response)
    return is_answer.exact_match or any(told in each.arguments for each in later)


_FAULTY = ("believed", "noticed", "corrected")
"""The columns of runs whose calculator changed results."""


_SHARES = {"failed": "results", "in_text": "calls"}
"""The columns that are shares of calls, not of questions: field → all that they are shares of."""


def _means(run: ScoredRun) -> Iterator[tuple[str, dict[str, Stratum]]]:
    """Yield each fact with its means by task; in percent, but for calls."""
    facts = {task: list(map(_facts, rows)) for task, rows in run.rows.items()}
    # Those before are names, those after differences between runs.
    for name in (column.field for column in TABLE.declaration.columns[3:-2]):
        means = {task: _mean(run, task, facts[task], name) for task in run.rows}
        if name in _SHARES:
            wholes = {task: _mean(run, task, facts[task], _SHARES[name]) for task in run.rows}
            means = {task: _share(means[task], wholes[task]) for task in run.rows}
        yield name, {task: stratum for task, stratum in means.items() if stratum.n.any()}


def _mean(run: ScoredRun, task: str, facts: Sequence[dict[str, float]], name: str) -> Stratum:
    unit = 1 if name in _SHARES.values() else 100
    rows = run.rows[task]
    values = np.array([unit * known.get(name, math.nan) for known in facts])
    return row_stratum(run, task, rows.select(rows.is_answered), values[rows.is_answered])


def _share(part: Stratum, whole: Stratum) -> Stratum:
    """Return values whose mean is a ratio of two means, with its standard error.

    They are linearized, as in `ratio_of_means`; questions with nothing of the whole do not count.
    """
    known = np.where(whole.values > 0, 1.0, np.nan)
    part, whole = (each._replace(values=known * each.values) for each in (part, whole))
    ratio = part.means / whole.means
    return part._replace(values=ratio + (part.values - ratio * whole.values) / whole.means)


def _rows(data: ReportData) -> Iterator[Row]:
    for index, run in enumerate(data.runs):
        if not _kind(run)[-1]:
            continue
        means = dict(_means(run.scored))
        others = {"gain": _without(data, run, run.level), "reasoning": _without(data, run)}
        for task in ([ALL] if len(run.tasks) > 1 else []) + list(run.tasks):
            cells: dict[str, Cell] = {}
            for name, by_task in means.items():
                strata = [by_task[t] for t in by_task if task in (ALL, t)]
                estimate = amount_estimate if name == "calls" else score_estimate
                cells[name] = estimate(strata)
            for name, other in others.items():
                known = other and data.difference(run, other, task)
                # A mean over fewer tasks than the others of its row is left out.
                if known and (task != ALL or data.common_tasks(known) == len(run.tasks)):
                    cells[name] = Estimate(known.difference, known.low, known.high)
            yield task_row(data, index, task, cells, len(run.tasks))


def _without(data: ReportData, run: RunConfiguration, level: str = "") -> RunConfiguration | None:
    """Return the run of the same model without a tool: at a level, or at the highest other one."""
    kind = (*_kind(run)[:-1], "")
    same = [
        other
        for other in data.runs
        if _kind(other) == kind
        and (other.level == level if level else is_higher(other.level, run.level))
    ]
    return min(same, key=lambda other: (level_rank(other.level), bool(other.note)), default=None)


def _kind(run: RunConfiguration) -> tuple[str | None, ...]:
    """Return dataset, model and form of a run, and the tool that it offers."""
    info = run.scored.info
    return info.dataset.sha256, info.model, info.transform, str(info.settings.get("tools") or "")


def _columns(declared: Columns, data: ReportData) -> Columns:
    is_faulty = any(row.cells["believed"] for row in table_rows(TABLE, data))
    return [column for column in declared if is_faulty or column.field not in _FAULTY]


def _notes(data: ReportData) -> Iterator[str]:
    for run in data.runs:
        count, in_text = 0, False
        for row in chain.from_iterable(run.scored.rows.values()):
            if row.response and row.response.error is None:
                count += bool(row.response.turns and row.response.calls)
            in_text |= any(call.in_text for call in calls_of(row))
        if count:
            yield TABLE.text("calls_at_the_end", run=run.label, count=count)
        if in_text:
            yield TABLE.text("calls_in_text", run=run.label)


TABLE = declared_table("tools", _rows, _notes, _columns)
