"""The figures of results/sample-complexity."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from typing import NamedTuple

import numpy as np
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.path import Path
from matplotlib.ticker import FuncFormatter, NullFormatter

from experiments.sample_complexity.outcomes import TARGETS, Cell, Outcome, Outcomes
from numbench.plot_style import (
    FULL_WIDTH,
    GREY,
    LinePattern,
    plot_style,
    render_figure,
    run_style,
)
from numbench.progress_display import short_count
from numbench.tasks import TASKS

ENCODINGS = {
    "bittoken": "BitToken",
    "base10": "Base 10",
    "fone": "FoNE",
    "digit": "Digit",
    "subword": "Subword",
}
NOT_REACHED = Path(
    [(0, 0), (0, 2), (-0.6, 1.3), (0, 2), (0.6, 1.3)],
    [Path.MOVETO, Path.LINETO, Path.MOVETO, Path.LINETO, Path.LINETO],
)
"""The marker of a seed that did not reach the target: an arrow upwards from its budget."""

_HEIGHT = 2.2


class CurveStyle(NamedTuple):
    """How the curves of an encoding look. title: in the legend."""

    title: str
    colour: str
    line: LinePattern = "-"


CURVES = {
    encoding: CurveStyle(title, run_style(number).colour)
    for number, (encoding, title) in enumerate(ENCODINGS.items())
}


def plot_growth(outcomes: Outcomes, tasks: Sequence[str]) -> bytes:
    """Return the questions to each target over the bits of the operands as SVG.

    A panel per target and operation. A point is a seed; an arrow stands at the budget of a seed
    that did not reach the target.
    """
    with plot_style():
        figure = Figure(figsize=(FULL_WIDTH, _HEIGHT * len(TARGETS) + 0.4), layout="constrained")
        grid = figure.subplots(len(TARGETS), len(tasks), sharey=True, squeeze=False)
        for target, row in zip(TARGETS, grid, strict=True):
            for axes, task in zip(row, tasks, strict=True):
                _draw_growth(axes, task, target, outcomes)
            row[0].set_ylabel(f"questions to {target:.0%}")
        figure.supxlabel("bits of the operands")
        figure.legend(handles=_handles(), loc="outside upper center", ncols=len(ENCODINGS) + 1)
        return render_figure(figure, ("svg",))["svg"]


def _draw_growth(axes: Axes, task: str, target: float, outcomes: Outcomes) -> None:
    axes.set_title(TASKS[task].display)
    axes.set_yscale("log", base=2)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
    axes.yaxis.set_minor_formatter(NullFormatter())
    axes.grid(visible=True, axis="y")
    all_bits = sorted({cell.bits for cell in outcomes if cell.task == task and not cell.shift})
    axes.set_xticks(all_bits)
    axes.set_xlim(min(all_bits) - 1, max(all_bits) + 1)
    for number, encoding in enumerate(ENCODINGS):
        style = run_style(number)
        # Encodings stand side by side, so that equal values do not hide each other.
        offset = 0.14 * (number - (len(ENCODINGS) - 1) / 2)
        means = []
        for bits in all_bits:
            seeds = outcomes.get(Cell(task, bits, 0, encoding), ())
            for one in seeds:
                cost = one.reached[target]
                x, y = bits + offset, (cost or one.end).questions
                axes.plot(
                    [x], [y], color=style.colour, linestyle="", clip_on=False,
                    marker=style.marker if cost else NOT_REACHED, markersize=3.5 if cost else 8,
                    markerfacecolor=style.colour if cost else "none",
                )  # fmt: skip
            costs = [one.reached[target] for one in seeds]
            reached = [cost.questions for cost in costs if cost is not None]
            if seeds and len(reached) == len(seeds):
                means.append((bits + offset, float(2 ** np.mean(np.log2(reached)))))
        if len(means) > 1:
            axes.plot(*zip(*means, strict=True), color=style.colour, linewidth=1.0)


def plot_curves(
    outcomes: Outcomes,
    columns: Sequence[tuple[str, int, int]],
    styles: Mapping[str, CurveStyle] = CURVES,
) -> bytes:
    """Return exact match over the questions seen as SVG, a panel per (task, bits, shift).

    styles: title, colour and line of each encoding.
    """
    rows = -(-len(columns) // 4)
    with plot_style():
        figure = Figure(figsize=(FULL_WIDTH, 1.6 * rows + 0.6), layout="constrained")
        for index, (task, bits, shift) in enumerate(columns):
            axes = figure.add_subplot(rows, min(4, len(columns)), index + 1)
            divided = ", divided" if shift else ""
            axes.set_title(f"{TASKS[task].display}, {bits} bits{divided}")
            axes.set_ylim(-2, 102)
            axes.axhline(90, color=GREY, linewidth=0.5, linestyle=":")
            axes.grid(visible=True)
            axes.xaxis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
            for encoding, style in styles.items():
                for one in outcomes.get(Cell(task, bits, shift, encoding), ()):
                    _draw_curve(axes, one, style)
        figure.supxlabel("questions seen")
        figure.supylabel("exact match on held-out pairs, %")
        handles = [
            Line2D([], [], color=style.colour, linestyle=style.line, label=style.title)
            for style in styles.values()
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=len(styles))
        return render_figure(figure, ("svg",))["svg"]


def _draw_curve(axes: Axes, one: Outcome, style: CurveStyle) -> None:
    questions, exact = zip(*one.curve, strict=True)
    axes.plot(
        questions, [100 * value for value in exact], color=style.colour, linestyle=style.line,
        linewidth=0.7, alpha=0.8,
    )  # fmt: skip


def _handles() -> list[Line2D]:
    styles = [(run_style(number), title) for number, title in enumerate(ENCODINGS.values())]
    encodings = [
        Line2D([], [], color=style.colour, marker=style.marker, markersize=3.5, label=title)
        for style, title in styles
    ]
    arrow = Line2D(
        [], [], color=GREY, linestyle="", marker=NOT_REACHED, markersize=8,
        markerfacecolor="none", label="not reached",
    )  # fmt: skip
    return [*encodings, arrow]
