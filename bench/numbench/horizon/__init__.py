"""The horizon of a model on a task: the size of the questions at which it starts to fail.

This module says when its measurement is complete.
"""

from __future__ import annotations

from typing import Literal, NamedTuple

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
