"""Mean score and price of a run over the tasks: the points of the Pareto figures."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

import numpy as np

from bench.report.figures import run_label
from bench.report.intervals import bootstrap_means
from bench.report.layout import LOG_SMAPE, TOKENS, Entry, Estimate
from bench.report.measured import Measured
from bench.report.pareto import Point
from bench.report.ranks import Floats
from bench.scoring.run import counted_rows
from bench.tasks import TASKS

PER_ITEMS = 1_000
_MOST_UNKNOWN = 0.01


def token_points(entries: Sequence[Entry]) -> list[Point]:
    """Mean score and mean generated tokens per answer of each entry that has all tasks.

    All tasks are those of the entry that has most.
    """
    return _points([(entry, entry.tables.get(TOKENS.name, {})) for entry in entries])


def cost_points(runs: Sequence[Measured]) -> list[Point]:
    """Mean score and US dollars per 1,000 items of each run whose costs are known.

    At most one response in a hundred of a task may lack its cost; the mean is over the others.
    """
    return _points(list(zip([run.entry for run in runs], _costs(runs), strict=True)))


def _points(priced: Sequence[tuple[Entry, Mapping[str, Estimate]]]) -> list[Point]:
    asked = [
        [task for task in TASKS if task in entry.tables.get(LOG_SMAPE.name, {})]
        for entry, _ in priced
    ]
    tasks = max(asked, key=len, default=[])
    points = []
    for entry, prices in priced:
        scores = entry.tables.get(LOG_SMAPE.name, {})
        if tasks and all(task in scores and task in prices for task in tasks):
            name = run_label(entry.name, entry.reasoning)
            price = over_tasks([prices[task] for task in tasks])
            score = over_tasks([scores[task] for task in tasks])
            points.append(Point(name, price, score, entry.published))
    return points


def over_tasks(estimates: Sequence[Estimate]) -> Estimate:
    """The mean of the tasks, each of equal weight; bounds as of independent tasks.

    The errors of the tasks, as the distances of their bounds, add up in squares.
    """
    mean = sum(e.value for e in estimates) / len(estimates)
    bounded = [e.bounded for e in estimates]
    known = [bounds for bounds in bounded if bounds is not None]
    if len(known) < len(bounded):
        return Estimate(mean)
    below = math.hypot(*(value - low for value, low, _ in known)) / len(known)
    above = math.hypot(*(high - value for value, _, high in known)) / len(known)
    return Estimate(mean, mean - below, mean + above)


def _costs(runs: Sequence[Measured]) -> list[dict[str, Estimate]]:
    """Task → dollars per 1,000 items, where the costs of the counted responses are known."""
    columns: dict[tuple[int, str], Floats] = {}
    for place, run in enumerate(runs):
        for task in run.run.rows:
            rows = counted_rows(run.run, task)
            costs = [row.response.cost for row in rows if row.response is not None]
            known = [PER_ITEMS * cost for cost in costs if cost is not None]
            if known and len(known) >= (1 - _MOST_UNKNOWN) * len(rows):
                columns[place, task] = np.array(known)
    found: list[dict[str, Estimate]] = [{} for _ in runs]
    intervals = bootstrap_means(list(columns.values()))
    for ((place, task), column), bounds in zip(columns.items(), intervals, strict=True):
        found[place][task] = Estimate(float(column.mean()), *bounds)
    return found
