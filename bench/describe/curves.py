"""Score over difficulty: one panel per task, one line per model, and their mean."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.describe.panels import count_axis, name_axes, name_panel, panels
from bench.describe.ranks import Floats, Ints, quantile_bins
from bench.describe.scores import POOLED, Series, TaskScores
from bench.report.figures import MARKERS, PALETTE, label
from bench.report.intervals import Interval, bootstrap_means, wilson
from bench.tasks import TASKS

BINS = 8
_TITLE = "Score over difficulty δ in base 10, with 95 % bounds"
_MEAN_COLOUR = "#000000"
# Without the palette's last colour, black, which is that of the mean.
_COLOURS = PALETTE[:-1]
_FLOORS = (90.0, 80.0, 60.0, 0.0)


class Curve(NamedTuple):
    """Mean difficulty, mean score (0 … 100) and its 95 % bounds, one per bin."""

    difficulty: Floats
    score: Floats
    low: Floats
    high: Floats


def curves(scores: Sequence[TaskScores]) -> Figure:
    """Mean score in bins of about equal numbers of items, with 95 % bounds over items.

    Bounds are Wilson's for the exact match of a model, else a percentile bootstrap. Panels
    whose scores are all high begin above 0.
    """
    drawn = panels(len(scores), width=3.1, height=2.7, title=_TITLE)
    models = list(dict.fromkeys((s.model, s.reasoning) for t in scores for s in t.runs))
    for axes, of_task in zip(drawn.axes, scores, strict=True):
        proportions = TASKS[of_task.task].metric == "exact_match"
        lowest = [
            _draw_model(
                axes, curve(series, proportions), models.index((series.model, series.reasoning))
            )
            for series in of_task.runs
        ]
        if of_task.pooled is not None:
            lowest.append(_draw_mean(axes, curve(of_task.pooled, False)))
        _finish(axes, of_task, min(lowest))
    name_axes(drawn, "difficulty δ in base 10, mean of each bin", "score in percent")
    drawn.figure.legend(
        handles=_handles(models, any(t.pooled for t in scores)),
        loc="upper center",
        bbox_to_anchor=(0.5, -0.62 / drawn.height),
        ncols=min(3, len(drawn.axes)),
    )
    return drawn.figure


def curve(series: Series, proportions: bool) -> Curve:
    """The series in bins; `proportions` where every score is 0 or 100."""
    bins = quantile_bins(series.base10, BINS)
    scores = [series.score[bins == place] for place in range(int(bins.max()) + 1)]
    if proportions:
        bounds = [_percent(wilson(int((s == 100).sum()), s.size)) for s in scores]
    else:
        bounds = bootstrap_means(scores)
    return Curve(
        _means(series.base10, bins),
        _means(series.score, bins),
        np.array([bound.low for bound in bounds]),
        np.array([bound.high for bound in bounds]),
    )


def _means(values: Floats, bins: Ints) -> Floats:
    means: Floats = np.bincount(bins, weights=values) / np.bincount(bins)
    return means


def _percent(share: Interval) -> Interval:
    return Interval(100 * share.low, 100 * share.high)


def _draw_model(axes: Axes, found: Curve, place: int) -> float:
    """Draw one model; the lowest of its bounds."""
    colour, marker = _look(place)
    axes.vlines(found.difficulty, found.low, found.high, colors=colour, linewidth=0.9, alpha=0.45)
    axes.plot(
        found.difficulty,
        found.score,
        color=colour,
        linewidth=1.0,
        marker=marker,
        markersize=3.6,
        clip_on=False,
    )
    return float(found.low.min())


def _draw_mean(axes: Axes, found: Curve) -> float:
    axes.fill_between(
        found.difficulty, found.low, found.high, color=_MEAN_COLOUR, alpha=0.15, linewidth=0
    )
    axes.plot(found.difficulty, found.score, color=_MEAN_COLOUR, linewidth=2.2, zorder=3)
    return float(found.low.min())


def _finish(axes: Axes, of_task: TaskScores, lowest: float) -> None:
    sizes = {series.score.size for series in of_task.runs}
    items = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
    name_panel(axes, of_task.task, f"n = {items}")
    floor = next((floor for floor in _FLOORS if floor <= lowest), 0.0)
    axes.set_ylim(floor - 0.03 * (100 - floor), 100 + 0.03 * (100 - floor))
    axes.set_yticks(np.linspace(floor, 100, 5))
    count_axis(axes, logarithmic=_spans_orders(of_task))
    axes.grid(True)


def _spans_orders(of_task: TaskScores) -> bool:
    """Whether the middle 90 % of the difficulties would crowd at one end of a linear axis."""
    low, high = np.percentile(of_task.runs[0].base10, [5, 95])
    return bool(low > 0 and high / low > 30)


def _look(place: int) -> tuple[str, str]:
    """Colour and marker of the model at `place`."""
    return _COLOURS[place % len(_COLOURS)], MARKERS[place % len(MARKERS)]


def _handles(models: Sequence[tuple[str, str]], mean: bool) -> list[Line2D]:
    handles = []
    for place, (model, reasoning) in enumerate(models):
        colour, marker = _look(place)
        name = f"{label(model)} ({label(reasoning)})"
        handles.append(Line2D([], [], color=colour, marker=marker, markersize=4.5, label=name))
    if mean:
        handles.append(Line2D([], [], color=_MEAN_COLOUR, linewidth=2.2, label=POOLED))
    return handles
