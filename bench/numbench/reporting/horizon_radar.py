"""Radar plots of horizons in digits, elements or operations, on a logarithmic scale."""

from __future__ import annotations

import math
from collections.abc import Sequence

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.projections.polar import PolarAxes

from numbench.plot_style import (
    BLACK,
    FULL_WIDTH,
    HALF_WIDTH,
    LEVEL_COLOURS,
    MARKERS,
    SMALL_FONT_SIZE,
)
from numbench.reporting.horizon_axis import place_h50, size_range
from numbench.reporting.horizon_runs import HorizonRun, horizon_tasks
from numbench.reporting.panels import fit_text, legend, legend_label
from numbench.reporting.table_model import level_rank
from numbench.tasks import TASKS

MIN_TASKS = 3
"""A polygon needs at least this many tasks."""

_PANELS_PER_ROW = 2
_PANEL_HEIGHT = 2.75
_RINGS = (1, 10, 100, 1000)
_CENTRE = 0.5
"""The size at the centre: a horizon below size 1 is not at a point that all tasks share."""


def horizon_radar(runs: Sequence[HorizonRun]) -> Figure:
    """Draw one panel per model with log h50 on every task, one polygon per reasoning level."""
    tasks = horizon_tasks(runs)
    models = list(dict.fromkeys(run.model for run in runs))
    columns = min(_PANELS_PER_ROW, len(models))
    rows = math.ceil(len(models) / columns)
    width = max(HALF_WIDTH, FULL_WIDTH * columns / _PANELS_PER_ROW)
    figure = Figure(
        figsize=(width, _PANEL_HEIGHT * rows), layout=ConstrainedLayoutEngine(w_pad=0.1)
    )
    largest = size_range(h for run in runs for h in run.horizons.values())[1]
    for number, model in enumerate(models, 1):
        axes = _add_panel(figure, (rows, columns, number), tasks, largest)
        axes.set_title(fit_text(legend_label(model), width / columns - 0.3, 8.0))
        for index, run in enumerate(run for run in runs if run.model == model):
            _draw(axes, run, tasks, MARKERS[index % len(MARKERS)])
    legend(figure, _handles(runs), title="h50 by reasoning level")
    return figure


def _radius(size: float) -> float:
    """Return the distance of a size from the centre, in decades."""
    return math.log10(max(size, _CENTRE) / _CENTRE)


def _angle(index: float, count: int) -> float:
    return 2 * math.pi * index / count


def _add_panel(
    figure: Figure, position: tuple[int, int, int], tasks: Sequence[str], largest: float
) -> PolarAxes:
    """Add a panel with one axis per task, clockwise from the top."""
    axes = figure.add_subplot(*position, projection="polar")
    assert isinstance(axes, PolarAxes)
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(0, _radius(largest))
    rings = [size for size in _RINGS if size < largest]
    axes.set_yticks([_radius(size) for size in rings], [f"{size:,}" for size in rings])
    axes.set_rlabel_position(math.degrees(_angle(0.5, len(tasks))))
    axes.tick_params(axis="y", labelcolor="#555555", pad=-1)
    axes.spines["polar"].set_color("#999999")
    axes.set_xticks([_angle(index, len(tasks)) for index in range(len(tasks))])
    axes.set_xticklabels([TASKS[task].display for task in tasks], fontsize=SMALL_FONT_SIZE)
    axes.tick_params(axis="x", pad=-1)
    for index, text in enumerate(axes.get_xticklabels()):
        sine = math.sin(_angle(index, len(tasks)))
        text.set_horizontalalignment(
            "center" if abs(sine) < 0.1 else "left" if sine > 0 else "right"
        )
    return axes


def _draw(axes: PolarAxes, run: HorizonRun, tasks: Sequence[str], marker: str) -> None:
    """Draw the run's polygon with 95 % intervals, with a gap for a task that was not measured."""
    colour = LEVEL_COLOURS.get(run.reasoning, BLACK)
    radii = []
    for index, task in enumerate(tasks):
        if task not in run.horizons:
            radii.append(math.nan)
            continue
        placed = place_h50(run.horizons[task])
        radii.append(_radius(placed.value))
        ends = [_radius(placed.low), _radius(placed.high)]
        angle = _angle(index, len(tasks))
        axes.plot([angle, angle], ends, color=colour, linewidth=1.6, alpha=0.5, clip_on=False)
    angles = [_angle(index, len(tasks)) for index in range(len(tasks) + 1)]
    axes.plot(
        angles,
        [*radii, radii[0]],
        color=colour,
        linewidth=1.0,
        marker=marker,
        markersize=3.0,
        clip_on=False,
    )


def _handles(runs: Sequence[HorizonRun]) -> list[Line2D]:
    levels = sorted({run.reasoning for run in runs}, key=level_rank)
    handles = [
        Line2D(
            [],
            [],
            color=LEVEL_COLOURS.get(level, BLACK),
            marker="o",
            markersize=3,
            linewidth=1.0,
            label=legend_label(level),
        )
        for level in levels
    ]
    bars = Line2D([], [], color=BLACK, linewidth=1.6, alpha=0.5, label="bars: 95 % intervals")
    return [*handles, bars]
