"""The figures of the page."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import MaxNLocator

from bench.report.failures import KINDS, failure_kinds, failures_of
from bench.report.figures import (
    BLACK,
    GREY,
    HATCHES,
    PALETTE,
    label,
    rendered,
    style,
)
from bench.report.layout import EXACT_MATCH, LOG_SMAPE, TableSpec
from bench.report.panels import (
    Panels,
    fitted,
    legend,
    name_axes,
    name_panel,
    panels,
    whisker_handle,
    whiskers,
)
from bench.report.published import published_entries
from bench.rescore.labels import Labels
from bench.rescore.ladder import REPAIRS
from bench.rescore.study import Config, Retaken, Study
from bench.tasks import TASKS

FORMATS = ("png", "svg")
NAMES = (
    "ceiling",
    "scores_log_smape",
    "scores_exact_match",
    "steps_log_smape",
    "steps_exact_match",
    "failures",
)
"""All figures there can be."""

_ROW = 0.155
_HEAD = 0.42
_LOWEST = 0.8
_LEFT = 1.55
_LEAST_SPAN = 4.0
_LEAST_STEP = 1.0
_LINK = "#a6cbe3"


def draw(study: Study) -> dict[str, dict[str, bytes]]:
    """Name → format → bytes, of each figure for which there is something to show."""
    figures: dict[str, Figure] = {}
    with style():
        if study.labels:
            figures["ceiling"] = ceiling(study.labels)
        for spec in (LOG_SMAPE, EXACT_MATCH):
            found = study.of_table(spec.name)
            if found:
                figures[f"scores_{spec.name}"] = scores(found, study.configs)
                figures[f"steps_{spec.name}"] = steps(found, study.configs)
        if failures := failures_of(study.exact):
            figures["failures"] = failure_kinds(failures, KINDS)
        files = {name: rendered(figure) for name, figure in figures.items()}
    return {name: {form: own[form] for form in FORMATS} for name, own in files.items()}


def ceiling(found: Sequence[Labels]) -> Figure:
    """What a perfect oracle gets by the study's scoring, and the published scores below it."""
    measured = [own for own in found if TASKS[own.task].metric == "log_smape"] or list(found)
    drawn = panels(2, across=2, height=1.9)
    for axes, spec in zip(drawn.axes, (LOG_SMAPE, EXACT_MATCH), strict=True):
        values = [_ceiling(own, spec) for own in measured]
        places = range(len(measured))
        axes.bar(places, values, 0.7, color="#d9d9d9", edgecolor=GREY, linewidth=0.6)
        for place, (own, value) in enumerate(zip(measured, values, strict=True)):
            axes.text(place, value + 4, f"{value:.1f}", ha="center", fontsize=7)
            theirs = _published(spec, own.task)
            axes.plot([place] * len(theirs), theirs, **_HOLLOW, color=PALETTE[0])
        axes.set_xticks(places, [TASKS[own.task].display for own in measured])
        axes.tick_params(axis="x", length=0)
        axes.set_ylim(0, 114)
        axes.set_yticks(range(0, 101, 25))
        axes.grid(True, axis="y")
        axes.set_title("log-sMAPE" if spec is LOG_SMAPE else "exact match")
    drawn.figure.supylabel("percent")
    legend(
        drawn.figure,
        [
            Patch(facecolor="#d9d9d9", edgecolor=GREY, label="ceiling: an oracle, always right"),
            Line2D([], [], **_HOLLOW, color=PALETTE[0], label="published (paper), all models"),
        ],
    )
    return drawn.figure


def scores(found: Mapping[str, Mapping[Config, Retaken]], configs: Sequence[Config]) -> Figure:
    """Published and exact score of every configuration on every task, with 95 % bounds."""
    drawn = _rows_of_tasks(found, configs)
    for axes, task in zip(drawn.axes, found, strict=True):
        ends = []
        for row, config in enumerate(configs):
            if score := found[task].get(config):
                ends += _dumbbell(axes, row, score)
        _room(axes, min(ends), max(ends), _LEAST_SPAN)
    name_axes(drawn, "percent (ranges differ)", "")
    handles: list[Artist] = [
        Line2D([], [], **_HOLLOW, color=PALETTE[0], label="published (paper)"),
        Line2D([], [], **_FULL, color=PALETTE[1], label="under exact truth"),
        whisker_handle(),
    ]
    legend(drawn.figure, handles)
    return drawn.figure


