"""Task Mean: score against spread and magnitude of the lists (paper, "Failure mode")."""

from __future__ import annotations

from collections.abc import Sequence
from decimal import Decimal
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.collections import PatchCollection
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Rectangle

from numbench.plot_style import BLACK, FULL_WIDTH, SMALL_FONT_SIZE
from numbench.reporting.entries import MeasuredRun
from numbench.reporting.panels import fit_text, label_axes, legend, legend_label, panels
from numbench.reporting.task_scores import headline_column
from numbench.scoring.scored_run import counted_rows, item_groups
from numbench.stats.rank_statistics import FloatArray, IntArray

TASK = "mean"
_COLOURS = "cividis"
_CELL_WIDTHS = (1, 2, 3, 4)
_MIN_MEAN_ITEMS_PER_CELL = 4.0
_ITEMS_PER_FULL_SQUARE = 8
_PANELS_PER_ROW = 4


class MeanItems(NamedTuple):
    """Counted items of one run: magnitude x of the mean, spread s, score 0 … 100."""

    name: str
    exponent: IntArray
    spread: IntArray
    score: FloatArray


class HeatmapCell(NamedTuple):
    """Lower corner of a square of the heat map, its number of items and their mean score."""

    x: int
    s: int
    items: int
    score: float


def mean_map(runs: Sequence[MeanItems]) -> Figure:
    """Draw one heat map per run; the colour of a square is the mean score of its items.

    A square with few items is smaller, down to a dot for one item.
    """
    width = cell_width(runs)
    figure_panels = panels(len(runs), across=_PANELS_PER_ROW, height=1.75, share=True)
    figure, all_axes = figure_panels
    colours = ScalarMappable(Normalize(0, 100), _COLOURS)
    for axes, items in zip(all_axes, runs, strict=True):
        title = fit_text(items.name, FULL_WIDTH / _PANELS_PER_ROW - 0.35)
        axes.set_title(title, fontsize=SMALL_FONT_SIZE)
        _draw(axes, heatmap_cells(items, width), width, colours)
    _set_common_limits(all_axes, runs, width)
    label_axes(
        figure_panels,
        "magnitude x of the mean, 10ˣ ≤ |mean| < 10ˣ⁺¹",
        "spread s, elements in mean ± 10ˢ",
    )
    bar = figure.colorbar(colours, ax=all_axes, aspect=30, pad=0.02)
    bar.set_label("mean score in percent")
    line = Line2D([], [], color=BLACK, linewidth=0.8, linestyle=(0, (4, 3)), label="s = x")
    size = Line2D(
        [],
        [],
        linestyle="",
        label=f"full square: {width} × {width}, at least {_ITEMS_PER_FULL_SQUARE} items; "
        "dot: 1 item",
    )
    legend(figure, [line, size])
    return figure


def mean_items(runs: Sequence[MeasuredRun]) -> list[MeanItems]:
    """Return the counted items of the task Mean of every run that has any.

    x is the magnitude of the exact mean, and s = δ + x − 15 by the paper's definition of δ. Both
    follow from the question, whether or not the dataset has the sampling parameters. Items with
    a mean of 0 are omitted, because it has no magnitude.
    """
    all_items = []
    for run in runs:
        groups = item_groups(counted_rows(run.scored, TASK) if TASK in run.scored.rows else [])
        scores = headline_column(TASK, groups).tolist()
        items = [
            (x, item.difficulty.base10 + x - 15, score)
            for item, score in zip((group[0].item for group in groups), scores, strict=True)
            if (x := magnitude(str(item.answer))) is not None
        ]
        if items:
            columns = (np.array(column) for column in zip(*items, strict=True))
            all_items.append(MeanItems(legend_label(run.label), *columns))
    return all_items


def magnitude(number: str) -> int | None:
    """Return ⌊log₁₀|n|⌋, None for 0."""
    value = Decimal(number)
    return value.adjusted() if value else None


def heatmap_cells(items: MeanItems, width: int) -> list[HeatmapCell]:
    """Return the squares with items, `width` by `width` magnitudes, in order."""
    corners = np.stack([items.exponent // width, items.spread // width])
    squares, square_of = np.unique(corners, axis=1, return_inverse=True)
    square_of = square_of.ravel()
    counts = np.bincount(square_of)
    scores = np.bincount(square_of, weights=items.score) / counts
    return [
        HeatmapCell(int(x) * width, int(s) * width, int(n), float(score))
        for (x, s), n, score in zip(squares.T, counts, scores, strict=True)
    ]


def cell_width(runs: Sequence[MeanItems]) -> int:
    """Return the smallest width with at least four items per square on average."""
    for width in _CELL_WIDTHS:
        counts = [cell.items for items in runs for cell in heatmap_cells(items, width)]
        if sum(counts) / len(counts) >= _MIN_MEAN_ITEMS_PER_CELL:
            return width
    return _CELL_WIDTHS[-1]


def _draw(axes: Axes, cells: Sequence[HeatmapCell], width: int, colours: ScalarMappable) -> None:
    squares = []
    for cell in cells:
        side = width * min(1.0, (cell.items / _ITEMS_PER_FULL_SQUARE) ** 0.5)
        gap = (width - side) / 2
        squares.append(Rectangle((cell.x - 0.5 + gap, cell.s - 0.5 + gap), side, side))
    axes.add_collection(
        PatchCollection(
            squares,
            facecolors=colours.to_rgba(np.array([cell.score for cell in cells])),
            linewidths=0,
        )
    )
    axes.axline((0, 0), slope=1, color=BLACK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_facecolor("#f2f2f2")


def _set_common_limits(axes: Sequence[Axes], runs: Sequence[MeanItems], width: int) -> None:
    def limits(columns: Sequence[IntArray]) -> tuple[float, float]:
        low = min(int(column.min()) for column in columns) // width * width
        high = max(int(column.max()) for column in columns) // width * width + width
        return low - 0.5, high - 0.5

    x_limits = limits([items.exponent for items in runs])
    y_limits = limits([items.spread for items in runs])
    for panel in axes:
        panel.set_xlim(*x_limits)
        panel.set_ylim(*y_limits)
