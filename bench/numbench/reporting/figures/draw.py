"""Primitives that every figure is drawn with: facets, dots, lines, stacked bars, heat, a front."""

from __future__ import annotations

import math
from bisect import bisect_right
from collections.abc import Mapping, Sequence
from functools import lru_cache
from itertools import pairwise, product
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.font_manager import FontProperties
from matplotlib.textpath import text_to_path
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator
from matplotlib.transforms import Bbox

from numbench.core.installation import read_toml
from numbench.plot_style import FULL_WIDTH, GRAY, HALF_WIDTH, SMALL_FONT_SIZE, fix_layout
from numbench.records import Estimate
from numbench.reporting.names import one_line

LEAD_WIDTH = 4.75
"""Width in inches: two figures fit side by side at the top of the page."""
FRONT_COLOR = "#0072B2"
DOMINATED_COLOR = "#8a8a8a"
_LEGEND_ROW_HEIGHT = 0.145
_LEGEND_KEY_WIDTH = 0.43
_LOG_SCALE_RATIO = 20
_MAX_LABEL_WIDTH = 2.4
_TOOL_MARKER = "s"
_MARKER_SIZE = 5.0
MARK = "marks"
"""The ids of marked elements begin with it."""

ARTISTS: dict[str, dict[str, Any]] = read_toml(Path(__file__).with_name("artists.toml"))
"""Kind of artist → how it is drawn."""


class Dot(NamedTuple):
    """A value with its interval in a row of `dots`.

    face: of the marker, by default its color. key: see `mark`.
    """

    row: float
    estimate: Estimate
    color: str
    marker: str = "o"
    face: str = ""
    label: str = ""
    key: str = ""


class Point(NamedTuple):
    """A configuration in a plot of score against price. is_run: or else a reference.

    key: see `mark`. has_tool: whether the model was offered a tool.
    """

    label: str
    price: Estimate
    score: Estimate
    is_run: bool = True
    key: str = ""
    has_tool: bool = False


def mark(artist: Artist, keys: Sequence[str]) -> None:
    """Give an artist an id in the SVG by which the page knows what its points are about.

    keys: of its points in their order, or one for all of them: `MEMBER` or `MEMBER.TASK`, with the
    index of a configuration in `ReportData.configurations`.
    """
    if any(keys):
        artist.set_gid("~".join((MARK, *keys)))


def facets(count: int, *, across: int = 3, height: float = 1.75, share: bool = False) -> Figure:
    """Make a figure with `count` panels, at most `across` per row.

    height: of each row in inches, without legends. share: whether all panels share a vertical axis.
    A figure with fewer panels than a row is narrower.
    """
    columns = min(across, count)
    rows = math.ceil(count / columns)
    figure_width = max(FULL_WIDTH * columns / across, HALF_WIDTH)
    figure = Figure(figsize=(figure_width, height * rows + 0.35), layout="constrained")
    for index in range(count):
        first = figure.axes[0] if share and index else None
        axes = figure.add_subplot(rows, columns, index + 1, sharey=first)
        for axis in (axes.xaxis, axes.yaxis):
            # Panels have no labels of their own, and the search for their position takes long.
            axis.set_label_coords(0, 0)
        if share:
            axes.tick_params(labelleft=index % columns == 0)
    return figure


def set_title(figure: Figure, title: str) -> None:
    """Set the title of a figure, in as much of one line as fits; an empty one is none."""
    if title:
        figure.suptitle(fit_text(one_line(title), figure.get_figwidth() - 0.2, 9.0))


def dots(
    axes: Axes, values: Sequence[Dot], labels: Sequence[str], *, are_shown: bool = True
) -> None:
    """Draw values with intervals in horizontal rows, the first at the top, and name the rows."""
    alike: dict[tuple[str, ...], list[Dot]] = {}
    for dot in values:
        alike.setdefault(dot[2:6], []).append(dot)
    for (color, marker, face, label), group in alike.items():
        points, _, _ = axes.errorbar(
            [dot.estimate.value for dot in group],
            [dot.row for dot in group],
            xerr=_errors([dot.estimate for dot in group]),
            fmt=marker,
            color=color,
            markerfacecolor=face or color,
            label=label or None,
            **ARTISTS["dots"],
        )
        mark(points, [dot.key for dot in group])
    name_rows(axes, labels, are_shown=are_shown)
    axes.grid(True, axis="x")


