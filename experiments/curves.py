"""Learning curves, from the metrics logs that are kept: score over tokens, per task and column."""

from __future__ import annotations

import math
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, MaxNLocator

from bench.bittoken.training import log
from bench.bittoken.training.wording import short
from bench.report import figures
from bench.tasks import TASKS
from experiments.cells import Kept, runs_of
from experiments.layout import Column, Layout

FORMS = ("png", "svg")
_PANEL, _ACROSS = 1.7, 3


def curves(layout: Layout, kept: Kept, folder: Path) -> dict[str, bytes]:
    """The figure of a table in each of FORMS: a panel a task, and in it a line a column.

    Some run must be there to be shown.
    """
    rows = math.ceil(len(layout.tasks) / _ACROSS)
    shown = [run for column in layout.columns for run in runs_of(layout, column, kept)]
    budget = max(run.recipe.training.tokens for run in shown)
    with figures.style():
        size = (figures.FULL_WIDTH, _PANEL * rows + 0.6)
        figure = Figure(figsize=size, layout="constrained")
        for place, task in enumerate(layout.tasks):
            axes = figure.add_subplot(rows, _ACROSS, place + 1)
            axes.set_title(TASKS[task].display)
            axes.set_ylim(-2, 102)
            axes.set_xlim(0, budget)
            axes.grid(visible=True)
            axes.xaxis.set_major_locator(MaxNLocator(4))
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))
            for number, column in enumerate(layout.columns):
                _draw(axes, task, column, number, kept, folder)
        figure.supxlabel("tokens of training")
        figure.supylabel("score at validation, %")
        handles = [
            _line(number, column.title)
            for number, column in enumerate(layout.columns)
            if runs_of(layout, column, kept)
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(handles))
        rendered = figures.rendered(figure)
    return {form: rendered[form] for form in FORMS}


def _draw(axes: Axes, task: str, column: Column, number: int, kept: Kept, folder: Path) -> None:
    """The mean over the seeds, and faintly each of several."""
    look = figures.look(number)
    seeds = [_points(folder / run.run, task) for run in kept.get(column.run_name(task) or "", ())]
    if not seeds:
        return
    if len(seeds) > 1:
        for points in seeds:
            axes.plot(*zip(*points, strict=True), color=look.colour, linewidth=0.5, alpha=0.35)
    # Seeds are validated at the same steps.
    means = [np.mean(points, axis=0) for points in zip(*seeds, strict=False)]
    axes.plot(
        *zip(*means, strict=True),
        color=look.colour,
        linewidth=0.9,
        marker=look.marker,
        markersize=2.5,
        markevery=max(len(means) // 6, 1),
    )


def _points(run: Path, task: str) -> list[tuple[float, float]]:
    """Tokens and score in percent of each validation of a task."""
    return [
        (line["tokens"], 100 * line["tasks"][task]["score"])
        for line in log.measures(log.read(run))
        if task in line["tasks"]
    ]


def _line(number: int, title: str) -> Line2D:
    look = figures.look(number)
    return Line2D([], [], color=look.colour, marker=look.marker, markersize=3, label=title)
