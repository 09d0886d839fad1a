"""Differences between runs and with references, and the price of a score in tokens and dollars."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np

from numbench.records import Estimate
from numbench.reporting.comparisons import ALL, PairDifference
from numbench.reporting.data import ReportData, amount_estimate
from numbench.reporting.tables.model import Cell, Row, declared_table, task_row
from numbench.reporting.values import Measure, TaskValues, common_items
from numbench.scoring.scored_run import few_shot_count
from numbench.stats.design import Stratum
from numbench.stats.intervals import ratio_of_means
from numbench.tasks import TASKS

MIN_QUESTIONS = 10
"""With fewer common questions, a task has no step."""

_MEASURES: Sequence[Measure] = ("score", "generated_tokens", "cost")


def _rows(data: ReportData) -> Iterator[Row]:
    """Yield the differences in the headline metric, those of the means first."""
    order = {task: number for number, task in enumerate((ALL, *data.tasks))}
    known = data.comparisons.differences
    for one in sorted(known, key=lambda one: (one.left, order[one.task])):
        right = data.configurations[one.right]
        cells: dict[str, Cell] = {
            "other": right.label,
            "questions": one.items,
            "score": one.means[0],
            "other_score": one.means[1],
            "difference": Estimate(one.difference, one.low, one.high),
            "p": one.p_adjusted,
            "verdict": one.verdict,
        }
        row = task_row(data, one.left, one.task, cells, data.common_tasks(one))
        yield row if right.scored else row._replace(kind="reference")


def _notes(data: ReportData) -> Sequence[str]:
    least = [
        one.detectable
        for one in data.comparisons.differences
        if one.task == ALL and one.detectable is not None
    ]
    if not least:
        return ()
    low, high = f"{min(least):.1f}", f"{max(least):.1f}"
    points = low if low == high else f"{low} to {high}"
    return [COMPARISONS.text("detectable", points=points)]


COMPARISONS = declared_table("comparisons", _rows, _notes)


def _price_rows(data: ReportData) -> Iterator[Row]:
    groups: dict[object, list[int]] = {}
    for index, run in enumerate(data.runs):
        info = run.scored.info
        asked = (run.values.dataset, info.transform, info.prompt.sha256, few_shot_count(info))
        groups.setdefault((info.model, info.display, *asked), []).append(index)
    for members in groups.values():
        if len({data.runs[index].level for index in members}) > 1:
            yield from _steps(data, members)


def _steps(data: ReportData, members: Sequence[int]) -> Iterator[Row]:
    """Yield the steps between the levels of a model, in the order of their tokens."""
    values = [data.runs[index].values.tasks for index in members]
    known = [
        {task: each.select(~np.isnan(each.generated_tokens)) for task, each in tasks.items()}
        for tasks in values
    ]
    common = _common_tasks(known)
    if not common:
        return
    spent = [
        fmean(float(of_task[column].generated_tokens.mean()) for of_task in common.values())
        for column in range(len(members))
    ]
    steps = list(pairwise(sorted(range(len(members)), key=spent.__getitem__)))
    pairs = [_common_tasks([values[low], values[high]]) for low, high in steps]
    for task in (ALL, *TASKS):
        for (low, high), tasks in zip(steps, pairs, strict=True):
            first, second = data.runs[members[low]], data.runs[members[high]]
            difference = data.difference(second, first, task)
            if difference is None or difference.task != task or not (task == ALL or task in tasks):
                continue
            levels = [" ".join(filter(None, (run.level, run.note))) for run in (first, second)]
            cells: dict[str, Cell] = {"model": first.model, "from": levels[0], "to": levels[1]}
            chosen = [*tasks.values()] if task == ALL else [tasks[task]]
            cells |= _step(difference, chosen)
            yield task_row(data, members[high], task, cells, data.common_tasks(difference))


def _common_tasks(values: Sequence[Mapping[str, TaskValues]]) -> dict[str, list[TaskValues]]:
    """Return task → the values of the questions that all answer."""
    tasks = {}
    for task in TASKS:
        if all(task in known for known in values):
            common = common_items([known[task] for known in values])
            if len(common[0].score) >= MIN_QUESTIONS:
                tasks[task] = common
    return tasks


def _step(result: PairDifference, pairs: Sequence[Sequence[TaskValues]]) -> dict[str, Cell]:
    """Return what the second values of each pair have more than the first, and its price."""
    scores, tokens, costs = (_above(result, pairs, name) for name in _MEASURES)
    is_gain = result.verdict == "better"
    return {
        "questions": result.items,
        "points": Estimate(result.difference, result.low, result.high),
        "tokens": amount_estimate(tokens, signed=True),
        "dollars": amount_estimate(costs, signed=True),
        "tokens_per_point": _ratio(tokens, scores) if is_gain and tokens else None,
        "dollars_per_point": _ratio(costs, scores) if is_gain and costs else None,
        "p": result.p_adjusted,
    }


def _above(
    result: PairDifference, pairs: Sequence[Sequence[TaskValues]], name: Measure
) -> Sequence[Stratum]:
    """Return what the second values of each pair are above the first.

    Nothing if some are unknown: an amount over fewer questions than the score is not its price.
    """
    unit = 1000.0 if name == "cost" else 1.0
    strata = [low.stratum(unit * (getattr(high, name) - getattr(low, name))) for low, high in pairs]
    return strata if sum(len(each.values) for each in strata) == result.items else ()


def _ratio(above: Sequence[Stratum], below: Sequence[Stratum]) -> Estimate | None:
    ratio = ratio_of_means(above, below)
    return ratio and Estimate(*ratio)


PRICE = declared_table("price", _price_rows)
