"""Heat maps of what was drawn: magnitudes of two operands, magnitude and spread of lists."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from bench.describe.columns import PAIR, Described, Floats, Ints
from bench.report.panels import Panels, name_axes, name_panel, panels

_COLOURS = "viridis_r"
_SIDE = 2.2


class Grid(NamedTuple):
    """counts[y − low_y, x − low_x] items; `left_out` had no place because a number was 0."""

    counts: Ints
    low_x: int
    low_y: int
    left_out: int


def pairs(dataset: Described) -> Figure | None:
    """Orders of magnitude of both operands (paper, "Number sampling"); None without such tasks."""
    grids = {
        task: count(*(columns.numbers[role].exponents for role in PAIR))
        for task, columns in dataset.tasks.items()
        if set(PAIR) <= columns.numbers.keys()
    }
    title = f"Magnitudes of operands, {dataset.name}"
    return _figure(title, grids, "⌊log₁₀|operand 1|⌋", "⌊log₁₀|operand 2|⌋")


def lists(dataset: Described) -> Figure | None:
    """Magnitude x of the mean and spread s as sampled; None without tasks that sample both.

    The dashed line is s = x: above it a list's numbers need share no leading digit.
    """
    grids = {
        task: count(columns.exponent.astype(float), columns.spread.astype(float))
        for task, columns in dataset.tasks.items()
        if columns.exponent is not None and columns.spread is not None
    }
    title = f"Magnitude and spread of lists, {dataset.name} (dashed: s = x)"
    figure = _figure(title, grids, "magnitude x of the mean", "spread s")
    if figure is not None:
        for axes in figure.axes[: len(grids)]:
            axes.axline((0, 0), slope=1, color="#555555", linewidth=0.8, linestyle=(0, (4, 3)))
    return figure


def count(x: Floats, y: Floats) -> Grid:
    """How many items lie on each pair of integers; those with a NaN are left out."""
    placed = ~(np.isnan(x) | np.isnan(y))
    columns, rows = x[placed].astype(np.int64), y[placed].astype(np.int64)
    low_x, low_y = (int(v.min()) if v.size else 0 for v in (columns, rows))
    shape = tuple(int(v.max() - v.min()) + 1 if v.size else 1 for v in (rows, columns))
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, (rows - low_y, columns - low_x), 1)
    return Grid(counts, low_x, low_y, int(x.size - placed.sum()))


def _figure(title: str, grids: dict[str, Grid], horizontal: str, vertical: str) -> Figure | None:
    """One panel per task over one range and one scale of colours."""
    if not grids:
        return None
    drawn = panels(len(grids), height=_SIDE, title=title)
    most = max(int(grid.counts.max()) for grid in grids.values())
    for axes, (task, grid) in zip(drawn.axes, grids.items(), strict=True):
        image = _draw(axes, grid, most)
        left_out = f", {grid.left_out} with a zero left out" if grid.left_out else ""
        name_panel(axes, task, f"n = {grid.counts.sum():,}{left_out}")
    _share_limits(drawn.axes, list(grids.values()))
    name_axes(drawn, horizontal, vertical)
    _colour_bar(drawn, image)
    return drawn.figure


def _draw(axes: Axes, grid: Grid, most: int) -> AxesImage:
    down, across = grid.counts.shape
    edges = (
        grid.low_x - 0.5,
        grid.low_x + across - 0.5,
        grid.low_y - 0.5,
        grid.low_y + down - 0.5,
    )
    return axes.imshow(
        np.ma.masked_equal(grid.counts, 0),
        origin="lower",
        extent=edges,
        cmap=_COLOURS,
        vmin=1,
        vmax=max(2, most),
        interpolation="nearest",
        aspect="auto",
    )


def _share_limits(axes: list[Axes], grids: list[Grid]) -> None:
    right = max(grid.low_x + grid.counts.shape[1] for grid in grids) - 0.5
    top = max(grid.low_y + grid.counts.shape[0] for grid in grids) - 0.5
    left = min(grid.low_x for grid in grids) - 0.5
    bottom = min(grid.low_y for grid in grids) - 0.5
    for panel in axes:
        panel.set_xlim(left, right)
        panel.set_ylim(bottom, top)
        for axis in (panel.xaxis, panel.yaxis):
            axis.set_major_locator(MaxNLocator(7, integer=True, min_n_ticks=1))


def _colour_bar(drawn: Panels, image: AxesImage) -> None:
    bar = drawn.figure.colorbar(image, ax=drawn.axes, aspect=25, pad=0.02)
    bar.locator = MaxNLocator(8, integer=True, min_n_ticks=1)
    bar.update_ticks()
    bar.set_label("items per cell")
