"""Minimum detectable difference of correct answers: the power of the exact McNemar test.

For two models that differ on a share ψ of the items, the number of discordant items is binomial,
and given that number, so is the number that only the better model has correct.
"""

from __future__ import annotations

import math
from collections.abc import Callable
from functools import cache, lru_cache
from statistics import NormalDist

import numpy as np

from numbench.stats.design import Column, Counts
from numbench.stats.mcnemar import (
    ALPHA,
    Z_CONFIDENCE,
    DiscordantCounts,
    min_significant_discordant,
)

POWER = 0.80
Z_POWER = NormalDist().inv_cdf(POWER)

_MAX_ENUMERATED = 1_000
"""With more expected discordant items, the normal approximation is accurate to 1 %."""

_RELATIVE_TOLERANCE = 1e-4
_TAIL_SDS = 6.0


def exact_power(n: int, discordance: float, difference: float) -> float:
    """Return the probability that the exact McNemar test of n items finds a difference (5 %).

    discordance: probability that the models differ on an item. difference: true difference of
    their shares of correct answers, at most `discordance`. A significant difference in the wrong
    direction does not count.
    """
    low, high = _likely_range(n, discordance)
    totals = np.arange(low, high + 1)
    if not len(totals):
        return 0.0
    better = (1 + difference / discordance) / 2
    # All significant outcomes of all totals in one array.
    critical = np.array([critical_count(total) for total in totals.tolist()])
    outcomes = totals - critical + 1
    starts = np.cumsum(outcomes) - outcomes
    total_of = np.repeat(totals, outcomes)
    better_only = np.arange(len(total_of)) + np.repeat(critical - starts, outcomes)
    found = np.add.reduceat(binomial_probabilities(total_of, better_only, better), starts)
    return float(binomial_probabilities(np.asarray(n), totals, discordance) @ found)


def minimum_detectable_difference(counts: DiscordantCounts) -> float | None:
    """Return the true difference (a share) detected with 80 % power at the 5 % level.

    The discordance is the observed one, or the difference itself if that is larger: then the
    models differ in one direction only. None if no difference up to 1 is detectable, as with
    fewer items than the test needs.
    """
    observed = round(counts.first_only + counts.second_only)
    return _minimum_detectable(round(counts.n), observed)


@lru_cache(maxsize=10_000)
def _minimum_detectable(n: int, observed: int) -> float | None:
    if exact_power(n, 1.0, 1.0) < POWER:
        return None
    if not observed:
        return _solve(lambda d: exact_power(n, d, d), min(0.9, 8 / n), 0.0, 1.0)
    discordance = observed / n
    if exact_power(n, discordance, discordance) < POWER:
        return _minimum_detectable(n, 0)
    approximation = _normal_approximation(n, discordance)
    if observed > _MAX_ENUMERATED:
        return approximation
    guess = min(approximation, 0.9 * discordance)
    return _solve(lambda d: exact_power(n, discordance, d), guess, 0.0, discordance)


def _solve(power: Callable[[float], float], guess: float, low: float, high: float) -> float:
    """Return the difference with a power of 80 % between `low`, where it is less, and `high`.

    The power increases with the difference: regula falsi, bisected where it does not halve.
    """
    below, above = -POWER, 1 - POWER
    while high - low > _RELATIVE_TOLERANCE * high:
        excess = power(guess) - POWER
        width = high - low
        if excess < 0:
            low, below = guess, excess
        else:
            high, above = guess, excess
        guess = (low + high) / 2
        if high - low <= width / 2:
            # A little beyond the estimate, so that the root is enclosed from both sides.
            estimate = low - below * (high - low) / (above - below)
            guess += 0.98 * (estimate - guess)
    return high


def _normal_approximation(n: int, discordance: float) -> float:
    """Solve d·√n = z₀.₉₇₅·√ψ + z₀.₈·√(ψ − d²) (Connor 1987)."""
    radicand = n * Z_CONFIDENCE**2 - (n + Z_POWER**2) * (Z_CONFIDENCE**2 - Z_POWER**2)
    root = math.sqrt(max(0.0, radicand))
    return math.sqrt(discordance) * (math.sqrt(n) * Z_CONFIDENCE + root) / (n + Z_POWER**2)


def _likely_range(n: int, share: float) -> tuple[int, int]:
    """Return the numbers of discordant items that matter; fewer than six are never significant."""
    spread = _TAIL_SDS * math.sqrt(n * share * (1 - share)) + _TAIL_SDS
    low = max(min_significant_discordant(), math.floor(n * share - spread))
    return low, min(n, math.ceil(n * share + spread))


@cache
def critical_count(total: int) -> int:
    """Return the least number of `total` discordant items in one direction that is significant."""
    tails = np.cumsum(binomial_probabilities(np.asarray(total), np.arange(total // 2 + 1), 0.5))
    # Relative to rounding, no tail of a fair binomial is this close to 2.5 %.
    return total - int(np.searchsorted(tails, ALPHA / 2 * (1 + 1e-12), side="right")) + 1


def binomial_probabilities(n: Counts, successes: Counts, p: float) -> Column:
    """Return the probabilities of numbers of successes in n trials."""
    if p >= 1.0:
        return np.asarray((successes == n).astype(np.float64))
    factorials = _log_factorials(1 << int(n.max()).bit_length())
    coefficients = factorials[n] - factorials[successes] - factorials[n - successes]
    logarithms = successes * math.log(p) + (n - successes) * math.log1p(-p)
    return np.asarray(np.exp(coefficients + logarithms))


@lru_cache(maxsize=8)
def _log_factorials(count: int) -> Column:
    return np.concatenate([[0.0], np.cumsum(np.log(np.arange(1.0, count + 1)))])