def name_rows(axes: Axes, labels: Sequence[str], *, are_shown: bool = True) -> None:
    """Name the rows of a panel from the top, unless the panel beside it does."""
    axes.set_yticks(range(len(labels)) if are_shown else (), labels if are_shown else ())
    axes.set_ylim(len(labels) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)


def _errors(estimates: Sequence[Estimate]) -> np.ndarray:
    """Return the distances of both bounds from each value; NaN without an interval."""
    known = [
        (value - low, high - value) if low is not None and high is not None else (np.nan, np.nan)
        for value, low, high in estimates
    ]
    return np.asarray(np.maximum(np.array(known).reshape(-1, 2).T, 0.0))


def lines(
    axes: Axes,
    x: Sequence[float],
    y: Sequence[Estimate],
    style: Mapping[str, Any],
    label: str = "",
    key: str = "",
) -> None:
    """Draw a line with markers, and the bounds of its points as vertical bars. key: see `mark`."""
    points, _, _ = axes.errorbar(
        x,
        [estimate.value for estimate in y],
        yerr=_errors(y),
        label=label or None,
        **style,
        **ARTISTS["lines"],
    )
    mark(points, [key])


def stacked(
    axes: Axes,
    rows: Sequence[Mapping[str, float]],
    colors: Mapping[str, str],
    totals: Sequence[Estimate],
    labels: Sequence[str],
) -> None:
    """Draw a stacked bar per row, its parts in the order of the colors, and the total's bounds."""
    for row, parts in enumerate(rows):
        left = 0.0
        for part, color in colors.items():
            if width := parts.get(part, 0.0):
                style = ARTISTS["stack"]
                axes.barh(row, width, 0.74, left=left, color=color, label=part, **style)
                left += width
    values = [total.value for total in totals]
    axes.errorbar(values, range(len(rows)), xerr=_errors(totals), **ARTISTS["total"])
    name_rows(axes, labels)
    axes.set_xlim(left=0)
    axes.grid(True, axis="x")


def heat(
    axes: Axes, table: np.ndarray, x_edges: Sequence[float], colors: str, norm: Normalize
) -> None:
    """Draw a matrix as colors, one row of cells per row of the panel; NaN stays white."""
    rows = np.arange(len(table) + 1) - 0.5
    axes.pcolormesh(x_edges, rows, np.ma.masked_invalid(table), cmap=colors, norm=norm)
    for row in range(1, len(table)):
        axes.axhline(row - 0.5, color="white", linewidth=1.5)
    axes.set_ylim(len(table) - 0.5, -0.5)
    axes.tick_params(left=False)
    axes.spines[:].set_visible(False)


def color_bar(figure: Figure, colors: str, norm: Normalize, label: str) -> Any:
    """Add the scale of the colors of `heat` to a figure and return it."""
    mappable = ScalarMappable(norm, colors)
    bar = figure.colorbar(mappable, ax=figure.axes, aspect=25, pad=0.01)
    bar.set_label(label)
    return bar


def front(
    figure: Figure, axes: Axes, points: Sequence[Point], references: str = "references"
) -> None:
    """Draw scores against prices, connect the points that no other one dominates, and name these.

    Runs are filled and named even if they are dominated; references are hollow, with a name
    for them in the legend, which is added.
    """
    best = pareto_front(points)
    prices = [value for p in points for value in p.price if value is not None]
    _price_axis(axes, prices)
    for point in sorted(points, key=lambda point: point in best):
        _draw_point(axes, point, FRONT_COLOR if point in best else DOMINATED_COLOR)
    axes.plot(*zip(*map(_price, best), strict=True), color=FRONT_COLOR, **ARTISTS["front"])
    if any(point.is_run for point in points):
        key(axes, "filled: runs")
    if any(point.has_tool for point in points):
        key(axes, "square: with a tool", _TOOL_MARKER)
    if not all(point.is_run for point in points):
        key(axes, f"hollow: {references}", markerfacecolor="white")
    axes.grid(True)
    scores = [value for p in points for value in p.score if value is not None]
    margin = 0.08 * (max(scores) - min(scores)) or 5.0
    axes.set_ylim(max(-3.0, min(scores) - margin), min(100.0, max(scores)) + 1.6 * margin)
    legend(figure)
    # Positions in the figure are known only after the layout, which must not change afterwards.
    fix_layout(figure)
    _name_points(axes, points, best)


