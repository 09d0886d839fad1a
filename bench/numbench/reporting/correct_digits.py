"""Distribution of correct leading digits: one panel per task, one row per run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Any, NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.cm import ScalarMappable
from matplotlib.colors import Normalize, PowerNorm
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from numbench.reporting.entries import MeasuredRun
from numbench.reporting.panels import (
    error_bar_lengths,
    fit_text,
    label_panel,
    legend,
    legend_label,
    panels,
)
from numbench.reporting.sampling_design import run_stratum, sample_mean, score_bounds
from numbench.scoring import ScoredItem
from numbench.scoring.scored_run import counted_rows, item_groups
from numbench.stats.intervals import Interval
from numbench.stats.rank_statistics import FloatArray
from numbench.tasks import TASKS

DIGITS = 15
_COLOURS = "Blues"
_MEAN_COLOUR = "#D55E00"
_ROW_HEIGHT = 0.15
_PANELS_PER_ROW = 4
_LABEL_WIDTH = 1.7


class DigitDistribution(NamedTuple):
    """Correct leading digits of one run on one task.

    shares: percentage of the counted items without a parsable answer, then with 0, 1 … 15
    correct digits, shape (17,). mean, bounds: over the parsed answers.
    """

    run_index: int
    label: str
    shares: FloatArray
    mean: float
    bounds: Interval


def correct_digits(tasks: dict[str, list[DigitDistribution]]) -> Figure:
    """Draw the shares as colours, and the mean over parsed answers with 95 % bounds as a dot."""
    norm = PowerNorm(0.5, 0, 100)
    labels = {run.run_index: run.label for runs in tasks.values() for run in runs}
    run_indices = sorted(labels)
    names = [fit_text(labels[index], _LABEL_WIDTH) for index in run_indices]
    height = 0.5 + _ROW_HEIGHT * len(run_indices)
    figure, all_axes = panels(len(tasks), across=_PANELS_PER_ROW, height=height)
    for index, (axes, (task, runs)) in enumerate(zip(all_axes, tasks.items(), strict=True)):
        label_panel(axes, task)
        _draw(axes, runs, run_indices, norm)
        axes.set_yticks(range(len(run_indices)), names)
        axes.tick_params(labelleft=index % _PANELS_PER_ROW == 0)
    figure.supxlabel("correct leading digits (–: no parsable answer)")
    bar = figure.colorbar(ScalarMappable(norm, _COLOURS), ax=all_axes, aspect=25, pad=0.01)
    bar.set_label("percent of items")
    bar.set_ticks([0, 5, 20, 50, 100])
    legend(figure, [Line2D([], [], label="mean with 95 % bounds", **_marker(), linewidth=1.0)])
    return figure


def digit_distributions(runs: Sequence[MeasuredRun]) -> dict[str, list[DigitDistribution]]:
    """Return task → the runs with counted digits; only tasks with a numeric answer have any."""
    distributions: dict[str, list[DigitDistribution]] = {}
    for task in TASKS:
        for index, run in enumerate(runs):
            if task not in run.scored.rows:
                continue
            digits = run_stratum(
                run.scored, task, sample_mean(lambda row: row.score.correct_digits)
            )
            if not len(digits.values):
                continue
            distribution = DigitDistribution(
                index,
                legend_label(run.label),
                _shares(item_groups(counted_rows(run.scored, task))),
                float(digits.values.mean()),
                score_bounds([digits], DIGITS),
            )
            distributions.setdefault(task, []).append(distribution)
    return distributions


def _shares(items: Sequence[Sequence[ScoredItem]]) -> FloatArray:
    """Return the shares of `DigitDistribution`; every item has the same weight."""
    digits = [(row.score.correct_digits, 1 / len(samples)) for samples in items for row in samples]
    bins = [0 if value is None else value + 1 for value, _ in digits]
    weights = [weight for _, weight in digits]
    return 100 * np.bincount(bins, weights, minlength=DIGITS + 2) / len(items)


def _draw(
    axes: Axes, runs: Sequence[DigitDistribution], run_indices: Sequence[int], norm: Normalize
) -> None:
    """Draw one row per run of the figure; the row of a run without the task remains white."""
    # A white column separates unparsable answers from the digits.
    table = np.full((len(run_indices), DIGITS + 3), np.nan)
    for run in runs:
        row = run_indices.index(run.run_index)
        table[row, 0] = run.shares[0]
        table[row, 2:] = run.shares[1:]
        length = error_bar_lengths([run.mean], [run.bounds.low], [run.bounds.high])
        axes.errorbar([run.mean], [row], xerr=length, **_marker(), elinewidth=1.0)
    axes.pcolormesh(
        np.arange(-2.5, DIGITS + 1),
        np.arange(len(run_indices) + 1) - 0.5,
        np.ma.masked_invalid(table),
        cmap=_COLOURS,
        norm=norm,
    )
    for row in range(1, len(run_indices)):
        axes.axhline(row - 0.5, color="white", linewidth=1.5)
    axes.set_xticks([-2, 0, 5, 10, 15], ["–", "0", "5", "10", "15"])
    axes.set_ylim(len(run_indices) - 0.5, -0.5)
    axes.tick_params(left=False)
    for spine in axes.spines.values():
        spine.set_visible(False)


def _marker() -> dict[str, Any]:
    return {
        "color": _MEAN_COLOUR,
        "marker": "o",
        "markersize": 3.4,
        "markeredgecolor": "white",
        "markeredgewidth": 0.5,
    }
