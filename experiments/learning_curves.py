"""Learning curves from the stored metrics logs: score over tokens, per task and column."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from bittoken.training import metrics_log
from experiments.page import RunsByName, runs_of
from experiments.table_layout import LayoutColumn, TableLayout
from numbench.plot_style import FULL_WIDTH, plot_style, render_figure, run_style
from numbench.progress_display import short_count
from numbench.tasks import TASKS

FORMATS = ("png", "svg")
_PANEL_HEIGHT, _PANELS_PER_ROW = 1.7, 3


def plot_learning_curves(layout: TableLayout, stored: RunsByName, folder: Path) -> dict[str, bytes]:
    """Return the figure of a table in each of FORMATS: a panel per task, a line per column.

    At least one column must have a run.
    """
    rows = math.ceil(len(layout.tasks) / _PANELS_PER_ROW)
    runs = [run for column in layout.columns for run in runs_of(layout, column, stored)]
    budget = max(run.recipe.training.tokens for run in runs)
    with plot_style():
        size = (FULL_WIDTH, _PANEL_HEIGHT * rows + 0.6)
        figure = Figure(figsize=size, layout="constrained")
        for index, task in enumerate(layout.tasks):
            axes = figure.add_subplot(rows, _PANELS_PER_ROW, index + 1)
            axes.set_title(TASKS[task].display)
            axes.set_ylim(-2, 102)
            axes.set_xlim(0, budget)
            axes.grid(visible=True)
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
            for number, column in enumerate(layout.columns):
                _draw(axes, task, column, number, stored, folder)
        figure.supxlabel("training tokens")
        figure.supylabel("score at validation, %")
        handles = [
            _line(number, column.title)
            for number, column in enumerate(layout.columns)
            if runs_of(layout, column, stored)
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
        return render_figure(figure, FORMATS)


def _draw(
    axes: Axes, task: str, column: LayoutColumn, number: int, stored: RunsByName, folder: Path
) -> None:
    """Draw the mean over the seeds, and if there are several, each seed as a thin line."""
    style = run_style(number)
    seeds = [_points(folder / run.run, task) for run in stored.get(column.run_name(task) or "", ())]
    if not seeds:
        return
    if len(seeds) > 1:
        for points in seeds:
            axes.plot(*zip(*points, strict=True), color=style.colour, linewidth=0.5, alpha=0.35)
    # Seeds are validated at the same steps.
    means = [np.mean(points, axis=0) for points in zip(*seeds, strict=False)]
    axes.plot(
        *zip(*means, strict=True),
        color=style.colour,
        linewidth=0.9,
        marker=style.marker,
        markersize=2.5,
        markevery=max(len(means) // 6, 1),
    )


def _points(run: Path, task: str) -> list[tuple[float, float]]:
    """Return tokens and score in percent of each validation of a task."""
    return [
        (entry["tokens"], 100 * entry["tasks"][task]["score"])
        for entry in metrics_log.validation_entries(metrics_log.read_log(run))
        if task in entry["tasks"]
    ]


def _line(number: int, title: str) -> Line2D:
    style = run_style(number)
    return Line2D([], [], color=style.colour, marker=style.marker, markersize=3, label=title)
