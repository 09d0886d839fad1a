"""Correct leading digits as a distribution: one strip per run, one panel per task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.report.figures import label
from bench.report.intervals import Interval, bootstrap_means
from bench.report.measured import Measured, counted_rows
from bench.report.panels import legend_below, name_panel, panels, whiskers
from bench.report.ranks import Floats
from bench.tasks import TASKS

DIGITS = 15
_COLOURS = "cividis_r"
_MARK = "#D55E00"
_ROW = 0.15


class Strip(NamedTuple):
    """One run on one task.

    place, run: which of the runs, and its label. shares: percent of the counted items with no answer, then with 0, 1 … 15 correct digits,
    shape (17,). mean, bounds: of the digits of the answers that were read, None without any.
    """

    place: int
    run: str
    shares: Floats
    mean: float | None
    bounds: Interval | None


def correct_digits(tasks: dict[str, list[Strip]]) -> Figure:
    """Colour is the share of items; the dot is the mean over answers with 95 % bounds."""
    norm = PowerNorm(0.5, 0, 100)
    found = {strip.place: strip.run for strips in tasks.values() for strip in strips}
    places = sorted(found)
    drawn = panels(len(tasks), height=0.5 + _ROW * len(places))
    for place, (axes, (task, strips)) in enumerate(zip(drawn.axes, tasks.items(), strict=True)):
        name_panel(axes, task)
        _draw(axes, strips, places, norm)
        axes.set_yticks(range(len(places)), [found[run] for run in places])
        axes.tick_params(labelleft=place % 3 == 0)
    drawn.figure.supxlabel("correct leading digits (–: no answer that could be read)")
    bar = drawn.figure.colorbar(ScalarMappable(norm, _COLOURS), ax=drawn.axes, aspect=25, pad=0.01)
    bar.set_label("percent of items")
    bar.set_ticks([0, 5, 20, 50, 100])
    mark = Line2D([], [], label="mean with 95 % bounds", **_marker(), linewidth=1.0)
    legend_below(drawn.figure, [mark])
    return drawn.figure


def strips_of(runs: Sequence[Measured]) -> dict[str, list[Strip]]:
    """Task → the runs that answer it with a number whose digits were counted."""
    found: dict[str, list[Strip]] = {}
    columns: list[Floats] = []
    for task in TASKS:
        for place, run in enumerate(runs):
            rows = counted_rows(run.run, task) if task in run.run.rows else []
            digits = [row.score.correct_digits for row in rows]
            known = np.array([float(d) for d in digits if d is not None])
            if not known.size:
                continue
            bars = np.array([0 if d is None else d + 1 for d in digits])
            shares = 100 * np.bincount(bars, minlength=DIGITS + 2) / len(digits)
            strip = Strip(place, label(run.label), shares, float(known.mean()), None)
            found.setdefault(task, []).append(strip)
            columns.append(known)
    bounds = iter(bootstrap_means(columns))
    return {
        task: [strip._replace(bounds=next(bounds)) for strip in strips]
        for task, strips in found.items()
    }


def _draw(axes: Axes, strips: Sequence[Strip], places: Sequence[int], norm: Normalize) -> None:
    """One row per run of the figure; the row of a run without the task stays white."""
    table = np.full((len(places), DIGITS + 2), np.nan)
    for strip in strips:
        table[places.index(strip.place)] = strip.shares
    axes.pcolormesh(
        np.arange(-1.5, DIGITS + 1),
        np.arange(len(places) + 1) - 0.5,
        table,
        cmap=_COLOURS,
        norm=norm,
    )
    axes.axvline(-0.5, color="white", linewidth=1.5)
    for row in range(1, len(places)):
        axes.axhline(row - 0.5, color="white", linewidth=1.0)
    for strip in strips:
        if strip.mean is None or strip.bounds is None:
            continue
        axes.errorbar(
            [strip.mean],
            [places.index(strip.place)],
            xerr=[[length[0]] for length in whiskers([strip.mean], *([b] for b in strip.bounds))],
            **_marker(),
            elinewidth=1.0,
        )
    axes.set_xticks([-1, 0, 5, 10, 15], ["–", "0", "5", "10", "15"])
    axes.set_ylim(len(places) - 0.5, -0.5)
    axes.tick_params(left=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _marker() -> dict[str, object]:
    return {
        "color": _MARK,
        "marker": "o",
        "markersize": 3.4,
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }
