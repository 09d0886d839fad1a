"""The true difference that a comparison detects with a power of 80%."""

from __future__ import annotations

import math
from statistics import NormalDist

import numpy as np
from scipy import special

from numbench.stats.design import Column, Counts
from numbench.stats.intervals import ALPHA, CONFIDENCE_LEVEL, Z_TWO_SIDED

POWER = 0.80
Z_POWER = NormalDist().inv_cdf(POWER)
Z_ONE_SIDED = NormalDist().inv_cdf(CONFIDENCE_LEVEL)

_ITERATIONS = 50


def detectable_difference(
    variance: Column,
    pseudo: Column,
    size: Column,
    items: Counts,
    maximum: float = 100.0,
    tests: int = 1,
    is_mean: bool = False,
) -> Column:
    """Return the true mean difference of which 80% of samples give a verdict; NaN if none does.

    variance, pseudo, size: see `DifferenceVariances`. The true difference is a share of answers
    that lose `maximum` in place of the difference that their items show, so it increases the
    variance itself. tests: how many tests Holm's correction is over; only one of them has a
    difference. Enough items have to differ, all in one direction, for p to be low enough: six for a
    single test.

    is_mean: of a mean over strata, whose sums of differences are as good as continuous. It varies
    less in units of its standard error, which is larger where more answers are lost; but the test
    flips signs around 0, so the difference widens what it is compared with. For a single stratum,
    whose p-values are few, leaving out both agrees better with simulations.
    """
    z_test = NormalDist().inv_cdf(1 - ALPHA / (2 * tests))
    fewest = math.ceil(math.log2(2 * tests / ALPHA))
    difference = np.zeros_like(variance)
    with np.errstate(invalid="ignore", divide="ignore"):
        # If this share of the items differs, enough of them do with a probability of 80%.
        fewest_share = special.betaincinv(fewest, items - fewest + 1, POWER)
        for _ in range(_ITERATIONS):
            lost = np.minimum(difference / maximum, 1.0)
            added = lost * (1 - lost) * maximum**2 / items
            square = variance * (1 - lost) + added
            share = np.where(square > 0, added / square, 0.0) * is_mean
            test = z_test * np.sqrt(square + is_mean * difference**2 / items)
            bound = Z_TWO_SIDED * np.sqrt(square + pseudo)
            # The added part of the variance counts by (1 - share / 2)**2.
            error = np.sqrt(square * (1 - share**2 + share**3 / 4))
            difference = np.maximum(test, bound) + Z_POWER * error
        detectable = np.maximum(difference, fewest_share * size)
    return np.asarray(np.where(items >= fewest, detectable, np.nan))
