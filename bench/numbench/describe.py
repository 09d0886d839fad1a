"""Figures of a dataset: heat maps of magnitudes, histograms of digits and difficulty."""

from __future__ import annotations

import math
import re
from collections.abc import Iterator, Mapping, Sequence, Sized
from pathlib import Path
from typing import Any

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.ticker import MaxNLocator

from numbench import jsonl
from numbench.dataset.store import open_dataset
from numbench.decimal_numbers import parse_decimal
from numbench.errors import BadInput, printable
from numbench.plot_style import (
    FORMATS,
    PALETTE,
    SMALL_FONT_SIZE,
    plot_style,
    render_figure,
)
from numbench.records import Item
from numbench.reporting.figures.draw import facets
from numbench.tasks import TASKS

_MAX_BARS = 40
_MAX_TITLE = 60
_PAIR = ("operand 1", "operand 2")
_LIST = ("exponent", "spread")


_Items = Mapping[str, Sequence[Item]]
_Numbers = np.ndarray[tuple[int, int], np.dtype[np.float64]]


def describe(dataset: str | Path, out: Path | None = None) -> list[Path]:
    """Draw the distributions of a dataset; return the files written to `out`.

    dataset: a folder or a name. out: default `results/describe/NAME`. Each figure is written as
    png, pdf and svg: pairs (magnitudes of two operands) and lists (magnitude and spread) if the
    dataset has tasks for them, digits, difficulty, difficulty_base2. Raises BadInput if the dataset
    cannot be read or is empty.
    """
    opened = open_dataset(dataset)
    tasks = {task: items for task, items in opened.by_task.items() if items}
    if not tasks:
        raise BadInput(f"{opened.path}: no questions, so there is nothing to draw")
    # A name may have characters that a folder cannot have.
    folder = re.sub(r"[^A-Za-z0-9._-]+", "-", opened.name).strip(".-") or "dataset"
    out = out or Path("results/describe") / folder
    written = []
    with plot_style():
        try:
            figures = list(_figures(printable(opened.name)[:_MAX_TITLE], tasks))
        except ValueError as error:
            raise BadInput(f"{opened.path}: {error}") from error
        for name, figure in figures:
            for extension, data in render_figure(figure, FORMATS).items():
                written.append(out / f"{name}.{extension}")
                jsonl.write_atomically(written[-1], data)
    return written


def _figures(name: str, tasks: _Items) -> Iterator[tuple[str, Figure]]:
    """Yield name and drawing of each figure that applies to the dataset."""
    operands = {task: _operands(task, items) for task, items in tasks.items()}
    pairs = {
        task: np.array([known[one][1] for one in _PAIR])
        for task, known in operands.items()
        if set(_PAIR) <= known.keys()
    }
    lists = {
        task: np.array([[item.params[one] for item in items] for one in _LIST], float)
        for task, items in tasks.items()
        if all(set(_LIST) <= item.params.keys() for item in items)
    }
    if pairs:
        title = f"Magnitudes of operands, {name}"
        yield "pairs", _heat_maps(title, pairs, "⌊log₁₀|operand 1|⌋", "⌊log₁₀|operand 2|⌋")
    if lists:
        title = f"Magnitude and spread of lists, {name} (dashed: s = x)"
        figure = _heat_maps(title, lists, "magnitude x of the mean", "spread s")
        # Above the line, the numbers of a list need not share a leading digit.
        for axes in figure.axes[: len(lists)]:
            axes.axline((0, 0), slope=1, color="#555555", linewidth=0.8, linestyle=(0, (4, 3)))
        yield "lists", figure
    title = f"Significant digits of operands, {name}"
    figure, panels = _panels(title, tasks, "significant digits", "share of operands in percent")
    most = max(numbers[0].max() for known in operands.values() for numbers in known.values())
    for axes, known in zip(panels, operands.values(), strict=True):
        for index, (label, numbers) in enumerate(known.items()):
            dashes = "-" if index == 0 else (0, (4, 1.5))
            color = PALETTE[index % len(PALETTE)]
            _bars(axes, numbers[0], color=color, linewidth=1.4, linestyle=dashes, label=label)
        axes.set_xlim(-0.9, most + 0.9)
        # Space for the legend above the outlines.
        axes.set_ylim(0, 1.35 * axes.dataLim.y1)
        axes.legend(loc="upper left", fontsize=SMALL_FONT_SIZE, handlelength=1.6, borderaxespad=0.2)
    yield "digits", figure
    for base, suffix in ((10, ""), (2, "_base2")):
        caption = f"δ in base {base} (vertical line: median)"
        title = f"Difficulty δ in base {base}, {name}"
        figure, panels = _panels(title, tasks, caption, "share of questions in percent")
        for axes, items in zip(panels, tasks.values(), strict=True):
            values = np.array([getattr(item.difficulty, f"base{base}") for item in items])
            _bars(axes, values, fill=True, color=PALETTE[0], alpha=0.75)
            axes.axvline(float(np.median(values)), color=PALETTE[1], linewidth=1.2)
        yield f"difficulty{suffix}", figure


