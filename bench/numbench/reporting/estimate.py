"""A value with its interval, as every table and figure of a report has it."""

from __future__ import annotations

from typing import NamedTuple


class Estimate(NamedTuple):
    """A value with its 95% interval, whose ends are None if they are unknown."""

    value: float
    low: float | None = None
    high: float | None = None
