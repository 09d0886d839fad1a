"""The axis of sizes that all figures of horizons share, and the position of bounds on it."""

from __future__ import annotations

from collections.abc import Iterable
from typing import Literal, NamedTuple

from matplotlib.axes import Axes
from matplotlib.ticker import FuncFormatter, LogLocator, NullLocator

from numbench.horizon.estimate import TaskHorizon
from numbench.horizon.psychometric import Estimate
from numbench.reporting.panels import short_count


class PlacedEstimate(NamedTuple):
    """An estimate within the sizes that can be asked.

    beyond: +1 if its value is at the largest size or above, −1 if it is below the smallest one.
    is_isotonic: whether it is a crossing of the isotonic regression, without an interval.
    """

    value: float
    low: float
    high: float
    beyond: int
    is_isotonic: bool = False


def place(horizon: TaskHorizon, estimate: Estimate) -> PlacedEstimate:
    """Return an estimate, with the largest and smallest size in place of sizes beyond."""
    value, low, high = (min(max(x, horizon.smallest), horizon.largest) for x in estimate)
    beyond = (estimate.value >= horizon.largest) - (estimate.value < horizon.smallest)
    return PlacedEstimate(value, low, high, beyond)


def place_h50(horizon: TaskHorizon) -> PlacedEstimate:
    """Return h50, or the isotonic crossing where the curve does not describe the answers."""
    if horizon.fits or horizon.isotonic is None:
        return place(horizon, horizon.h50)
    value = horizon.isotonic
    return PlacedEstimate(value, value, value, beyond=0, is_isotonic=True)


def size_range(horizons: Iterable[TaskHorizon]) -> tuple[float, float]:
    """Return the smallest and the largest size of the horizons."""
    known = list(horizons)
    return float(min(h.smallest for h in known)), float(max(h.largest for h in known))


def format_size_axis(axes: Axes, which: Literal["x", "y"], low: float, high: float) -> None:
    """Make an axis of a panel logarithmic from `low` to `high`, with some room at both ends."""
    margin = (high / low) ** 0.03
    if which == "x":
        axes.set_xscale("log")
        axes.set_xlim(low / margin, high * margin)
    else:
        axes.set_yscale("log")
        axes.set_ylim(low / margin, high * margin)
    axis = axes.xaxis if which == "x" else axes.yaxis
    # The fewer decades, the more ticks in each.
    subs = (1.0, 2.0, 5.0) if high / low <= 30 else (1.0, 3.0) if high / low <= 300 else (1.0,)
    axis.set_major_locator(LogLocator(base=10, subs=subs))
    axis.set_minor_locator(NullLocator())
    axis.set_major_formatter(FuncFormatter(lambda value, _: short_count(value)))
