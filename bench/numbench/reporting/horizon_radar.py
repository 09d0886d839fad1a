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
)
from numbench.reporting.horizon_axis import place_h50, size_range
from numbench.reporting.horizon_runs import HorizonRun, horizon_tasks
from numbench.reporting.panels import fit_text, legend, legend_label
from numbench.reporting.radar_axes import add_radar_panel, axis_angle
from numbench.reporting.table_model import level_rank

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
    rings = {_radius(size): f"{size:,}" for size in _RINGS if size < largest}
    for number, model in enumerate(models, 1):
        axes = add_radar_panel(figure, (rows, columns, number), tasks, _radius(largest), rings)
        axes.set_title(fit_text(legend_label(model), width / columns - 0.3, 8.0))
        for index, run in enumerate(run for run in runs if run.model == model):
            _draw(axes, run, tasks, MARKERS[index % len(MARKERS)])
    legend(figure, _handles(runs), title="h50 by reasoning level")
    return figure


def _radius(size: float) -> float:
    """Return the distance of a size from the centre, in decades."""
    return math.log10(max(size, _CENTRE) / _CENTRE)


def _draw(axes: PolarAxes, run: HorizonRun, tasks: Sequence[str], marker: str) -> None:
    """Draw the run's polygon with 95 % intervals, with a gap for a task that was not measured."""
    colour = LEVEL_COLOURS.get(run.reasoning, BLACK)
    radii = []
    for index, task in enumerate(tasks):
        if task not in run.horizons or not run.horizons[task].items:
            radii.append(math.nan)
            continue
        placed = place_h50(run.horizons[task])
        radii.append(_radius(placed.value))
        ends = [_radius(placed.low), _radius(placed.high)]
        angle = axis_angle(index, len(tasks))
        axes.plot([angle, angle], ends, color=colour, linewidth=1.6, alpha=0.5, clip_on=False)
    angles = [axis_angle(index, len(tasks)) for index in range(len(tasks) + 1)]
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
