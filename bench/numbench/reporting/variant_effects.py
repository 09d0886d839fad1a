"""Figure of the effects of prompts and transformations: one panel per variant, one row per task."""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D

from numbench.plot_style import GREY, PALETTE, SMALL_FONT_SIZE
from numbench.reporting.comparison_tables import task_name
from numbench.reporting.comparisons import OVERALL
from numbench.reporting.entries import MeasuredRun
from numbench.reporting.metamorphic import MetamorphicResult
from numbench.reporting.panels import error_bar_handle, fit_text, legend, panels
from numbench.reporting.prompt_effects import PromptEffect, prompt_name
from numbench.stats.paired import Difference
from numbench.tasks import TASKS

_ACROSS = 4
_ROW_HEIGHT = 0.15
_TITLE_WIDTH = 1.4
_MIN_RANGE = 5.0
"""The horizontal axis shows at least ± this many points."""


class VariantEffect(NamedTuple):
    """The effect of one variant on one task. consistency: in percent, None for prompts."""

    variant: str
    task: str
    result: Difference
    is_significant: bool
    consistency: float | None = None


def figure_effects(
    runs: Sequence[MeasuredRun],
    prompts: Sequence[PromptEffect],
    forms: Sequence[MetamorphicResult],
) -> dict[int, list[VariantEffect]]:
    """Return the effects by the index of their reference run, those of prompts first."""
    effects: dict[int, list[VariantEffect]] = {}
    for effect in prompts:
        if effect.result is not None:
            name = prompt_name(runs[effect.run])
            entry = VariantEffect(name, effect.task, effect.result, effect.is_significant)
            effects.setdefault(effect.reference, []).append(entry)
    for form in forms:
        if form.loss is not None:
            consistency = form.consistency.value if form.consistency else None
            entry = VariantEffect(
                form.transform, form.task, form.loss, form.is_significant, consistency
            )
            effects.setdefault(form.reference, []).append(entry)
    return effects


def variant_effects(label: str, effects: Sequence[VariantEffect]) -> Figure:
    """Draw the difference of each variant from the reference on every task, with 95 % bounds.

    Filled dots are significant after correction. The number at the right of a row is the
    consistency in percent.
    """
    tasks = [task for task in (*TASKS, OVERALL) if any(e.task == task for e in effects)]
    variants = list(dict.fromkeys(effect.variant for effect in effects))
    height = 0.5 + _ROW_HEIGHT * len(tasks)
    title = f"{label}: difference from the reference in points"
    drawing = panels(len(variants), across=_ACROSS, height=height, title=title)
    bounds = [abs(bound) for e in effects for bound in (e.result.low, e.result.high)]
    limit = min(105.0, 1.05 * max(_MIN_RANGE, *bounds))
    for index, (axes, variant) in enumerate(zip(drawing.axes, variants, strict=True)):
        of_variant = {e.task: e for e in effects if e.variant == variant}
        _draw(axes, of_variant, tasks, limit)
        axes.set_title(fit_text(variant, _TITLE_WIDTH, 8.0))
        names = [task_name(task) for task in tasks] if index % _ACROSS == 0 else [""] * len(tasks)
        axes.set_yticks(range(len(tasks)), names)
    legend(drawing.figure, _handles(any(e.consistency is not None for e in effects)))
    return drawing.figure


def _draw(
    axes: Axes, effects: dict[str, VariantEffect], tasks: Sequence[str], limit: float
) -> None:
    axes.axvline(0, color=GREY, linewidth=0.7)
    for row, task in enumerate(tasks):
        if task not in effects:
            continue
        effect = effects[task]
        colour = PALETTE[1] if effect.is_significant else PALETTE[0]
        axes.plot([effect.result.low, effect.result.high], [row, row], color=colour, linewidth=1.0)
        axes.plot(
            effect.result.difference,
            row,
            marker="o",
            markersize=4,
            color=colour,
            markerfacecolor=colour if effect.is_significant else "white",
        )
        if effect.consistency is not None:
            text = f"{effect.consistency:.0f}"
            axes.annotate(
                text,
                (1.0, row),
                xycoords=axes.get_yaxis_transform(),
                xytext=(3, 0),
                textcoords="offset points",
                va="center",
                fontsize=SMALL_FONT_SIZE,
                color=GREY,
            )
    if OVERALL in tasks and len(tasks) > 1:
        axes.axhline(len(tasks) - 1.5, color="#d9d9d9", linewidth=0.6)
    axes.set_xlim(-limit, limit)
    axes.set_ylim(len(tasks) - 0.4, -0.6)
    axes.tick_params(axis="y", length=0)
    axes.grid(True, axis="x")


def _handles(has_consistency: bool) -> list[Line2D]:
    entries = [
        (PALETTE[1], PALETTE[1], "filled: significant after Holm's correction"),
        (PALETTE[0], "white", "hollow: not significant"),
    ]
    handles = [
        Line2D([], [], color=c, marker="o", markerfacecolor=f, markersize=4, linestyle="", label=t)
        for c, f, t in entries
    ]
    handles.append(error_bar_handle())
    if has_consistency:
        label = "numbers: consistent answers in percent"
        handles.append(Line2D([], [], linestyle="", label=label))
    return handles