def pareto_front(points: Sequence[Point]) -> list[Point]:
    """Return the points that no other one dominates, by price."""
    dominated = {
        point
        for point, other in product(points, points)
        if other.price.value <= point.price.value
        and other.score.value >= point.score.value
        and _price(other) != _price(point)
    }
    return sorted((point for point in points if point not in dominated), key=_price)


def _price_axis(axes: Axes, prices: Sequence[float]) -> None:
    low, high = min(prices), max(prices)
    if needs_log_scale(prices):
        _log_axis(axes, (1, 2, 5))
        axes.set_xlim(low / 2, high * 2)
    else:
        margin = 0.12 * (high - low) or max(1.0, 0.1 * high)
        axes.set_xlim(low - margin if low > margin else min(0.0, low), high + margin)
        axes.xaxis.set_major_formatter(FuncFormatter(short_count))


def _draw_point(axes: Axes, point: Point, color: str) -> None:
    marker, _, _ = axes.errorbar(
        *_price(point),
        xerr=_errors([point.price]),
        yerr=_errors([point.score]),
        fmt=_TOOL_MARKER if point.has_tool else "o",
        color=color,
        elinewidth=0.8,
        markersize=_MARKER_SIZE,
        markerfacecolor=color if point.is_run else "white",
        zorder=3.1 if point.is_run else 3,
    )
    mark(marker, [point.key])


def _name_points(axes: Axes, points: Sequence[Point], best: Sequence[Point]) -> None:
    """Name the front and the runs: left above or right below a point, where a name fits.

    Above and to the left of a front is no point; a name without space is left out.
    """
    scale = axes.figure.dpi / 72
    frame = axes.get_window_extent()
    height = 1.25 * SMALL_FONT_SIZE * scale
    centres = {p: axes.transData.transform((p.price.value, p.score.value)) for p in points}
    half = (_MARKER_SIZE / 2 + 0.5) * scale
    taken = [Bbox([[x - half, y - half], [x + half, y + half]]) for x, y in centres.values()]
    steps = []
    for (x, y), (right, top) in pairwise(centres[point] for point in best):
        steps += [Bbox([[x, y - 1], [right, y + 1]]), Bbox([[right - 1, y], [right + 1, top]])]
    for point in [*best, *sorted((p for p in points if p.is_run and p not in best), key=_price)]:
        name = fit_text(legend_label(point.label), 0.62 * frame.width / axes.figure.dpi)
        width = text_width(name) * axes.figure.dpi
        x, y = centres[point]
        sides = [(x - width - half, 1), (x + half, -1), (x + half, 1), (x - width - half, -1)]
        free = [
            (lift, box.count_overlaps(steps), box)
            for lift in (0.0, 1.0, 2.0, 3.0)
            for left, side in sides
            for box in [
                Bbox.from_bounds(left, y + side * (0.6 + lift) * height - height / 2, width, height)
            ]
            if _fits(box, frame) and not box.count_overlaps(taken)
        ]
        if not free:
            continue
        lift, _, box = min(free, key=lambda known: known[:2])
        taken.append(box)
        place = axes.transAxes.inverted()
        axes.annotate(
            name,
            tuple(place.transform(box.get_points().mean(axis=0))),
            fontsize=SMALL_FONT_SIZE,
            color="black" if point in best else GRAY,
            **ARTISTS["name"],
        )
        if lift:
            # A line leads to a name that is not beside its point.
            end = (box.x0 if box.x0 > x else box.x1, (box.y0 + box.y1) / 2)
            line = {"color": GRAY, **ARTISTS["leader"]}
            to = tuple(place.transform(end))
            axes.annotate("", _price(point), to, textcoords="axes fraction", arrowprops=line)


def _price(point: Point) -> tuple[float, float]:
    return point.price.value, point.score.value


def _fits(box: Bbox, frame: Bbox) -> bool:
    return all(frame.contains(*corner) for corner in (box.min, box.max))


