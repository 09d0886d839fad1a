"""Correct leading digits as a distribution: one strip per run, one panel per task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.report.figures import label
from bench.report.intervals import Interval, bootstrap_means
from bench.report.measured import Measured
from bench.report.panels import fitted, legend, name_panel, panels, whiskers
from bench.report.ranks import Floats
from bench.scoring.run import counted_rows
from bench.tasks import TASKS

DIGITS = 15
_COLOURS = "Blues"
_MARK = "#D55E00"
_ROW = 0.15
_ACROSS = 4
_LABEL = 1.7


class Strip(NamedTuple):
    """One run on one task.

    place, run: which of the runs, and its label. shares: percent of the counted items without
    an answer that could be read, then with 0, 1 … 15 correct digits, shape (17,). mean, bounds:
    of the digits of the answers that were read.
    """

    place: int
    run: str
    shares: Floats
    mean: float
    bounds: Interval


def correct_digits(tasks: dict[str, list[Strip]]) -> Figure:
    """Colour is the share of items; the dot is the mean over answers with 95 % bounds."""
    norm = PowerNorm(0.5, 0, 100)
    found = {strip.place: strip.run for strips in tasks.values() for strip in strips}
    places = sorted(found)
    names = [fitted(found[run], _LABEL) for run in places]
    drawn = panels(len(tasks), across=_ACROSS, height=0.5 + _ROW * len(places))
    for place, (axes, (task, strips)) in enumerate(zip(drawn.axes, tasks.items(), strict=True)):
        name_panel(axes, task)
        _draw(axes, strips, places, norm)
        axes.set_yticks(range(len(places)), names)
        axes.tick_params(labelleft=place % _ACROSS == 0)
    drawn.figure.supxlabel("correct leading digits (–: no answer that could be read)")
    bar = drawn.figure.colorbar(ScalarMappable(norm, _COLOURS), ax=drawn.axes, aspect=25, pad=0.01)
    bar.set_label("percent of items")
    bar.set_ticks([0, 5, 20, 50, 100])
    mark = Line2D([], [], label="mean with 95 % bounds", **_marker(), linewidth=1.0)
    legend(drawn.figure, [mark])
    return drawn.figure


def strips_of(runs: Sequence[Measured]) -> dict[str, list[Strip]]:
    """Task → the runs that answer it with a number whose digits were counted."""
    counted = {
        (task, place): [row.score.correct_digits for row in counted_rows(run.run, task)]
        for task in TASKS
        for place, run in enumerate(runs)
        if task in run.run.rows
    }
    known = {
        where: np.array(values)
        for where, digits in counted.items()
        if (values := [float(d) for d in digits if d is not None])
    }
    found: dict[str, list[Strip]] = {}
    bounds = bootstrap_means(list(known.values()))
    for ((task, place), column), own in zip(known.items(), bounds, strict=True):
        bars = [0 if d is None else d + 1 for d in counted[task, place]]
        shares = 100 * np.bincount(bars, minlength=DIGITS + 2) / len(bars)
        strip = Strip(place, label(runs[place].label), shares, float(column.mean()), own)
        found.setdefault(task, []).append(strip)
    return found


def _draw(axes: Axes, strips: Sequence[Strip], places: Sequence[int], norm: Normalize) -> None:
    """One row per run of the figure; the row of a run without the task stays white."""
    # A white column stands between what could not be read and the digits.
    table = np.full((len(places), DIGITS + 3), np.nan)
    for strip in strips:
        row = places.index(strip.place)
        table[row, 0] = strip.shares[0]
        table[row, 2:] = strip.shares[1:]
        length = whiskers([strip.mean], [strip.bounds.low], [strip.bounds.high])
        axes.errorbar([strip.mean], [row], xerr=length, **_marker(), elinewidth=1.0)
    axes.pcolormesh(
        np.arange(-2.5, DIGITS + 1),
        np.arange(len(places) + 1) - 0.5,
        np.ma.masked_invalid(table),
        cmap=_COLOURS,
        norm=norm,
    )
    for row in range(1, len(places)):
        axes.axhline(row - 0.5, color="white", linewidth=1.5)
    axes.set_xticks([-2, 0, 5, 10, 15], ["–", "0", "5", "10", "15"])
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.tick_params(left=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _marker() -> dict[str, Any]:
    return {
        "color": _MARK,
        "marker": "o",
        "markersize": 3.4,
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }
