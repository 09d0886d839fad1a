"""Score against generated tokens: what a model's accuracy costs, one panel per task."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from bench.report.figures import (
    GREY,
    PUBLISHED_LINE,
    Look,
    label,
    look,
    models_of,
)
from bench.report.layout import LOG_SMAPE, TOKENS, Entry, Estimate
from bench.report.panels import (
    count_axis,
    legend,
    name_axes,
    name_panel,
    panels,
    score_axis,
    spans_orders,
    whisker_handle,
    whiskers,
)
from bench.tasks import TASKS

_EMPTY_RANGE = (1.0, 10_000.0)


def tokens_vs_score(entries: Sequence[Entry], heading: str) -> Figure:
    """Mean generated tokens against the score, with 95 % bounds of both.

    A panel's tokens stand on a log axis where the largest are more than 20 times the smallest.
    Measured markers are filled, published ones hollow; a thin line joins the levels of one
    model. An entry whose tokens are not known is a dotted horizontal line.
    """
    drawn = panels(len(TASKS), height=1.75, share=True)
    models = models_of(entries)
    for axes, task in zip(drawn.axes, TASKS, strict=True):
        name_panel(axes, task)
        score_axis(axes)
        _token_axis(axes, task, entries)
        for place, model in enumerate(models):
            own = [entry for entry in entries if entry.model == model]
            _draw_model(axes, task, own, look(place))
    name_axes(
        drawn,
        "mean generated tokens per item",
        "score in percent (log-sMAPE; comparisons: exact match)",
    )
    legend(drawn.figure, _handles(entries, heading))
    return drawn.figure


def _token_axis(axes: Axes, task: str, entries: Sequence[Entry]) -> None:
    """Around all token counts of the task with some air."""
    shown = [tokens.value for entry in entries if (tokens := _tokens(entry, task))]
    low, high = (min(shown), max(shown)) if shown else _EMPTY_RANGE
    logarithmic = spans_orders((low, high))
    count_axis(axes, logarithmic=logarithmic)
    if logarithmic:
        axes.set_xlim(low / 1.8, high * 1.8)
    else:
        axes.set_xlim(0, high * 1.12)


def _draw_model(axes: Axes, task: str, entries: Sequence[Entry], own: Look) -> None:
    for published in (True, False):
        points = []
        for entry in (entry for entry in entries if entry.published == published):
            score = entry.tables.get(LOG_SMAPE.name, {}).get(task)
            tokens = _tokens(entry, task)
            if score is None:
                continue
            if tokens is None:
                axes.axhline(score.value, color=own.colour, linestyle=":", linewidth=1.2)
            else:
                points.append((tokens, score))
        if points:
            _draw_points(axes, sorted(points, key=lambda p: p[0].value), own, published)


def _draw_points(
    axes: Axes, points: Sequence[tuple[Estimate, Estimate]], own: Look, published: bool
) -> None:
    tokens, scores = [t.value for t, _ in points], [s.value for _, s in points]
    axes.errorbar(
        tokens,
        scores,
        xerr=_lengths([t for t, _ in points]),
        yerr=_lengths([s for _, s in points]),
        fmt="none",
        ecolor=own.colour,
        elinewidth=0.7,
    )
    (line,) = axes.plot(
        tokens,
        scores,
        color=own.colour,
        linestyle=PUBLISHED_LINE if published else "-",
        linewidth=0.5,
        marker=own.marker,
        markersize=4.2,
        markerfacecolor="none" if published else own.colour,
        markeredgecolor=own.colour,
        markeredgewidth=0.8,
    )
    line.set_clip_on(False)


def _lengths(estimates: Sequence[Estimate]) -> tuple[list[float], list[float]]:
    """Whiskers; of no length where the bounds are not known."""
    known = [e.bounded or (e.value, e.value, e.value) for e in estimates]
    values, lows, highs = zip(*known, strict=True)
    return whiskers(values, lows, highs)


def _tokens(entry: Entry, task: str) -> Estimate | None:
    """Tokens that a log axis can show."""
    estimate = entry.tables.get(TOKENS.name, {}).get(task)
    return estimate if estimate is not None and estimate.value > 0 else None


def _handles(entries: Sequence[Entry], heading: str) -> list[Line2D]:
    handles = []
    for place, model in enumerate(models_of(entries)):
        own = look(place)
        name = label(model)
        if all(_is_line(entry) for entry in entries if entry.model == model):
            handles.append(Line2D([], [], color=own.colour, linestyle=":", label=name))
        else:
            handles.append(_key(name, own.colour, own))
    handles.append(_key(f"filled: {heading.lower()}"))
    if any(entry.published for entry in entries):
        handles.append(_key("hollow: published", face="none"))
    if any(_is_line(entry) for entry in entries):
        handles.append(Line2D([], [], color=GREY, linestyle=":", label="dotted: tokens unknown"))
    return [*handles, whisker_handle()]


def _key(text: str, colour: str = GREY, own: Look | None = None, face: str | None = None) -> Line2D:
    return Line2D(
        [],
        [],
        color=colour,
        marker=own.marker if own else "o",
        markersize=4.2,
        markerfacecolor=face or colour,
        linestyle="",
        label=text,
    )


def _is_line(entry: Entry) -> bool:
    """Whether any score of the entry has no tokens to go with it."""
    scored = entry.tables.get(LOG_SMAPE.name, {})
    return any(_tokens(entry, task) is None for task in scored)