def key(axes: Axes, label: str, marker: str = "o", color: str = GRAY, **style: Any) -> None:
    """Add an entry to the legend for something that is drawn without a label."""
    axes.plot([], [], label=label, marker=marker, color=color, **{**ARTISTS["key"], **style})


def interval_key(axes: Axes) -> None:
    """Add the entry of bars that are intervals to the legend."""
    key(axes, "bars: 95% intervals", "|", markersize=6)


def legend(figure: Figure, title: str = "") -> None:
    """Add a legend of everything with a label, and enlarge the figure by its height.

    It is below the panels, or above them if there is a shared label below them.
    """
    known: dict[str, Any] = {}
    for axes in figure.axes:
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True):
            known.setdefault(label, handle)
    if not known:
        return
    room = figure.get_figwidth() - 0.2
    labels = [fit_text(label, room - _LEGEND_KEY_WIDTH) for label in known]
    columns = max(1, int(room / (max(map(text_width, labels)) + _LEGEND_KEY_WIDTH)))
    rows = math.ceil(len(labels) / columns)
    figure.set_figheight(figure.get_figheight() + _LEGEND_ROW_HEIGHT * (rows + bool(title)) + 0.1)
    figure.legend(
        list(known.values()),
        labels,
        loc="outside upper center" if figure.get_supxlabel() else "outside lower center",
        # Even columns: nine entries in two rows become five and four.
        ncols=math.ceil(len(labels) / rows),
        title=title and fit_text(title, room - 0.1),
        **ARTISTS["legend"],
    )


def legend_label(text: str) -> str:
    """Return a name on one line, with the middle cut out if it is too long for a legend."""
    text = fit_text(one_line(text), _MAX_LABEL_WIDTH)
    # matplotlib omits labels that start with an underscore from legends.
    return f" {text}" if text.startswith("_") else text


@lru_cache(maxsize=4096)
def text_width(text: str, size: float = SMALL_FONT_SIZE) -> float:
    """Return the width of a line of text in inches."""
    if not text.strip():
        return 0.0
    font = FontProperties(family="DejaVu Sans", size=size)
    width, _, _ = text_to_path.get_text_width_height_descent(text, font, False)
    return float(width) / 72


def fit_text(text: str, width: float, size: float = SMALL_FONT_SIZE) -> str:
    """Return the text, with its middle cut out if it is wider than `width` inches."""

    def shorten(length: int) -> str:
        half = length // 2
        return f"{text[: length - half].rstrip()}…{text[len(text) - half :].lstrip()}"

    if text_width(text, size) <= width:
        return text
    fitting = bisect_right(range(2, len(text)), width, key=lambda n: text_width(shorten(n), size))
    return shorten(max(2, fitting + 1))


def needs_log_scale(values: Sequence[float]) -> bool:
    """Return whether positive values span more than a factor of 20."""
    return bool(values) and min(values) > 0 and max(values) / min(values) > _LOG_SCALE_RATIO


def count_axis(axes: Axes, *, logarithmic: bool = False) -> None:
    """Format the horizontal axis for counts, with thousands as 2k."""
    if logarithmic:
        _log_axis(axes, (1, 3))
    else:
        axes.xaxis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
        axes.xaxis.set_major_formatter(FuncFormatter(short_count))


def size_axis(axes: Axes, low: float, high: float) -> None:
    """Make the horizontal axis logarithmic from `low` to `high`, for sizes of questions."""
    margin = (high / low) ** 0.03
    # The fewer decades, the more ticks in each.
    _log_axis(axes, (1, 2, 5) if high / low <= 30 else (1, 3) if high / low <= 300 else (1,))
    axes.set_xlim(low / margin, high * margin)


def _log_axis(axes: Axes, ticks: Sequence[float]) -> None:
    """Make the horizontal axis logarithmic, with some ticks in each decade."""
    axes.set_xscale("log")
    axes.xaxis.set_major_locator(LogLocator(base=10, subs=ticks))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(short_count))


def short_count(value: float, position: int | None = None) -> str:
    """Format a count as `30`, `3k` or `1.5M`."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def score_axis(axes: Axes) -> None:
    """Format the vertical axis for scores from 0 to 100 percent, with a grid."""
    axes.set_ylim(-4, 104)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(True)