def steps(found: Mapping[str, Mapping[Config, Retaken]], configs: Sequence[Config]) -> Figure:
    """What each repair changes: gains to the right, losses to the left, the sum as a mark."""
    drawn = _rows_of_tasks(found, configs)
    for axes, task in zip(drawn.axes, found, strict=True):
        ends = [0.0]
        for row, config in enumerate(configs):
            if score := found[task].get(config):
                ends += _stack(axes, row, [float(step) for step in score.ladder.steps])
        axes.axvline(0, color=GREY, linewidth=0.6)
        _room(axes, min(ends), max(ends), _LEAST_STEP)
    name_axes(drawn, "change in points (ranges differ)", "")
    handles: list[Artist] = [
        Patch(label=repair.fault, **_dress(place)) for place, repair in enumerate(REPAIRS)
    ]
    whole = Line2D(
        [], [], color=BLACK, marker="|", markersize=6, linestyle="", label="all together"
    )
    legend(drawn.figure, [*handles, whole])
    return drawn.figure


_HOLLOW: dict[str, Any] = {"marker": "o", "markersize": 4, "fillstyle": "none", "linestyle": ""}
_FULL: dict[str, Any] = {"marker": "o", "markersize": 4, "linestyle": ""}


def _ceiling(own: Labels, spec: TableSpec) -> float:
    return own.ceiling.score if spec is LOG_SMAPE else own.ceiling.exact_match


def _published(spec: TableSpec, task: str) -> list[float]:
    tables = [entry.tables.get(spec.name, {}) for entry in published_entries()]
    return [own[task].value for own in tables if task in own]


def _rows_of_tasks(tasks: Mapping[str, object], configs: Sequence[Config]) -> Panels:
    """A panel per task; a row per configuration, named at the left of each line of panels."""
    drawn = panels(len(tasks), height=max(_LOWEST, _HEAD + _ROW * len(configs)), share=True)
    names = [fitted(label(f"{model} ({level})"), _LEFT) for model, level in configs]
    for place, (axes, task) in enumerate(zip(drawn.axes, tasks, strict=True)):
        name_panel(axes, task)
        axes.set_yticks(range(len(configs)), names)
        axes.tick_params(axis="y", length=0, labelleft=place % 3 == 0)
        axes.grid(True, axis="x")
        for row in range(len(configs)):
            axes.axhline(row, color="#ececec", linewidth=0.5, zorder=0)
    drawn.axes[0].set_ylim(len(configs) - 0.5, -0.5)
    return drawn


def _dumbbell(axes: Axes, row: int, score: Retaken) -> list[float]:
    """Draw one score; return the values that must be seen."""
    value, low, high = score.estimate
    ends = [value]
    if score.printed is not None:
        before = float(score.printed)
        axes.plot([before, value], [row, row], color=_LINK, linewidth=1.6, zorder=1)
        axes.plot([before], [row], **_HOLLOW, color=PALETTE[0], zorder=4)
        ends.append(before)
    if low is not None and high is not None:
        length = whiskers([value], [low], [high])
        axes.errorbar([value], [row], xerr=length, fmt="none", ecolor=BLACK, elinewidth=0.7)
        ends += [low, high]
    axes.plot([value], [row], **_FULL, color=PALETTE[1], zorder=3)
    return ends


def _stack(axes: Axes, row: int, changes: Sequence[float]) -> list[float]:
    """Draw the steps of one score; return the values that must be seen."""
    right, left = 0.0, 0.0
    for place, change in enumerate(changes):
        if change > 0:
            axes.barh(row, change, 0.7, left=right, **_dress(place))
            right += change
        elif change < 0:
            axes.barh(row, change, 0.7, left=left, **_dress(place))
            left += change
    if right or left:
        axes.plot([sum(changes)], [row], color=BLACK, marker="|", markersize=7, linestyle="")
    return [right, left]


def _dress(place: int) -> dict[str, Any]:
    return {
        "facecolor": PALETTE[place],
        "hatch": HATCHES[place],
        "edgecolor": "white",
        "linewidth": 0.3,
    }


def _room(axes: Axes, low: float, high: float, least: float) -> None:
    """Limits with air around the values, and no narrower than `least`."""
    span = max(high - low, least)
    middle = (low + high) / 2
    axes.set_xlim(middle - 0.56 * span, middle + 0.56 * span)
    axes.xaxis.set_major_locator(MaxNLocator(4, steps=(1, 2, 5, 10), min_n_ticks=2))
