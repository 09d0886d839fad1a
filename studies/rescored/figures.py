"""Draw the figures of the study."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from numbench.plot_style import BLACK, GRAY, HATCHES, PALETTE, plot_style, render_figure
from numbench.tasks import TASKS
from studies.panels import label_axes, label_panel, legend, panels

CAUSES = {
    "labels": "wrong labels",
    "digits": "truncated digits",
    "parsing": "misread answers",
    "failed": "failed requests",
}
_FIGURE_TASKS = ("addition", "division", "mean", "std")
_CEILING_COLOR = "#d9d9d9"


def ceilings(labels: pd.DataFrame, scores: pd.DataFrame) -> bytes:
    """Draw the highest score that the published labels allow, and the published scores."""
    shown = labels[labels["task"].map(lambda task: TASKS[task].metric == "log_smape")]
    columns = {"log_smape": "ceiling", "exact_match": "ceiling_exact_match"}
    with plot_style():
        drawn = panels(2, across=2, height=1.9)
        for axes, (metric, column) in zip(drawn.axes, columns.items(), strict=True):
            bars = axes.bar(
                range(len(shown)), shown[column], 0.7, color=_CEILING_COLOR, edgecolor=GRAY, lw=0.6
            )
            axes.bar_label(bars, fmt="%.1f", fontsize=7, padding=4)
            for x, task in enumerate(shown["task"]):
                of_task = scores[(scores["task"] == task) & (scores["metric"] == metric)]
                axes.plot(
                    [x] * len(of_task),
                    of_task["published"],
                    "o",
                    color=PALETTE[0],
                    ms=4,
                    mfc="none",
                )
            axes.set_xticks(range(len(shown)), [TASKS[task].display for task in shown["task"]])
            axes.set(ylim=(0, 114), yticks=range(0, 101, 25))
            axes.grid(True, axis="y")
            axes.set_title("log-sMAPE" if metric == "log_smape" else "exact match")
        drawn.figure.supylabel("percent")
        ceiling = Patch(facecolor=_CEILING_COLOR, edgecolor=GRAY, label="all answers correct")
        circle = Line2D([], [], color=PALETTE[0], marker="o", ls="", ms=4, mfc="none")
        circle.set_label("published (paper), all models")
        legend(drawn.figure, [ceiling, circle])
        return render_figure(drawn.figure, ("svg",))["svg"]


def causes(scores: pd.DataFrame) -> bytes:
    """Draw the change of exact match by cause: gains to the right, losses to the left."""
    matches = scores[(scores["metric"] == "exact_match") & scores["rescored"].notna()]
    configs = list(matches[matches["task"].isin(_FIGURE_TASKS)]["config"].unique())
    with plot_style():
        drawn = panels(len(_FIGURE_TASKS), across=2, height=2.5, share=True)
        for axes, task in zip(drawn.axes, _FIGURE_TASKS, strict=True):
            label_panel(axes, task)
            of_task = matches[matches["task"] == task].set_index("config").reindex(configs)
            for side in (1, -1):
                end = pd.Series(0.0, of_task.index)
                for index, cause in enumerate(CAUSES):
                    width = of_task[cause].where(side * of_task[cause] > 0, 0.0)
                    rows = width.to_numpy().nonzero()[0]
                    axes.barh(rows, width.iloc[rows], 0.7, left=end.iloc[rows], **_bar(index))
                    end += width
            total = of_task[list(CAUSES)].sum(axis="columns", min_count=1)
            axes.plot(total, range(len(configs)), "|", color=BLACK, ms=7)
            for row in total.isna().to_numpy().nonzero()[0].tolist():
                axes.text(0, row, " no responses", va="center", fontsize=7, color=GRAY)
            axes.set_yticks(range(len(configs)), configs)
            axes.tick_params(axis="y", length=0)
            axes.axvline(0, color=GRAY, lw=0.6)
            axes.grid(True, axis="x")
        drawn.axes[0].set_ylim(len(configs) - 0.5, -0.5)
        label_axes(drawn, "change of exact match in points (ranges differ)", "")
        handles = [Patch(label=name, **_bar(i)) for i, name in enumerate(CAUSES.values())]
        total_handle = Line2D([], [], color=BLACK, marker="|", ms=6, ls="", label="sum")
        legend(drawn.figure, [*handles, total_handle])
        return render_figure(drawn.figure, ("svg",))["svg"]


def _bar(index: int) -> dict[str, Any]:
    return {"fc": PALETTE[index], "hatch": HATCHES[index], "ec": "white", "lw": 0.3}
