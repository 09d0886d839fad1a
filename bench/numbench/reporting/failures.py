"""Error kinds as stacked bars, one bar per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from numbench.plot_style import FULL_WIDTH, HATCHES, PALETTE
from numbench.reporting.entries import MeasuredRun
from numbench.reporting.panels import (
    error_bar_handle,
    error_bar_lengths,
    fit_text,
    legend,
    legend_label,
)
from numbench.reporting.sampling_design import run_stratum, sample_mean, score_bounds
from numbench.scoring.scored_run import counted_rows, item_groups
from numbench.scoring.taxonomy import CATEGORIES, categorize
from numbench.stats.intervals import Interval

_RIGHT = "right"
FAILURE_KINDS = tuple(category.display for category in CATEGORIES if category.name != _RIGHT)
"""All error kinds, in the order of the bars."""

_ROW_HEIGHT = 0.2
# The palette, then lighter tints of it, so that adjacent colours and hatches differ.
_TINTS = tuple(
    "#" + "".join(f"{(int(c[i : i + 2], 16) + 255) // 2:02x}" for i in (1, 3, 5)) for c in PALETTE
)


class FailureShares(NamedTuple):
    """Error kind → percentage of a run's counted items, without kinds that do not occur.

    bounds: 95 % bounds of the total, in percent.
    """

    label: str
    shares: Mapping[str, float]
    bounds: Interval


def failure_kinds(runs: Sequence[FailureShares], categories: Sequence[str]) -> Figure:
    """Draw the shares of error kinds per run, with 95 % bounds of their total.

    categories: all kinds, in the order of stacking, which also determines colours and hatches.
    Raises ValueError for a kind that is not among them.
    """
    kinds = {kind for run in runs for kind in run.shares}
    if unknown := kinds - set(categories):
        raise ValueError(f"unknown categories: {', '.join(sorted(unknown))}")
    figure = Figure(figsize=(FULL_WIDTH, 0.6 + _ROW_HEIGHT * len(runs)), layout="constrained")
    axes = figure.add_subplot()
    for row, run in enumerate(runs):
        left = 0.0
        for index, kind in enumerate(categories):
            if width := run.shares.get(kind, 0.0):
                axes.barh(row, width, 0.74, left=left, **_bar_style(index))
                left += width
        length = error_bar_lengths([left], [run.bounds.low], [run.bounds.high])
        axes.errorbar([left], [row], xerr=length, fmt="none", ecolor="black", elinewidth=0.8)
    axes.set_yticks(range(len(runs)), [fit_text(legend_label(run.label), 2.2) for run in runs])
    axes.set_ylim(len(runs) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("percent of items")
    axes.grid(True, axis="x")
    patches = [
        Patch(label=legend_label(kind), **_bar_style(index))
        for index, kind in enumerate(categories)
        if kind in kinds
    ]
    legend(figure, [*patches, error_bar_handle()])
    return figure


def failure_shares(runs: Sequence[MeasuredRun]) -> list[FailureShares]:
    """Return the error kinds of every run with counted items, over all its tasks.

    The scores must not be of the paper protocol.
    """
    names = {category.name: category.display for category in CATEGORIES}
    all_shares = []
    for run in runs:
        rows = [row for task in run.scored.rows for row in counted_rows(run.scored, task)]
        items = item_groups(rows)
        if not items:
            continue
        weights = dict.fromkeys(names, 0.0)
        for samples in items:
            for row in samples:
                weights[categorize(row.score)] += 1 / len(samples)
        del weights[_RIGHT]
        shares = {names[kind]: 100 * n / len(items) for kind, n in weights.items() if n}
        wrong = [
            run_stratum(
                run.scored, task, sample_mean(lambda row: 100 * (not row.score.exact_match))
            )
            for task in run.scored.rows
        ]
        # Without a counted item, a task has no mean.
        bounds = score_bounds([stratum for stratum in wrong if len(stratum.values)], pooled=True)
        all_shares.append(FailureShares(run.label, shares, bounds))
    return all_shares


def _bar_style(index: int) -> dict[str, Any]:
    colours = (*PALETTE, *_TINTS)
    return {
        "facecolor": colours[index % len(colours)],
        "edgecolor": "white",
        "linewidth": 0.4,
        "hatch": HATCHES[index % len(HATCHES)],
    }
