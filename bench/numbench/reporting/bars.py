"""Bar chart of results: every run on every task with 95 % bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from numbench.plot_style import FULL_WIDTH, GREY, RunStyle, run_style
from numbench.reporting.panels import (
    error_bar_handle,
    error_bar_lengths,
    legend,
    run_label,
    score_axis,
)
from numbench.reporting.table_model import LOG_SMAPE, Entry
from numbench.tasks import TASKS

_MAX_BARS_PER_ROW = 63
_GROUP_WIDTH = 0.84
_ROW_HEIGHT = 1.75

_Pair = tuple[Entry, Entry | None]
"""An entry and the published one of the same model and level."""


def bars(entries: Sequence[Entry], published: Sequence[Entry]) -> Figure:
    """Draw a group of bars per task, with one bar per entry in its order.

    The published entry of the same model and level is a hollow bar next to it.
    """
    pairs = [(entry, _published_counterpart(entry, published)) for entry in entries]
    tasks = [task for task in TASKS if any(task in entry.estimates(LOG_SMAPE) for entry in entries)]
    bars_per_group = sum(1 + (counterpart is not None) for _, counterpart in pairs)
    rows = math.ceil(bars_per_group * len(tasks) / _MAX_BARS_PER_ROW)
    groups_per_row = math.ceil(len(tasks) / rows)
    rows = math.ceil(len(tasks) / groups_per_row)
    figure = Figure(figsize=(FULL_WIDTH, _ROW_HEIGHT * rows + 0.2), layout="constrained")
    for row in range(rows):
        tasks_in_row = tasks[row * groups_per_row : (row + 1) * groups_per_row]
        axes = figure.add_subplot(rows, 1, row + 1)
        for centre, task in enumerate(tasks_in_row):
            _draw_group(axes, centre, task, pairs, _GROUP_WIDTH / bars_per_group)
        axes.set_xlim(-0.55, groups_per_row - 0.45)
        axes.set_xticks(range(len(tasks_in_row)), [TASKS[task].display for task in tasks_in_row])
        axes.tick_params(axis="x", length=0)
        score_axis(axes)
        axes.set_ylim(0, 104)
        axes.grid(False, axis="x")
    figure.supylabel("score in percent")
    legend(figure, _handles(pairs))
    return figure


def _published_counterpart(entry: Entry, published: Sequence[Entry]) -> Entry | None:
    same = (e for e in published if (e.model, e.reasoning) == (entry.model, entry.reasoning))
    return next(same, None)


def _draw_group(
    axes: Axes, centre: int, task: str, pairs: Sequence[_Pair], bar_width: float
) -> None:
    left = centre - _GROUP_WIDTH / 2
    for index, (entry, counterpart) in enumerate(pairs):
        style = run_style(index)
        for bar, is_hollow in ((entry, False), (counterpart, True)):
            if bar is None:
                continue
            estimate = bar.estimates(LOG_SMAPE).get(task)
            middle = left + bar_width / 2
            left += bar_width
            if estimate is None:
                continue
            axes.bar(middle, estimate.value, 0.92 * bar_width, **_bar_style(style, is_hollow))
            if estimate.value_and_bounds:
                value, low, high = estimate.value_and_bounds
                axes.errorbar(
                    middle,
                    value,
                    yerr=error_bar_lengths([value], [low], [high]),
                    fmt="none",
                    ecolor="black",
                    elinewidth=0.7,
                )


def _bar_style(style: RunStyle, is_hollow: bool) -> dict[str, Any]:
    if is_hollow:
        return {"facecolor": "white", "edgecolor": style.colour, "linewidth": 0.7}
    return {
        "facecolor": style.colour,
        "edgecolor": "white",
        "linewidth": 0,
        "hatch": style.hatch,
    }


def _handles(pairs: Sequence[_Pair]) -> list[Artist]:
    handles: list[Artist] = [
        Patch(label=run_label(entry.name, entry.reasoning), **_bar_style(run_style(index), False))
        for index, (entry, _) in enumerate(pairs)
    ]
    if any(counterpart for _, counterpart in pairs):
        hollow = Patch(facecolor="white", edgecolor=GREY, linewidth=0.7, label="hollow: published")
        handles.append(hollow)
    if any(e.value_and_bounds for entry, _ in pairs for e in entry.estimates(LOG_SMAPE).values()):
        handles.append(error_bar_handle())
    return handles
