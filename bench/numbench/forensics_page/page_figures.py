"""The figure of the page: matches against chance, per computation and run."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from numbench.forensics.alternatives import FLOAT64, LABEL
from numbench.forensics.findings import DISPLAY
from numbench.forensics_page.analysis import AnalyzedRun
from numbench.plot_style import GREY, HALF_WIDTH, plot_style, render_figure, run_style
from numbench.reporting.panels import legend, legend_label

FORMATS = ("png", "svg")
NAME = "matches"

_ALWAYS_SHOWN = (LABEL, FLOAT64)
"""Computations that the page asks about: they have a row even if nothing is above chance."""

# In units of a run's line.
_TITLE_LINES = 1.6
_LINE_HEIGHT = 0.105
_LARGEST_TICKS = (0, 1, 3, 10, 30, 100, 300, 1_000, 3_000, 10_000)


class MatchCount(NamedTuple):
    """The wrong answers of a run that equal a computation, over all tasks.

    is_significant: whether there are more than by chance in any task.
    """

    matches: int
    expected: float
    is_significant: bool


def draw(analyzed: Sequence[AnalyzedRun]) -> dict[str, bytes]:
    """Return format → bytes of the figure; empty if no run has wrong answers."""
    if not any(run.findings.wrong for run in analyzed):
        return {}
    with plot_style():
        files = render_figure(match_counts(analyzed))
    return {extension: files[extension] for extension in FORMATS}


def shown_alternatives(analyzed: Sequence[AnalyzedRun]) -> list[str]:
    """Return the computations above chance in any run, and those that always have a row."""
    found = {count.alternative for run in analyzed for count in run.findings.significant}
    known = {count.alternative for run in analyzed for count in run.findings.explanations.counts}
    shown = found | (known & set(_ALWAYS_SHOWN))
    return [name for name in DISPLAY if name in shown]


def match_count(run: AnalyzedRun, alternative: str) -> MatchCount | None:
    """Return the count of a run over all tasks; None if the computation applies to no answer."""
    counts = [c for c in run.findings.explanations.counts if c.alternative == alternative]
    if not counts:
        return None
    return MatchCount(
        sum(count.matches for count in counts),
        sum(count.expected for count in counts),
        any(count.is_significant for count in counts),
    )


def match_counts(analyzed: Sequence[AnalyzedRun]) -> Figure:
    """Draw a group of lines per computation: matches as a dot, the expected number as a bar.

    Narrow enough to be read on a phone. The axis is linear up to 1 and logarithmic above.
    """
    alternatives = shown_alternatives(analyzed)
    group = _TITLE_LINES + len(analyzed)
    lines = group * max(1, len(alternatives))
    figure = Figure(figsize=(HALF_WIDTH, 0.55 + _LINE_HEIGHT * lines), layout="constrained")
    axes = figure.add_subplot()
    largest = 1.0
    for position, alternative in enumerate(alternatives):
        top = position * group
        axes.text(0, top + 0.55, DISPLAY[alternative], va="center", fontsize=7)
        for index, run in enumerate(analyzed):
            count = match_count(run, alternative)
            if count is None:
                continue
            y, style = top + _TITLE_LINES + index, run_style(index)
            fill = style.colour if count.is_significant else "white"
            axes.plot([count.expected, count.matches], [y, y], color=style.colour, linewidth=0.7)
            axes.plot([count.expected], [y], color=GREY, marker="|", markersize=5, zorder=3)
            axes.plot(
                [count.matches], [y], color=style.colour, marker=style.marker, markersize=3.6,
                markerfacecolor=fill, markeredgewidth=0.7, clip_on=False, zorder=4,
            )  # fmt: skip
            largest = max(largest, count.matches, count.expected)
    axes.set_xscale("symlog", linthresh=1, linscale=0.4)
    axes.set_xlim(0, 1.3 * largest)
    ticks = [tick for tick in _LARGEST_TICKS if tick <= 1.3 * largest]
    axes.set_xticks(ticks, [f"{tick:,}" for tick in ticks])
    axes.set_xticks([], minor=True)
    axes.set_ylim(lines + 0.2, -0.4)
    axes.set_yticks([])
    axes.spines["left"].set_visible(False)
    axes.grid(True, axis="x")
    # A shared label puts the legend above the lines.
    figure.supxlabel("wrong answers equal to the computation, over all tasks")
    legend(figure, _handles(analyzed))
    return figure


def _handles(analyzed: Sequence[AnalyzedRun]) -> list[Line2D]:
    handles = []
    for index, run in enumerate(analyzed):
        style = run_style(index)
        label = legend_label(run.name)
        handles.append(
            Line2D([], [], color=style.colour, marker=style.marker, markersize=3.6, label=label)
        )
    hollow = {"color": GREY, "marker": "o", "markersize": 3.6, "linestyle": ""}
    return [
        *handles,
        Line2D([], [], color=GREY, marker="|", markersize=5, linestyle="", label="by chance"),
        Line2D([], [], **hollow, markerfacecolor="white", label="not above chance"),  # type: ignore[arg-type]
    ]
