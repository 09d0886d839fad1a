"""Figures of a training from its metrics log: losses, scores, curricula, task shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from numbench.bittoken.encodings.base import FloatArray
from numbench.bittoken.training.metrics_log import LogEntry, read_log, validation_entries
from numbench.bittoken.training.recipe import TEXT, task_display_name
from numbench.jsonl import write_atomically
from numbench.plot_style import PALETTE, plot_style, render_figure
from numbench.progress_display import short_count
from numbench.tasks import PAPER_TASKS

FIGURES = "figures"
_WIDTH, _PANEL, _PANELS_PER_ROW = 7.0, 1.75, 3
"""Width of a figure and height of a panel in inches, and number of panels per row."""
_MAX_POINTS = 320
"""Maximum number of points per curve."""

_LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)))
_HATCHES = ("", "/////")
_PERCENT, _COLOURS = Normalize(0, 100), "cividis"
_SCORE, _EXACT, _GREY = PALETTE[0], PALETTE[1], "#555555"


def plot_training(folder: Path) -> list[Path]:
    """Write the figures of the training in `folder` and return their paths.

    Returns no paths if there is no validation yet. The same log gives the same bytes. Raises
    BadInput if there is no log.
    """
    entries = read_log(folder)
    validations = validation_entries(entries)
    if not validations:
        return []
    chance: dict[str, float] = entries[0].get("chance", {})
    drawings: dict[str, Callable[[], Figure | None]] = {
        "loss": lambda: plot_losses(validations),
        "scores": lambda: plot_scores(validations, chance),
        "curriculum": lambda: plot_curricula(validations),
        "shares": lambda: plot_shares(validations),
    }
    written = []
    with plot_style():
        for name, draw in drawings.items():
            figure = draw()
            for form, data in render_figure(figure).items() if figure else ():
                path = folder / FIGURES / f"{name}.{form}"
                write_atomically(path, data)
                written.append(path)
    return written


def plot_losses(validations: Sequence[LogEntry]) -> Figure:
    """Plot the mean unscaled training loss of every task between validations."""
    tasks = _tasks(validations)
    figure, (axes,) = _panels(1, 2.9, wide=True)
    for task in tasks:
        colour, line, _ = _task_style(task)
        values = _window_means(_field_column(validations, "loss", task))
        _curve(axes, validations, values, colour, line)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(True)
    _step_axis(axes, validations)
    _label_axes(figure, _step_name(validations), "loss per predicted token")
    _legend(figure, [_line(task_display_name(task), *_task_style(task)[:2]) for task in tasks])
    return figure


def plot_scores(validations: Sequence[LogEntry], chance: dict[str, float]) -> Figure:
    """Plot score and exact match of every task on its full distribution, with the chance level."""
    tasks = _tasks(validations)
    figure, panels = _panels(len(tasks), _PANEL)
    for axes, task in zip(panels, tasks, strict=True):
        axes.set_title(task_display_name(task))
        for field, colour, line in (("score", _SCORE, "-"), ("exact", _EXACT, _LINES[1])):
            values = 100 * _window_means(_task_column(validations, task, field))
            _curve(axes, validations, values, colour, line)
        if chance.get(task):
            axes.axhline(100 * chance[task], color=_GREY, linewidth=0.8, linestyle=(0, (2, 2)))
        axes.set_ylim(0, 100)
        axes.set_yticks(range(0, 101, 25))
        axes.grid(True)
        _step_axis(axes, validations)
    _label_axes(figure, _step_name(validations), "percent of the validation split")
    handles = [_line("score", _SCORE, "-"), _line("exact match", _EXACT, _LINES[1])]
    if any(chance.get(task) for task in tasks):
        handles.append(_line("chance", _GREY, (0, (2, 2))))
    _legend(figure, handles)
    return figure


def plot_curricula(validations: Sequence[LogEntry]) -> Figure | None:
    """Plot each curriculum's frontier over the scores by level (paper, "Failure mode analysis").

    A level without items in a validation keeps its last score. Returns None without a curriculum.
    """
    tasks = [task for task in _tasks(validations) if "frontier" in validations[-1]["tasks"][task]]
    if not tasks:
        return None
    figure, panels = _panels(len(tasks), 2.0)
    colours = ScalarMappable(_PERCENT, _COLOURS)
    for axes, task in zip(panels, tasks, strict=True):
        levels = validations[-1]["tasks"][task]["levels"]
        axes.set_facecolor("#f2f2f2")
        with_levels = [entry for entry in validations if "level_score" in entry["tasks"][task]]
        if with_levels:
            _draw_level_scores(axes, with_levels, task)
        frontier = _task_column(validations, task, "frontier")
        axes.step(_steps(validations), frontier, color="white", linewidth=2.6, where="post")
        axes.step(_steps(validations), frontier, color=_EXACT, linewidth=1.3, where="post")
        axes.set_title(task_display_name(task))
        axes.set_ylim(-0.5, levels - 0.5)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        _step_axis(axes, validations)
    _label_axes(figure, "step", "difficulty level")
    bar = figure.colorbar(colours, ax=panels, aspect=30, pad=0.02)
    bar.set_label("score in percent")
    bar.outline.set_linewidth(0.6)
    _legend(figure, [_line("frontier", _EXACT, "-"), Patch(color="#f2f2f2", label="not measured")])
    return figure


def plot_shares(validations: Sequence[LogEntry]) -> Figure | None:
    """Plot the share of every task in the batches after each validation; None for a single task."""
    tasks = _tasks(validations)
    if len(tasks) == 1:
        return None
    figure, (axes,) = _panels(1, 2.6, wide=True)
    x = _window_means(_steps(validations))
    handles, base = [], np.zeros(len(x))
    for task in tasks:
        colour, _, hatch = _task_style(task)
        style: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "hatch": hatch}
        top = base + 100 * _window_means(_field_column(validations, "ratio", task))
        axes.fill_between(x, base, top, linewidth=0.4, **style)
        handles.append(Patch(label=task_display_name(task), linewidth=0, **style))
        base = top
    axes.set_ylim(0, 100)
    _step_axis(axes, validations)
    _label_axes(figure, _step_name(validations), "percent of a batch")
    _legend(figure, handles)
    return figure


def _curve(
    axes: Axes, validations: Sequence[LogEntry], values: FloatArray, colour: str, line: Any
) -> None:
    # A single point needs a marker to be visible.
    marker = "o" if len(values) == 1 else ""
    x = _window_means(_steps(validations))
    axes.plot(x, values, color=colour, linestyle=line, marker=marker, markersize=3, clip_on=False)


def _draw_level_scores(axes: Axes, validations: Sequence[LogEntry], task: str) -> None:
    """Draw a column of level scores for each validation, from the previous one's step on."""
    table = np.array([entry["tasks"][task]["level_score"] for entry in validations], np.float64)
    for row in range(1, len(table)):
        missing = np.isnan(table[row])
        table[row, missing] = table[row - 1, missing]
    edges = np.append(0.0, _steps(validations))
    levels = np.arange(table.shape[1] + 1) - 0.5
    axes.pcolormesh(
        edges,
        levels,
        100 * np.ma.masked_invalid(table.T),
        norm=_PERCENT,
        cmap=_COLOURS,
        rasterized=True,
    )


