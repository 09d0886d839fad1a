"""The figures of a training, from its metrics log alone: losses, scores, curricula, task shares."""

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
from numpy.typing import NDArray

from bench.bittoken.drawing import PALETTE, house_style, rendered
from bench.bittoken.training.log import Line, measures, read
from bench.bittoken.training.recipe import TEXT
from bench.bittoken.training.wording import display_name, short
from bench.jsonl import write_atomically
from bench.tasks import TASKS

Floats = NDArray[np.float64]

FIGURES = "figures"
_WIDTH, _PANEL, _ACROSS = 7.0, 1.75, 3
"""Inches, and panels in a row."""
_POINTS = 320
"""Most points of a curve."""

_LINES: tuple[Any, ...] = ("-", (0, (4, 1.5)))
_HATCHES = ("", "/////")
_PERCENT, _COLOURS = Normalize(0, 100), "cividis"
_SCORE, _EXACT, _GREY = PALETTE[0], PALETTE[1], "#555555"


def redraw(folder: Path) -> list[Path]:
    """Draw the training in `folder` into its `figures`: the files, none where nothing is measured.

    The same log gives the same bytes. BadInput where there is no log.
    """
    lines = read(folder)
    measured = measures(lines)
    if not measured:
        return []
    chance: dict[str, float] = lines[0].get("chance", {})
    drawings: dict[str, Callable[[], Figure | None]] = {
        "loss": lambda: losses(measured),
        "scores": lambda: scores(measured, chance),
        "curriculum": lambda: curricula(measured),
        "shares": lambda: shares(measured),
    }
    written = []
    with house_style():
        for name, draw in drawings.items():
            figure = draw()
            for form, data in rendered(figure).items() if figure else ():
                path = folder / FIGURES / f"{name}.{form}"
                write_atomically(path, data)
                written.append(path)
    return written


def losses(measured: Sequence[Line]) -> Figure:
    """Mean training loss of every task between two validations, before it is scaled."""
    tasks = _tasks(measured)
    figure, (axes,) = _panels(1, 2.9, wide=True)
    for task in tasks:
        colour, line, _ = _look(task)
        values = _means(_column(measured, "loss", task))
        _curve(axes, measured, values, colour, line)
    axes.set_yscale("log")
    axes.yaxis.set_major_locator(LogLocator(subs=(1, 2, 5)))
    axes.yaxis.set_minor_locator(NullLocator())
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: f"{value:g}"))
    axes.grid(True)
    _step_axis(axes, measured)
    _name(figure, _step_name(measured), "loss per predicted token")
    _legend(figure, [_line(display_name(task), *_look(task)[:2]) for task in tasks])
    return figure


def scores(measured: Sequence[Line], chance: dict[str, float]) -> Figure:
    """Score and exact match of every task on its full distribution, beside what guessing gives."""
    tasks = _tasks(measured)
    figure, panels = _panels(len(tasks), _PANEL)
    for axes, task in zip(panels, tasks, strict=True):
        axes.set_title(display_name(task))
        for field, colour, line in (("score", _SCORE, "-"), ("exact", _EXACT, _LINES[1])):
            values = 100 * _means(_found(measured, task, field))
            _curve(axes, measured, values, colour, line)
        if chance.get(task):
            axes.axhline(100 * chance[task], color=_GREY, linewidth=0.8, linestyle=(0, (2, 2)))
        axes.set_ylim(0, 100)
        axes.set_yticks(range(0, 101, 25))
        axes.grid(True)
        _step_axis(axes, measured)
    _name(figure, _step_name(measured), "percent of the validation split")
    handles = [_line("score", _SCORE, "-"), _line("exact match", _EXACT, _LINES[1])]
    if any(chance.get(task) for task in tasks):
        handles.append(_line("guessing", _GREY, (0, (2, 2))))
    _legend(figure, handles)
    return figure


def curricula(measured: Sequence[Line]) -> Figure | None:
    """Each curriculum's frontier, on the scores of its levels (paper, "Failure mode analysis").

    A level keeps its last score where a validation had no item of it. None without a curriculum.
    """
    tasks = [task for task in _tasks(measured) if "frontier" in measured[-1]["tasks"][task]]
    if not tasks:
        return None
    figure, panels = _panels(len(tasks), 2.0)
    colours = ScalarMappable(_PERCENT, _COLOURS)
    for axes, task in zip(panels, tasks, strict=True):
        levels = measured[-1]["tasks"][task]["levels"]
        axes.set_facecolor("#f2f2f2")
        told = [line for line in measured if "level_score" in line["tasks"][task]]
        if told:
            _heat(axes, told, task)
        frontier = _found(measured, task, "frontier")
        axes.step(_steps(measured), frontier, color="white", linewidth=2.6, where="post")
        axes.step(_steps(measured), frontier, color=_EXACT, linewidth=1.3, where="post")
        axes.set_title(display_name(task))
        axes.set_ylim(-0.5, levels - 0.5)
        axes.yaxis.set_major_locator(MaxNLocator(5, integer=True))
        _step_axis(axes, measured)
    _name(figure, "step", "level of difficulty")
    bar = figure.colorbar(colours, ax=panels, aspect=30, pad=0.02)
    bar.set_label("score in percent")
    bar.outline.set_linewidth(0.6)
    _legend(figure, [_line("frontier", _EXACT, "-"), Patch(color="#f2f2f2", label="not measured")])
    return figure


