"""Figures of several equal panels, with margins of a fixed size in inches."""

from __future__ import annotations

import math
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from bench.tasks import TASKS


class Panels(NamedTuple):
    """A figure, its panels in reading order, and its height in inches."""

    figure: Figure
    axes: list[Axes]
    height: float


def panels(
    count: int, *, across: int = 3, width: float = 2.9, height: float = 2.4, title: str = ""
) -> Panels:
    """`count` panels, at most `across` in a row, each `width` by `height` inches with its gaps."""
    across = min(across, count)
    down = math.ceil(count / across)
    total = height * down
    figure = Figure(figsize=(width * across, total))
    gap = 0.55
    figure.subplots_adjust(
        left=0,
        right=1,
        bottom=0,
        top=1,
        wspace=gap / (width - gap),
        hspace=gap / (height - gap),
    )
    axes = [figure.add_subplot(down, across, place + 1) for place in range(count)]
    if title:
        figure.suptitle(title, x=0.5, y=1 + 0.42 / total, va="bottom", fontsize=11)
    return Panels(figure, axes, total)


def name_panel(axes: Axes, task: str, note: str) -> None:
    """The task's name above a panel, and a note behind it."""
    axes.set_title(f"{TASKS[task].display} ({note})", fontsize=10)


def name_axes(drawn: Panels, horizontal: str, vertical: str) -> None:
    """Labels that all panels share, clear of their ticks."""
    width = drawn.figure.get_figwidth()
    drawn.figure.text(0.5, -0.36 / drawn.height, horizontal, ha="center", va="top", fontsize=10)
    drawn.figure.text(
        -0.5 / width, 0.5, vertical, ha="right", va="center", rotation="vertical", fontsize=10
    )


def count_axis(axes: Axes, *, logarithmic: bool = False) -> None:
    """Whole numbers along the horizontal axis, thousands as 2k, with room between them."""
    if logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 3)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(6, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(
        FuncFormatter(lambda value, _: f"{value / 1000:g}k" if value >= 1000 else f"{value:g}")
    )
