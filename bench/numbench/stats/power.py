"""The difference that a comparison detects with a power of 80%: 1.96 + 0.84 standard errors."""

from __future__ import annotations

from statistics import NormalDist

import numpy as np
from scipy import special

from numbench.stats.design import Column, Counts
from numbench.stats.intervals import CONFIDENCE_LEVEL, Z_TWO_SIDED

POWER = 0.80
Z_POWER = NormalDist().inv_cdf(POWER)
Z_ONE_SIDED = NormalDist().inv_cdf(CONFIDENCE_LEVEL)

MIN_DIFFERING = 6
"""The least number of items that have to differ, all in one direction, for p ≤ 5%: 2 / 2⁶."""


def detectable_difference(variance: Column, pseudo: Column, size: Column, items: Counts) -> Column:
    """Return the true mean difference of which 80% of samples give a verdict; NaN if none does.

    variance, pseudo, size: see `DifferenceVariances`. At least six items have to differ, all in one
    direction if there are only six.
    """
    with np.errstate(invalid="ignore"):
        # If this share of the items differs, six of them do with a probability of 80%.
        share = special.betaincinv(MIN_DIFFERING, items - MIN_DIFFERING + 1, POWER)
        error = Z_TWO_SIDED * np.sqrt(variance + pseudo) + Z_POWER * np.sqrt(variance)
        detectable = np.maximum(error, share * size)
    return np.asarray(np.where(items >= MIN_DIFFERING, detectable, np.nan))
