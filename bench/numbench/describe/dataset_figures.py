"""Figures of a dataset: heat maps of magnitudes, histograms of digits and difficulty."""

from __future__ import annotations

import re
from collections.abc import Iterator
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.image import AxesImage
from matplotlib.ticker import MaxNLocator

from numbench import jsonl
from numbench.describe.dataset_columns import (
    PAIR,
    DatasetColumns,
    FloatArray,
    IntArray,
    TaskColumns,
    read_columns,
)
from numbench.plot_style import FORMATS, PALETTE, SMALL_FONT_SIZE, plot_style, render_figure
from numbench.reporting.panels import Panels, count_axis, label_axes, label_panel, panels

_COLOURS = "viridis_r"
_PANEL_HEIGHT = 2.2
_MAX_BARS = 40
_DEFAULT_FOLDER = Path("results/describe")


class Heatmap(NamedTuple):
    """counts[y − low_y, x − low_x] items; omitted: items with a 0, which has no magnitude."""

    counts: IntArray
    low_x: int
    low_y: int
    omitted: int


def operand_magnitudes_figure(dataset: DatasetColumns) -> Figure | None:
    """Draw the orders of magnitude of both operands; None without such tasks.

    Paper, "Number sampling".
    """
    heatmaps = {
        task: count_heatmap(*(columns.numbers[name].exponents for name in PAIR))
        for task, columns in dataset.tasks.items()
        if set(PAIR) <= columns.numbers.keys()
    }
    title = f"Magnitudes of operands, {dataset.name}"
    return _heatmaps_figure(title, heatmaps, "⌊log₁₀|operand 1|⌋", "⌊log₁₀|operand 2|⌋")


def list_spread_figure(dataset: DatasetColumns) -> Figure | None:
    """Draw magnitude x of the mean and spread s as sampled; None without tasks that sample both.

    The dashed line is s = x; above it, the numbers of a list need not share a leading digit.
    """
    heatmaps = {
        task: count_heatmap(columns.exponent.astype(float), columns.spread.astype(float))
        for task, columns in dataset.tasks.items()
        if columns.exponent is not None and columns.spread is not None
    }
    title = f"Magnitude and spread of lists, {dataset.name} (dashed: s = x)"
    figure = _heatmaps_figure(title, heatmaps, "magnitude x of the mean", "spread s")
    if figure is not None:
        for axes in figure.axes[: len(heatmaps)]:
            axes.axline((0, 0), slope=1, color="#555555", linewidth=0.8, linestyle=(0, (4, 3)))
    return figure


def count_heatmap(x: FloatArray, y: FloatArray) -> Heatmap:
    """Count the items on each pair of integers; items with a NaN are omitted."""
    valid = ~(np.isnan(x) | np.isnan(y))
    columns, rows = x[valid].astype(np.int64), y[valid].astype(np.int64)
    low_x, low_y = (int(v.min()) if v.size else 0 for v in (columns, rows))
    shape = tuple(int(v.max() - v.min()) + 1 if v.size else 1 for v in (rows, columns))
    counts = np.zeros(shape, dtype=np.int64)
    np.add.at(counts, (rows - low_y, columns - low_x), 1)
    return Heatmap(counts, low_x, low_y, int(x.size - valid.sum()))


def _heatmaps_figure(
    title: str, heatmaps: dict[str, Heatmap], horizontal: str, vertical: str
) -> Figure | None:
    """Draw one panel per task, with shared axes and colour scale."""
    if not heatmaps:
        return None
    drawn = panels(len(heatmaps), height=_PANEL_HEIGHT, title=title)
    max_count = max(int(heatmap.counts.max()) for heatmap in heatmaps.values())
    for axes, (task, heatmap) in zip(drawn.axes, heatmaps.items(), strict=True):
        image = _draw_heatmap(axes, heatmap, max_count)
        omitted = f", {heatmap.omitted} with a zero omitted" if heatmap.omitted else ""
        label_panel(axes, task, f"n = {heatmap.counts.sum():,}{omitted}")
    _share_limits(drawn.axes, list(heatmaps.values()))
    label_axes(drawn, horizontal, vertical)
    _colour_bar(drawn, image)
    return drawn.figure


def _draw_heatmap(axes: Axes, heatmap: Heatmap, max_count: int) -> AxesImage:
    rows, columns = heatmap.counts.shape
    edges = (
        heatmap.low_x - 0.5,
        heatmap.low_x + columns - 0.5,
        heatmap.low_y - 0.5,
        heatmap.low_y + rows - 0.5,
    )
    return axes.imshow(
        np.ma.masked_equal(heatmap.counts, 0),
        origin="lower",
        extent=edges,
        cmap=_COLOURS,
        vmin=1,
        vmax=max(2, max_count),
        interpolation="nearest",
        aspect="auto",
    )


