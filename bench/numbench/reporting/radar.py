"""Radar plots: the scores of a model on every task, one polygon per reasoning level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.collections import LineCollection
from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.lines import Line2D
from matplotlib.projections.polar import PolarAxes

from numbench.plot_style import (
    BLACK,
    FULL_WIDTH,
    HALF_WIDTH,
    LEVEL_COLOURS,
    MARKERS,
    PUBLISHED_LINE,
)
from numbench.reporting.panels import error_bar_handle, fit_text, legend, legend_label
from numbench.reporting.radar_axes import add_radar_panel, axis_angle
from numbench.reporting.table_model import LOG_SMAPE, Entry, level_rank

_PANELS_PER_ROW = 3
_RINGS: dict[float, str] = {percent: str(percent) for percent in (25, 50, 75, 100)}
_PANEL_HEIGHT = 2.02
_CAP_WIDTH = 2.2


class _EntryStyle(NamedTuple):
    """Style of an entry. Published entries have dashed lines and hollow markers."""

    colour: str
    marker: str
    published: bool


def radar(entries: Sequence[Entry], tasks: Sequence[str], heading: str) -> Figure:
    """Draw all models as small multiples, one panel each, in the order of the entries.

    Runs of a model that differ in more than their level have panels of their own.

    Measured levels have 95 % bounds; published ones are dashed. heading: names the measured ones in
    the legend.
    """
    models = list(dict.fromkeys(entry.name for entry in entries))
    columns = min(_PANELS_PER_ROW, len(models))
    rows = math.ceil(len(models) / columns)
    width = max(HALF_WIDTH, FULL_WIDTH * columns / _PANELS_PER_ROW)
    figure = Figure(
        figsize=(width, _PANEL_HEIGHT * rows), layout=ConstrainedLayoutEngine(w_pad=0.1)
    )
    for number, model in enumerate(models, 1):
        axes = add_radar_panel(figure, (rows, columns, number), tasks, 100, _RINGS)
        axes.set_title(fit_text(legend_label(model), width / columns - 0.3, 8.0))
        of_model = [entry for entry in entries if entry.name == model]
        for entry, style in zip(of_model, _entry_styles(of_model), strict=True):
            _draw(axes, entry, tasks, style, 0.75)
    legend(figure, [*_handles_of_levels(entries, heading), *_bounds_handle(entries)])
    return figure


def _draw(
    axes: PolarAxes, entry: Entry, tasks: Sequence[str], style: _EntryStyle, size: float
) -> None:
    """Draw the entry's polygon, with a gap for a task without data."""
    estimates = entry.estimates(LOG_SMAPE)
    scores = [estimates[task].value if task in estimates else math.nan for task in tasks]
    angles = [axis_angle(index, len(tasks)) for index in range(len(tasks) + 1)]
    (line,) = axes.plot(
        angles,
        [*scores, scores[0]],
        color=style.colour,
        linestyle=PUBLISHED_LINE if style.published else "-",
        linewidth=size * (0.9 if style.published else 1.2),
        marker=style.marker,
        # If both are equal, the ring of the published one is visible around the other's dot.
        markersize=size * (4.2 if style.published else 1.9),
        zorder=2.5 if style.published else 3,
        markerfacecolor="none" if style.published else style.colour,
        markeredgewidth=0.7,
    )
    # Clipping would halve the line of a full score, which is on the rim.
    line.set_clip_on(False)
    _draw_bounds(axes, entry, tasks, style.colour, size)
    if not style.published and not any(map(math.isnan, scores)):
        axes.fill(angles[:-1], scores, color=style.colour, alpha=0.07, linewidth=0)


def _draw_bounds(
    axes: PolarAxes, entry: Entry, tasks: Sequence[str], colour: str, size: float
) -> None:
    """Draw an error bar with caps along the axis of each task with known bounds."""
    estimates = entry.estimates(LOG_SMAPE)
    segments = []
    for index, task in enumerate(tasks):
        value_and_bounds = estimates[task].value_and_bounds if task in estimates else None
        if value_and_bounds is None:
            continue
        _, low, high = value_and_bounds
        angle = axis_angle(index, len(tasks))
        segments.append([(angle, low), (angle, high)])
        for radius in (low, high):
            # This angle makes caps equally wide at any radius, except near the centre.
            half = _CAP_WIDTH / max(radius, 4 * _CAP_WIDTH)
            segments.append([(angle - half, radius), (angle + half, radius)])
    error_bars = LineCollection(segments, colors=colour, linewidths=1.1 * size, zorder=3.2)
    error_bars.set_clip_on(False)
    axes.add_collection(error_bars, autolim=False)


def _entry_styles(entries: Sequence[Entry]) -> list[_EntryStyle]:
    """Return a style per entry of one model: colour by level, marker by repeated level."""
    seen: dict[tuple[str, bool], int] = {}
    styles = []
    for entry in entries:
        key = (entry.reasoning, entry.published)
        marker = MARKERS[seen.get(key, 0) % len(MARKERS)]
        seen[key] = seen.get(key, 0) + 1
        styles.append(_EntryStyle(_colour(entry.reasoning), marker, entry.published))
    return styles


def _colour(level: str) -> str:
    return LEVEL_COLOURS.get(level, BLACK)


def _handles_of_levels(entries: Sequence[Entry], heading: str) -> list[Line2D]:
    kinds = dict.fromkeys((entry.published, entry.reasoning) for entry in entries)
    ordered = sorted(kinds, key=lambda kind: (kind[0], level_rank(kind[1])))
    return [
        _handle(
            _EntryStyle(_colour(level), MARKERS[0], published),
            legend_label(f"{level}, {'published' if published else heading.lower()}"),
        )
        for published, level in ordered
    ]


def _bounds_handle(entries: Sequence[Entry]) -> list[Line2D]:
    estimates = [e for entry in entries for e in entry.estimates(LOG_SMAPE).values()]
    return [error_bar_handle()] if any(e.value_and_bounds for e in estimates) else []


def _handle(style: _EntryStyle, text: str) -> Line2D:
    return Line2D(
        [],
        [],
        color=style.colour,
        linestyle=PUBLISHED_LINE if style.published else "-",
        linewidth=1.0,
        marker=style.marker,
        markersize=4.2 if style.published else 3.0,
        markerfacecolor="none" if style.published else style.colour,
        markeredgewidth=0.7,
        label=text,
    )
