"""When the measurement of a horizon is complete."""

from __future__ import annotations

from typing import TYPE_CHECKING, Literal, NamedTuple

if TYPE_CHECKING:
    from numbench.horizon.psychometric import Posterior

DESIGN_VERSION = "numbench-horizon 2"
"""Changes whenever the same answers would be followed by other sizes."""

CERTAINTY = 0.975
"""The posterior probability that h50 is outside the sizes at which a measurement stops."""

StopReason = Literal["precision", "items", "above", "below", "exhausted"]
"""Why a measurement is complete: it is as precise as wanted, or as the sizes allow; the limit of
items is reached; h50 is above the largest or below the smallest size; or no size has further items
that could say more."""


class Limits(NamedTuple):
    """When to stop: precision (`Posterior.log2_horizon_deviation`), and number of items.

    The precision has to be reached after two rounds in succession. By chance, answers make a curve
    look steeper, and its horizon more certain, than it is; who stops at once, stops more often
    then, with intervals that are too narrow.
    """

    precision: float = 0.15
    max_items: int = 400


def is_beyond(posterior: Posterior, size: int) -> bool:
    """Return whether h50 is certainly above a size, the largest that can be asked."""
    return posterior.probability_beyond(size) >= CERTAINTY


def stop_reason(
    posterior: Posterior, items: int, limits: Limits, previous: float
) -> StopReason | None:
    """Return why a measurement with this many items is complete; None if it is not.

    previous: the standard deviation of log₂ h50 before the last round.
    """
    if is_beyond(posterior, posterior.sizes[-1]):
        return "above"
    if posterior.probability_beyond(posterior.sizes[0]) <= 1 - CERTAINTY:
        return "below"
    if max(previous, posterior.log2_horizon_deviation()) <= limits.precision:
        return "precision"
    if posterior.is_between_neighbours(CERTAINTY):
        return "precision"
    return "items" if items >= limits.max_items else None
