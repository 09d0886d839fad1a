"""Paired correct and wrong answers of two models: exact test and interval.

Only the discordant items carry information: those that exactly one of the two models answers
correctly.
"""

from __future__ import annotations

import itertools
import math
import sys
from functools import cache
from statistics import NormalDist
from typing import NamedTuple

ALPHA = 0.05
Z_CONFIDENCE = NormalDist().inv_cdf(1 - ALPHA / 2)

_BISECTION_STEPS = 60


class DiscordantCounts(NamedTuple):
    """Of `n` items, the numbers that only the first and only the second model has correct."""

    first_only: int
    second_only: int
    n: int

    @property
    def difference(self) -> float:
        """Share of correct answers of the first model minus that of the second, -1 … 1."""
        return (self.first_only - self.second_only) / self.n


def mcnemar(first_only: int, second_only: int) -> float:
    """Return the exact two-sided p-value: twice the smaller binomial tail, at most 1, never 0.

    Raises ValueError if a count is negative.
    """
    smaller, discordant = min(first_only, second_only), first_only + second_only
    if smaller < 0:
        raise ValueError(f"discordant items {first_only} and {second_only}")
    coefficient = tail = 1
    for k in range(smaller):
        coefficient = coefficient * (discordant - k) // (k + 1)
        tail += coefficient
    # With more than about a thousand discordant items the quotient may underflow to 0.
    p: float = 2 * tail / 2**discordant
    return min(1.0, max(p, sys.float_info.min))


def tango_interval(
    counts: DiscordantCounts, z: float = Z_CONFIDENCE, design_effect: float = 1.0
) -> tuple[float, float]:
    """Return Tango's score interval of the difference, within [-1, 1] (Tango 1998).

    It contains the differences that the score test does not reject at the critical value `z` (by
    default 95 %), with the nuisance parameter at its maximum-likelihood estimate. Its width is
    positive even without discordant items. design_effect: variance of the difference as a
    multiple of that of independent items; all counts are divided by it.

    Raises ValueError if n is 0 or the counts are impossible.
    """
    first_only, second_only, n = counts
    if n <= 0 or min(first_only, second_only) < 0 or first_only + second_only > n:
        raise ValueError(f"{first_only} and {second_only} discordant of {n} items")
    exchanged = DiscordantCounts(second_only, first_only, n)
    # Dividing all counts by a number divides the statistic by its root.
    critical = z * math.sqrt(design_effect)
    return -_upper_bound(exchanged, critical), _upper_bound(counts, critical)


def _upper_bound(counts: DiscordantCounts, critical: float) -> float:
    """Return the largest difference that is not rejected, by bisection; the test is monotone."""
    low, high = counts.difference, 1.0
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        if _tango_statistic(counts, middle) > -critical:
            low = middle
        else:
            high = middle
    return high


def _tango_statistic(counts: DiscordantCounts, difference: float) -> float:
    """Return Tango's statistic, standard normal if `difference` is the true one.

    q21 is the maximum-likelihood estimate of the probability that only the second model is
    correct, given the difference: the positive root of 2n q² + b q + c = 0.
    """
    first_only, second_only, n = counts
    b = -first_only - second_only + (2 * n - first_only + second_only) * difference
    c = -second_only * difference * (1 - difference)
    q21 = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
    variance = n * (2 * q21 + difference * (1 - difference))
    excess = first_only - second_only - n * difference
    if variance <= 0:
        return 0.0 if excess == 0 else math.copysign(math.inf, excess)
    return excess / math.sqrt(variance)


@cache
def min_significant_discordant() -> int:
    """Return how many items one model must have correct, and the other none, for p ≤ 0.05."""
    return next(count for count in itertools.count(1) if mcnemar(count, 0) <= ALPHA)