def _operands(task: str, items: Sequence[Item]) -> dict[str, _Numbers]:
    """Return significant digits and ⌊log₁₀|n|⌋ of the operands by name, 0 and NaN for a zero.

    Operands beyond the last name belong to it. Raises ValueError for a text that is not a decimal
    number.
    """
    names = TASKS[task].operand_names
    known: dict[str, list[tuple[int, float]]] = {}
    for item in items:
        for index, text in enumerate(item.operands):
            significand, exponent = parse_decimal(text)
            digits = str(abs(significand))
            magnitude = len(digits) - 1 + exponent if significand else math.nan
            name = names[min(index, len(names) - 1)]
            known.setdefault(name, []).append((len(digits.strip("0")), magnitude))
    return {name: np.array(numbers, float).T for name, numbers in known.items()}


def _panels(
    title: str, tasks: Mapping[str, Sized], horizontal: str, vertical: str
) -> tuple[Figure, list[Axes]]:
    """Return a figure and one panel per task."""
    figure = facets(len(tasks), height=1.9)
    panels = list(figure.axes)
    for axes, (task, items) in zip(panels, tasks.items(), strict=True):
        axes.set_title(f"{TASKS[task].display} (n = {len(items):,})")
        for axis in (axes.xaxis, axes.yaxis):
            axis.set_major_locator(MaxNLocator(5, integer=True, min_n_ticks=1))
    figure.suptitle(title)
    figure.supxlabel(horizontal)
    figure.supylabel(vertical)
    return figure, panels


def _heat_maps(
    title: str, points: Mapping[str, _Numbers], horizontal: str, vertical: str
) -> Figure:
    """Draw the number of items at each pair of integers, with shared limits and colors."""
    valid = {task: xy[:, ~np.isnan(xy).any(axis=0)] for task, xy in points.items()}
    counted = {task: xy.T for task, xy in valid.items()}
    figure, panels = _panels(title, counted, horizontal, vertical)
    every = np.concatenate([np.zeros((2, 1)), *valid.values()], axis=1)
    edges = [np.arange(xy.min() - 0.5, xy.max() + 1) for xy in every]
    counts = {task: np.histogram2d(xy[0], xy[1], bins=edges)[0] for task, xy in valid.items()}
    most = max(2, *(grid.max() for grid in counts.values()))
    for axes, (task, grid) in zip(panels, counts.items(), strict=True):
        shown = np.ma.masked_equal(grid.T, 0)
        image = axes.pcolormesh(*edges, shown, cmap="viridis_r", vmin=1, vmax=most)
        if omitted := points[task].shape[1] - valid[task].shape[1]:
            axes.set_title(f"{axes.get_title()[:-1]}, {omitted} with a zero omitted)")
    bar = figure.colorbar(image, ax=panels, aspect=25, pad=0.02, label="questions per cell")
    bar.locator = MaxNLocator(8, integer=True, min_n_ticks=1)
    bar.update_ticks()
    return figure


def _bars(axes: Axes, values: np.ndarray[Any, Any], **style: Any) -> None:
    """Draw shares in percent, in at most 40 bars of equal integer width."""
    low, high = int(values.min()), int(values.max())
    width = -(-(high - low + 1) // _MAX_BARS)
    edges = np.arange(low, high + width + 1, width) - 0.5
    shares = 100 * np.histogram(values, edges)[0] / len(values)
    axes.stairs(shares, edges, **style)
    axes.set_ylim(bottom=0)
    axes.grid(True, axis="y")
