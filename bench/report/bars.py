"""Results as bars: every run on every task with its 95 % bounds."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bench.report.figures import FULL_WIDTH, GREY, Look, look, run_label
from bench.report.layout import LOG_SMAPE, Entry
from bench.report.panels import legend, score_axis, whisker_handle, whiskers
from bench.tasks import TASKS

_BARS_A_ROW = 63
_WIDTH = 0.84
_ROW_HEIGHT = 1.75


def bars(entries: Sequence[Entry], published: Sequence[Entry]) -> Figure:
    """A group of bars per task, one bar per entry in its order.

    Behind the bar of an entry stands, hollow, the published one of its model and level.
    """
    pairs = [(entry, _twin(entry, published)) for entry in entries]
    shown = [task for task in TASKS if any(_has(e, task) for e in entries)]
    count = sum(1 + (twin is not None) for _, twin in pairs)
    rows = math.ceil(count * len(shown) / _BARS_A_ROW)
    a_row = math.ceil(len(shown) / rows)
    rows = math.ceil(len(shown) / a_row)
    figure = Figure(figsize=(FULL_WIDTH, _ROW_HEIGHT * rows + 0.2), layout="constrained")
    for row in range(rows):
        tasks = shown[row * a_row : (row + 1) * a_row]
        axes = figure.add_subplot(rows, 1, row + 1)
        for place, task in enumerate(tasks):
            _draw_group(axes, place, task, pairs, count)
        axes.set_xlim(-0.55, a_row - 0.45)
        axes.set_xticks(range(len(tasks)), [TASKS[task].display for task in tasks])
        axes.tick_params(axis="x", length=0)
        score_axis(axes)
        axes.set_ylim(0, 104)
        axes.grid(False, axis="x")
    figure.supylabel("score in percent")
    legend(figure, _handles(pairs))
    return figure


def _twin(entry: Entry, published: Sequence[Entry]) -> Entry | None:
    same = (e for e in published if (e.model, e.reasoning) == (entry.model, entry.reasoning))
    return next(same, None)


def _has(entry: Entry, task: str) -> bool:
    return task in entry.tables.get(LOG_SMAPE.name, {})


def _draw_group(
    axes: Axes,
    centre: int,
    task: str,
    pairs: Sequence[tuple[Entry, Entry | None]],
    count: int,
) -> None:
    width = _WIDTH / count
    left = centre - _WIDTH / 2
    for place, (entry, twin) in enumerate(pairs):
        own = look(place)
        for bar, hollow in ((entry, False), (twin, True)):
            if bar is None:
                continue
            estimate = bar.tables.get(LOG_SMAPE.name, {}).get(task)
            middle = left + width / 2
            left += width
            if estimate is None:
                continue
            axes.bar(middle, estimate.value, 0.92 * width, **_dress(own, hollow))
            if estimate.bounded:
                value, low, high = estimate.bounded
                axes.errorbar(
                    middle,
                    value,
                    yerr=whiskers([value], [low], [high]),
                    fmt="none",
                    ecolor="black",
                    elinewidth=0.7,
                )


def _dress(own: Look, hollow: bool) -> dict[str, Any]:
    if hollow:
        return {"facecolor": "white", "edgecolor": own.colour, "linewidth": 0.7}
    return {"facecolor": own.colour, "edgecolor": "white", "linewidth": 0, "hatch": own.hatch}


def _handles(pairs: Sequence[tuple[Entry, Entry | None]]) -> list[Artist]:
    handles: list[Artist] = [
        Patch(label=run_label(entry.name, entry.reasoning), **_dress(look(place), False))
        for place, (entry, _) in enumerate(pairs)
    ]
    if any(twin for _, twin in pairs):
        hollow = Patch(facecolor="white", edgecolor=GREY, linewidth=0.7, label="hollow: published")
        handles.append(hollow)
    bounded = (e.bounded for entry, _ in pairs for e in entry.tables[LOG_SMAPE.name].values())
    return [*handles, *([whisker_handle()] if any(bounded) else [])]
