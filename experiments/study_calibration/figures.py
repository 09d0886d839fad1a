"""The figure of results/comparability: the offset of each dataset by task."""

from __future__ import annotations

from collections.abc import Sequence

from matplotlib.axes import Axes
from matplotlib.figure import Figure

from experiments.study_calibration.expected import Cell, MeanOffset
from numbench.plot_style import FULL_WIDTH, GREY, PALETTE, plot_style, render_figure
from numbench.reporting.table_model import EXACT_MATCH, LOG_SMAPE
from numbench.tasks import PAPER_TASKS, TASKS

_SHIFT = 0.17


def plot_offsets(cells: Sequence[Cell], offsets: Sequence[MeanOffset]) -> bytes:
    """Return the offsets as SVG: means with intervals, and a dot per configuration."""
    with plot_style():
        figure = Figure(figsize=(FULL_WIDTH, 2.9), layout="constrained")
        for axes, spec in zip(figure.subplots(1, 2), (LOG_SMAPE, EXACT_MATCH), strict=True):
            _draw(axes, spec.name, cells, offsets)
            axes.set_title("Score" if spec is LOG_SMAPE else spec.title)
        figure.supxlabel("estimated offset from the published items in points (right: easier)")
        handles, labels = axes.get_legend_handles_labels()
        figure.legend(handles, labels, loc="outside upper center", ncols=2)
        return render_figure(figure, ("svg",))["svg"]


def _draw(axes: Axes, table: str, cells: Sequence[Cell], offsets: Sequence[MeanOffset]) -> None:
    shown = [o for o in offsets if o.table == table and o.interval is not None]
    tasks = [task for task in PAPER_TASKS if any(o.task == task for o in shown)]
    for index, name in enumerate(("v1", "study-like")):
        means = [o for o in shown if o.dataset == name]
        heights = [tasks.index(o.task) + (2 * index - 1) * _SHIFT for o in means]
        for offset, height in zip(means, heights, strict=True):
            assert offset.interval is not None
            axes.plot(offset.interval, [height] * 2, color=PALETTE[index], linewidth=1.2)
            dots = [
                cell.expected[name].offset
                for cell in cells
                if (cell.table, cell.task) == (table, offset.task)
            ]
            known = [dot for dot in dots if dot is not None]
            axes.plot(known, [height] * len(known), "|", color=PALETTE[index], markersize=4)
        axes.plot(
            [o.offset or 0.0 for o in means], heights, "os"[index], color=PALETTE[index],
            markersize=4, linestyle="none", label=f"{name} (ticks: configurations)",
        )  # fmt: skip
    axes.axvline(0, color=GREY, linewidth=0.6)
    axes.set_yticks(range(len(tasks)), [TASKS[task].display for task in tasks])
    axes.set_ylim(len(tasks) - 0.5, -0.5)
