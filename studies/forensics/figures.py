"""Draw the figure of the study."""

from __future__ import annotations

from typing import Any

import pandas as pd
from matplotlib.lines import Line2D
from matplotlib.patches import Patch

from numbench.plot_style import GRAY, HATCHES, PALETTE, plot_style, render_figure
from studies.panels import legend, panels


def answers(labels: pd.DataFrame, deviations: pd.DataFrame) -> bytes:
    """Draw what answers equal: the exact value or the label, and which deviation they follow.

    labels: number of answers by configuration, with the columns exact and label.
    """
    configs = list(labels.index)
    rows = range(len(configs))
    with plot_style():
        drawn = panels(2, across=2, height=2.7, share=True)
        left, right = drawn.axes
        left.barh(rows, labels["exact"], 0.7, color=PALETTE[0])
        left.barh(
            rows, labels["label"], 0.7, labels["exact"], fc=PALETTE[1], hatch=HATCHES[1], ec="white"
        )
        for row, (exact, label) in enumerate(zip(labels["exact"], labels["label"], strict=True)):
            left.text(exact + label, row, f"  {exact} : {label}", va="center", fontsize=7)
        left.set(
            xlim=(0, 1.25 * labels["exact"].max()), yticks=rows, ylim=(len(configs) - 0.5, -0.5)
        )
        left.set_yticklabels(configs)
        left.set_title("Questions with a wrong label (Mean, Std)")
        known = deviations.set_index("config").reindex(configs)
        right.hlines(rows, known["population"], known["sample"], color="#a6cbe3", lw=1.6)
        right.plot(known["population"], rows, "o", color=PALETTE[0], ms=4)
        right.plot(known["sample"], rows, "D", color=PALETTE[1], ms=4, mfc="none")
        for row in known["population"].isna().to_numpy().nonzero()[0].tolist():
            right.text(0, row, " no responses", va="center", fontsize=7, color=GRAY)
        right.set_title("Answers to Std within 0.1% of a deviation")
        for axes in drawn.axes:
            axes.tick_params(axis="y", length=0)
            axes.grid(True, axis="x")
        drawn.figure.supxlabel("number of answers")
        marker: dict[str, Any] = {"ls": "", "ms": 4}
        handles = [
            Patch(fc=PALETTE[0], label="exact value"),
            Patch(fc=PALETTE[1], hatch=HATCHES[1], ec="white", label="published label"),
            Line2D([], [], color=PALETTE[0], marker="o", label="population", **marker),
            Line2D([], [], color=PALETTE[1], marker="D", mfc="none", label="sample", **marker),
        ]
        legend(drawn.figure, handles)
        return render_figure(drawn.figure, ("svg",))["svg"]
