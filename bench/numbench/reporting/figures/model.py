"""The declaration of a figure, and how its files are split by dataset or number of runs."""

from __future__ import annotations

import re
from collections import Counter
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure

from numbench.plot_style import LINE_PATTERNS, MARKERS, PALETTE
from numbench.reporting.data import DatasetGroup, ReportData
from numbench.reporting.declarations import Declaration, declarations
from numbench.reporting.horizon_runs import HorizonRun
from numbench.reporting.values import Configuration

MAX_RUNS_PER_FIGURE = 8
"""More lines in one panel are hard to distinguish; further runs get a further figure."""

_TINTS = (0.0, 0.3, 0.5, 0.62)
"""The proportion of white in the colors of a model's runs."""

Drawn = Figure | Sequence[Figure] | str
"""A figure, several, or the reason why there is none."""


@dataclass(frozen=True)
class FigureSpec:
    """The declaration of a figure.

    name: stem of its file, or with a number of several (`NAME_1`, `NAME_2` …).
    """

    name: str
    draw: Callable[[ReportData], Drawn]

    @property
    def declaration(self) -> Declaration:
        """The caption, and the kind of runs that the figure is about."""
        return declarations().figures[self.name]

    def stems(self, count: int) -> list[str]:
        """Return the stems of so many files, with a number if there are several."""
        numbers = range(1, count + 1)
        return [f"{self.name}_{number}" for number in numbers] if count > 1 else [self.name]

    def owns(self, stem: str) -> bool:
        """Return whether a file with this stem is one of the figure's."""
        return re.fullmatch(rf"{re.escape(self.name)}(_\d+)?", stem) is not None


def by_dataset(data: ReportData, draw: Callable[[DatasetGroup, str], Figure | str]) -> Drawn:
    """Draw a figure per dataset; with several datasets, each has its name as the title."""
    is_single = len(data.datasets) == 1
    results = [draw(group, "" if is_single else group.heading) for group in data.datasets]
    return [result for result in results if isinstance(result, Figure)] or str(results[0])


def by_runs(indices: Sequence[int], draw: Callable[[Sequence[int]], Figure]) -> Drawn:
    """Draw one figure for up to eight runs, or several with about equally many runs."""
    count = -(-len(indices) // MAX_RUNS_PER_FIGURE)
    size = -(-len(indices) // count)
    return [draw(indices[start : start + size]) for start in range(0, len(indices), size)]


def run_label(data: ReportData, run: Configuration) -> str:
    """Return the label of a run, with its dataset if there are several."""
    return f"{run.label}, {run.dataset}" if len(data.datasets) > 1 else run.label


def run_styles(
    data: ReportData, runs: Sequence[Configuration] | Sequence[HorizonRun]
) -> list[dict[str, Any]]:
    """Return how each run is drawn, as arguments of matplotlib.

    It has the color and marker of its model, with a tint and line of its own, by which it is known
    in greyscale.
    """
    every = [one.model for one in data.configurations] + [one.model for one in data.horizons]
    models = list(dict.fromkeys(every))
    count: Counter[str] = Counter()
    styles = []
    for run in runs:
        index, level = models.index(run.model), count[run.model] % len(LINE_PATTERNS)
        pure = to_rgb(PALETTE[index % len(PALETTE)])
        red, green, blue = (part + (1 - part) * _TINTS[level] for part in pure)
        color = to_hex((red, green, blue))
        marker, line = MARKERS[index % len(MARKERS)], LINE_PATTERNS[level]
        styles.append({"color": color, "marker": marker, "linestyle": line})
        count[run.model] += 1
    return styles
