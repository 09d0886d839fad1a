"""Two models' right and wrong answers to the same items: exact test, interval, needed difference.

Only the discordant items speak: those that one of the two has right and the other wrong.
"""

from __future__ import annotations

import itertools
import math
import sys
from functools import cache
from typing import NamedTuple

from bench.stats.normal import ALPHA, Z_LEVEL, Z_POWER

_HALVINGS = 60


class Discordance(NamedTuple):
    """Of `n` items, how many only the first model has right, and how many only the second."""

    first_only: int
    second_only: int
    n: int

    @property
    def difference(self) -> float:
        """Share of the first model's right answers less that of the second, -1 … 1."""
        return (self.first_only - self.second_only) / self.n


def mcnemar(first_only: int, second_only: int) -> float:
    """Exact two-sided p-value: twice the smaller tail of a fair coin, at most 1, never 0.

    ValueError for negative counts.
    """
    fewer, flips = min(first_only, second_only), first_only + second_only
    if fewer < 0:
        raise ValueError(f"discordant items {first_only} and {second_only}")
    ways = tail = 1
    for heads in range(fewer):
        ways = ways * (flips - heads) // (heads + 1)
        tail += ways
    # Beyond about a thousand coins the quotient is smaller than any float.
    p: float = 2 * tail / 2**flips
    return min(1.0, max(p, sys.float_info.min))


def score_interval(counts: Discordance) -> tuple[float, float]:
    """Tango's 95 % score interval of the difference, within [-1, 1]; ValueError without items.

    The differences that a score test would not refuse, the other parameter at its most likely
    value. It has a width even where no item is discordant.
    """
    first_only, second_only, n = counts
    if n <= 0 or min(first_only, second_only) < 0 or first_only + second_only > n:
        raise ValueError(f"{first_only} and {second_only} discordant of {n} items")
    swapped = Discordance(second_only, first_only, n)
    return -_upper(swapped), _upper(counts)


def _upper(counts: Discordance) -> float:
    """The largest difference that is not refused, by bisection; the test is monotone in it."""
    low, high = counts.difference, 1.0
    for _ in range(_HALVINGS):
        middle = (low + high) / 2
        low, high = (middle, high) if _score(counts, middle) > -Z_LEVEL else (low, middle)
    return high


def _score(counts: Discordance, difference: float) -> float:
    """Tango's statistic: standard normal if `difference` is the true one."""
    first_only, second_only, n = counts
    b = -first_only - second_only + (2 * n - first_only + second_only) * difference
    c = -second_only * difference * (1 - difference)
    share = (math.sqrt(max(0.0, b * b - 8 * n * c)) - b) / (4 * n)
    variance = n * (2 * share + difference * (1 - difference))
    excess = first_only - second_only - n * difference
    if variance <= 0:
        return 0.0 if excess == 0 else math.copysign(math.inf, excess)
    return excess / math.sqrt(variance)


@cache
def fewest_discordant() -> int:
    """How many items one model must have right, and the other none of them, for p ≤ 0.05."""
    return next(count for count in itertools.count(1) if mcnemar(count, 0) <= ALPHA)


def smallest_difference(counts: Discordance) -> float | None:
    """The true difference (a share) that n such items show with a power of 80 % at the 5 % level.

    Solves d·√n = z₀.₉₇₅·√ψ + z₀.₈·√(ψ − d²) with the observed discordance ψ (Connor 1987), and is
    never less than the difference below which the exact test cannot reach 5 % at all. None where
    no difference up to 1 would do, as with fewer items than that test needs.
    """
    n = counts.n
    if n < fewest_discordant():
        return None
    psi = (counts.first_only + counts.second_only) / n
    inside = n * Z_LEVEL**2 - (n + Z_POWER**2) * (Z_LEVEL**2 - Z_POWER**2)
    root = math.sqrt(max(0.0, inside))
    needed = math.sqrt(psi) * (math.sqrt(n) * Z_LEVEL + root) / (n + Z_POWER**2)
    smallest = max(needed, fewest_discordant() / n)
    return smallest if smallest <= 1 else None
