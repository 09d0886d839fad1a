"""Score against generated tokens, one panel per task."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from numbench.plot_style import GREY, PUBLISHED_LINE, RunStyle, run_style
from numbench.reporting.panels import (
    count_axis,
    error_bar_handle,
    error_bar_lengths,
    label_axes,
    label_panel,
    legend,
    legend_label,
    needs_log_scale,
    panels,
    score_axis,
)
from numbench.reporting.table_model import LOG_SMAPE, TOKENS, Entry, Estimate, model_names

_EMPTY_RANGE = (1.0, 10_000.0)


def tokens_vs_score(entries: Sequence[Entry], tasks: Sequence[str], heading: str) -> Figure:
    """Draw mean generated tokens against the score, with 95 % bounds of both.

    The token axis of a panel is logarithmic if the largest count is more than 20 times the
    smallest. Measured markers are filled, published ones hollow; a thin line connects the levels
    of a model. An entry without a token count is a dotted horizontal line.

    heading: names the measured entries in the legend.
    """
    figure_panels = panels(len(tasks), height=1.75, share=True)
    models = model_names(entries)
    for axes, task in zip(figure_panels.axes, tasks, strict=True):
        label_panel(axes, task)
        score_axis(axes)
        _format_token_axis(axes, task, entries)
        for index, model in enumerate(models):
            of_model = [entry for entry in entries if entry.model == model]
            _draw_model(axes, task, of_model, run_style(index))
    label_axes(
        figure_panels,
        "mean generated tokens per item",
        "score in percent (log-sMAPE; comparisons: exact match)",
    )
    legend(figure_panels.figure, _handles(entries, tasks, heading))
    return figure_panels.figure


def _format_token_axis(axes: Axes, task: str, entries: Sequence[Entry]) -> None:
    """Set the limits around all token counts of the task."""
    counts = [tokens.value for entry in entries if (tokens := _tokens(entry, task))]
    low, high = (min(counts), max(counts)) if counts else _EMPTY_RANGE
    logarithmic = needs_log_scale((low, high))
    count_axis(axes, logarithmic=logarithmic)
    if logarithmic:
        axes.set_xlim(low / 1.8, high * 1.8)
    else:
        axes.set_xlim(0, high * 1.12)


def _draw_model(axes: Axes, task: str, entries: Sequence[Entry], style: RunStyle) -> None:
    for published in (True, False):
        points = []
        for entry in (entry for entry in entries if entry.published == published):
            score = entry.estimates(LOG_SMAPE).get(task)
            tokens = _tokens(entry, task)
            if score is None:
                continue
            if tokens is None:
                axes.axhline(score.value, color=style.colour, linestyle=":", linewidth=1.2)
            else:
                points.append((tokens, score))
        if points:
            _draw_points(axes, sorted(points, key=lambda p: p[0].value), style, published)


def _draw_points(
    axes: Axes, points: Sequence[tuple[Estimate, Estimate]], style: RunStyle, published: bool
) -> None:
    tokens, scores = [t.value for t, _ in points], [s.value for _, s in points]
    axes.errorbar(
        tokens,
        scores,
        xerr=_error_bars([t for t, _ in points]),
        yerr=_error_bars([s for _, s in points]),
        fmt="none",
        ecolor=style.colour,
        elinewidth=0.7,
    )
    (line,) = axes.plot(
        tokens,
        scores,
        color=style.colour,
        linestyle=PUBLISHED_LINE if published else "-",
        linewidth=0.5,
        marker=style.marker,
        markersize=4.2,
        markerfacecolor="none" if published else style.colour,
        markeredgecolor=style.colour,
        markeredgewidth=0.8,
    )
    line.set_clip_on(False)


def _error_bars(estimates: Sequence[Estimate]) -> tuple[list[float], list[float]]:
    """Return error bars, of length 0 if the bounds are unknown."""
    values, lows, highs = zip(*(e.bounds_or_value for e in estimates), strict=True)
    return error_bar_lengths(values, lows, highs)


def _tokens(entry: Entry, task: str) -> Estimate | None:
    """Return the token count, None if a logarithmic axis cannot show it."""
    estimate = entry.estimates(TOKENS).get(task)
    return estimate if estimate is not None and estimate.value > 0 else None


def _handles(entries: Sequence[Entry], tasks: Sequence[str], heading: str) -> list[Line2D]:
    without_tokens = [entry for entry in entries if _lacks_tokens(entry, tasks)]
    handles = []
    for index, model in enumerate(model_names(entries)):
        style = run_style(index)
        text = legend_label(model)
        if all(entry in without_tokens for entry in entries if entry.model == model):
            handles.append(Line2D([], [], color=style.colour, linestyle=":", label=text))
        else:
            handles.append(_legend_marker(text, style.colour, style))
    handles.append(_legend_marker(f"filled: {heading.lower()}"))
    if any(entry.published for entry in entries):
        handles.append(_legend_marker("hollow: published", face="none"))
    if without_tokens:
        handles.append(Line2D([], [], color=GREY, linestyle=":", label="dotted: tokens unknown"))
    return [*handles, error_bar_handle()]


def _legend_marker(
    text: str, colour: str = GREY, style: RunStyle | None = None, face: str | None = None
) -> Line2D:
    return Line2D(
        [],
        [],
        color=colour,
        marker=style.marker if style else "o",
        markersize=4.2,
        markerfacecolor=face or colour,
        linestyle="",
        label=text,
    )


def _lacks_tokens(entry: Entry, tasks: Sequence[str]) -> bool:
    """Return whether any of the tasks has a score without a token count."""
    scores = entry.estimates(LOG_SMAPE)
    return any(_tokens(entry, task) is None for task in tasks if task in scores)
