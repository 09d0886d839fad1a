"""Kinds of failure as stacked bars, one bar per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any, NamedTuple

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bench.report.figures import FULL_WIDTH, HATCHES, PALETTE, label
from bench.report.intervals import Interval, wilson
from bench.report.measured import Measured
from bench.report.panels import fitted, legend, whisker_handle, whiskers
from bench.scoring.run import counted_rows
from bench.scoring.taxonomy import CATEGORIES, outcomes

RIGHT = "right"
KINDS = tuple(category.display for category in CATEGORIES if category.name != RIGHT)
"""All kinds of failure in the order of charts."""

_ROW = 0.2
# The palette, then lighter tints of it, so that neighbours and their hatches differ.
_TINTS = tuple(
    "#" + "".join(f"{(int(c[i : i + 2], 16) + 255) // 2:02x}" for i in (1, 3, 5)) for c in PALETTE
)


class Failures(NamedTuple):
    """What went wrong in a run: category → percent of its counted items, above 0 only.

    bounds: of all that went wrong together, percent.
    """

    run: str
    shares: Mapping[str, float]
    bounds: Interval


def failure_kinds(runs: Sequence[Failures], categories: Sequence[str]) -> Figure:
    """How many percent of a run's items failed in which way, with 95 % bounds of their sum.

    categories: all there are, in the order in which they are stacked; their colours and hatches
    follow from that order alone. ValueError for a category that is not among them.
    """
    found = {kind for own in runs for kind in own.shares}
    if unknown := found - set(categories):
        raise ValueError(f"unknown categories: {', '.join(sorted(unknown))}")
    figure = Figure(figsize=(FULL_WIDTH, 0.6 + _ROW * len(runs)), layout="constrained")
    axes = figure.add_subplot()
    for row, own in enumerate(runs):
        left = 0.0
        for place, kind in enumerate(categories):
            if width := own.shares.get(kind, 0.0):
                axes.barh(row, width, 0.74, left=left, **_dress(place))
                left += width
        length = whiskers([left], [own.bounds.low], [own.bounds.high])
        axes.errorbar([left], [row], xerr=length, fmt="none", ecolor="black", elinewidth=0.8)
    axes.set_yticks(range(len(runs)), [fitted(label(own.run), 2.2) for own in runs])
    axes.set_ylim(len(runs) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("percent of items")
    axes.grid(True, axis="x")
    patches = [
        Patch(label=label(kind), **_dress(place))
        for place, kind in enumerate(categories)
        if kind in found
    ]
    legend(figure, [*patches, whisker_handle()])
    return figure


def failures_of(runs: Sequence[Measured]) -> list[Failures]:
    """The failures of every run with counted items, over all its tasks (exact protocol)."""
    names = {category.name: category.display for category in CATEGORIES}
    found = []
    for run in runs:
        scores = [row.score for task in run.run.rows for row in counted_rows(run.run, task)]
        if not scores:
            continue
        counts = outcomes(scores)
        wrong = len(scores) - counts.pop(RIGHT)
        shares = {names[kind]: 100 * n / len(scores) for kind, n in counts.items() if n}
        bounds = wilson(wrong, len(scores))
        found.append(Failures(run.label, shares, Interval(100 * bounds.low, 100 * bounds.high)))
    return found


def _dress(place: int) -> dict[str, Any]:
    colours = (*PALETTE, *_TINTS)
    return {
        "facecolor": colours[place % len(colours)],
        "edgecolor": "white",
        "linewidth": 0.4,
        "hatch": HATCHES[place % len(HATCHES)],
    }
