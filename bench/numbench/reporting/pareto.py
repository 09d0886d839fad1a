"""Pareto front: mean score against mean token count or cost."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from itertools import pairwise
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator

from numbench.plot_style import PALETTE, SMALL_FONT_SIZE, fix_layout
from numbench.reporting.label_placement import Box, LabelledPoint, Segment, leader_end, place_labels
from numbench.reporting.panels import (
    count_axis,
    error_bar_handle,
    error_bar_lengths,
    fit_text,
    legend,
    needs_log_scale,
    short_count,
    text_width,
)
from numbench.reporting.table_model import Estimate

_FRONT = PALETTE[0]
_DOMINATED = "#8a8a8a"
_MARKER = 5.0
_LABEL_WIDTH = 2.4
_SIZE = (5.2, 4.2)
"""Inches: narrower than a printed page, because the report shows it beside its summary."""


class ParetoPoint(NamedTuple):
    """A run: its price per item in tokens or dollars (lower is better), and its mean score."""

    name: str
    price: Estimate
    score: Estimate
    published: bool = False


def pareto(points: Sequence[ParetoPoint], price: str, heading: str) -> Figure:
    """Draw all points with 95 % bounds, the front as a line, and dominated points in grey.

    A published point with the name of a measured one is connected to it, shares its label and is
    not part of the front. price: label of the horizontal axis. heading: names the measured points
    in the legend.
    """
    figure = Figure(figsize=_SIZE, layout="constrained")
    axes = figure.add_subplot()
    pairs = _published_counterparts(points)
    counterparts = [published for _, published in pairs]
    front = pareto_front([point for point in points if point not in counterparts])
    _scale(axes, points)
    for point in points:
        _draw_point(axes, point, _FRONT if point in front else _DOMINATED)
    line = [(p.price.value, p.score.value) for p in front]
    axes.plot(*zip(*line, strict=True), color=_FRONT, linewidth=1.2, drawstyle="steps-post")
    for pair in pairs:
        ends = [(p.price.value, p.score.value) for p in pair]
        axes.plot(*zip(*ends, strict=True), color=_DOMINATED, linewidth=0.6, linestyle=":")
    axes.set_xlabel(price)
    axes.set_ylabel("mean score over the tasks in percent")
    axes.grid(True)
    legend(figure, _handles(points, heading))
    _label_points(figure, axes, points, counterparts, front)
    return figure


def pareto_front(points: Sequence[ParetoPoint]) -> list[ParetoPoint]:
    """Return the points that no other one dominates, by price."""
    return sorted(
        (p for p in points if not any(_dominates(other, p) for other in points)),
        key=lambda p: (p.price.value, p.score.value),
    )


def _dominates(first: ParetoPoint, second: ParetoPoint) -> bool:
    prices = first.price.value, second.price.value
    scores = first.score.value, second.score.value
    is_equal = prices[0] == prices[1] and scores[0] == scores[1]
    return prices[0] <= prices[1] and scores[0] >= scores[1] and not is_equal


def _published_counterparts(points: Sequence[ParetoPoint]) -> list[tuple[ParetoPoint, ParetoPoint]]:
    """Return pairs of a measured point and the published one with the same name."""
    measured = {point.name: point for point in points if not point.published}
    return [(measured[p.name], p) for p in points if p.published and p.name in measured]


def _scale(axes: Axes, points: Sequence[ParetoPoint]) -> None:
    """Set the limits of both axes around all points and bounds, with space for labels."""
    prices = [value for p in points for value in p.price.bounds_or_value]
    scores = [value for p in points for value in p.score.bounds_or_value]
    low, high = min(prices), max(prices)
    if needs_log_scale(prices):
        count_axis(axes, logarithmic=True)
        axes.xaxis.set_major_locator(LogLocator(base=10, subs=(1, 2, 5)))
        axes.set_xlim(low / 2, high * 2)
    else:
        margin = 0.12 * (high - low) or max(1.0, 0.1 * high)
        axes.set_xlim(low - margin if low > margin else min(0.0, low), high + margin)
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
    margin = 0.08 * (max(scores) - min(scores)) or 5.0
    axes.set_ylim(max(-3.0, min(scores) - margin), min(103.0, max(scores) + margin))


def _draw_point(axes: Axes, point: ParetoPoint, colour: str) -> None:
    price, score = point.price.bounds_or_value, point.score.bounds_or_value
    axes.errorbar(
        price[0],
        score[0],
        xerr=error_bar_lengths(*([value] for value in price)),
        yerr=error_bar_lengths(*([value] for value in score)),
        fmt="o",
        color=colour,
        elinewidth=0.8,
        markersize=_MARKER,
        markerfacecolor="white" if point.published else colour,
        markeredgewidth=1.0,
        zorder=3,
    )


def _label_points(
    figure: Figure,
    axes: Axes,
    points: Sequence[ParetoPoint],
    unlabelled: Sequence[ParetoPoint],
    front: Sequence[ParetoPoint],
) -> None:
    """Add labels with leader lines; without space, dominated points have no label."""
    # The position of the axes is known only after the layout, which must not change afterwards.
    fix_layout(figure)
    scale = 72 / figure.dpi

    def to_points(x: float, y: float) -> tuple[float, float]:
        pixels_x, pixels_y = axes.transData.transform((x, y))
        return float(pixels_x) * scale, float(pixels_y) * scale

    positions = {p: to_points(p.price.value, p.score.value) for p in points}
    half = _MARKER / 2 + 1
    dots = [Box(x - half, y - half, x + half, y + half) for x, y in positions.values()]
    lines = _lines_to_avoid(points, front, to_points)
    area = Box(*(float(value) * scale for value in axes.get_window_extent().extents))
    labelled = [p for p in points if p not in unlabelled]
    labelled.sort(key=lambda p: (p not in front, p.price.value, -p.score.value))
    names = [fit_text(p.name, _LABEL_WIDTH) for p in labelled]
    labels = [
        LabelledPoint(*positions[p], 72 * text_width(name) + 1, SMALL_FONT_SIZE * 1.25)
        for p, name in zip(labelled, names, strict=True)
    ]
    boxes = place_labels(labels, dots, lines, area)
    for point, name, label, box in zip(labelled, names, labels, boxes, strict=True):
        if box is not None:
            _draw_label(axes, point, name, label, box, point in front)


def _lines_to_avoid(
    points: Sequence[ParetoPoint],
    front: Sequence[ParetoPoint],
    to_points: Callable[[float, float], tuple[float, float]],
) -> list[Segment]:
    """Return error bars and the steps of the front, in points of 1/72 inch."""
    lines: list[Segment] = []
    for p in points:
        x, y = p.price, p.score
        if y.value_and_bounds:
            lines.append(
                (to_points(x.value, y.bounds_or_value[1]), to_points(x.value, y.bounds_or_value[2]))
            )
        if x.value_and_bounds:
            lines.append(
                (to_points(x.bounds_or_value[1], y.value), to_points(x.bounds_or_value[2], y.value))
            )
    for first, second in pairwise(front):
        corner = to_points(second.price.value, first.score.value)
        lines.append((to_points(first.price.value, first.score.value), corner))
        lines.append((corner, to_points(second.price.value, second.score.value)))
    return lines


def _draw_label(
    axes: Axes, point: ParetoPoint, name: str, label: LabelledPoint, box: Box, on_front: bool
) -> None:
    colour = "black" if on_front else "#666666"
    xy = (point.price.value, point.score.value)
    axes.annotate(
        name,
        xy,
        xytext=((box.left + box.right) / 2 - label.x, (box.bottom + box.top) / 2 - label.y),
        textcoords="offset points",
        ha="center",
        va="center",
        fontsize=SMALL_FONT_SIZE,
        color=colour,
        annotation_clip=False,
        # Keeps a label readable where it crosses a line.
        bbox={"facecolor": "white", "edgecolor": "none", "alpha": 0.9, "pad": 0.3},
        zorder=5,
    )
    end = leader_end(label, box)
    if math.dist((label.x, label.y), end) > 1.6 * _MARKER:
        axes.annotate(
            "",
            xy,
            xytext=(end[0] - label.x, end[1] - label.y),
            textcoords="offset points",
            arrowprops={
                "arrowstyle": "-",
                "color": colour,
                "linewidth": 0.5,
                "shrinkA": 0,
                "shrinkB": 3,
            },
        )


def _handles(points: Sequence[ParetoPoint], heading: str) -> list[Line2D]:
    def marker(text: str, colour: str, face: str) -> Line2D:
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
        marker("dominated", _DOMINATED, _DOMINATED),
    ]
    if any(point.published for point in points):
        handles.append(marker("hollow: published", _FRONT, "white"))
    if any(not point.published for point in points):
        handles.append(marker(f"filled: {heading.lower()}", _FRONT, _FRONT))
    if _published_counterparts(points):
        text = "connected: same model and level"
        handles.append(Line2D([], [], color=_DOMINATED, linestyle=":", label=text))
    if any(point.price.value_and_bounds or point.score.value_and_bounds for point in points):
        handles.append(error_bar_handle())
    return handles
