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

from numbench.stats.bootstrap import CONFIDENCE_LEVEL, percentile_bounds, resampled_means
from numbench.stats.design import (
    Column,
    Counts,
    Design,
    Indices,
    Matrix,
    Stratum,
    cluster_pairs,
    residual_products,
    residual_squares,
)

Z_TWO_SIDED = NormalDist().inv_cdf((1 + CONFIDENCE_LEVEL) / 2)

_FEW = np.array([0.0, 1.0, 2.0, 3.0])
# The expected number of events for which so few or more have a probability of 5 %: half the 5 %
# quantile of χ² with 2·events degrees of freedom (Brown, Cai and DasGupta 2001).
_POISSON_BOUNDS = np.array([0.0, 0.051293, 0.355362, 0.817691])
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


def mean_intervals(
    strata: Sequence[Stratum], maximum: float = 100.0, pooled: bool = False
) -> MeanIntervals:
    """Return 95 % intervals of the unweighted mean of the strata's means, for each column.

    pooled: of the mean over all items of the strata instead. Scores are in [0, maximum]. The bounds
    are Wilson's with an effective number of items: that of correct and wrong answers with the same
    standard error. The standard error includes two pseudo-items, 0 and `maximum`, so that no
    interval has zero width. With one stratum of independent scores of 0 and maximum this is
    Wilson's interval. With three effective errors or fewer (or correct answers) that are at most a
    tenth, the bound next to the end is that of Brown, Cai and DasGupta.

    Raises ValueError if there is no stratum.
    """
    if not strata:
        raise ValueError("no items to average")
    scaled = [stratum.with_values(stratum.values / maximum) for stratum in strata]
    items = np.sum([stratum.n for stratum in scaled], axis=0)
    weights = [stratum.n for stratum in scaled] if pooled else None
    mean = mean_of_means(scaled, weights)
    # `squares` belongs to a single set of `items`: the variance of the mean times items².
    squares = variance_of_mean(scaled, 0.25, weights) * items**2
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
    """Return 95 % intervals of the mean of the strata's mean differences, for each column.

    Differences are in [−maximum, maximum]. The bounds are mean ± 1.96 · standard error. Like
    Bonett and Price (2012) for proportions, the standard error includes two pseudo-items, one in
    each direction; their size is the root mean square of the items that differ and of one
    difference of `maximum`.

    Raises ValueError if there is no stratum.
    """
    if not strata:
        raise ValueError("no items to compare")
    mean = mean_of_means(strata)
    contributions = np.concatenate(item_contributions(strata))
    items = np.sum([stratum.n for stratum in strata], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        squares = np.nansum(contributions**2, axis=0)
        differing = np.count_nonzero(np.nan_to_num(contributions), axis=0)
        pseudo = pseudo_square(squares, differing, maximum / items)
        half = Z_TWO_SIDED * np.sqrt(variance_of_mean(strata, maximum**2) + 2 * pseudo)
    return MeanIntervals(mean, np.maximum(mean - half, -maximum), np.minimum(mean + half, maximum))


def pseudo_square(squares: Column, differing: Column | Counts, largest: Column | float) -> Column:
    """Return the squared size of a pseudo-item, given the sum of squares of the differing items."""
    return np.asarray((squares + largest**2) / (differing + 1))


def item_contributions(strata: Sequence[Stratum]) -> list[Matrix]:
    """Return per stratum what each item contributes to the mean of the strata's means.

    NaN if an item does not count.
    """
    return [stratum.values / (len(strata) * np.maximum(stratum.n, 1)) for stratum in strata]


def bootstrap_means(strata: Sequence[Stratum]) -> list[Interval]:
    """Return the percentile interval of the mean of each stratum of one column.

    From 10,000 resamples, for means without a known maximum, like tokens. The strata may differ in
    length. An interval depends only on its own stratum. With a design, the resampled means are
    drawn towards their centre until they have the design's standard error.

    Raises ValueError if a stratum is empty.
    """
    columns = [stratum.values[:, 0] for stratum in strata]
    if any(len(column) == 0 for column in columns):
        raise ValueError("a column without values has no interval")
    ratios = [_design_ratio(stratum) for stratum in strata]
    intervals: dict[int, Interval] = {}
    for indices, means in resampled_means(columns):
        lows, highs = percentile_bounds(means)
        for index, low, high in zip(indices, lows.tolist(), highs.tolist(), strict=True):
            mean, ratio = float(columns[index].mean()), ratios[index]
            intervals[index] = Interval(
                mean + ratio * (low - mean) if ratio != 1.0 else low,
                mean + ratio * (high - mean) if ratio != 1.0 else high,
            )
    return [intervals[index] for index in range(len(columns))]


def bootstrap_mean_of_means(strata: Sequence[Stratum], intervals: Sequence[Interval]) -> Interval:
    """Return the interval of the unweighted mean of the means of strata of one column each.

    intervals: those of the strata's means by `bootstrap_means`. The squared distances of their
    bounds from the means are added, with the covariances of items that were drawn together.
    """
    count = len(strata)
    means = [float(stratum.means[0]) for stratum in strata]
    below = math.hypot(*(m - low for m, (low, _) in zip(means, intervals, strict=True)))
    above = math.hypot(*(high - m for m, (_, high) in zip(means, intervals, strict=True)))
    apart = [stratum._replace(clusters=None) for stratum in strata]
    independent = float(variance_of_mean(apart, 0.0)[0])
    ratio = math.sqrt(float(variance_of_mean(strata, 0.0)[0]) / independent) if independent else 1.0
    mean = math.fsum(means) / count
    return Interval(mean - ratio * below / count, mean + ratio * above / count)


def _design_ratio(stratum: Stratum) -> float:
    """Return the standard error under the design as a share of that of independent items."""
    independent = float(residual_squares(stratum._replace(design=None))[0])
    return math.sqrt(float(residual_squares(stratum)[0]) / independent) if independent else 1.0


def mean_of_means(strata: Sequence[Stratum], weights: Sequence[Counts] | None = None) -> Column:
    """Return the mean of the strata's means, unweighted by default; NaN if one has no items."""
    weights = weights or _equal_weights(strata)
    weighted = [weight * stratum.means for weight, stratum in zip(weights, strata, strict=True)]
    return np.asarray(np.sum(weighted, axis=0) / np.sum(weights, axis=0))


def variance_of_mean(
    strata: Sequence[Stratum], largest_variance: float, weights: Sequence[Counts] | None = None
) -> Column:
    """Return the variance of the mean of the strata's means, per column.

    Items that were drawn together add the covariance of their scores. A single item shows no
    variance; it gets `largest_variance`, except in a single stratum.
    """
    weights = weights or _equal_weights(strata)
    variance = np.zeros(strata[0].values.shape[1])
    for index, stratum in enumerate(strata):
        n = np.maximum(stratum.n, 1)
        squares = residual_squares(stratum)
        if len(strata) > 1:
            # A single stratum keeps Wilson's form, which has no such correction.
            squares = np.where(n > 1, squares * n / np.maximum(n - 1, 1), largest_variance)
        variance += weights[index] ** 2 * squares / n**2
        for earlier, other in enumerate(strata[:index]):
            here, there = cluster_pairs(stratum, other)
            if len(here) > 1:
                products = _cluster_products(stratum, here, other, there)
                both = weights[index] * weights[earlier]
                variance += 2 * both * products / (n * np.maximum(other.n, 1))
    return np.asarray(np.maximum(variance, 0.0) / np.sum(weights, axis=0) ** 2)


def _equal_weights(strata: Sequence[Stratum]) -> list[Counts]:
    return [np.ones(strata[0].values.shape[1], dtype=np.int64)] * len(strata)


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
