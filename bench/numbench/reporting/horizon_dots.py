"""The horizons of several runs: one row per task, sizes on a logarithmic axis."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from numbench.plot_style import FULL_WIDTH, GREY, RunStyle
from numbench.reporting.horizon_axis import format_size_axis, place, place_h50, size_range
from numbench.reporting.horizon_runs import CONTROL, HorizonRun, horizon_tasks
from numbench.reporting.panels import legend, run_label
from numbench.tasks import TASKS

_ROW_HEIGHT, _RUN_HEIGHT = 0.11, 0.095
_SPREAD = 0.7
"""Share of a row's height that its runs take."""


def horizon_dots(runs: Sequence[HorizonRun], styles: Sequence[RunStyle]) -> Figure:
    """Draw h50 of every run on every task with 95 % intervals; hollow dots are h90.

    styles: of the runs. A triangle points to an h50 beyond the sizes that can be asked; a cross is
    an isotonic crossing, where the curve does not describe the answers.
    """
    tasks = horizon_tasks(runs)
    height = len(tasks) * (_ROW_HEIGHT + _RUN_HEIGHT * len(runs)) + 0.7
    figure = Figure(figsize=(FULL_WIDTH, height), layout="constrained")
    axes = figure.add_subplot()
    for number, (run, style) in enumerate(zip(runs, styles, strict=True)):
        offset = _SPREAD * ((number + 0.5) / len(runs) - 0.5)
        for row, task in enumerate(tasks):
            if task in run.horizons and run.horizons[task].items:
                _draw(axes, run, task, row + offset, style)
    _format_axes(axes, runs, tasks)
    legend(figure, _handles(runs, styles))
    return figure


def _draw(axes: Axes, run: HorizonRun, task: str, height: float, style: RunStyle) -> None:
    horizon = run.horizons[task]
    h50 = place_h50(horizon)
    h90 = None if horizon.h90 is None else place(horizon, horizon.h90)
    axes.plot([h50.low, h50.high], [height, height], color=style.colour, linewidth=1.0)
    marker: dict[str, Any] = {"linestyle": "", "color": style.colour, "clip_on": False, "zorder": 3}
    symbol = "x" if h50.is_isotonic else {-1: "<", 0: "o", 1: ">"}[h50.beyond]
    axes.plot(h50.value, height, marker=symbol, markersize=4.5, **marker)
    if horizon.fits and h90 and not h90.beyond and not h50.beyond:
        axes.plot(h90.value, height, marker="o", markersize=3.2, markerfacecolor="white", **marker)


def _format_axes(axes: Axes, runs: Sequence[HorizonRun], tasks: Sequence[str]) -> None:
    format_size_axis(axes, "x", *size_range(h for run in runs for h in run.horizons.values()))
    axes.set_xlabel("size of the question (digits, elements or operations)")
    axes.set_ylim(len(tasks) - 0.5, -0.5)
    units = {task: h.unit for run in runs for task, h in run.horizons.items()}
    axes.set_yticks(range(len(tasks)), [f"{TASKS[task].display}, {units[task]}" for task in tasks])
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")
    for row, task in enumerate(tasks):
        if task == CONTROL:
            axes.axhspan(row - 0.5, row + 0.5, color=GREY, alpha=0.1, linewidth=0)
        elif row:
            axes.axhline(row - 0.5, color="#d9d9d9", linewidth=0.4)


def _handles(runs: Sequence[HorizonRun], styles: Sequence[RunStyle]) -> list[Line2D]:
    handles = [
        Line2D(
            [],
            [],
            color=style.colour,
            marker="o",
            markersize=4.5,
            linewidth=1.0,
            label=run_label(run.model, run.reasoning),
        )
        for run, style in zip(runs, styles, strict=True)
    ]
    symbols = (
        ("o", "white", "hollow: h90"),
        (">", GREY, "triangle: beyond the sizes"),
        ("x", GREY, "cross: isotonic, no fit"),
    )
    return handles + [
        Line2D([], [], color=GREY, marker=m, markerfacecolor=f, markersize=4, linestyle="", label=t)
        for m, f, t in symbols
    ]
