"""Figures of scores: against their price, and as a radar plot."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from functools import partial
from typing import Any

from matplotlib.figure import Figure
from matplotlib.layout_engine import ConstrainedLayoutEngine
from matplotlib.projections.polar import PolarAxes

from numbench.plot_style import (
    BLACK,
    FULL_WIDTH,
    GRAY,
    HALF_WIDTH,
    MARKERS,
    PALETTE,
    PUBLISHED_LINE,
    SMALL_FONT_SIZE,
)
from numbench.records import Estimate
from numbench.reporting.data import MAX_TASK_COLUMNS, DatasetGroup, ReportData
from numbench.reporting.figures.draw import (
    ARTISTS,
    LEAD_WIDTH,
    Point,
    fit_text,
    front,
    interval_key,
    legend,
    legend_label,
    mark,
    set_title,
)
from numbench.reporting.figures.model import Drawn, by_dataset
from numbench.reporting.names import LEVELS
from numbench.reporting.values import Configuration
from numbench.tasks import TASKS

_COLORS = dict(zip(LEVELS, (PALETTE[index] for index in (6, 7, 0, 2, 3, 5, 1, 4)), strict=True))
"""The colors of reasoning levels."""

_MIN_RADAR_TASKS = 3
_MAX_LEAD_MODELS = 4


def pareto_tokens(data: ReportData) -> Drawn:
    price = partial(data.estimate, measure="generated_tokens")
    axis = "generated tokens per answer"
    return by_dataset(data, partial(_pareto, data, "token counts", axis, price))


def pareto_cost(data: ReportData) -> Drawn:
    axis = "US dollars per 1,000 questions"
    return by_dataset(data, partial(_pareto, data, "known costs", axis, data.cost))


def _pareto(
    data: ReportData,
    what: str,
    axis: str,
    price: Callable[[Configuration], Estimate | None],
    group: DatasetGroup,
    title: str,
) -> Figure | str:
    points = []
    for index in group.members:
        one = data.configurations[index]
        score, known = data.estimate(one), price(one)
        # Means over different tasks cannot be compared.
        if score and known and set(one.tasks) >= set(group.tasks):
            label = f"{one.label}*" if data.is_published(one) else one.label
            tool = bool(one.scored and one.scored.info.settings.get("tools"))
            points.append(Point(label, known, score, index in group.runs, str(index), tool))
    if len(points) < 2:
        return f"fewer than two configurations with {what} for every task"
    figure = Figure(figsize=(LEAD_WIDTH, 3.9), layout="constrained")
    set_title(figure, title)
    axes = figure.add_subplot()
    shown, count = len(points), len(group.members)
    note = f"\n{shown} of {count} configurations; others lack {what} or tasks"
    note = note if shown < count else ""
    if any(point.label.endswith("*") for point in points):
        note += "\n*: means as published, not re-scored"
    axes.set_xlabel(f"{axis}, mean over the tasks{note}")
    axes.set_ylabel("mean score over the tasks in percent")
    front(figure, axes, points, f"{data.reference_noun}s")
    return figure


def radar(data: ReportData) -> Drawn:
    return by_dataset(data, partial(_radar, data))


def _radar(data: ReportData, group: DatasetGroup, title: str) -> Figure | str:
    """Draw a panel per model, each with the best reference in gray."""
    ones = [data.runs[index] for index in group.runs]
    if len(group.tasks) < _MIN_RADAR_TASKS:
        return f"fewer than {_MIN_RADAR_TASKS} tasks"
    if len(group.tasks) > MAX_TASK_COLUMNS:
        return f"more than {MAX_TASK_COLUMNS} tasks"
    models = list(dict.fromkeys(one.name for one in ones))
    is_lead = len(models) <= _MAX_LEAD_MODELS
    across = min(len(models), 2 if is_lead else 3)
    rows = math.ceil(len(models) / across)
    width = LEAD_WIDTH if is_lead else FULL_WIDTH
    if len(models) == 1:
        width = HALF_WIDTH
    size = (width, (2.9 if len(models) == 1 else 2.02) * rows + (0.2 if title else 0))
    figure = Figure(figsize=size, layout=ConstrainedLayoutEngine(w_pad=0.1))
    set_title(figure, title)
    for number, model in enumerate(models, 1):
        axes = _radar_panel(figure, (rows, across, number), group.tasks)
        axes.set_title(fit_text(legend_label(model), width / across - 0.3, 8.0), y=1.12)
        for index in group.references[:1]:
            best = data.configurations[index]
            what = "baseline" if best.source == "baseline" else "published"
            _polygon(axes, data, index, group.tasks, GRAY, "", f"{best.label}, {what}")
        seen: list[str] = []
        for index, one in zip(group.runs, ones, strict=True):
            if one.name == model:
                color = _COLORS.get(one.level, BLACK)
                marker = MARKERS[seen.count(one.level) % len(MARKERS)]
                _polygon(axes, data, index, group.tasks, color, marker, one.level)
                seen.append(one.level)
    interval_key(figure.axes[0])
    legend(figure)
    return figure


def _radar_panel(figure: Figure, position: tuple[int, int, int], tasks: Sequence[str]) -> PolarAxes:
    """Add a panel with one axis per task, clockwise from the top."""
    axes = figure.add_subplot(*position, projection="polar")
    assert isinstance(axes, PolarAxes)
    axes.set_theta_offset(math.pi / 2)
    axes.set_theta_direction(-1)
    axes.set_ylim(0, 100)
    axes.set_yticks([25, 50, 75, 100], ["25", "50", "75", "100"])
    axes.set_rlabel_position(math.degrees(_angle(0.5, tasks)))
    axes.tick_params(axis="y", labelcolor="#555555", pad=-1)
    axes.spines["polar"].set_color("#999999")
    angles = [_angle(index, tasks) for index in range(len(tasks))]
    axes.set_xticks(angles, [TASKS[task].display for task in tasks], fontsize=SMALL_FONT_SIZE)
    axes.tick_params(axis="x", pad=-1)
    for angle, text in zip(angles, axes.get_xticklabels(), strict=True):
        sine = math.sin(angle)
        text.set_horizontalalignment(
            "center" if abs(sine) < 0.1 else "left" if sine > 0 else "right"
        )
    return axes


def _angle(index: float, tasks: Sequence[str]) -> float:
    return 2 * math.pi * index / len(tasks)


def _polygon(
    axes: PolarAxes,
    data: ReportData,
    member: int,
    tasks: Sequence[str],
    color: str,
    marker: str,
    label: str,
) -> None:
    """Draw the polygon of a configuration, with a gap for a task without a score.

    Without a marker, it is a dashed line without intervals.
    """
    one = data.configurations[member]
    estimates = [data.estimate(one, "score", task) for task in tasks]
    scores = [estimate.value if estimate else math.nan for estimate in estimates]
    angles = [_angle(index, tasks) for index in range(len(tasks) + 1)]
    style: dict[str, Any] = {"color": color, "clip_on": False}
    if not marker:
        style |= {"linestyle": PUBLISHED_LINE, **ARTISTS["reference_polygon"]}
    (line,) = axes.plot(angles, [*scores, scores[0]], **style, label=legend_label(label))
    keys = [f"{member}.{task}" for task, known in zip(tasks, estimates, strict=True) if known]
    mark(line, [*keys, *keys[: not math.isnan(scores[0])]] if marker else [str(member)])
    if not marker:
        return
    line.set(marker=marker, **ARTISTS["run_polygon"])
    for angle, estimate in zip(angles, estimates, strict=False):
        if estimate and estimate.low is not None and estimate.high is not None:
            ends = [estimate.low, estimate.high]
            axes.plot([angle, angle], ends, linewidth=1.6, zorder=3.2, **style)
    if not any(map(math.isnan, scores)):
        axes.fill(angles[:-1], scores, color=color, alpha=0.07, linewidth=0)
