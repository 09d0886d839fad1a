"""The Pareto front: mean score against what it costs, in tokens or in dollars."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import pairwise
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from bench.report.figures import FULL_WIDTH, PALETTE, SMALL
from bench.report.layout import Estimate
from bench.report.panels import (
    count_axis,
    fitted,
    legend,
    short_count,
    spans_orders,
    text_width,
    whisker_handle,
    whiskers,
)
from bench.report.placing import Box, Mark, Segment, anchor, place_labels

_FRONT = PALETTE[0]
_DOMINATED = "#8a8a8a"
_MARKER = 5.0
_LABEL = 2.4


class Point(NamedTuple):
    """A run: its price per item (lower is better) and its mean score (higher is better)."""

    name: str
    price: Estimate
    score: Estimate
    published: bool = False


def pareto(points: Sequence[Point], price: str, heading: str) -> Figure:
    """All points with 95 % bounds, the front as a line, and dominated points in grey.

    A published point with the name of a measured one is joined to it, shares its label and has
    no part in the front.
    """
    figure = Figure(figsize=(FULL_WIDTH, 4.4), layout="constrained")
    axes = figure.add_subplot()
    twins = _twins(points)
    best = front([point for point in points if point not in [twin for _, twin in twins]])
    _scale(axes, points)
    for point in points:
        _draw_point(axes, point, _FRONT if point in best else _DOMINATED)
    line = [(p.price.value, p.score.value) for p in best]
    axes.plot(*zip(*line, strict=True), color=_FRONT, linewidth=1.2, drawstyle="steps-post")
    for own, other in twins:
        ends = [(p.price.value, p.score.value) for p in (own, other)]
        axes.plot(*zip(*ends, strict=True), color=_DOMINATED, linewidth=0.6, linestyle=":")
    axes.set_xlabel(price)
    axes.set_ylabel("mean score over the tasks in percent")
    axes.grid(True)
    legend(figure, _handles(points, heading))
    _label(figure, axes, points, [twin for _, twin in twins], best)
    return figure


def front(points: Sequence[Point]) -> list[Point]:
    """The points that no other one beats in price or score without losing in the other."""
    return sorted(
        (p for p in points if not any(_beats(other, p) for other in points)),
        key=lambda p: (p.price.value, p.score.value),
    )


def _beats(one: Point, other: Point) -> bool:
    cheaper = one.price.value <= other.price.value
    better = one.score.value >= other.score.value
    same = one.price.value == other.price.value and one.score.value == other.score.value
    return cheaper and better and not same


def _twins(points: Sequence[Point]) -> list[tuple[Point, Point]]:
    """A measured point and the published one of its name."""
    measured = {point.name: point for point in points if not point.published}
    return [(measured[p.name], p) for p in points if p.published and p.name in measured]


def _scale(axes: Axes, points: Sequence[Point]) -> None:
    """Both axes around all points and bounds, with room for labels."""
    prices = [v for p in points for v in (p.price.bounded or (p.price.value,))]
    scores = [v for p in points for v in (p.score.bounded or (p.score.value,))]
    low, high = min(prices), max(prices)
    if spans_orders(prices):
        count_axis(axes, logarithmic=True)
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
        axes.set_xlim(low / 2, high * 2)
    else:
        air = 0.12 * (high - low) or max(1.0, 0.1 * high)
        axes.set_xlim(low - air if low > air else min(0.0, low), high + air)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
    air = 0.08 * (max(scores) - min(scores)) or 5.0
    axes.set_ylim(max(-3.0, min(scores) - air), min(103.0, max(scores) + air))


def _draw_point(axes: Axes, point: Point, colour: str) -> None:
    price, score = (e.bounded or (e.value, e.value, e.value) for e in (point.price, point.score))
    axes.errorbar(
        price[0],
        score[0],
        xerr=whiskers(*([value] for value in price)),
        yerr=whiskers(*([value] for value in score)),
        fmt="o",
        color=colour,
        elinewidth=0.8,
        markersize=_MARKER,
        markerfacecolor="white" if point.published else colour,
        markeredgewidth=1.0,
        zorder=3,
    )


def _label(
    figure: Figure,
    axes: Axes,
    points: Sequence[Point],
    unlabelled: Sequence[Point],
    best: Sequence[Point],
) -> None:
    """Direct labels with leader lines; where the room ends, dominated points go without."""
    # Where the axes lie is known once the layout has been worked out; from here on it stays.
    figure.draw_without_rendering()
    figure.set_layout_engine("none")
    scale = 72 / figure.dpi

    def at(x: float, y: float) -> tuple[float, float]:
        across, up = axes.transData.transform((x, y))
        return float(across) * scale, float(up) * scale

    spots = {p: at(p.price.value, p.score.value) for p in points}
    half = _MARKER / 2 + 1
    dots = [Box(x - half, y - half, x + half, y + half) for x, y in spots.values()]
    lines: list[Segment] = []
    for p in points:
        x, y = p.price, p.score
        if y.bounded:
            lines.append((at(x.value, y.bounded[1]), at(x.value, y.bounded[2])))
        if x.bounded:
            lines.append((at(x.bounded[1], y.value), at(x.bounded[2], y.value)))
    for one, two in pairwise(best):
        corner = at(two.price.value, one.score.value)
        lines += [(spots[one], corner), (corner, spots[two])]
    frame = axes.get_window_extent()
    area = Box(*(float(value) * scale for value in frame.extents))
    named = [p for p in points if p not in unlabelled]
    named.sort(key=lambda p: (p not in best, p.price.value, -p.score.value))
    names = [fitted(p.name, _LABEL) for p in named]
    marks = [
        Mark(*spots[p], 72 * text_width(name) + 1, SMALL * 1.25)
        for p, name in zip(named, names, strict=True)
    ]
    placed = place_labels(marks, dots, lines, area)
    for point, name, mark, box in zip(named, names, marks, placed, strict=True):
        if box is not None:
            _write(axes, point, name, mark, box, point in best)


def _write(axes: Axes, point: Point, name: str, mark: Mark, box: Box, on_front: bool) -> None:
    colour = "black" if on_front else "#666666"
    xy = (point.price.value, point.score.value)
    axes.annotate(
        name,
        xy,
        xytext=((box.left + box.right) / 2 - mark.x, (box.bottom + box.top) / 2 - mark.y),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=SMALL,
        color=colour,
        annotation_clip=False,
        # What a label cannot avoid to cross shall not strike it through.
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 0.3},
        zorder=5,
    )
    end = anchor(mark, box)
    if math.dist((mark.x, mark.y), end) > 1.6 * _MARKER:
        axes.annotate(
            "",
            xy,
            xytext=(end[0] - mark.x, end[1] - mark.y),
            textcoords="offset points",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 3,
            },
        )


def _handles(points: Sequence[Point], heading: str) -> list[Line2D]:
    def dot(text: str, colour: str, face: str) -> Line2D:
        return Line2D(
            [],
            [],
            color=colour,
            marker="o",
            markersize=_MARKER,
            markerfacecolor=face,
            linestyle="",
            label=text,
        )

    handles = [
        Line2D([], [], color=_FRONT, marker="o", markersize=_MARKER, label="Pareto front"),
        dot("dominated", _DOMINATED, _DOMINATED),
    ]
    if any(point.published for point in points):
        handles.append(dot("hollow: published", _FRONT, "white"))
    if any(not point.published for point in points):
        handles.append(dot(f"filled: {heading.lower()}", _FRONT, _FRONT))
    if _twins(points):
        text = "joined: same model and level"
        handles.append(Line2D([], [], color=_DOMINATED, linestyle=":", label=text))
    if any(point.price.bounded or point.score.bounded for point in points):
        handles.append(whisker_handle())
    return handles
