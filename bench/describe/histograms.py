"""Histograms per task: significant digits of the operands, and difficulty."""

from __future__ import annotations

from typing import Literal, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from bench.describe.columns import Columns, Described, Floats, Ints
from bench.report.figures import PALETTE, SMALL
from bench.report.panels import count_axis, name_axes, name_panel, panels

_MOST_BARS = 40


class Bars(NamedTuple):
    """Shares of the values in percent, shape (bars,), between edges of shape (bars + 1,)."""

    shares: Floats
    edges: Floats


def digits(dataset: Described) -> Figure:
    """Significant digits per operand, one outline per role."""
    drawn = panels(len(dataset.tasks), title=f"Significant digits of operands, {dataset.name}")
    most = max(int(n.digits.max()) for c in dataset.tasks.values() for n in c.numbers.values())
    for axes, (task, columns) in zip(drawn.axes, dataset.tasks.items(), strict=True):
        for place, (role, numbers) in enumerate(columns.numbers.items()):
            found = bars(numbers.digits)
            style = "-" if place == 0 else (0, (4, 1.5))
            axes.stairs(
                found.shares,
                found.edges,
                color=PALETTE[place],
                fill=False,
                linewidth=1.4,
                linestyle=style,
                label=role,
            )
        _finish(axes, task, columns)
        axes.set_xlim(-0.9, most + 0.9)
        # Room for the legend above the outlines.
        axes.set_ylim(0, 1.35 * axes.dataLim.y1)
        axes.legend(loc="upper left", fontsize=SMALL, handlelength=1.6, borderaxespad=0.2)
    name_axes(drawn, "significant digits", "share of operands in percent")
    return drawn.figure


def difficulty(dataset: Described, base: Literal[10, 2]) -> Figure:
    """Difficulty δ in the given base (paper, "Problem difficulty")."""
    title = f"Difficulty δ in base {base}, {dataset.name}"
    drawn = panels(len(dataset.tasks), title=title)
    for axes, (task, columns) in zip(drawn.axes, dataset.tasks.items(), strict=True):
        values = columns.base10 if base == 10 else columns.base2
        found = bars(values)
        axes.stairs(found.shares, found.edges, fill=True, color=PALETTE[0], alpha=0.75)
        axes.axvline(float(np.median(values)), color=PALETTE[1], linewidth=1.2)
        _finish(axes, task, columns)
    name_axes(drawn, f"δ in base {base} (vertical line: median)", "share of items in percent")
    return drawn.figure


def bars(values: Ints) -> Bars:
    """At most 40 bars of one integer width that together hold every value."""
    low, high = int(values.min()), int(values.max())
    width = -(-(high - low + 1) // _MOST_BARS)
    count = (high - low) // width + 1
    counts = np.bincount((values - low) // width, minlength=count)
    edges = np.arange(count + 1, dtype=np.float64) * width + (low - 0.5)
    return Bars(100 * counts / values.size, edges)


def _finish(axes: Axes, task: str, columns: Columns) -> None:
    name_panel(axes, task, f"n = {columns.base10.size:,}")
    count_axis(axes)
    axes.set_ylim(bottom=0)
    axes.yaxis.set_major_locator(MaxNLocator(5))
    axes.grid(True, axis="y")
