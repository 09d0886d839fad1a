"""Figures of curves: score by difficulty, and scores and prices over time."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure

from numbench.records import Estimate
from numbench.reporting.data import ReportData
from numbench.reporting.figures.draw import (
    count_axis,
    facets,
    fit_text,
    legend,
    legend_label,
    lines,
    needs_log_scale,
    score_axis,
)
from numbench.reporting.figures.model import (
    Drawn,
    by_runs,
    run_label,
    run_styles,
)
from numbench.reporting.tables.model import Row, table_rows
from numbench.reporting.tables.trend import TABLE as TREND
from numbench.reporting.values import TaskValues
from numbench.stats.intervals import score_interval
from numbench.tasks import TASKS

BINS = 8


def difficulty_curve(values: TaskValues) -> tuple[list[float], list[Estimate]]:
    """Return mean difficulty and mean score, in up to eight bins of about equal size."""
    known = ~np.isnan(values.score)
    difficulty, score = values.difficulty[known], values.score[known]
    edges = np.unique(np.quantile(difficulty, np.linspace(0, 1, BINS + 1)[1:-1]))
    # Equal values share a bin.
    _, bins = np.unique(np.searchsorted(edges, difficulty, side="left"), return_inverse=True)
    parts = [bins == number for number in range(int(bins.max()) + 1)]
    return (
        [float(difficulty[part].mean()) for part in parts],
        [Estimate(float(score[part].mean()), *score_interval(score[part])) for part in parts],
    )


def difficulty(data: ReportData) -> Drawn:
    indices = [index for index, run in enumerate(data.runs) if run.tasks]
    if not indices:
        return "no counted answers"
    return by_runs(indices, lambda part: _difficulty_of(data, part))


def _difficulty_of(data: ReportData, indices: Sequence[int]) -> Figure:
    tasks = [task for task in data.tasks if any(task in data.runs[i].tasks for i in indices)]
    styles = run_styles(data, data.configurations)
    figure = facets(len(tasks), share=True)
    for axes, task in zip(figure.axes, tasks, strict=True):
        with_task = [index for index in indices if task in data.runs[index].tasks]
        for index in with_task:
            run = data.runs[index]
            x, y = difficulty_curve(run.values.tasks[task])
            lines(axes, x, y, styles[index], legend_label(run_label(data, run)), f"{index}.{task}")
        known = data.runs[with_task[0]].values.tasks[task].difficulty
        skewed = needs_log_scale(np.percentile(known, [5, 95]).tolist())
        count_axis(axes, logarithmic=skewed and bool(known.min() > 0))
        score_axis(axes)
        axes.set_title(fit_text(TASKS[task].display, 2.0, 8.0))
    figure.supxlabel("difficulty δ in base 10, mean of each bin")
    figure.supylabel("score in percent")
    legend(figure)
    return figure


def trend(data: ReportData) -> Drawn:
    series: dict[tuple[object, ...], list[Row]] = {}
    for row in table_rows(TREND, data):
        series.setdefault((row.group, row.cells["series"]), []).append(row)
    if not series:
        return "no runs differ only in their date"
    titles = {"score": "score in percent", "tokens": "tokens per answer", "cost": "USD per 1,000"}
    cells = [row.cells for rows in series.values() for row in rows]
    fields = [name for name in titles if any(isinstance(c[name], Estimate) for c in cells)]
    figure, styles = facets(len(fields), across=3), run_styles(data, data.configurations)
    for axes, field in zip(figure.axes, fields, strict=True):
        for rows in series.values():
            known = [row for row in rows if isinstance(row.cells[field], Estimate)]
            dates = date2num([datetime.fromisoformat(str(row.cells["date"])) for row in known])  # type: ignore[no-untyped-call]
            values = [value for row in known if isinstance(value := row.cells[field], Estimate)]
            first = data.runs[rows[0].run or 0]
            label = legend_label(f"{first.model} ({first.level})")
            lines(axes, dates.tolist(), values, styles[rows[0].run or 0], label)
        axes.xaxis.set_major_locator(locator := AutoDateLocator(minticks=2, maxticks=8))  # type: ignore[no-untyped-call]
        axes.xaxis.set_major_formatter(ConciseDateFormatter(locator))  # type: ignore[no-untyped-call]
        axes.set_title(titles[field])
        axes.grid(True)
    legend(figure)
    return figure
