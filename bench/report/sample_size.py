"""Score against the number of items: whether the dataset is large enough."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.report.figures import GREY, Look, look
from bench.report.intervals import Interval, bootstrap_means
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
from bench.report.ranks import Floats
from bench.report.series import Series, TaskScores, run_names, share_of_full
from bench.tasks import TASKS

PAPER_ITEMS = 500
SEED = 20_250_602
_STEPS = (1.0, 1.5, 2.0, 3.0, 5.0, 7.5)
_FEWEST = 10


Where = tuple[str, int]
"""A task and the place of a run."""


class Growth(NamedTuple):
    """Means (0 … 100) of growing random subsets with their own 95 % bounds, one per size."""

    sizes: list[int]
    means: list[float]
    bounds: list[Interval]


def score_vs_items(scores: Sequence[TaskScores], grown: Mapping[Where, Growth]) -> Figure:
    """Mean score of growing random subsets with the 95 % bounds that each alone would give.

    Subsets of a task grow in one random order (seeded), the same for all runs that answered
    the same items. A vertical line marks the paper's 500 items; the title tells the widest
    half interval of all items.
    """
    drawn = panels(len(scores), height=1.85, share=True)
    for axes, of_task in zip(drawn.axes, scores, strict=True):
        own = {s.place: grown[of_task.task, s.place] for s in of_task.runs}
        for place, found in own.items():
            _draw(axes, found, look(place))
        _finish(axes, of_task.task, list(own.values()))
    name_axes(drawn, "items in the subset (log scale)", "mean score in percent, 95 % band")
    legend(drawn.figure, _handles(scores))
    return drawn.figure


def growth(scores: Sequence[TaskScores]) -> dict[Where, Growth]:
    """How the mean of each task of each run settles."""
    columns = {
        (of_task.task, series.place): _shuffled(series)
        for of_task in scores
        for series in of_task.runs
    }
    subsets = {
        (task, place, size): column[:size]
        for (task, place), column in columns.items()
        for size in sizes_up_to(column.size)
    }
    # All at once, since subsets of one size share the draws of the bootstrap.
    other = [where for where in subsets if TASKS[where[0]].metric != "exact_match"]
    bounds = dict(zip(other, bootstrap_means([subsets[where] for where in other]), strict=True))
    found = {}
    for (task, place), column in columns.items():
        sizes = sizes_up_to(column.size)
        own = [(task, place, size) for size in sizes]
        found[task, place] = Growth(
            sizes,
            [float(subsets[where].mean()) for where in own],
            [bounds.get(where) or share_of_full(subsets[where]) for where in own],
        )
    return found


def sizes_up_to(items: int) -> list[int]:
    """10, 15, 20, 30, 50, 75, 100 … below `items`, and `items`."""
    sizes, scale = [], 1
    while _FEWEST * scale < items:
        sizes += [round(_FEWEST * scale * step) for step in _STEPS]
        scale *= 10
    return [*(size for size in sizes if size < items), items]


def _shuffled(series: Series) -> Floats:
    # Raw words are the one stream that numpy promises to keep the same across versions.
    words = np.random.Philox(np.random.SeedSequence([SEED, series.score.size]))
    return series.score[np.argsort(words.random_raw(series.score.size), kind="stable")]


def _draw(axes: Axes, grown: Growth, own: Look) -> None:
    lows, highs = zip(*grown.bounds, strict=True)
    axes.fill_between(grown.sizes, lows, highs, color=own.colour, alpha=0.15, linewidth=0)
    draw_line(axes, grown.sizes, grown.means, own)


def _finish(axes: Axes, task: str, grown: Sequence[Growth]) -> None:
    most = max(own.sizes[-1] for own in grown)
    widest = max((b.high - b.low) / 2 for own in grown for b in own.bounds[-1:])
    name_panel(axes, task, f"±{widest:.1f} at {most:,}")
    score_axis(axes)
    count_axis(axes, logarithmic=True)
    fewest = min(own.sizes[0] for own in grown)
    axes.set_xlim(min(fewest, _FEWEST) * 0.9, max(most, PAPER_ITEMS) * 1.1)
    axes.axvline(PAPER_ITEMS, color=GREY, linewidth=0.8, linestyle=(0, (1, 1)))


def _handles(scores: Sequence[TaskScores]) -> list[Line2D]:
    text = f"{PAPER_ITEMS} items, as in the paper"
    mark = Line2D([], [], color=GREY, linewidth=0.8, linestyle=(0, (1, 1)), label=text)
    return [*run_handles(run_names(scores)), mark]
