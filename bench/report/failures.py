"""Kinds of failure as stacked bars, one bar per run."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import Any

from matplotlib.figure import Figure
from matplotlib.patches import Patch

from bench.report.figures import FULL_WIDTH, HATCHES, PALETTE, label
from bench.report.panels import fitted, legend

_ROW = 0.2
# The palette, then lighter tints of it, so that neighbours and their hatches differ.
_TINTS = tuple(
    "#" + "".join(f"{(int(c[i : i + 2], 16) + 255) // 2:02x}" for i in (1, 3, 5)) for c in PALETTE
)


def failure_kinds(shares: Mapping[str, Mapping[str, float]], categories: Sequence[str]) -> Figure:
    """How many percent of a run's items failed in which way.

    shares: run label → category → percent of its counted items; what is missing is 0.
    categories: all of them, in the order in which they are stacked and named; their colours and
    hatches follow from that order alone. ValueError for a category that is not among them.
    """
    unknown = {kind for own in shares.values() for kind in own} - set(categories)
    if unknown:
        raise ValueError(f"unknown categories: {', '.join(sorted(unknown))}")
    figure = Figure(figsize=(FULL_WIDTH, 0.6 + _ROW * len(shares)), layout="constrained")
    axes = figure.add_subplot()
    for row, own in enumerate(shares.values()):
        left = 0.0
        for place, kind in enumerate(categories):
            width = own.get(kind, 0.0)
            if width > 0:
                axes.barh(row, width, 0.74, left=left, **_dress(place))
            left += width
    axes.set_yticks(range(len(shares)), [fitted(label(name), 2.2) for name in shares])
    axes.set_ylim(len(shares) - 0.5, -0.5)
    axes.set_xlim(left=0)
    axes.tick_params(axis="y", length=0)
    axes.set_xlabel("percent of items")
    axes.grid(True, axis="x")
    handles = [Patch(label=label(kind), **_dress(p)) for p, kind in enumerate(categories)]
    legend(figure, handles)
    return figure


def _dress(place: int) -> dict[str, Any]:
    colours = (*PALETTE, *_TINTS)
    return {
        "facecolor": colours[place % len(colours)],
        "edgecolor": "white",
        "linewidth": 0.4,
        "hatch": HATCHES[place % len(HATCHES)],
    }
