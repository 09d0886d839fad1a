"""Radar plots: the score of one model on every task, one polygon per reasoning level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.projections.polar import PolarAxes

from bench.report.figures import (
    BLACK,
    FULL_WIDTH,
    HALF_WIDTH,
    LEVEL_COLOURS,
    MARKERS,
    PUBLISHED_LINE,
    SMALL,
    label,
    models_of,
)
from bench.report.layout import LOG_SMAPE, Entry, level_rank
from bench.report.panels import fitted, legend, whisker_handle
from bench.tasks import TASKS

_PANELS_A_ROW = 3
_PANEL_HEIGHT = 2.02
_CAP = 2.2


class _Look(NamedTuple):
    """How an entry is drawn. Published entries are dashed and their markers hollow."""

    colour: str
    marker: str
    published: bool


def radar(model: str, entries: Sequence[Entry], heading: str) -> Figure:
    """One model: its measured levels with their 95 % bounds, its published ones dashed.

    `heading` names the measured entries in the legend.
    """
    figure = Figure(figsize=(HALF_WIDTH, 2.95), layout="constrained")
    axes = _axes(figure, 1, 1, 1)
    axes.set_title(fitted(label(model), HALF_WIDTH - 0.3, 8.0))
    handles = []
    for entry, look in zip(entries, _looks(entries), strict=True):
        _draw(axes, entry, look, 1.0)
        source = "published" if entry.published else heading.lower()
        handles.append(_handle(look, label(f"{entry.reasoning}, {entry.note or source}")))
    legend(figure, [*handles, *_bounds_handle(entries)], title="Reasoning")
    return figure


def overview(entries: Sequence[Entry], heading: str) -> Figure:
    """All models as small multiples, one panel each, in the order of the entries."""
    models = models_of(entries)
    across = min(_PANELS_A_ROW, len(models))
    down = math.ceil(len(models) / across)
    width = max(HALF_WIDTH, FULL_WIDTH * across / _PANELS_A_ROW)
    figure = Figure(
        figsize=(width, _PANEL_HEIGHT * down), layout=ConstrainedLayoutEngine(w_pad=0.1)
    )
    for place, model in enumerate(models, 1):
        axes = _axes(figure, down, across, place)
        axes.set_title(fitted(label(model), width / across - 0.3, 8.0))
        own = [entry for entry in entries if entry.model == model]
        for entry, look in zip(own, _looks(own), strict=True):
            _draw(axes, entry, look, 0.75)
    legend(figure, [*_overview_handles(entries, heading), *_bounds_handle(entries)])
    return figure


def _axes(figure: Figure, down: int, across: int, place: int) -> PolarAxes:
    """One panel: an axis per task in the paper's order, clockwise from the top, 0 to 100."""
    axes = figure.add_subplot(down, across, place, projection="polar")
    assert isinstance(axes, PolarAxes)
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 100)
    axes.set_yticks([25, 50, 75, 100], ["25", "50", "75", "100"])
    axes.set_rlabel_position(math.degrees(_angle(0.5)))
    axes.tick_params(axis="y", labelcolor="#555555", pad=-1)
    axes.spines["polar"].set_color("#999999")
    axes.set_xticks([_angle(place) for place in range(len(TASKS))])
    axes.set_xticklabels([task.display for task in TASKS.values()], fontsize=SMALL)
    axes.tick_params(axis="x", pad=-1)
    for place, text in enumerate(axes.get_xticklabels()):
        sine = math.sin(_angle(place))
        text.set_horizontalalignment(
            "center" if abs(sine) < 0.1 else "left" if sine > 0 else "right"
        )
    return axes


def _angle(place: float) -> float:
    return 2 * math.pi * place / len(TASKS)


def _draw(axes: PolarAxes, entry: Entry, look: _Look, size: float) -> None:
    """The entry's polygon; a task without data is a gap in it."""
    row = entry.tables.get(LOG_SMAPE.name, {})
    scores = [row[task].value if task in row else math.nan for task in TASKS]
    angles = [_angle(place) for place in range(len(scores) + 1)]
    (line,) = axes.plot(
        angles,
        [*scores, scores[0]],
        color=look.colour,
        linestyle=PUBLISHED_LINE if look.published else "-",
        linewidth=size * (0.9 if look.published else 1.2),
        marker=look.marker,
        # Where both agree, the ring of the published one stays in sight around the other's dot.
        markersize=size * (4.2 if look.published else 1.9),
        zorder=2.5 if look.published else 3,
        markerfacecolor="none" if look.published else look.colour,
        markeredgewidth=0.7,
    )
    # A full score lies on the rim, where clipping would halve the line.
    line.set_clip_on(False)
    _draw_bounds(axes, entry, look.colour, size)
    if not look.published and not any(map(math.isnan, scores)):
        axes.fill(angles[:-1], scores, color=look.colour, alpha=0.07, linewidth=0)


def _draw_bounds(axes: PolarAxes, entry: Entry, colour: str, size: float) -> None:
    """A whisker with caps along the spoke of each task whose bounds are known."""
    row = entry.tables.get(LOG_SMAPE.name, {})
    segments = []
    for place, task in enumerate(TASKS):
        bounded = row[task].bounded if task in row else None
        if bounded is None:
            continue
        _, low, high = bounded
        angle = _angle(place)
        segments.append([(angle, low), (angle, high)])
        for radius in (low, high):
            # An angle that makes the cap as wide at any radius, but near the centre.
            half = _CAP / max(radius, 4 * _CAP)
            segments.append([(angle - half, radius), (angle + half, radius)])
    whiskers = LineCollection(segments, colors=colour, linewidths=1.1 * size, zorder=3.2)
    whiskers.set_clip_on(False)
    axes.add_collection(whiskers, autolim=False)


def _looks(entries: Sequence[Entry]) -> list[_Look]:
    """A look per entry of one model: colour by level, marker by repetition of a level."""
    seen: dict[tuple[str, bool], int] = {}
    looks = []
    for entry in entries:
        key = (entry.reasoning, entry.published)
        marker = MARKERS[seen.get(key, 0) % len(MARKERS)]
        seen[key] = seen.get(key, 0) + 1
        looks.append(_Look(_colour(entry.reasoning), marker, entry.published))
    return looks


def _colour(level: str) -> str:
    return LEVEL_COLOURS.get(level, BLACK)


def _overview_handles(entries: Sequence[Entry], heading: str) -> list[Line2D]:
    kinds = dict.fromkeys((entry.published, entry.reasoning) for entry in entries)
    ordered = sorted(kinds, key=lambda kind: (kind[0], level_rank(kind[1])))
    return [
        _handle(
            _Look(_colour(level), MARKERS[0], published),
            label(f"{level}, {'published' if published else heading.lower()}"),
        )
        for published, level in ordered
    ]


def _bounds_handle(entries: Sequence[Entry]) -> list[Line2D]:
    known = any(
        e.bounded for entry in entries for e in entry.tables.get(LOG_SMAPE.name, {}).values()
    )
    return [whisker_handle()] if known else []


def _handle(look: _Look, text: str) -> Line2D:
    return Line2D(
        [],
        [],
        color=look.colour,
        linestyle=PUBLISHED_LINE if look.published else "-",
        linewidth=1.0,
        marker=look.marker,
        markersize=4.2 if look.published else 3.0,
        markerfacecolor="none" if look.published else look.colour,
        markeredgewidth=0.7,
        label=text,
    )