def _share_limits(axes: list[Axes], heatmaps: list[Heatmap]) -> None:
    right = max(heatmap.low_x + heatmap.counts.shape[1] for heatmap in heatmaps) - 0.5
    top = max(heatmap.low_y + heatmap.counts.shape[0] for heatmap in heatmaps) - 0.5
    left = min(heatmap.low_x for heatmap in heatmaps) - 0.5
    bottom = min(heatmap.low_y for heatmap in heatmaps) - 0.5
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


class Histogram(NamedTuple):
    """Shares of the values in percent, shape (bars,), between edges of shape (bars + 1,)."""

    shares: FloatArray
    edges: FloatArray


def significant_digits_figure(dataset: DatasetColumns) -> Figure:
    """Draw the significant digits of operands, one outline per operand name."""
    drawn = panels(len(dataset.tasks), title=f"Significant digits of operands, {dataset.name}")
    max_digits = max(
        int(numbers.digits.max())
        for columns in dataset.tasks.values()
        for numbers in columns.numbers.values()
    )
    for axes, (task, columns) in zip(drawn.axes, dataset.tasks.items(), strict=True):
        for index, (name, numbers) in enumerate(columns.numbers.items()):
            bars = histogram(numbers.digits)
            axes.stairs(
                bars.shares,
                bars.edges,
                color=PALETTE[index % len(PALETTE)],
                fill=False,
                linewidth=1.4,
                linestyle="-" if index == 0 else (0, (4, 1.5)),
                label=name,
            )
        _label_panel(axes, task, columns)
        axes.set_xlim(-0.9, max_digits + 0.9)
        # Space for the legend above the outlines.
        axes.set_ylim(0, 1.35 * axes.dataLim.y1)
        axes.legend(loc="upper left", fontsize=SMALL_FONT_SIZE, handlelength=1.6, borderaxespad=0.2)
    label_axes(drawn, "significant digits", "share of operands in percent")
    return drawn.figure


def difficulty_figure(dataset: DatasetColumns, base: Literal[10, 2]) -> Figure:
    """Draw the difficulty δ in the given base (paper, "Problem difficulty")."""
    title = f"Difficulty δ in base {base}, {dataset.name}"
    drawn = panels(len(dataset.tasks), title=title)
    for axes, (task, columns) in zip(drawn.axes, dataset.tasks.items(), strict=True):
        values = columns.base10 if base == 10 else columns.base2
        bars = histogram(values)
        axes.stairs(bars.shares, bars.edges, fill=True, color=PALETTE[0], alpha=0.75)
        axes.axvline(float(np.median(values)), color=PALETTE[1], linewidth=1.2)
        _label_panel(axes, task, columns)
    label_axes(drawn, f"δ in base {base} (vertical line: median)", "share of items in percent")
    return drawn.figure


def histogram(values: IntArray) -> Histogram:
    """Return at most 40 bars of equal integer width that contain every value."""
    low, high = int(values.min()), int(values.max())
    width = -(-(high - low + 1) // _MAX_BARS)
    count = (high - low) // width + 1
    counts = np.bincount((values - low) // width, minlength=count)
    edges = np.arange(count + 1, dtype=np.float64) * width + (low - 0.5)
    return Histogram(100 * counts / values.size, edges)


def _label_panel(axes: Axes, task: str, columns: TaskColumns) -> None:
    label_panel(axes, task, f"n = {columns.base10.size:,}")
    count_axis(axes)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.grid(True, axis="y")


def describe_dataset(dataset: str | Path, out: Path | None = None) -> list[Path]:
    """Draw all figures of a dataset, as `numbench.describe.describe`."""
    described = read_columns(dataset)
    folder = _default_folder(described.name) if out is None else out
    written = []
    with plot_style():
        for name, figure in _figures(described):
            written += write_figure(folder, name, figure)
    return written


def _default_folder(name: str) -> Path:
    """Return results/describe/NAME, without characters of the name that a folder cannot have."""
    return _DEFAULT_FOLDER / (re.sub(r"[^A-Za-z0-9._-]+", "-", name).strip(".-") or "dataset")


def write_figure(folder: Path, name: str, figure: Figure) -> list[Path]:
    """Write a figure as `folder/name` in each format; return the paths."""
    paths = []
    for extension, data in render_figure(figure, FORMATS).items():
        path = folder / f"{name}.{extension}"
        jsonl.write_atomically(path, data)
        paths.append(path)
    return paths


def _figures(dataset: DatasetColumns) -> Iterator[tuple[str, Figure]]:
    """Yield name and drawing of each figure that applies to the dataset."""
    for name, figure in (
        ("pairs", operand_magnitudes_figure(dataset)),
        ("lists", list_spread_figure(dataset)),
    ):
        if figure is not None:
            yield name, figure
    yield "digits", significant_digits_figure(dataset)
    yield "difficulty", difficulty_figure(dataset, 10)
    yield "difficulty_base2", difficulty_figure(dataset, 2)
