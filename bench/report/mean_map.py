"""Mean over spread and magnitude of its lists, one heat map per run (paper, "Failure mode")."""

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

from bench.report.figures import BLACK, FULL_WIDTH, SMALL, label
from bench.report.measured import Measured
from bench.report.panels import fitted, legend, name_axes, panels
from bench.report.ranks import Floats, Ints
from bench.scoring import headline
from bench.scoring.run import counted_rows

TASK = "mean"
_COLOURS = "cividis"
_WIDTHS = (1, 2, 3, 4)
_ITEMS_A_CELL = 4.0
_FULL_CELL = 8
_ACROSS = 4


class Lists(NamedTuple):
    """Counted items of one run: magnitude x of the mean, spread s, score 0 … 100."""

    name: str
    exponent: Ints
    spread: Ints
    score: Floats


class Cell(NamedTuple):
    """Lower corner of a square of the map, items in it and their mean score."""

    x: int
    s: int
    items: int
    score: float


def mean_map(lists: Sequence[Lists]) -> Figure:
    """One panel per run over one range; colour is the mean score of the items in a square.

    A square of few items is drawn smaller, down to a dot for one, since its mean says little.
    """
    width = cell_width(lists)
    drawn = panels(len(lists), across=_ACROSS, height=1.75, share=True)
    colours = ScalarMappable(Normalize(0, 100), _COLOURS)
    for axes, own in zip(drawn.axes, lists, strict=True):
        axes.set_title(fitted(own.name, FULL_WIDTH / _ACROSS - 0.35), fontsize=SMALL)
        _draw(axes, cells(own, width), width, colours)
    _share_limits(drawn.axes, lists, width)
    name_axes(
        drawn, "magnitude x of the mean, 10ˣ ≤ |mean| < 10ˣ⁺¹", "spread s, elements in mean ± 10ˢ"
    )
    bar = drawn.figure.colorbar(colours, ax=drawn.axes, aspect=30, pad=0.02)
    bar.set_label("mean score in percent")
    line = Line2D([], [], color=BLACK, linewidth=0.8, linestyle=(0, (4, 3)), label="s = x")
    size = Line2D(
        [],
        [],
        linestyle="",
        label=f"full square: {width} × {width}, {_FULL_CELL} items or more; dot: 1",
    )
    legend(drawn.figure, [line, size])
    return drawn.figure


def lists_of(runs: Sequence[Measured]) -> list[Lists]:
    """The lists behind the Mean task of every run that has any.

    x is the magnitude of the true mean and s = δ + x − 15, as the paper defines δ: what the
    question shows, whether or not its dataset tells how it was sampled. A mean of 0 has no
    magnitude and is left out.
    """
    found = []
    for run in runs:
        rows = counted_rows(run.run, TASK) if TASK in run.run.rows else []
        placed = [
            (x, row.item.difficulty.base10 + x - 15, 100 * headline(TASK, row.score))
            for row in rows
            if (x := magnitude(str(row.item.answer))) is not None
        ]
        if placed:
            columns = (np.array(column) for column in zip(*placed, strict=True))
            found.append(Lists(label(run.label), *columns))
    return found


def magnitude(number: str) -> int | None:
    """⌊log₁₀|n|⌋, None for 0."""
    value = Decimal(number)
    return value.adjusted() if value else None


def cells(own: Lists, width: int) -> list[Cell]:
    """The squares that hold items, `width` by `width` magnitudes, in order."""
    places = np.stack([own.exponent // width, own.spread // width])
    squares, which = np.unique(places, axis=1, return_inverse=True)
    which = which.ravel()
    items = np.bincount(which)
    scores = np.bincount(which, weights=own.score) / items
    return [
        Cell(int(x) * width, int(s) * width, int(n), float(score))
        for (x, s), n, score in zip(squares.T, items, scores, strict=True)
    ]


def cell_width(lists: Sequence[Lists]) -> int:
    """The least width at which a square holds about four items, one for all panels."""
    for width in _WIDTHS:
        counts = [cell.items for own in lists for cell in cells(own, width)]
        if sum(counts) / len(counts) >= _ITEMS_A_CELL:
            return width
    return _WIDTHS[-1]


def _draw(axes: Axes, found: Sequence[Cell], width: int, colours: ScalarMappable) -> None:
    squares = []
    for cell in found:
        side = width * min(1.0, (cell.items / _FULL_CELL) ** 0.5)
        gap = (width - side) / 2
        squares.append(Rectangle((cell.x - 0.5 + gap, cell.s - 0.5 + gap), side, side))
    axes.add_collection(
        PatchCollection(
            squares,
            facecolors=colours.to_rgba(np.array([cell.score for cell in found])),
            linewidths=0,
        )
    )
    axes.axline((0, 0), slope=1, color=BLACK, linewidth=0.8, linestyle=(0, (4, 3)))
    axes.set_facecolor("#f2f2f2")


def _share_limits(axes: Sequence[Axes], lists: Sequence[Lists], width: int) -> None:
    def ends(values: Sequence[Ints]) -> tuple[float, float]:
        low = min(int(column.min()) for column in values) // width * width
        high = max(int(column.max()) for column in values) // width * width + width
        return low - 0.5, high - 0.5

    across, up = ends([own.exponent for own in lists]), ends([own.spread for own in lists])
    for panel in axes:
        panel.set_xlim(*across)
        panel.set_ylim(*up)