def _tasks(validations: Sequence[LogEntry]) -> list[str]:
    return list(validations[-1]["tasks"])


def _steps(validations: Sequence[LogEntry]) -> FloatArray:
    return np.array([entry["step"] for entry in validations], np.float64)


def _field_column(validations: Sequence[LogEntry], field: str, task: str) -> FloatArray:
    """Return a field of every entry for a task; NaN if unknown."""
    return np.array([entry[field][task] for entry in validations], np.float64)


def _task_column(validations: Sequence[LogEntry], task: str, field: str) -> FloatArray:
    """Return a metric of every validation for a task; NaN if unknown."""
    return np.array([entry["tasks"][task][field] for entry in validations], np.float64)


def _window_means(values: FloatArray) -> FloatArray:
    """Return means over windows of validations, at most _MAX_POINTS of them, ignoring NaN."""
    starts = np.arange(0, len(values), _window_size(len(values)))
    known = ~np.isnan(values)
    total = np.add.reduceat(np.where(known, values, 0.0), starts)
    count = np.add.reduceat(known.astype(np.float64), starts)
    means: FloatArray = np.divide(total, count, out=np.full(len(starts), np.nan), where=count > 0)
    return means


def _window_size(count: int) -> int:
    return -(-count // _MAX_POINTS)


def _step_name(validations: Sequence[LogEntry]) -> str:
    size = _window_size(len(validations))
    return "step" if size == 1 else f"step (each point: mean of {size} validations)"


def _task_style(task: str) -> tuple[str, Any, str]:
    """Return colour, line style and hatch of a task, the same in all figures."""
    cycle, colour = divmod([*PAPER_TASKS, TEXT].index(task), len(PALETTE))
    return PALETTE[colour], _LINES[cycle], _HATCHES[cycle]


def _panels(count: int, height: float, wide: bool = False) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels in rows; it is narrower if it has less than a full row."""
    rows, columns = math.ceil(count / _PANELS_PER_ROW), min(count, _PANELS_PER_ROW)
    width = _WIDTH if wide else max(_WIDTH * columns / _PANELS_PER_ROW, 3.4)
    figure = Figure(figsize=(width, height * rows + 0.5), layout="constrained")
    return figure, [figure.add_subplot(rows, columns, index + 1) for index in range(count)]


def _label_axes(figure: Figure, x: str, y: str) -> None:
    figure.supxlabel(x)
    figure.supylabel(y)


def _step_axis(axes: Axes, validations: Sequence[LogEntry]) -> None:
    axes.set_xlim(0, validations[-1]["step"])
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))


def _line(name: str, colour: str, line: Any) -> Line2D:
    return Line2D([], [], color=colour, linestyle=line, label=name)


def _legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Add a legend above all panels, in rows of equal length."""
    columns = math.ceil(len(handles) / math.ceil(len(handles) / 6))
    figure.legend(handles=list(handles), loc="outside upper center", ncols=columns)
