"""Figures of several equal panels, their legends, and axes that more than one figure has."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from typing import Any, NamedTuple

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.lines import Line2D
from matplotlib.textpath import TextPath
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from bench.report.figures import FULL_WIDTH, GREY, SMALL, Look, look
from bench.report.layout import one_line
from bench.report.ranks import Floats
from bench.tasks import TASKS

_LEGEND_ROW = 0.145
_LEGEND_KEY = 0.43
_SPREAD_FOR_LOG = 20


class Panels(NamedTuple):
    """A figure and its panels in reading order."""

    figure: Figure
    axes: list[Axes]


def panels(
    count: int,
    *,
    across: int = 3,
    height: float = 1.75,
    title: str = "",
    width: float = FULL_WIDTH,
    share: bool = False,
) -> Panels:
    """`count` panels, at most `across` in a row, each row `height` inches; legends add theirs.

    A figure of fewer panels than a row holds is narrower. share: one vertical axis for all.
    """
    wanted, across = across, min(across, count)
    down = math.ceil(count / across)
    size = max(width * across / wanted, min(width, 3.4))
    figure = Figure(figsize=(size, height * down + 0.35), layout="constrained")
    first: Axes | None = None
    axes = []
    for place in range(count):
        axes.append(figure.add_subplot(down, across, place + 1, sharey=first if share else None))
        first = axes[0]
        if share:
            axes[place].tick_params(labelleft=place % across == 0)
    if title:
        figure.suptitle(fitted(one_line(title), size - 0.2, 9.0))
    return Panels(figure, axes)


def name_panel(axes: Axes, task: str, note: str = "") -> None:
    """The task's name above a panel, and a note behind it."""
    display = TASKS[task].display
    axes.set_title(f"{display} ({note})" if note else display)


def name_axes(drawn: Panels, horizontal: str, vertical: str) -> None:
    """Labels that all panels share."""
    drawn.figure.supxlabel(horizontal)
    drawn.figure.supylabel(vertical)


def legend(figure: Figure, handles: Sequence[Artist], title: str | None = None) -> None:
    """A legend of all panels in as many columns as fit; the figure grows by its height.

    It stands under the panels, or above them where a label that they share is under them.
    """
    room = figure.get_figwidth() - 0.2
    for handle in handles:
        handle.set_label(fitted(str(handle.get_label()), room - _LEGEND_KEY))
    widest = max(text_width(str(handle.get_label())) for handle in handles) + _LEGEND_KEY
    columns = max(1, min(len(handles), int(room / widest)))
    rows = math.ceil(len(handles) / columns)
    # Even columns: nine entries in two rows stand as five and four.
    columns = math.ceil(len(handles) / rows)
    figure.set_figheight(figure.get_figheight() + _LEGEND_ROW * (rows + bool(title)) + 0.1)
    figure.legend(
        handles=list(handles),
        loc="outside upper center" if figure.get_supxlabel() else "outside lower center",
        ncols=columns,
        title=title,
        columnspacing=1.2,
        handlelength=2.2,
        handletextpad=0.5,
        labelspacing=0.35,
        borderaxespad=0.2,
    )


@lru_cache(maxsize=4096)
def text_width(text: str, size: float = SMALL) -> float:
    """Inches that a line of text takes up."""
    if not text.strip():
        return 0.0
    path = TextPath((0, 0), text, size=size, prop=FontProperties(family="DejaVu Sans"))
    return float(path.get_extents().width) / 72


def fitted(text: str, width: float, size: float = SMALL) -> str:
    """The text, cut in its middle so that it is at most `width` inches wide."""

    def cut(kept: int) -> str:
        half = kept // 2
        return f"{text[: kept - half].rstrip()}…{text[len(text) - half :].lstrip()}"

    if text_width(text, size) <= width:
        return text
    kept = bisect_right(range(2, len(text)), width, key=lambda n: text_width(cut(n), size))
    return cut(max(2, kept + 1))


def spans_orders(values: Sequence[float]) -> bool:
    """Whether positive values spread so far that only a logarithmic axis shows them all."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > _SPREAD_FOR_LOG


def count_axis(axes: Axes, *, logarithmic: bool = False) -> None:
    """Counts along the horizontal axis, thousands as 2k, with room between them."""
    if logarithmic:
        axes.set_xscale("log")
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 3)))
        axes.xaxis.set_minor_locator(NullLocator())
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))


def short_count(value: float) -> str:
    """`30`, `3k`, `1.5M`."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def score_axis(axes: Axes, floor: float = 0.0) -> None:
    """Scores in percent from `floor` to 100 along the vertical axis, with a grid."""
    air = 0.04 * (100 - floor)
    axes.set_ylim(floor - air, 100 + air)
    step = (100 - floor) / 4
    axes.set_yticks([floor + step * place for place in range(5)])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(True)


def whiskers(
    values: Sequence[float], lows: Sequence[float], highs: Sequence[float]
) -> tuple[list[float], list[float]]:
    """Bounds as lengths below and above the values, as matplotlib's error bars want them."""
    below = [max(0.0, value - low) for value, low in zip(values, lows, strict=True)]
    above = [max(0.0, high - value) for value, high in zip(values, highs, strict=True)]
    return below, above


def whisker_handle() -> Line2D:
    """Says in a legend what whiskers are."""
    return Line2D(
        [], [], color=GREY, marker="|", markersize=6, linestyle="", label="whiskers: 95 % bounds"
    )


def run_handles(names: Mapping[int, str]) -> list[Line2D]:
    """Legend entries of the lines of runs, from their places and labels."""
    handles = []
    for place, name in sorted(names.items()):
        own = look(place)
        marked: dict[str, Any] = {"color": own.colour, "marker": own.marker, "markersize": 3.5}
        handles.append(Line2D([], [], linestyle=own.line, linewidth=1.0, label=name, **marked))
    return handles


def draw_line(
    axes: Axes, x: Sequence[float] | Floats, y: Sequence[float] | Floats, own: Look
) -> None:
    """The line of a run in its own look; markers may stand on the edge of the panel."""
    axes.plot(
        x,
        y,
        color=own.colour,
        linestyle=own.line,
        linewidth=0.9,
        marker=own.marker,
        markersize=2.8,
        clip_on=False,
    )
