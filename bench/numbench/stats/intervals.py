"""Intervals of mean scores, of differences between them, and of other means.

A response is one sample of what a model says to an item, so the spread over items includes the
variation between repeated requests: all intervals cover both.
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy import special

from numbench.stats.design import (
    Column,
    Design,
    Indices,
    Stratum,
    drawn_together,
    residual_products,
    residual_squares,
)

CONFIDENCE_LEVEL = 0.95
ALPHA = 0.05
Z_TWO_SIDED = NormalDist().inv_cdf((1 + CONFIDENCE_LEVEL) / 2)

_FEW = np.array([0.0, 1.0, 2.0, 3.0])
# The expected number of events for which so few or more have a probability of 5% (Brown, Cai and
# DasGupta 2001).
_POISSON_BOUNDS = np.append(0.0, special.gammaincinv(_FEW[1:], ALPHA))
_RARE = 0.1
"""Up to this proportion, numbers of events are close to Poisson ones."""


class Interval(NamedTuple):
    """Lower and upper bound, in the unit of the averaged values."""

    low: float
    high: float


class MeanIntervals(NamedTuple):
    """Mean and bounds per column, NaN for a column without items."""

    mean: Column
    low: Column
    high: Column


def wilson(successes: float, n: int) -> Interval:
    """Return Wilson's score interval of the proportion successes / n, within [0, 1].

    The share of an item's samples that succeed is a fraction of a success. Raises ValueError if n
    is 0 or successes is not in 0 … n.
    """
    if not 0 <= successes <= n or n == 0:
        raise ValueError(f"{successes} successes in {n} observations")
    low, high = _wilson_bounds(np.array([successes / n]), np.array([float(n)]))
    return Interval(float(low[0]), float(high[0]))


def score_interval(
    scores: Column, maximum: float = 100.0, design: Design | None = None
) -> Interval:
    """Return the 95 % interval of the mean of scores in [0, maximum]; see `mean_intervals`.

    Raises ValueError if there are no scores.
    """
    if not len(scores):
        raise ValueError("a column without values has no interval")
    _, low, high = mean_intervals([Stratum("", scores[:, None], design)], maximum)
    return Interval(float(low[0]), float(high[0]))


def mean_intervals(strata: Sequence[Stratum], maximum: float = 100.0) -> MeanIntervals:
    """Return 95 % intervals of the unweighted mean of the strata's means, for each column.

    Scores are in [0, maximum]. The bounds are Wilson's with an effective number of items: that of
    correct and wrong answers with the same standard error. The standard error includes two
    pseudo-items, 0 and `maximum`, so that no interval has zero width. With one stratum of
    independent scores of 0 and maximum this is Wilson's interval. With three effective errors or
    fewer (or correct answers) that are at most a tenth, the bound next to the end is that of Brown,
    Cai and DasGupta.

    Raises ValueError if there is no stratum.
    """
    if not strata:
        raise ValueError("no questions to average")
    scaled = [stratum._replace(values=stratum.values / maximum) for stratum in strata]
    items = np.sum([stratum.n for stratum in scaled], axis=0)
    mean = mean_of_means(scaled)
    # `squares` belongs to a single set of `items`: the variance of the mean times items².
    squares = variance_of_mean(scaled, 0.25 if len(scaled) > 1 else None) * items**2
    with np.errstate(invalid="ignore", divide="ignore"):
        pseudo_mean = (items * mean + 1) / (items + 2)
        pseudo_squares = squares + mean**2 + (1 - mean) ** 2
        pseudo_squares -= (items + 2) * (mean - pseudo_mean) ** 2
        binary_squares = (items + 2) * pseudo_mean * (1 - pseudo_mean)
        effective = items * binary_squares / pseudo_squares
        low, high = _wilson_bounds(mean, effective)
        low = np.minimum(low, _low_of_rare(mean, effective))
        high = np.maximum(high, 1 - _low_of_rare(1 - mean, effective))
    return MeanIntervals(mean * maximum, low * maximum, high * maximum)


def difference_intervals(strata: Sequence[Stratum], maximum: float = 100.0) -> MeanIntervals:
    """Return 95% intervals of the mean of the strata's mean differences, for each column.

    Differences are in [−maximum, maximum]. The bounds are mean ± 1.96 · standard error, with the
    pseudo-items of `difference_variances`.

    Raises ValueError if there is no stratum.
    """
    if not strata:
        raise ValueError("no questions to compare")
    mean = mean_of_means(strata)
    variance, pseudo, _ = difference_variances(strata, maximum)
    half = Z_TWO_SIDED * np.sqrt(variance + pseudo)
    return MeanIntervals(mean, np.maximum(mean - half, -maximum), np.minimum(mean + half, maximum))


class DifferenceVariances(NamedTuple):
    """What the interval of a mean difference is made of, per column.

    variance: of the mean difference. pseudo: what two pseudo-items add to it, one in each direction
    (Bonett and Price 2012); their size is the root mean square of the items that differ and of one
    difference of the maximum. size: the mean absolute difference of the items that differ, each
    weighted by itself; the maximum if none does.
    """

    variance: Column
    pseudo: Column
    size: Column


def difference_variances(strata: Sequence[Stratum], maximum: float = 100.0) -> DifferenceVariances:
    """Return the variances of the mean of the strata's mean differences, for each column."""
    values = np.concatenate([stratum.values for stratum in strata])
    items = np.sum([stratum.n for stratum in strata], axis=0)
    differing = np.count_nonzero(np.nan_to_num(values), axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        mean_square = (np.nansum(values**2, axis=0) + maximum**2) / (differing + 1)
        size = np.nansum(values**2, axis=0) / np.nansum(np.abs(values), axis=0)
    return DifferenceVariances(
        variance_of_mean(strata, maximum**2),
        2 * mean_square / np.maximum(items, 1) ** 2,
        np.where(differing > 0, size, maximum),
    )


def amount_intervals(strata: Sequence[Stratum], signed: bool = False) -> MeanIntervals:
    """Return 95% intervals of the mean of the strata's means of amounts, such as tokens.

    The bounds are mean · exp(± t · standard error / mean) with Student's t; for differences of
    amounts (`signed`) mean ± t · standard error. They are NaN if a stratum has a single item.
    """
    mean = mean_of_means(strata)
    freedom = np.sum([np.maximum(stratum.n - 1, 0) for stratum in strata], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        half = np.sqrt(variance_of_mean(strata, np.nan))
        half *= special.stdtrit(freedom, (1 + CONFIDENCE_LEVEL) / 2)
        if signed:
            return MeanIntervals(mean, mean - half, mean + half)
        factor = np.exp(half / mean)
    return MeanIntervals(mean, mean / factor, mean * factor)


def ratio_of_means(
    numerators: Sequence[Stratum], denominators: Sequence[Stratum]
) -> tuple[float, float, float] | None:
    """Return the ratio of two means of the strata's means, and its 95% interval.

    None unless both are positive.

    The strata have one column each, and the same items. The standard error is that of the mean of
    numerator − ratio · denominator (linearization; Cochran 1977, section 6.4); the interval is
    symmetric for the logarithm of the ratio. The mean of the denominators must be well above 0.
    """
    top, bottom = (float(mean_of_means(strata)[0]) for strata in (numerators, denominators))
    if not (top > 0 and bottom > 0):
        return None
    value = top / bottom
    residuals = [
        above._replace(values=above.values - value * below.values)
        for above, below in zip(numerators, denominators, strict=True)
    ]
    largest = max(float((s.values**2).max()) for s in residuals)
    factor = math.exp(Z_TWO_SIDED * math.sqrt(variance_of_mean(residuals, largest)[0]) / top)
    return value, value / factor, value * factor


def mean_of_means(strata: Sequence[Stratum]) -> Column:
    """Return the unweighted mean of the strata's means; NaN if one has no items."""
    return np.asarray(np.mean([stratum.means for stratum in strata], axis=0))


def variance_of_mean(strata: Sequence[Stratum], of_single: float | None) -> Column:
    """Return the variance of the mean of the strata's means, per column.

    Items that were drawn together add the covariance of their scores. of_single: the variance of
    a stratum with a single item, which shows none; None to divide the sums of squares by n² instead
    of n · (n − 1), as Wilson's interval does.
    """
    variance = np.zeros(strata[0].values.shape[1])
    for stratum, together in zip(strata, drawn_together(strata), strict=True):
        n = np.maximum(stratum.n, 1)
        squares = residual_squares(stratum)
        if of_single is not None:
            squares = np.where(n > 1, squares * n / np.maximum(n - 1, 1), of_single)
        variance += squares / n**2
        for earlier, here, there in together:
            other = strata[earlier]
            if len(here) > 1:
                products = _cluster_products(stratum, here, other, there)
                variance += 2 * products / (n * np.maximum(other.n, 1))
    return np.asarray(np.maximum(variance, 0.0) / len(strata) ** 2)


def _cluster_products(first: Stratum, here: Indices, second: Stratum, there: Indices) -> Column:
    """Return the estimated covariance of the sums of two strata that share items."""
    design = first.design
    if design is not None:
        position = np.full(len(first.values), -1)
        position[here] = np.arange(len(here))
        order = position[design.order]
        design = design._replace(order=order[order >= 0])
    return residual_products(first.values[here], second.values[there], design)


def _wilson_bounds(p: Column, n: Column) -> tuple[Column, Column]:
    """Return Wilson's bounds of proportions `p` of `n` items, which may be fractional."""
    z = Z_TWO_SIDED
    center = (p + z * z / (2 * n)) / (1 + z * z / n)
    half = z * np.sqrt(np.maximum(p * (1 - p), 0) / n + (z / (2 * n)) ** 2) / (1 + z * z / n)
    # These bounds are exactly 0 and 1; floating point only approaches them.
    low = np.where(p <= 0, 0.0, np.minimum(center - half, p))
    high = np.where(p >= 1, 1.0, np.maximum(center + half, p))
    return low, high


def _low_of_rare(p: Column, n: Column) -> Column:
    """Return the lower bound of proportions of up to three in n events, infinite for others."""
    events = p * n
    bounds = np.minimum(np.interp(events, _FEW, _POISSON_BOUNDS), events) / n
    # The tolerance includes integers that are not exact.
    rare = (events <= _FEW[-1] + 1e-6) & (p <= _RARE)
    return np.where(rare, bounds, np.inf)
