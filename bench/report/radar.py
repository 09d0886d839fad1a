"""Radar plots: the score of one model on every task, one polygon per reasoning level."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.projections.polar import PolarAxes

from bench.report.figures import LEVEL_COLOURS, MARKERS, OTHER_LEVEL, label, models_of
from bench.report.layout import LOG_SMAPE, Entry, level_rank
from bench.tasks import TASKS

_PANEL = 3.1
_PANELS_A_ROW = 3


class _Look(NamedTuple):
    """How an entry is drawn. Published entries are dashed and their markers hollow."""

    colour: str
    marker: str
    published: bool


def radar(model: str, entries: Sequence[Entry], heading: str) -> Figure:
    """One model: its measured levels filled, its published ones dashed.

    `heading` names the measured entries in the legend.
    """
    figure = Figure(figsize=(5.6, 5.2))
    axes = _axes(figure, 1, 1, 1)
    axes.set_title(label(model), pad=26, fontweight="bold", fontsize=12)
    handles = []
    for entry, look in zip(entries, _looks(entries), strict=True):
        _draw(axes, entry, look)
        source = "published" if entry.published else heading.lower()
        name = f"{entry.reasoning}, {entry.note or source}"
        handles.append(_handle(look, label(name)))
    figure.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, 0.06),
        ncols=2,
        title="Reasoning",
    )
    return figure


def overview(entries: Sequence[Entry], heading: str) -> Figure:
    """All models as small multiples, one panel each, in the order of the entries."""
    models = models_of(entries)
    across = min(_PANELS_A_ROW, len(models))
    down = math.ceil(len(models) / across)
    figure = Figure(figsize=(_PANEL * across, _PANEL * down))
    figure.subplots_adjust(left=0.0, right=1.0, bottom=0.0, top=1.0, wspace=0.56, hspace=0.5)
    for place, model in enumerate(models, 1):
        axes = _axes(figure, down, across, place)
        axes.set_title(label(model), pad=23, fontweight="bold")
        own = [entry for entry in entries if entry.model == model]
        for entry, look in zip(own, _looks(own), strict=True):
            _draw(axes, entry, look)
    handles = _overview_handles(entries, heading)
    # Below the lowest panel's labels by a fixed distance, however many rows there are.
    below = -0.45 / (_PANEL * down)
    figure.legend(
        handles=handles,
        loc="upper center",
        bbox_to_anchor=(0.5, below),
        ncols=min(4, len(handles)) if across > 1 else 1,
    )
    return figure


def _axes(figure: Figure, down: int, across: int, place: int) -> PolarAxes:
    """One panel: an axis per task in the paper's order, clockwise from the top, 0 to 100."""
    axes = figure.add_subplot(down, across, place, projection="polar")
    assert isinstance(axes, PolarAxes)
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 100)
    axes.set_yticks([20, 40, 60, 80, 100], ["20", "40", "60", "80", "100"])
    axes.set_rlabel_position(math.degrees(_angle(0.5)))
    axes.tick_params(axis="y", labelsize=6.5, labelcolor="#555555", pad=0)
    axes.spines["polar"].set_color("#999999")
    axes.set_xticks([_angle(place) for place in range(len(TASKS))])
    axes.set_xticklabels([task.display for task in TASKS.values()])
    axes.tick_params(axis="x", pad=1)
    for place, text in enumerate(axes.get_xticklabels()):
        sine = math.sin(_angle(place))
        text.set_horizontalalignment(
            "center" if abs(sine) < 0.1 else "left" if sine > 0 else "right"
        )
    return axes


def _angle(place: float) -> float:
    return 2 * math.pi * place / len(TASKS)


def _draw(axes: PolarAxes, entry: Entry, look: _Look) -> None:
    """The entry's polygon; a task without data is a gap in it."""
    row = entry.tables.get(LOG_SMAPE.name, {})
    scores = [row[task].value if task in row else math.nan for task in TASKS]
    angles = [_angle(place) for place in range(len(scores) + 1)]
    (line,) = axes.plot(
        angles,
        [*scores, scores[0]],
        color=look.colour,
        linestyle=(0, (4, 2)) if look.published else "-",
        linewidth=1.3 if look.published else 1.6,
        marker=look.marker,
        # Where both agree, the ring of the published one stays in sight around the other's dot.
        markersize=5.0 if look.published else 3.2,
        zorder=2.5 if look.published else 3,
        markerfacecolor="white" if look.published else look.colour,
        markeredgewidth=0.9,
    )
    # A full score lies on the rim, where clipping would halve the line.
    line.set_clip_on(False)
    if not look.published and not any(map(math.isnan, scores)):
        axes.fill(angles[:-1], scores, color=look.colour, alpha=0.08, linewidth=0)


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
    return LEVEL_COLOURS.get(level, OTHER_LEVEL)


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


def _handle(look: _Look, text: str) -> Line2D:
    return Line2D(
        [],
        [],
        color=look.colour,
        linestyle=(0, (4, 2)) if look.published else "-",
        linewidth=1.5,
        marker=look.marker,
        markersize=4.5,
        markerfacecolor="white" if look.published else look.colour,
        label=text,
    )
