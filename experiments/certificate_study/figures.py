"""The figures of results/certificate-study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from matplotlib.artist import Artist
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FuncFormatter

from experiments.certificate_study.difficulty import SeedDifference
from experiments.certificate_study.simulation import Simulated
from numbench.plot_style import FULL_WIDTH, GREY, PALETTE, plot_style, render_figure, run_style
from numbench.stats.intervals import wilson


def plot_difficulty(by_responder: Mapping[str, Sequence[SeedDifference]]) -> bytes:
    """Return the differences of the ten fresh sets from v1 as SVG, a row per responder."""
    with plot_style():
        figure = Figure(figsize=(FULL_WIDTH, 0.24 * len(by_responder) + 1.0), layout="constrained")
        axes = figure.subplots()
        for row, found in enumerate(by_responder.values()):
            results = [each.rows[-1].result for each in found]
            known = [result for result in results if result is not None]
            low = sum(result.low - result.difference for result in known) / len(known)
            high = sum(result.high - result.difference for result in known) / len(known)
            axes.fill_between([low, high], row - 0.38, row + 0.38, color=GREY, alpha=0.25, lw=0)
            axes.plot(
                [result.difference for result in known], [row] * len(known), "o",
                color=PALETTE[0], markersize=3, alpha=0.8,
            )  # fmt: skip
        axes.axvline(0, color=GREY, linewidth=0.6)
        axes.set_yticks(range(len(by_responder)), list(by_responder))
        axes.tick_params(axis="y", length=0)
        axes.invert_yaxis()
        axes.set_xlabel("right answers on v1 minus right answers on fresh items, in points")
        handles: list[Artist] = [
            Line2D(
                [], [], color=PALETTE[0], marker="o", markersize=3, linestyle="", label="a seed"
            ),
            Patch(facecolor=GREY, alpha=0.25, label="95 % of differences by chance"),
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=2)
        return render_figure(figure, ("svg",))["svg"]


def plot_power(
    models: Mapping[str, Sequence[Simulated]], uniform: Mapping[str, Sequence[Simulated]]
) -> bytes:
    """Return the share of the verdict `memory` by the share of known items as SVG.

    models: the configurations of the study, in grey. uniform: models that are right equally often
    on every item, with what the rule states.
    """
    with plot_style():
        figure = Figure(figsize=(FULL_WIDTH, 2.8), layout="constrained")
        axes = figure.subplots()
        for results in models.values():
            known = [100 * each.known for each in results]
            axes.plot(known, list(map(_flagged, results)), color=GREY, linewidth=1)
        for index, (name, results) in enumerate(uniform.items()):
            style = run_style(index)
            known = [100 * each.known for each in results]
            axes.plot(
                known, list(map(_flagged, results)), color=style.colour, marker=style.marker,
                markersize=4, label=name,
            )  # fmt: skip
            for x, each in zip(known, results, strict=True):
                interval = wilson(each.verdicts.get("memory", 0), each.certificates)
                axes.plot([x, x], interval, color=style.colour, linewidth=0.6)
            axes.plot(
                known[1:], [each.stated for each in results[1:]], style.marker, markersize=6,
                markerfacecolor="none", markeredgecolor=style.colour,
            )  # fmt: skip
        axes.set_xticks([0, 10, 20, 50])
        axes.set_ylim(-0.03, 1.05)
        axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0%}"))
        axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g} %"))
        axes.set_xlabel("share of the items of v1 that the model knows")
        axes.set_ylabel("verdict memory")
        handles, _ = axes.get_legend_handles_labels()
        handles += [
            Line2D([], [], color=GREY, linewidth=1, label="models of the study"),
            Line2D(
                [], [], color=GREY, marker="o", markersize=6, markerfacecolor="none",
                linestyle="", label="stated, at least",
            ),
        ]  # fmt: skip
        figure.legend(handles=handles, loc="outside right upper")
        return render_figure(figure, ("svg",))["svg"]


def _flagged(simulated: Simulated) -> float:
    return simulated.verdicts.get("memory", 0) / simulated.certificates
