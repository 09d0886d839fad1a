"""Score over difficulty: one panel per task, one line per run, and the mean of all runs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.report.figures import BLACK, Look, look
from bench.report.intervals import bootstrap_means
from bench.report.panels import (
    count_axis,
    draw_line,
    legend,
    name_axes,
    name_panel,
    panels,
    run_handles,
    score_axis,
)
from bench.report.ranks import Floats, Ints, quantile_bins
from bench.report.series import MEAN, POOLED, Series, TaskScores, run_names, share_of_full
from bench.tasks import TASKS

BINS = 8
_FLOORS = (90.0, 80.0, 60.0, 0.0)


class Curve(NamedTuple):
    """Mean difficulty, mean score (0 … 100), its 95 % bounds and items, one per bin."""

    difficulty: Floats
    score: Floats
    low: Floats
    high: Floats
    items: Ints


def difficulty_curves(
    scores: Sequence[TaskScores], found: Mapping[tuple[str, int], Curve]
) -> Figure:
    """The curves of the given tasks and runs, and of their mean.

    Panels whose scores are all high begin above 0.
    """
    drawn = panels(len(scores), height=1.85)
    for axes, of_task in zip(drawn.axes, scores, strict=True):
        own = {s.place: found[of_task.task, s.place] for s in _series(of_task)}
        for place, points in own.items():
            if place == MEAN:
                _draw_mean(axes, points)
            else:
                _draw_run(axes, points, look(place))
        _finish(axes, of_task, list(own.values()))
    name_axes(drawn, "difficulty δ in base 10, mean of each bin", "score in percent")
    legend(drawn.figure, _handles(scores))
    return drawn.figure


def curves(scores: Sequence[TaskScores]) -> dict[tuple[str, int], Curve]:
    """The curve of every task and place of a run, and of the mean over the runs.

    Mean scores in bins of about equal numbers of items, with 95 % bounds over items: Wilson's
    for the exact match of a run, else a percentile bootstrap.
    """
    wanted = [(of_task.task, series) for of_task in scores for series in _series(of_task)]
    bins = [quantile_bins(series.base10, BINS) for _, series in wanted]
    columns = [
        [series.score[own == place] for place in range(int(own.max()) + 1)]
        for (_, series), own in zip(wanted, bins, strict=True)
    ]
    exact = [TASKS[task].metric == "exact_match" and s.place != MEAN for task, s in wanted]
    # All at once, since columns of one size share the draws of the bootstrap.
    other = [c for own, known in zip(columns, exact, strict=True) if not known for c in own]
    bootstrapped = iter(bootstrap_means(other))
    found = {}
    for (task, series), own, split, known in zip(wanted, bins, columns, exact, strict=True):
        bounds = [share_of_full(column) if known else next(bootstrapped) for column in split]
        found[task, series.place] = Curve(
            _means(series.base10, own),
            _means(series.score, own),
            np.array([bound.low for bound in bounds]),
            np.array([bound.high for bound in bounds]),
            np.bincount(own),
        )
    return found


def _series(of_task: TaskScores) -> list[Series]:
    return [*of_task.runs, *([of_task.pooled] if of_task.pooled else [])]


def _means(values: Floats, bins: Ints) -> Floats:
    means: Floats = np.bincount(bins, weights=values) / np.bincount(bins)
    return means


def _draw_run(axes: Axes, found: Curve, own: Look) -> None:
    axes.vlines(found.difficulty, found.low, found.high, colors=own.colour, linewidth=0.7)
    draw_line(axes, found.difficulty, found.score, own)


def _draw_mean(axes: Axes, found: Curve) -> None:
    axes.fill_between(found.difficulty, found.low, found.high, color=BLACK, alpha=0.13, linewidth=0)
    axes.plot(found.difficulty, found.score, color=BLACK, linewidth=1.8, zorder=2.5)


def _finish(axes: Axes, of_task: TaskScores, found: Sequence[Curve]) -> None:
    sizes = [size for own in found for size in own.items.tolist()]
    items = " to ".join(f"{size:,}" for size in sorted({min(sizes), max(sizes)}))
    name_panel(axes, of_task.task, f"n = {items} a bin")
    lowest = min(float(own.low.min()) for own in found)
    score_axis(axes, next((floor for floor in _FLOORS if floor <= lowest), 0.0))
    count_axis(axes, logarithmic=_spans_orders(of_task))


def _spans_orders(of_task: TaskScores) -> bool:
    """Whether the middle 90 % of the difficulties would crowd at one end of a linear axis."""
    low, high = np.percentile(of_task.runs[0].base10, [5, 95])
    return bool(low > 0 and high / low > 20 and of_task.runs[0].base10.min() > 0)


def _handles(scores: Sequence[TaskScores]) -> list[Line2D]:
    handles = run_handles(run_names(scores))
    if any(of_task.pooled for of_task in scores):
        handles.append(Line2D([], [], color=BLACK, linewidth=1.8, label=POOLED))
    return handles