def shares(measured: Sequence[Line]) -> Figure | None:
    """The share of every task in the batches after each validation. None for one task alone."""
    tasks = _tasks(measured)
    if len(tasks) == 1:
        return None
    figure, (axes,) = _panels(1, 2.6, wide=True)
    x = _means(_steps(measured))
    handles, base = [], np.zeros(len(x))
    for task in tasks:
        colour, _, hatch = _look(task)
        dress: dict[str, Any] = {"facecolor": colour, "edgecolor": "white", "hatch": hatch}
        top = base + 100 * _means(_column(measured, "ratio", task))
        axes.fill_between(x, base, top, linewidth=0.4, **dress)
        handles.append(Patch(label=display_name(task), linewidth=0, **dress))
        base = top
    axes.set_ylim(0, 100)
    _step_axis(axes, measured)
    _name(figure, _step_name(measured), "percent of a batch")
    _legend(figure, handles)
    return figure


def _curve(axes: Axes, measured: Sequence[Line], values: Floats, colour: str, line: Any) -> None:
    # One point alone makes no line.
    marker = "o" if len(values) == 1 else ""
    x = _means(_steps(measured))
    axes.plot(x, values, color=colour, linestyle=line, marker=marker, markersize=3, clip_on=False)


def _heat(axes: Axes, told: Sequence[Line], task: str) -> None:
    """A column for each validation that tells its levels, back to the one before."""
    table = np.array([line["tasks"][task]["level_score"] for line in told], np.float64)
    for row in range(1, len(table)):
        missing = np.isnan(table[row])
        table[row, missing] = table[row - 1, missing]
    edges = np.append(0.0, _steps(told))
    levels = np.arange(table.shape[1] + 1) - 0.5
    axes.pcolormesh(
        edges,
        levels,
        100 * np.ma.masked_invalid(table.T),
        norm=_PERCENT,
        cmap=_COLOURS,
        rasterized=True,
    )


def _tasks(measured: Sequence[Line]) -> list[str]:
    return list(measured[-1]["tasks"])


def _steps(measured: Sequence[Line]) -> Floats:
    return np.array([line["step"] for line in measured], np.float64)


def _column(measured: Sequence[Line], field: str, task: str) -> Floats:
    """A figure of a task in every line; NaN where it is unknown."""
    return np.array([line[field][task] for line in measured], np.float64)


def _found(measured: Sequence[Line], task: str, field: str) -> Floats:
    """What every validation found of a task; NaN where it is unknown."""
    return np.array([line["tasks"][task][field] for line in measured], np.float64)


def _means(values: Floats) -> Floats:
    """Means over equal runs of validations, so that at most _POINTS are left; NaN is left out."""
    starts = np.arange(0, len(values), _run(len(values)))
    known = ~np.isnan(values)
    total = np.add.reduceat(np.where(known, values, 0.0), starts)
    count = np.add.reduceat(known.astype(np.float64), starts)
    means: Floats = np.divide(total, count, out=np.full(len(starts), np.nan), where=count > 0)
    return means


def _run(validations: int) -> int:
    return -(-validations // _POINTS)


def _step_name(measured: Sequence[Line]) -> str:
    run = _run(len(measured))
    return "step" if run == 1 else f"step (each point: mean of {run} validations)"


def _look(task: str) -> tuple[str, Any, str]:
    """Colour, line and hatch of a task, the same in all figures and trainings."""
    place = [*TASKS, TEXT].index(task)
    second = place // len(PALETTE)
    return PALETTE[place % len(PALETTE)], _LINES[second], _HATCHES[second]


def _panels(count: int, height: float, wide: bool = False) -> tuple[Figure, list[Axes]]:
    """Panels in rows; a figure of fewer than a row holds is narrower."""
    down, across = math.ceil(count / _ACROSS), min(count, _ACROSS)
    width = _WIDTH if wide else max(_WIDTH * across / _ACROSS, 3.4)
    figure = Figure(figsize=(width, height * down + 0.5), layout="constrained")
    return figure, [figure.add_subplot(down, across, place + 1) for place in range(count)]


def _name(figure: Figure, below: str, beside: str) -> None:
    figure.supxlabel(below)
    figure.supylabel(beside)


def _step_axis(axes: Axes, measured: Sequence[Line]) -> None:
    axes.set_xlim(0, measured[-1]["step"])
    axes.xaxis.set_major_locator(MaxNLocator(5, integer=True))
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short(value)))


def _line(name: str, colour: str, line: Any) -> Line2D:
    return Line2D([], [], color=colour, linestyle=line, label=name)


def _legend(figure: Figure, handles: Sequence[Artist]) -> None:
    """Above all panels, in even rows."""
    columns = math.ceil(len(handles) / math.ceil(len(handles) / 6))
    figure.legend(handles=list(handles), loc="outside upper center", ncols=columns)
