"""The figures of results/horizon-study."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np
from matplotlib.artist import Artist
from matplotlib.axes import Axes
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.patches import Patch
from matplotlib.ticker import FixedLocator, FuncFormatter, NullLocator

from experiments.horizon_study.replay import Replay
from experiments.horizon_study.responses import SIZES, Config, Fit
from numbench.horizon.goodness_of_fit import isotonic_rates
from numbench.horizon.psychometric import Estimate
from numbench.plot_style import BLACK, FULL_WIDTH, GREY, PALETTE, plot_style, render_figure
from numbench.stats.intervals import wilson
from numbench.tasks import TASKS

_DRAWS = 2000
_EDGE = SIZES[-1] * 1.12
"""Where a horizon is drawn that is beyond the largest size."""


def plot_curves(task: str, fits: Mapping[Config, Fit]) -> bytes:
    """Return the curves of a task over the digits of the operands as SVG, a panel per model."""
    with plot_style():
        rows = -(-len(fits) // 3)
        figure = Figure(figsize=(FULL_WIDTH, 1.75 * rows + 0.7), layout="constrained")
        grid = figure.subplots(rows, 3, sharex=True, sharey=True, squeeze=False).ravel()
        for axes, (config, fitted) in zip(grid, fits.items(), strict=False):
            _draw_curve(axes, fitted)
            axes.set_title(" · ".join(config))
        for axes in grid[len(fits) :]:
            axes.set_axis_off()
        figure.supxlabel("significant digits of the longest operand")
        figure.supylabel(f"{TASKS[task].display}: right answers")
        figure.legend(handles=_curve_handles(), loc="outside upper center", ncols=4)
        return render_figure(figure, ("svg",))["svg"]


def _draw_curve(axes: Axes, fitted: Fit) -> None:
    drawn = fitted.posterior.sample_predictions(_DRAWS, np.random.default_rng(1))
    low, middle, high = np.quantile(drawn, (0.025, 0.5, 0.975), axis=0)
    axes.fill_between(SIZES, low, high, color=PALETTE[0], alpha=0.2, linewidth=0)
    axes.plot(SIZES, middle, color=PALETTE[0])
    sizes = [count.size for count in fitted.counts]
    axes.plot(sizes, isotonic_rates(fitted.counts), color=PALETTE[1], linestyle=(0, (3, 1.5)))
    for count in fitted.counts:
        interval = wilson(round(count.right), count.total)
        axes.plot([count.size] * 2, interval[-2:], color=GREY, linewidth=0.5)
        axes.plot(
            [count.size], [count.right / count.total], "o", color=BLACK,
            markersize=min(1 + 0.35 * count.total**0.5, 5),
        )  # fmt: skip
    axes.axhline(0.5, color=GREY, linewidth=0.4)
    if fitted.h50.value <= SIZES[-1]:
        axes.axvline(fitted.h50.value, color=PALETTE[0], linewidth=0.6, linestyle=":")
    axes.set_xscale("log")
    axes.set_ylim(-0.04, 1.04)
    axes.yaxis.set_major_formatter(FuncFormatter(lambda y, _: f"{y:.0%}"))
    _label_sizes(axes)


def _label_sizes(axes: Axes) -> None:
    axes.xaxis.set_major_locator(FixedLocator([1, 2, 4, 8, 16]))
    axes.xaxis.set_minor_locator(NullLocator())
    axes.xaxis.set_major_formatter(FuncFormatter(lambda x, _: f"{x:g}"))


def _curve_handles() -> list[Artist]:
    return [
        Line2D([], [], color=BLACK, marker="o", markersize=4, linestyle="", label="responses"),
        Line2D([], [], color=PALETTE[0], label="logistic curve"),
        Patch(facecolor=PALETTE[0], alpha=0.2, label="its 95 % interval"),
        Line2D([], [], color=PALETTE[1], linestyle=(0, (3, 1.5)), label="isotonic regression"),
    ]


def plot_replays(
    fits: Mapping[str, Mapping[Config, Fit]],
    replayed: Mapping[str, Mapping[Config, Sequence[Replay]]],
) -> bytes:
    """Return h50 from all responses and from the first replay, with 95 % intervals, as SVG."""
    with plot_style():
        figure = Figure(figsize=(FULL_WIDTH, 2.6), layout="constrained")
        grid = figure.subplots(1, len(fits), sharey=True)
        for axes, (task, by_config) in zip(grid, fits.items(), strict=True):
            axes.set_title(TASKS[task].display)
            for row, (config, fitted) in enumerate(by_config.items()):
                _draw_interval(axes, row - 0.14, fitted.h50, PALETTE[0])
                _draw_interval(axes, row + 0.14, replayed[task][config][0].h50, PALETTE[1])
            axes.axvline(SIZES[-1], color=GREY, linewidth=0.4)
            axes.set_xscale("log")
            axes.set_xlim(1, _EDGE * 1.06)
            _label_sizes(axes)
            axes.set_yticks(range(len(by_config)), [" · ".join(config) for config in by_config])
            axes.tick_params(axis="y", length=0)
        grid[0].invert_yaxis()
        figure.supxlabel("h50, in significant digits of the longest operand")
        handles = [
            Line2D([], [], color=PALETTE[i], marker="o", markersize=4, label=label)
            for i, label in enumerate(("all responses", "one replay"))
        ]
        figure.legend(handles=handles, loc="outside upper center", ncols=2)
        return render_figure(figure, ("svg",))["svg"]


def _draw_interval(axes: Axes, row: float, estimate: Estimate, colour: str) -> None:
    low, high, value = (
        min(max(x, 1.0), _EDGE) for x in (estimate.low, estimate.high, estimate.value)
    )
    axes.plot([low, high], [row, row], color=colour, linewidth=1)
    axes.plot([value], [row], ">" if value == _EDGE else "o", color=colour, markersize=4)
