"""The axes of radar plots: one per task, clockwise from the top."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from matplotlib.figure import Figure
from matplotlib.projections.polar import PolarAxes

from numbench.plot_style import SMALL_FONT_SIZE
from numbench.tasks import TASKS

MIN_TASKS = 3
"""A polygon needs at least this many tasks."""


def add_radar_panel(
    figure: Figure,
    position: tuple[int, int, int],
    tasks: Sequence[str],
    rim: float,
    rings: Mapping[float, str],
) -> PolarAxes:
    """Add a panel with one axis per task.

    position: rows, columns and number, as of `Figure.add_subplot`. rim: the radius of the panel.
    rings: labels by radius.
    """
    axes = figure.add_subplot(*position, projection="polar")
    assert isinstance(axes, PolarAxes)
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(0, rim)
    axes.set_yticks(list(rings), list(rings.values()))
    axes.set_rlabel_position(math.degrees(axis_angle(0.5, len(tasks))))
    axes.tick_params(axis="y", labelcolor="#555555", pad=-1)
    axes.spines["polar"].set_color("#999999")
    axes.set_xticks([axis_angle(index, len(tasks)) for index in range(len(tasks))])
    axes.set_xticklabels([TASKS[task].display for task in tasks], fontsize=SMALL_FONT_SIZE)
    axes.tick_params(axis="x", pad=-1)
    for index, text in enumerate(axes.get_xticklabels()):
        sine = math.sin(axis_angle(index, len(tasks)))
        text.set_horizontalalignment(
            "center" if abs(sine) < 0.1 else "left" if sine > 0 else "right"
        )
    return axes


def axis_angle(index: float, count: int) -> float:
    """Return the angle of the axis of a task among `count` tasks."""
    return 2 * math.pi * index / count
