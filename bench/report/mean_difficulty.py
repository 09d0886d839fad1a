"""Mean over its difficulty δ = s − x + 15: where lists stop sharing leading digits."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.report.difficulty import Curve
from bench.report.figures import GREY, Look, look
from bench.report.intervals import bootstrap_means
from bench.report.panels import (
    count_axis,
    draw_line,
    legend,
    name_axes,
    panels,
    run_handles,
    score_axis,
)
from bench.report.series import Series, TaskScores, run_names

SHARED = 15
"""Above this difficulty the spread is larger than the mean: s > x."""

_FEWEST = 8


def mean_difficulty(of_task: TaskScores) -> Figure:
    """Mean score at every difficulty with 95 % bounds, one line per run.

    Neighbouring difficulties share a point until it stands for eight items.
    """
    drawn = panels(1, across=1, height=2.9, width=5.0)
    (axes,) = drawn.axes
    for series, curve in zip(of_task.runs, _curves(of_task.runs), strict=True):
        _draw(axes, curve, look(series.place))
    axes.axvline(SHARED + 0.5, color=GREY, linewidth=0.8, linestyle=(0, (1, 1)))
    score_axis(axes)
    count_axis(axes)
    name_axes(drawn, "difficulty δ = s − x + 15", "Mean, score in percent, 95 % band")
    mark = Line2D(
        [], [], color=GREY, linewidth=0.8, linestyle=(0, (1, 1)), label="right of it s > x"
    )
    legend(drawn.figure, [*run_handles(run_names([of_task])), mark])
    return drawn.figure


def groups(difficulty: Sequence[int]) -> list[tuple[int, int]]:
    """First and last difficulty of each point; the last ones that stay too few join theirs."""
    values, counts = np.unique(np.array(difficulty), return_counts=True)
    found: list[tuple[int, int]] = []
    first, items = None, 0
    for value, count in zip(values.tolist(), counts.tolist(), strict=True):
        first = value if first is None else first
        items += count
        if items >= _FEWEST:
            found.append((first, value))
            first, items = None, 0
    if first is not None:
        start = found.pop()[0] if found else first
        found.append((start, int(values[-1])))
    return found


def _curves(runs: Sequence[Series]) -> list[Curve]:
    points = [
        [
            (series.base10 >= first) & (series.base10 <= last)
            for first, last in groups(series.base10.astype(int).tolist())
        ]
        for series in runs
    ]
    columns = [series.score[m] for series, own in zip(runs, points, strict=True) for m in own]
    bounds = iter(bootstrap_means(columns))
    found = []
    for series, own in zip(runs, points, strict=True):
        low, high = zip(*(next(bounds) for _ in own), strict=True)
        found.append(
            Curve(
                np.array([series.base10[mask].mean() for mask in own]),
                np.array([series.score[mask].mean() for mask in own]),
                np.array(low),
                np.array(high),
                np.array([mask.sum() for mask in own]),
            )
        )
    return found


def _draw(axes: Axes, curve: Curve, own: Look) -> None:
    axes.fill_between(
        curve.difficulty, curve.low, curve.high, color=own.colour, alpha=0.1, linewidth=0
    )
    draw_line(axes, curve.difficulty, curve.score, own)
