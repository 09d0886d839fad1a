"""Differences between runs and with references, and the price of a score in tokens and dollars."""

from __future__ import annotations

from collections.abc import Iterator, Sequence
from itertools import pairwise
from statistics import fmean

import numpy as np

from numbench.records import Estimate
from numbench.reporting.comparisons import ALL, PairDifference
from numbench.reporting.data import ReportData, amount_estimate
from numbench.reporting.tables.model import TASK_COLUMNS, Cell, Column, Row, Table, task_row
from numbench.reporting.values import TaskValues, common_items, make_stratum
from numbench.scoring.scored_run import few_shot_count
from numbench.stats.design import Stratum
from numbench.stats.intervals import ratio_of_means
from numbench.tasks import TASKS

MIN_QUESTIONS = 10
"""With fewer common questions, a task has no step."""


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
        count, every = data.common_tasks(one), len(data.group_of(right).tasks)
        if one.task == ALL and count < every:
            cells["task"] = f"All ({count} of {every} tasks)"
        row = task_row(data, one.left, one.task, cells)
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
    return (
        f"Minimum detectable difference of the means (80% power, 5% level, pair by pair): {points} "
        "points.",
    )


COMPARISONS = Table(
    "comparisons",
    "Comparisons",
    "Score of a run minus that of another run or reference, on the questions that both "
    "answer, in points with its 95% interval. All: mean over the tasks that both include. p: "
    "paired test with Holm's correction over the tasks of the pair.",
    (
        *TASK_COLUMNS[:2],
        Column("other", "Compared with"),
        TASK_COLUMNS[2],
        Column("questions", "Questions", "count"),
        Column("score", "Score", ".1f"),
        Column("other_score", "Other score", ".1f"),
        Column("difference", "Difference", "+.1f"),
        Column("p", "Holm p", "p", lowest_first=True),
        Column("verdict", "Verdict"),
    ),
    _rows,
    _notes,
)


def _price_rows(data: ReportData) -> Iterator[Row]:
    groups: dict[object, list[int]] = {}
    for index, run in enumerate(data.runs):
        assert run.scored
        info = run.scored.info
        asked = (run.values.dataset, info.transform, info.prompt.sha256, few_shot_count(info))
        groups.setdefault((info.model, info.display, *asked), []).append(index)
    for members in groups.values():
        if len({data.runs[index].level for index in members}) > 1:
            yield from _steps(data, members)


def _steps(data: ReportData, members: Sequence[int]) -> Iterator[Row]:
    """Yield the steps over the questions that all runs of a model answer, by rising tokens."""
    values = [data.runs[index].values.tasks for index in members]
    tasks = {}
    for task in TASKS:
        if all(task in known for known in values):
            # Questions with an unknown number of tokens are left out.
            common = common_items(
                [known[task].select(~np.isnan(known[task].generated_tokens)) for known in values]
            )
            if len(common[0].score) >= MIN_QUESTIONS:
                tasks[task] = common
    if not tasks:
        return
    spent = [
        fmean(float(common[column].generated_tokens.mean()) for common in tasks.values())
        for column in range(len(members))
    ]
    order = sorted(range(len(members)), key=spent.__getitem__)
    for task in (ALL, *tasks):
        chosen = list(tasks.values()) if task == ALL else [tasks[task]]
        for low, high in pairwise(order):
            first, second = data.runs[members[low]], data.runs[members[high]]
            difference = data.difference(second, first, task)
            # The comparison of means is over all common tasks of the pair.
            if difference is not None and difference.task == task:
                levels = [" ".join(filter(None, (run.level, run.note))) for run in (first, second)]
                cells: dict[str, Cell] = {
                    "model": first.model, "from": levels[0], "to": levels[1],
                }  # fmt: skip
                cells |= _step(difference, [(c[low], c[high]) for c in chosen])
                yield task_row(data, members[high], task, cells)


def _step(
    result: PairDifference, pairs: Sequence[tuple[TaskValues, TaskValues]]
) -> dict[str, Cell]:
    """Return what the second values of each pair have more than the first, and its price."""
    scores = [_difference(pair, "score") for pair in pairs]
    tokens = [_difference(pair, "generated_tokens") for pair in pairs]
    costs = [_difference(pair, "cost", 1000.0) for pair in pairs]
    has_costs = not any(np.isnan(one.values).any() for one in costs)
    is_gain = result.verdict == "better"
    return {
        "questions": result.items,
        "points": Estimate(result.difference, result.low, result.high),
        "tokens": amount_estimate(tokens, signed=True),
        "dollars": amount_estimate(costs, signed=True) if has_costs else None,
        "tokens_per_point": _ratio(tokens, scores) if is_gain else None,
        "dollars_per_point": _ratio(costs, scores) if is_gain and has_costs else None,
        "p": result.p_adjusted,
    }


def _difference(pair: tuple[TaskValues, TaskValues], name: str, factor: float = 1.0) -> Stratum:
    low, high = pair
    values = factor * (getattr(high, name) - getattr(low, name))
    return make_stratum(low.task, values[:, None], low.difficulty, low.operands, low.share_per_item)


def _ratio(above: Sequence[Stratum], below: Sequence[Stratum]) -> Estimate | None:
    ratio = ratio_of_means(above, below)
    return ratio and Estimate(*ratio)


PRICE = Table(
    "price",
    "Price of reasoning",
    "What the next more expensive reasoning level of a model gains and costs, on the questions "
    "that all its levels answer: points of the score, more generated tokens per question, more "
    "US dollars per 1,000 questions, each with its 95% interval. The price of a point is given "
    "where the gain is significant (Holm p).",
    (
        Column("model", "Model"),
        Column("from", "From"),
        Column("to", "To"),
        Column("task", "Task"),
        Column("questions", "Questions", "count"),
        Column("points", "Points", "+.1f"),
        Column("tokens", "Tokens", "+,.0f"),
        Column("dollars", "USD per 1,000", "+,.2f"),
        Column("tokens_per_point", "Tokens per point", "price", lowest_first=True),
        Column("dollars_per_point", "USD per 1,000 per point", "price", lowest_first=True),
        Column("p", "Holm p", "p", lowest_first=True),
    ),
    _price_rows,
)
