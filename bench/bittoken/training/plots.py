"""Figures of a training from its metrics log: losses, scores, curricula, task shares."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from pathlib import Path

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import FuncFormatter, LogLocator, MaxNLocator, NullLocator

from bittoken.encodings.base import FloatArray
from bittoken.training.metrics_log import LogEntry, read_log, validation_entries
from bittoken.training.recipe import TEXT, task_display_name
from numbench.jsonl import write_atomically
from numbench.plot_style import (
    FULL_WIDTH,
    GREY,
    LINE_PATTERNS,
    PALETTE,
    LinePattern,
    plot_style,
    render_figure,
)
from numbench.progress_display import short_count
from numbench.tasks import PAPER_TASKS

FIGURES = "figures"
_PANELS_PER_ROW = 3
_NOT_MEASURED = "#f2f2f2"


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
    figure = _plot_by_task(validations, "loss", "loss per predicted token")
    figure.axes[0].set_yscale("log")
    axis = figure.axes[0].yaxis
    axis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axis.set_minor_locator(NullLocator())
    return figure


def plot_shares(validations: Sequence[LogEntry]) -> Figure | None:
    """Plot the share of every task in the batches after each validation; None for a single task."""
    if len(_tasks(validations)) == 1:
        return None
    figure = _plot_by_task(validations, "ratio", "percent of a batch", scale=100)
    figure.axes[0].set_ylim(bottom=0)
    return figure


def _plot_by_task(
    validations: Sequence[LogEntry], field: str, label: str, scale: float = 1
) -> Figure:
    """Plot a field of the log entries with one curve per task."""
    figure, (axes,) = _panels(1, (FULL_WIDTH, 2.9))
    for task in _tasks(validations):
        values = np.array([entry[field][task] for entry in validations], np.float64)
        colour, line = _task_style(task)
        _curve(axes, validations, scale * values, colour, line, task_display_name(task))
    axes.set_xlabel("step")
    axes.set_ylabel(label)
    figure.legend(loc="outside right upper")
    return figure


def plot_scores(validations: Sequence[LogEntry], chance: dict[str, float]) -> Figure:
    """Plot score and exact match of every task on its full distribution, with the chance level."""
    tasks = _tasks(validations)
    figure, panels = _panels(len(tasks))
    for axes, task in zip(panels, tasks, strict=True):
        axes.set_title(task_display_name(task))
        _curve(
            axes, validations, 100 * _metric(validations, task, "score"), PALETTE[0], "-", "score"
        )
        exact = 100 * _metric(validations, task, "exact")
        _curve(axes, validations, exact, PALETTE[1], LINE_PATTERNS[1], "exact match")
        if chance.get(task):
            level = 100 * chance[task]
            axes.axhline(level, color=GREY, linestyle=LINE_PATTERNS[2], label="chance")
        axes.set_ylim(0, 100)
    figure.supxlabel("step")
    figure.supylabel("percent of the validation split")
    # The chance level is not in every panel.
    handles = {
        label: handle
        for axes in panels
        for handle, label in zip(*axes.get_legend_handles_labels(), strict=True)
    }
    figure.legend(handles.values(), handles, loc="outside upper center", ncols=3)
    return figure


def plot_curricula(validations: Sequence[LogEntry]) -> Figure | None:
    """Plot each curriculum's frontier over the scores by level (paper, "Failure mode analysis").

    A level without items in a validation keeps its last score. Returns None without a curriculum.
    """
    tasks = [task for task in _tasks(validations) if "frontier" in validations[-1]["tasks"][task]]
    if not tasks:
        return None
    figure, panels = _panels(len(tasks))
    for axes, task in zip(panels, tasks, strict=True):
        axes.set_title(task_display_name(task))
        axes.set_facecolor(_NOT_MEASURED)
        with_levels = [entry for entry in validations if "level_score" in entry["tasks"][task]]
        if with_levels:
            _draw_level_scores(axes, with_levels, task)
        frontier = _metric(validations, task, "frontier")
        for colour, width in (("white", 2.6), (PALETTE[1], 1.3)):
            axes.step(_steps(validations), frontier, color=colour, linewidth=width, where="post")
        axes.set_ylim(-0.5, validations[-1]["tasks"][task]["levels"] - 0.5)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        _step_axis(axes, validations)
    figure.supxlabel("step")
    figure.supylabel("difficulty level (line: hardest unlocked)")
    meshes = [mesh for axes in panels for mesh in axes.collections]
    if meshes:
        label = "score in percent (grey: not measured)"
        figure.colorbar(meshes[0], ax=panels, aspect=30, pad=0.02, label=label)
    return figure


def _draw_level_scores(axes: Axes, validations: Sequence[LogEntry], task: str) -> None:
    """Draw a column of level scores for each validation, from the previous one's step on."""
    table = np.array([entry["tasks"][task]["level_score"] for entry in validations], np.float64)
    for row in range(1, len(table)):
        missing = np.isnan(table[row])
        table[row, missing] = table[row - 1, missing]
    edges = np.append(0.0, _steps(validations))
    levels = np.arange(table.shape[1] + 1) - 0.5
    scores = 100 * np.ma.masked_invalid(table.T)
    axes.pcolormesh(edges, levels, scores, vmin=0, vmax=100, cmap="cividis", rasterized=True)


def _curve(
    axes: Axes,
    validations: Sequence[LogEntry],
    values: FloatArray,
    colour: str,
    line: LinePattern,
    label: str,
) -> None:
    # A single point needs a marker to be visible.
    marker = "o" if len(values) == 1 else ""
    x = _steps(validations)
    axes.plot(x, values, color=colour, linestyle=line, marker=marker, markersize=3, label=label)
    axes.grid(True)
    _step_axis(axes, validations)


def _step_axis(axes: Axes, validations: Sequence[LogEntry]) -> None:
    axes.set_xlim(0, validations[-1]["step"])
    axes.xaxis.set_major_locator(MaxNLocator(4, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))


def _tasks(validations: Sequence[LogEntry]) -> list[str]:
    return list(validations[-1]["tasks"])


def _steps(validations: Sequence[LogEntry]) -> FloatArray:
    return np.array([entry["step"] for entry in validations], np.float64)


def _metric(validations: Sequence[LogEntry], task: str, name: str) -> FloatArray:
    """Return a metric of every validation for a task; NaN if unknown."""
    return np.array([entry["tasks"][task][name] for entry in validations], np.float64)


def _task_style(task: str) -> tuple[str, LinePattern]:
    """Return colour and line pattern of a task, the same in all figures."""
    index = [*PAPER_TASKS, TEXT].index(task)
    repetition, colour = divmod(index, len(PALETTE))
    return PALETTE[colour], LINE_PATTERNS[(index + repetition) % len(LINE_PATTERNS)]


def _panels(count: int, size: tuple[float, float] | None = None) -> tuple[Figure, list[Axes]]:
    """Return a figure with panels in rows; it is narrower if it has less than a full row."""
    rows, columns = math.ceil(count / _PANELS_PER_ROW), min(count, _PANELS_PER_ROW)
    width = max(FULL_WIDTH * columns / _PANELS_PER_ROW, 3.4)
    figure = Figure(figsize=size or (width, 1.9 * rows + 0.5), layout="constrained")
    return figure, [figure.add_subplot(rows, columns, index + 1) for index in range(count)]
