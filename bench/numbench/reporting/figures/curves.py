"""Figures with a panel per task or variant: score by difficulty, and by wording."""

from __future__ import annotations

from collections.abc import Sequence
from datetime import datetime

import numpy as np
from matplotlib.dates import AutoDateLocator, ConciseDateFormatter, date2num
from matplotlib.figure import Figure

from numbench.plot_style import GRAY, PALETTE
from numbench.reporting.comparisons import ALL, task_name
from numbench.reporting.data import ReportData
from numbench.reporting.estimate import Estimate
from numbench.reporting.figures.draw import (
    Dot,
    count_axis,
    dots,
    facets,
    fit_text,
    interval_key,
    legend,
    legend_label,
    lines,
    needs_log_scale,
    score_axis,
)
from numbench.reporting.figures.model import (
    Drawn,
    FigureSpec,
    by_runs,
    numbered,
    run_label,
    run_styles,
)
from numbench.reporting.tables.model import Row, table_rows
from numbench.reporting.tables.trend import TABLE as TREND
from numbench.reporting.tables.variants import TABLE as VARIANTS
from numbench.reporting.values import TaskValues
from numbench.stats.design import Column
from numbench.stats.intervals import score_interval
from numbench.tasks import TASKS

BINS = 8
_ACROSS = 4
_ROW_HEIGHT = 0.15
_MIN_RANGE = 5.0
"""The horizontal axis of differences shows at least ± this many points."""


def difficulty_curve(values: TaskValues) -> tuple[list[float], list[Estimate]]:
    """Return mean difficulty and mean score, in up to eight bins of about equal size."""
    known = ~np.isnan(values.score)
    difficulty, score = values.difficulty[known], values.score[known]
    bins = difficulty_bins(difficulty)
    parts = [bins == number for number in range(int(bins.max()) + 1)]
    return (
        [float(difficulty[part].mean()) for part in parts],
        [Estimate(float(score[part].mean()), *score_interval(score[part])) for part in parts],
    )


def difficulty_bins(difficulty: Column) -> np.ndarray:
    """Return the bin of each value, from 0; equal values share a bin."""
    edges = np.unique(np.quantile(difficulty, np.linspace(0, 1, BINS + 1)[1:-1]))
    _, bins = np.unique(np.searchsorted(edges, difficulty, side="left"), return_inverse=True)
    return np.asarray(bins)


def _difficulty(data: ReportData) -> Drawn:
    indices = [index for index, run in enumerate(data.runs) if run.tasks]
    if not indices:
        return "no counted answers"
    return by_runs("difficulty", indices, lambda part: _difficulty_of(data, part))


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
        difficulty = data.runs[with_task[0]].values.tasks[task].difficulty
        skewed = needs_log_scale(np.percentile(difficulty, [5, 95]).tolist())
        count_axis(axes, logarithmic=skewed and bool(difficulty.min() > 0))
        score_axis(axes)
        axes.set_title(fit_text(TASKS[task].display, 2.0, 8.0))
    figure.supxlabel("difficulty δ in base 10, mean of each bin")
    figure.supylabel("score in percent")
    legend(figure)
    return figure


def _variants(data: ReportData) -> Drawn:
    effects = table_rows(VARIANTS, data)
    if not effects:
        return "no runs that differ only in the wording or notation of the questions"
    families: dict[object, list[Row]] = {}
    for row in effects:
        families.setdefault((row.group, row.cells["reference"]), []).append(row)
    return numbered("variants", [_differences(data, rows) for rows in families.values()])


def _differences(data: ReportData, rows: Sequence[Row]) -> Figure:
    """Draw the differences of some variants from one reference."""
    names = [task_name(task) for task in (ALL, *TASKS)]
    tasks = [name for name in names if any(row.cells["task"] == name for row in rows)]
    variants = list(dict.fromkeys(str(row.cells["variant"]) for row in rows))
    figure = facets(len(variants), across=_ACROSS, height=0.5 + _ROW_HEIGHT * len(tasks))
    limit = _MIN_RANGE
    for number, (axes, variant) in enumerate(zip(figure.axes, variants, strict=True)):
        axes.axvline(0, color=GRAY, linewidth=0.7)
        values = []
        for row in rows:
            estimate, p = row.cells["difference"], row.cells["p"]
            assert isinstance(estimate, Estimate) and isinstance(p, float)
            low, high = (estimate.value if x is None else x for x in estimate[1:])
            limit = max(limit, abs(low), abs(high))
            if row.cells["variant"] == variant:
                is_significant = p <= 0.05 and not low <= 0 <= high
                label = "significant" if is_significant else "hollow: not significant"
                style = (PALETTE[1], "o", "") if is_significant else (PALETTE[0], "o", "white")
                name = ".".join(filter(None, (str(row.run), row.task)))
                row_number = tasks.index(str(row.cells["task"]))
                values.append(Dot(row_number, estimate, *style, label, name))
        dots(axes, values, tasks, are_shown=number % _ACROSS == 0)
        axes.set_xlim(-min(105.0, 1.05 * limit), min(105.0, 1.05 * limit))
        axes.set_title(fit_text(variant, 1.4, 8.0))
    interval_key(figure.axes[0])
    figure.supxlabel("difference in points")
    dataset = f", {data.runs[rows[0].run or 0].dataset}" if len(data.datasets) > 1 else ""
    legend(figure, f"{rows[0].cells['reference']}{dataset} is the reference")
    return figure


def _trend(data: ReportData) -> Drawn:
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


FIGURES = (
    FigureSpec(
        "trend",
        "Does the model change? Mean score and tokens of runs that differ only in their date, with "
        "95% intervals.",
        _trend,
    ),
    FigureSpec(
        "difficulty",
        "Which questions are hard? Score against difficulty δ, in up to eight bins of about equal "
        "size, with 95% intervals.",
        _difficulty,
    ),
    FigureSpec(
        "variants",
        "How much of a score is wording? Runs that differ only in the wording or notation of the "
        "questions: difference of the score from the reference with 95% intervals, per task.",
        _variants,
    ),
)
