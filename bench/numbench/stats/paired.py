"""Paired comparison of models: difference, interval, p-value, one-sided bounds, spread.

The test: if two models are equally good, their scores on an item are exchangeable, so the
difference of the item is as likely positive as negative. This holds for any sampling design.

The one-sided bounds are Gaffke's, whose error rate holds if large losses are rare: among all
weightings of the items and of one further item with the worst possible difference, drawn uniformly,
the 5% quantile of the weighted mean. For differences of 0 and the worst value this is the bound of
Clopper and Pearson.

Sources: N. Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of
a nonnegative variable (2005); M. Phan, P. S. Thomas, E. Learned-Miller, Towards Practical Mean
Bounds for Small Samples (2021). The quantile: O. E. Barndorff-Nielsen, Approximate interval
probabilities (1990).
"""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from numbench.stats.design import Column, Matrix, Stratum, sum_by_draw
from numbench.stats.intervals import (
    ALPHA,
    difference_intervals,
    difference_variances,
    mean_of_means,
    variance_of_mean,
)
from numbench.stats.power import Z_ONE_SIDED, detectable_difference
from numbench.stats.random_streams import coin_flips

_ROUNDING_ERROR = 1e-10
"""Share of the largest score below which a difference of two scores counts as none."""
RESAMPLES = 19_999
_COLUMNS_PER_BATCH = 256
_UNITS = 2.0**30
"""Differences are integers of so many units for the largest one, so that sums of them are exact."""
_BISECTION_STEPS = 32
_LOG_RANGE = 20.0
"""The pole is searched at distances of exp(±20) times the worst difference from it."""


class Difference(NamedTuple):
    """A mean difference over n items with its 95% bounds, in the unit of the scores.

    p: two-sided p-value of the sign-flip test. minimum_detectable: the true difference of which
    80% of samples are significant (see `is_significant`), with p for a single test; None with fewer
    items than a test needs. at_least, at_most: 95% one-sided bounds, each of which holds alone;
    infinite unless `compare` was asked for them. They allow for rare differences of the largest
    size that no item showed, so they may lie outside low … high.
    """

    n: int
    difference: float
    low: float
    high: float
    p: float
    minimum_detectable: float | None
    at_least: float = -math.inf
    at_most: float = math.inf

    def is_significant(self, p: float) -> bool:
        """Return whether p, the p-value or a corrected one, is at most 5% and 0 is excluded.

        The test alone compares the distributions of both models' scores. Only the interval allows
        for rare differences that would change the sign of the mean.
        """
        return p <= ALPHA and not self.low <= 0 <= self.high


class Comparison(NamedTuple):
    """Differences of all pairs; None for a pair without common items.

    strata: per stratum and pair. overall: per pair, of the unweighted mean over the strata.
    """

    strata: list[list[Difference | None]]
    overall: list[Difference | None]


def compare(
    scores: Sequence[Stratum],
    pairs: Sequence[tuple[int, int]],
    maximum: float = 100.0,
    one_sided: bool = False,
    tests: int = 1,
) -> Comparison:
    """Subtract the second model's scores from the first's, for each pair of columns of `scores`.

    An item counts for a pair if it counts for both models. Scores are in [0, maximum]. one_sided:
    whether to compute the one-sided bounds, which takes longer than all the rest. tests: see
    `detectable_difference`.
    """
    differences = [subtract(stratum, pairs, maximum) for stratum in scores]
    of_strata = [compare_means([stratum], maximum, one_sided, tests) for stratum in differences]
    if len(scores) == 1:
        return Comparison(of_strata, of_strata[0])
    overall = compare_means(differences, maximum, one_sided, tests)
    return Comparison(of_strata, overall)


def subtract(scores: Stratum, pairs: Sequence[tuple[int, int]], maximum: float = 100.0) -> Stratum:
    """Return the differences of pairs of columns; rounding errors of means count as 0."""
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    differences = scores.values[:, first] - scores.values[:, second]
    differences[np.abs(differences) < _ROUNDING_ERROR * maximum] = 0.0
    return scores._replace(values=differences)


