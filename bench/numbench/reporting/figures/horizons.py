"""Problem sizes at 50%: dots with intervals for all runs, and the curves of each run."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure

from numbench.horizon.estimate import TaskHorizon
from numbench.horizon.goodness_of_fit import isotonic_rates
from numbench.plot_style import BLACK, GRAY, PALETTE, PUBLISHED_LINE
from numbench.records import Estimate
from numbench.reporting.data import ReportData
from numbench.reporting.figures.draw import (
    ARTISTS,
    LEAD_WIDTH,
    Dot,
    dots,
    facets,
    key,
    legend,
    legend_label,
    score_axis,
    size_axis,
)
from numbench.reporting.figures.model import Drawn, by_runs, run_styles
from numbench.reporting.horizon_runs import CONTROL, HorizonRun, horizon_tasks
from numbench.reporting.tables.horizons import shown_h50
from numbench.stats.intervals import wilson
from numbench.tasks import TASKS

_BLUE, _ORANGE = PALETTE[:2]
_ROW_HEIGHT, _RUN_HEIGHT = 0.11, 0.095
_SPREAD = 0.7
"""Share of a row's height that its runs take."""


def problem_sizes(data: ReportData) -> Drawn:
    return by_runs(range(len(data.horizons)), lambda part: _dots(data, part))


def _dots(data: ReportData, indices: Sequence[int]) -> Figure:
    runs = [data.horizons[index] for index in indices]
    tasks = horizon_tasks(runs)
    height = len(tasks) * (_ROW_HEIGHT + _RUN_HEIGHT * len(runs)) + 0.7
    figure = Figure(figsize=(LEAD_WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    every = run_styles(data, data.horizons)
    styles = [every[index] for index in indices]
    values = []
    for number, (run, style) in enumerate(zip(runs, styles, strict=True)):
        offset = _SPREAD * ((number + 0.5) / len(runs) - 0.5)
        for row, task in enumerate(tasks):
            horizon = run.horizons.get(task)
            if horizon and horizon.items:
                member = len(data.configurations) + indices[number]
                values += _sizes(horizon, row + offset, style["color"], f"{member}.{task}")
        key(axes, legend_label(run.label), color=style["color"], linestyle="-", linewidth=1.0)
    known = [horizon for run in runs for horizon in run.horizons.values()]
    dots(axes, values, [_row_name(task, runs) for task in tasks])
    size_axis(axes, min(h.smallest for h in known), max(h.largest for h in known))
    axes.set_xlabel("problem size (digits, elements or operations)")
    for row, task in enumerate(tasks):
        if task == CONTROL:
            axes.axhspan(row - 0.5, row + 0.5, color=GRAY, alpha=0.1, linewidth=0)
        elif row:
            axes.axhline(row - 0.5, color="#d9d9d9", linewidth=0.4)
    for label, marker, face in (
        ("hollow: 90% correct", "o", "white"),
        ("triangle: beyond measured sizes", ">", GRAY),
        ("cross: no curve fits", "x", GRAY),
    ):
        key(axes, label, marker, markerfacecolor=face)
    legend(figure)
    return figure


def _row_name(task: str, runs: Sequence[HorizonRun]) -> str:
    """Return the task and what its sizes count, with the level of h50 if it is not 50%."""
    horizon = next(run.horizons[task] for run in runs if task in run.horizons)
    size = min(max(shown_h50(horizon) or horizon.smallest, horizon.smallest), horizon.largest)
    level = round(100 * horizon.level(size))
    at = "" if level == 50 else f" at {level}%"
    return f"{TASKS[task].display}, {horizon.unit}{at}"


def _sizes(horizon: TaskHorizon, row: float, color: str, name: str) -> list[Dot]:
    """Return the dots of h50, or of the isotonic crossing if no curve fits, and of h90."""
    if not horizon.fits and horizon.isotonic is not None:
        return [Dot(row, Estimate(horizon.isotonic), color, "x", key=name)]
    beyond = _beyond(horizon, horizon.h50.value)
    marker = {-1: "<", 0: "o", 1: ">"}[beyond]
    h50 = (min(max(size, horizon.smallest), horizon.largest) for size in horizon.h50)
    sizes = [Dot(row, Estimate(*h50), color, marker, key=name)]
    h90 = horizon.h90
    if horizon.fits and h90 and not beyond and not _beyond(horizon, h90.value):
        sizes.append(Dot(row, Estimate(h90.value), color, "o", "white", key=name))
    return sizes


def _beyond(horizon: TaskHorizon, size: float) -> int:
    """Return 1 if a size is at or above the largest one, -1 below the smallest one, else 0."""
    return (size >= horizon.largest) - (size < horizon.smallest)


def horizon_curves(run: HorizonRun) -> Figure:
    """Draw a panel per task: the answers by size, the curve, and its crossing."""
    figure = facets(len(run.horizons), share=True)
    for axes, horizon in zip(figure.axes, run.horizons.values(), strict=True):
        _draw_curve(axes, horizon)
        control = run.control
        if control and horizon.task != CONTROL and horizon.unit == control.unit:
            shares = [100 * point.probability for point in control.band]
            sizes = [point.size for point in control.band]
            axes.plot(sizes, shares, color=GRAY, linestyle=PUBLISHED_LINE, **ARTISTS["control"])
        size = shown_h50(horizon)
        text = horizon.text(size) if size is not None else "no fit"
        axes.set_title(f"{TASKS[horizon.task].display}: {text} {horizon.unit}")
        score_axis(axes)
        size_axis(axes, horizon.smallest, horizon.largest)
    figure.supxlabel("problem size")
    figure.supylabel("correct answers in percent")
    legend(figure, title=run.label)
    return figure


def _draw_curve(axes: Axes, horizon: TaskHorizon) -> None:
    sizes = [point.size for point in horizon.band]
    low, high = ([100 * getattr(p, end) for p in horizon.band] for end in ("low", "high"))
    axes.fill_between(sizes, low, high, color=_BLUE, **ARTISTS["band"])
    shares = [100 * point.probability for point in horizon.band]
    axes.plot(sizes, shares, color=_BLUE, **ARTISTS["curve"])
    marks = [(horizon.h50.value, _BLUE)] if horizon.fits else []
    if (horizon.is_doubtful or not horizon.fits) and horizon.isotonic is not None:
        marks.append((horizon.isotonic, _ORANGE))
    for size, color in marks:
        if not _beyond(horizon, size):
            axes.axvline(size, color=color, linewidth=0.7)
    if not horizon.counts:
        return
    sizes = [count.size for count in horizon.counts]
    rates = [100 * count.right / count.total for count in horizon.counts]
    bounds = [wilson(count.right, count.total) for count in horizon.counts]
    low, high = 100 * np.array(bounds).T
    axes.vlines(sizes, low, high, GRAY, lw=0.4, alpha=0.7)
    areas = [4.0 * count.total**0.5 for count in horizon.counts]
    axes.scatter(sizes, rates, areas, color=BLACK, **ARTISTS["answers"])
    axes.plot(sizes, 100 * isotonic_rates(horizon.counts), color=_ORANGE, **ARTISTS["isotonic"])
