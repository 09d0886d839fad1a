"""Score against generated tokens: what a model's accuracy costs, one panel per task."""

from __future__ import annotations

import math
from collections.abc import Iterable, Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from bench.report.figures import MARKERS, PALETTE, label, models_of
from bench.report.layout import LOG_SMAPE, TOKENS, Entry, Estimate
from bench.tasks import TASKS

_PANELS_A_ROW = 3
_GREY = "#555555"
_EMPTY_RANGE = (1.0, 10_000.0)


def tokens_vs_score(entries: Sequence[Entry], heading: str) -> Figure:
    """Mean generated tokens (log axis) against the score with 95 % bounds.

    Measured markers are filled, published ones hollow; a thin line joins the levels of one
    model. An entry whose tokens are not known is a dotted horizontal line.
    """
    down = math.ceil(len(TASKS) / _PANELS_A_ROW)
    height = 2.6 * down
    figure = Figure(figsize=(8.6, height))
    # Margins of a fixed size in inches; the legend stands beside them, and saving crops.
    figure.subplots_adjust(
        left=0.08, right=1.0, bottom=0.6 / height, top=1.0, wspace=0.08, hspace=0.2
    )
    panels = figure.subplots(down, _PANELS_A_ROW, sharex=True, sharey=True, squeeze=False).ravel()
    for axes in panels[len(TASKS) :]:
        axes.set_visible(False)
    low, high = _range(entries)
    for axes, task in zip(panels, TASKS, strict=False):
        _prepare(axes, TASKS[task].display, low, high)
        for place, model in enumerate(models_of(entries)):
            own = [entry for entry in entries if entry.model == model]
            _draw_model(axes, task, own, *_look(place))
    figure.supxlabel("Mean generated tokens per item (log scale)", fontsize=10, x=0.54)
    figure.supylabel("Score in percent (log-sMAPE; comparisons: exact match)", fontsize=10, x=0)
    figure.legend(
        handles=_handles(entries, heading),
        loc="upper left",
        bbox_to_anchor=(1.01, 1.0),
        handlelength=1.6,
    )
    return figure


def _prepare(axes: Axes, title: str, low: float, high: float) -> None:
    axes.set_title(title, fontweight="bold", fontsize=10)
    axes.set_xscale("log")
    axes.set_xlim(low, high)
    axes.set_ylim(-4, 104)
    axes.set_yticks([0, 25, 50, 75, 100])
    axes.xaxis.set_major_locator(LogLocator(base=10, numticks=12))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: _count(value)))
    axes.grid(True)


def _draw_model(axes: Axes, task: str, entries: Sequence[Entry], colour: str, marker: str) -> None:
    for published in (True, False):
        points = []
        for entry in (entry for entry in entries if entry.published == published):
            score = entry.tables.get(LOG_SMAPE.name, {}).get(task)
            tokens = _tokens(entry, task)
            if score is None:
                continue
            if tokens is None:
                axes.axhline(score.value, color=colour, linestyle=":", linewidth=1.4)
            else:
                points.append((tokens, score))
        _draw_points(axes, sorted(points, key=lambda p: p[0].value), colour, marker, published)


def _draw_points(
    axes: Axes,
    points: Sequence[tuple[Estimate, Estimate]],
    colour: str,
    marker: str,
    published: bool,
) -> None:
    for tokens, score in points:
        if score.low is not None and score.high is not None:
            axes.vlines(
                tokens.value, score.low, score.high, colors=colour, linewidth=0.9, alpha=0.6
            )
        if tokens.low is not None and tokens.high is not None:
            axes.hlines(
                score.value, tokens.low, tokens.high, colors=colour, linewidth=0.9, alpha=0.6
            )
    axes.plot(
        [tokens.value for tokens, _ in points],
        [score.value for _, score in points],
        color=colour,
        linestyle=(0, (3, 2)) if published else "-",
        linewidth=0.6,
        marker=marker,
        markersize=5.5,
        markerfacecolor="none" if published else colour,
        markeredgecolor=colour,
        markeredgewidth=1.1,
        clip_on=False,
    )


def _tokens(entry: Entry, task: str) -> Estimate | None:
    """Tokens that a log axis can show."""
    estimate = entry.tables.get(TOKENS.name, {}).get(task)
    return estimate if estimate is not None and estimate.value > 0 else None


def _range(entries: Iterable[Entry]) -> tuple[float, float]:
    """Around all token counts with some air, at least two powers of ten wide."""
    shown = [tokens.value for e in entries for task in TASKS if (tokens := _tokens(e, task))]
    if not shown:
        return _EMPTY_RANGE
    low, high = min(shown) / 1.8, max(shown) * 1.8
    return low, max(high, 100 * low)


def _look(place: int) -> tuple[str, str]:
    """Colour and marker of the model at `place`; no two of the first seventy look the same."""
    return PALETTE[place % len(PALETTE)], MARKERS[place % len(MARKERS)]


def _count(value: float) -> str:
    """A power of ten as a short label: 10, 1k, 1M."""
    for size, unit in ((1e6, "M"), (1e3, "k")):
        if value >= size:
            return f"{value / size:g}{unit}"
    return f"{value:g}"


def _handles(entries: Sequence[Entry], heading: str) -> list[Line2D]:
    handles = []
    for place, model in enumerate(models_of(entries)):
        colour, marker = _look(place)
        if all(_is_line(entry) for entry in entries if entry.model == model):
            handle = Line2D([], [], color=colour, linestyle=":", label=label(model))
        else:
            handle = Line2D([], [], color=colour, marker=marker, linestyle="", label=label(model))
        handles.append(handle)
    handles.append(_key(f"filled: {heading.lower()}", _GREY))
    if any(entry.published for entry in entries):
        handles.append(_key("hollow: published", "none"))
    if any(_is_line(entry) for entry in entries):
        handles.append(Line2D([], [], color=_GREY, linestyle=":", label="dotted: tokens unknown"))
    return handles


def _key(text: str, face: str) -> Line2D:
    return Line2D([], [], color=_GREY, marker="o", markerfacecolor=face, linestyle="", label=text)


def _is_line(entry: Entry) -> bool:
    """Whether any score of the entry has no tokens to go with it."""
    scored = entry.tables.get(LOG_SMAPE.name, {})
    return any(_tokens(entry, task) is None for task in scored)