def compare_means(
    strata: Sequence[Stratum], maximum: float = 100.0, one_sided: bool = False, tests: int = 1
) -> list[Difference | None]:
    """Return the differences of the mean of the strata's means, per column of differences."""
    n = np.sum([stratum.n for stratum in strata], axis=0)
    intervals = difference_intervals(strata, maximum)
    weights = [1 / np.maximum(stratum.n, 1) for stratum in strata]
    p_values = sign_flip_test(strata, weights if len(strata) > 1 else None)
    variances = difference_variances(strata, maximum)
    detectable = detectable_difference(*variances, n, maximum, tests, len(strata) > 1)
    columns: list[Column] = [*intervals, p_values, detectable]
    columns += one_sided_bounds(strata, maximum) if one_sided else ()
    rows = zip(n.tolist(), *(column.tolist() for column in columns), strict=True)
    return [
        None
        if math.isnan(mean)
        else Difference(
            count, mean, low, high, p, None if math.isnan(least) else min(least, maximum), *bounds
        )
        for count, mean, low, high, p, least, *bounds in rows
    ]


def sign_flip_test(strata: Sequence[Stratum], weights: Sequence[Column] | None = None) -> Column:
    """Return the two-sided p-value of each column of differences, NaN if an item does not count.

    The statistic is the sum over all strata of the differences times the weights of the stratum,
    by default 1; items that were drawn together flip together. If all differences have one size,
    p is that of the exact sign test (for correct and incorrect answers, McNemar's test). Otherwise
    it is Hoeffding's bound if that is below 1/20,000, or else estimated from 19,999 random sign
    patterns and the identity. It is never 0, and 1 if no item differs.
    """
    values = [stratum.values for stratum in strata]
    if weights is not None:
        values = [matrix * weight for matrix, weight in zip(values, weights, strict=True)]
    blocks = sum_by_draw(strata, values)
    largest = np.max([np.abs(block).max(axis=0, initial=0.0) for block in blocks], axis=0)
    unit = np.where(largest > 0, largest, 1.0) / _UNITS
    blocks = [np.rint(block / unit) for block in blocks]
    observed = np.abs(np.sum([block.sum(axis=0) for block in blocks], axis=0))
    squares = np.sum([(block**2).sum(axis=0) for block in blocks], axis=0)
    differing = np.sum([np.count_nonzero(block, axis=0) for block in blocks], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.where(differing > 0, 2 * np.exp(-(observed**2) / (2 * squares)), 1.0)
    # A rounded difference is at most one unit from the exact one.
    sizes = [np.where(block == 0, np.inf, np.abs(block)) for block in blocks]
    smallest = np.min([of_block.min(axis=0, initial=np.inf) for of_block in sizes], axis=0)
    equal = (differing > 0) & (smallest >= _UNITS - 2)
    # Twice the binomial tail of the rarer sign.
    rarer = (differing - np.rint(observed / _UNITS)) / 2
    p[equal] = 2 * special.bdtr(rarer[equal], differing[equal], 0.5)
    sampled = np.flatnonzero(~equal & (differing > 0) & (p > 1 / (RESAMPLES + 1)))
    for batch in np.array_split(
        sampled, range(_COLUMNS_PER_BATCH, len(sampled), _COLUMNS_PER_BATCH)
    ):
        bound = (observed - differing)[batch]
        reached = _count_reached([block[:, batch] for block in blocks], strata, bound)
        p[batch] = (1 + reached) / (1 + RESAMPLES)
    return np.asarray(np.clip(p, np.finfo(float).tiny, 1.0))


def _count_reached(blocks: Sequence[Matrix], strata: Sequence[Stratum], bound: Column) -> Column:
    """Count the random sign patterns whose sum is at least as far from 0 as `bound`."""
    sums = np.tile(np.sum([block.sum(axis=0) for block in blocks], axis=0), (RESAMPLES, 1))
    for block, stratum in zip(blocks, strata, strict=True):
        start = 0
        # The flips of later items do not matter.
        items = 1 + int(np.flatnonzero(block.any(axis=1)).max(initial=-1))
        for flips in coin_flips(items, RESAMPLES, stratum.name) if items else ():
            sums[start : start + len(flips)] -= flips @ (2 * block[:items])
            start += len(flips)
    return np.asarray(np.count_nonzero(np.abs(sums) >= bound, axis=0))


class OneSidedBounds(NamedTuple):
    """Lower and upper 95 % bounds per column, each of which holds alone."""

    at_least: Column
    at_most: Column


def one_sided_bounds(strata: Sequence[Stratum], maximum: float = 100.0) -> OneSidedBounds:
    """Return bounds of the mean of the strata's mean differences, for each column.

    Differences are in [−maximum, maximum]. With a sampling design, the distance of the bounds from
    the mean has the ratio of the standard errors, each of which includes one difference of
    `maximum`. NaN for a column without items in a stratum.
    """
    # What each item contributes to the mean of the strata's means.
    contributions = np.concatenate(
        [stratum.values / (len(strata) * np.maximum(stratum.n, 1)) for stratum in strata]
    )
    counted = ~np.isnan(contributions)
    items = np.count_nonzero(counted, axis=0)
    fewest = np.min([stratum.n for stratum in strata], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        # The mean of the strata's means is that of `values`, as of one set of independent items.
        values = np.where(counted, contributions * items, 0.0)
        worst = maximum * items / (len(strata) * fewest)
        mean = mean_of_means(strata)
        squares = np.sum(np.where(counted, values - mean, 0.0) ** 2, axis=0)
        of_single = maximum**2 if len(strata) > 1 else None
        variance = variance_of_mean(strata, of_single) * items**2
        ratio = np.sqrt((variance + worst**2) / (squares + worst**2))
        below, above = (
            ratio * np.asarray(mean - sign * _gaffke_bound(sign * values, counted, worst))
            for sign in (1.0, -1.0)
        )
        return OneSidedBounds(np.maximum(mean - below, -maximum), np.minimum(mean - above, maximum))


def _gaffke_bound(values: Matrix, counted: Matrix, worst: Column) -> Column:
    """Return the lower bound of the mean of the counted values, all of which are ≥ −worst.

    The weighted mean of values y is below b if Σ E·(y − b) < 0 for exponential variates E. The
    saddlepoint of this sum is 1 / (c − b) with a pole c below all y, for b the mean of the y with
    the weights 1 / (y − c), so that one search over c finds the quantile.
    """
    y = np.vstack([values, -worst])
    weight_of = np.vstack([counted, np.ones_like(worst)])
    items = weight_of.sum(axis=0)
    low, high = np.full(len(worst), -_LOG_RANGE), np.full(len(worst), _LOG_RANGE)
    bound = np.zeros_like(worst)
    for _ in range(_BISECTION_STEPS):
        middle = (low + high) / 2
        distances = y + worst * (1 + np.exp(middle))
        inverse = weight_of / distances
        total = inverse.sum(axis=0)
        bound = (inverse * y).sum(axis=0) / total
        # For the sum of the exponential variates: y − b is the distance less items / total.
        scale = items / total
        cumulants = (weight_of * np.log(distances / scale)).sum(axis=0)
        w = -np.sqrt(2 * np.maximum(cumulants, 0.0))
        u = -np.sqrt((weight_of * (1 - scale / distances) ** 2).sum(axis=0))
        is_likely = w + np.log(u / w) / w > -Z_ONE_SIDED
        low, high = np.where(is_likely, low, middle), np.where(is_likely, middle, high)
    return bound
