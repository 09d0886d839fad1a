"""Minimum detectable difference of means: the power of verdicts, by simulation.

A verdict needs p ≤ 5 % in the permutation test and an interval that excludes 0. Differences are
drawn from the sizes of the observed ones. All columns use the same random numbers, so the results
of one dataset are comparable, and the same in every report.
"""

from __future__ import annotations

import math
from functools import lru_cache
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numbench.stats.design import Column, Counts, Matrix
from numbench.stats.intervals import Z_TWO_SIDED, pseudo_square
from numbench.stats.mcnemar import min_significant_discordant
from numbench.stats.power import POWER, binomial_probabilities, critical_count
from numbench.stats.resampling import uniform_numbers

_MAX_DRAWS = 200_000
_MIN_REPLICATES, _MAX_REPLICATES = 200, 1_000
_BISECTION_STEPS = 12
_EQUAL = 1e-9
_TAIL_SDS = 5.0
_KURTOSIS_CORRECTION = (Z_TWO_SIDED**3 - 3 * Z_TWO_SIDED) / 12
"""Cornish-Fisher: the critical value of Σ±x / √Σx² decreases by this times Σx⁴ / (Σx²)²."""


class _PowerSums(NamedTuple):
    """Sums of powers of the sizes of the first items of each replicate.

    Of shape (replicates, 1) for one number of items per replicate, or (replicates, items) for all
    numbers of items.
    """

    sums: Matrix
    squares: Matrix
    fourths: Matrix


def minimum_detectable_mean_difference(
    contributions: Column, largest: float, max_difference: float = math.inf
) -> float | None:
    """Return the true mean difference of which 80 % of samples show a verdict.

    contributions: of each item, or group of items that were drawn together, to the mean
    difference. largest: the largest possible contribution of an item. The number of differing
    items and the sizes of their differences remain, and more of them have the better model's
    sign; if even all of them are too few, more items differ. None if no item differs (equal
    scores do not show how much differences vary), if no difference is detectable, or if the result
    exceeds `max_difference`.
    """
    sizes = np.abs(contributions[contributions != 0])
    n = len(contributions)
    if not len(sizes) or n < min_significant_discordant():
        return None
    tilt = _detectable_tilt(sizes, n, largest)
    if tilt is not None:
        detectable = tilt * float(sizes.sum())
    else:
        number = _detectable_number(sizes, n, largest)
        if number is None:
            return None
        detectable = number * float(sizes.mean())
    return detectable if detectable <= max_difference else None


def _detectable_tilt(sizes: Column, n: int, largest: float) -> float | None:
    """Return the excess of items in one direction, 0 … 1, that is detected; None if none is."""
    drawn = _draw(sizes, n, len(sizes))
    numbers = _numbers_of_differing(n, len(sizes), len(drawn))
    of_rows = _sums_of_first(drawn, numbers)
    critical = _critical_sums(of_rows, numbers[:, None], sizes, n, largest)
    # The items of a row are in random order, so those in the better model's direction can be the
    # first ones: `needed` is the least number of them that is enough.
    needed = 1 + np.sum(np.cumsum(drawn, axis=1) < (of_rows.sums + critical) / 2, axis=1)
    # Each has the better direction with the same probability. It is large enough for `needed` of
    # them if it exceeds their order statistic, which has a beta distribution.
    others = np.maximum(numbers - needed + 1, 1)
    least = _beta_quantiles(needed, others, _normal_scores(len(numbers)))
    tilts = np.where(needed <= numbers, 2 * least - 1, np.inf)
    tilt = float(np.quantile(tilts, POWER, method="higher"))
    return max(tilt, 0.0) if tilt <= 1 else None


def _beta_quantiles(a: Counts, b: Counts, z: Column) -> Column:
    """Return quantiles of beta distributions, given as those of the normal distribution.

    Source: M. Abramowitz, I. A. Stegun, Handbook of Mathematical Functions, 26.5.22.
    """
    h = 2 / (1 / (2 * a - 1) + 1 / (2 * b - 1))
    skew = (z * z - 3) / 6
    w = z * np.sqrt(h + skew) / h
    w += (1 / (2 * b - 1) - 1 / (2 * a - 1)) * (skew + 5 / 6 - 2 / (3 * h))
    return np.asarray(a / (a + b * np.exp(-2 * w)))


