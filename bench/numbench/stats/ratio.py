"""Ratio of two means over the same items, with its interval."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

from numbench.stats.design import Stratum
from numbench.stats.intervals import Z_TWO_SIDED, variance_of_mean


class Ratio(NamedTuple):
    """A ratio with its 95 % interval."""

    value: float
    low: float
    high: float


def ratio_of_means(numerators: Sequence[Stratum], denominators: Sequence[Stratum]) -> Ratio | None:
    """Return the ratio of two means of the strata's means; None unless both are positive.

    The strata have one column each, and the same items. The standard error is that of the mean of
    numerator − ratio · denominator (linearisation; Cochran 1977, section 6.4); the interval is
    symmetric for the logarithm of the ratio. The mean of the denominators must be well above 0.
    """
    top = math.fsum(float(s.means[0]) for s in numerators) / len(numerators)
    bottom = math.fsum(float(s.means[0]) for s in denominators) / len(denominators)
    if not (top > 0 and bottom > 0):
        return None
    value = top / bottom
    residuals = [
        above.with_values(above.values - value * below.values)
        for above, below in zip(numerators, denominators, strict=True)
    ]
    largest = max(float((s.values**2).max()) for s in residuals)
    error = math.sqrt(float(variance_of_mean(residuals, largest)[0])) / top
    factor = math.exp(Z_TWO_SIDED * error)
    return Ratio(value, value / factor, value * factor)