def _detectable_number(sizes: Column, n: int, largest: float) -> float | None:
    """Return the expected number of differing items, all in one direction, that is detected."""
    low, high, power = 0.0, float(len(sizes)), 0.0
    while power < POWER:
        if high >= n:
            return None
        low, high = high, min(2 * high, float(n))
        drawn = _cumulate(_draw(sizes, n, high))
        numbers = np.arange(1, drawn.sums.shape[1] + 1)
        is_detected = drawn.sums >= _critical_sums(drawn, numbers, sizes, n, largest)
        power = _power(is_detected, n, high)
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        is_enough = _power(is_detected, n, middle) >= POWER
        low, high = (low, middle) if is_enough else (middle, high)
    return high


def _power(is_detected: npt.NDArray[np.bool_], n: int, expected: float) -> float:
    """Return the share of replicates with a verdict, for an expected number of differing items."""
    numbers = _numbers_of_differing(n, expected, len(is_detected))
    rows = np.flatnonzero(numbers)
    return float(np.count_nonzero(is_detected[rows, numbers[rows] - 1]) / len(numbers))


def _critical_sums(
    drawn: _PowerSums, numbers: Counts, sizes: Column, n: int, largest: float
) -> Matrix:
    """Return the least sum of differences that is a verdict, infinite where there is none."""
    of_interval = Z_TWO_SIDED * np.sqrt(
        (drawn.squares + 2 * pseudo_square(drawn.squares, numbers, largest))
        / (1 + Z_TWO_SIDED**2 / n)
    )
    if np.ptp(sizes) <= _EQUAL * sizes.max():
        counts = np.array([0, *(critical_count(total) for total in range(1, numbers.max() + 1))])
        of_test = (2 * counts[numbers] - numbers - _EQUAL) * sizes.max()
    else:
        kurtosis = drawn.fourths / np.maximum(drawn.squares**2, np.finfo(float).tiny)
        of_test = (Z_TWO_SIDED - _KURTOSIS_CORRECTION * kurtosis) * np.sqrt(drawn.squares)
    critical = np.maximum(of_interval, of_test)
    return np.asarray(np.where(numbers < min_significant_discordant(), np.inf, critical))


def _numbers_of_differing(n: int, expected: float, replicates: int) -> Counts:
    """Return evenly spaced quantiles of the binomial number of differing items."""
    if expected >= n:
        return np.full(replicates, n)
    cumulated = np.cumsum(binomial_probabilities(np.asarray(n), np.arange(n + 1), expected / n))
    return np.searchsorted(cumulated, (np.arange(replicates) + 0.5) / replicates)


def _draw(sizes: Column, n: int, expected: float) -> Matrix:
    """Return the sizes of as many items as may differ, of shape (replicates, items).

    Those that differ in a replicate are the first of its row.
    """
    items = min(n, math.ceil(expected + _TAIL_SDS * math.sqrt(expected)))
    uniform = _random_numbers(1 << items.bit_length())[:, :items]
    return sizes[(uniform * len(sizes)).astype(np.int64)]


def _cumulate(drawn: Matrix) -> _PowerSums:
    squares = drawn**2
    return _PowerSums(*(np.cumsum(part, axis=1) for part in (drawn, squares, squares**2)))


def _sums_of_first(drawn: Matrix, numbers: Counts) -> _PowerSums:
    is_counted = np.arange(drawn.shape[1]) < numbers[:, None]
    counted = drawn * is_counted
    squares = counted * counted
    of_rows = (counted.sum(axis=1), squares.sum(axis=1), np.einsum("ij,ij->i", squares, squares))
    return _PowerSums(*(sums[:, None] for sums in of_rows))


@lru_cache(maxsize=8)
def _random_numbers(items: int) -> Matrix:
    """Return uniform numbers of shape (replicates, items)."""
    replicates = min(max(_MAX_DRAWS // items, _MIN_REPLICATES), _MAX_REPLICATES)
    return uniform_numbers((replicates, items), "sizes")


@lru_cache(maxsize=8)
def _normal_scores(count: int) -> Column:
    """Return evenly spaced quantiles of the normal distribution in random order."""
    order = np.argsort(uniform_numbers((count,), "order")).tolist()
    return np.array([NormalDist().inv_cdf((rank + 0.5) / count) for rank in order])
