"""Paired comparison of models: difference, interval, p-value, detectable difference, spread."""

from __future__ import annotations

import math
from collections.abc import Sequence
from itertools import combinations
from statistics import NormalDist
from typing import NamedTuple

import numpy as np

from numbench.stats.design import Column, Stratum
from numbench.stats.intervals import (
    ALPHA,
    CONFIDENCE_LEVEL,
    Z_TWO_SIDED,
    MeanIntervals,
    difference_intervals,
    difference_variances,
    mean_intervals,
)
from numbench.stats.one_sided_bounds import one_sided_bounds
from numbench.stats.planning import detectable_difference
from numbench.stats.sign_flips import sign_flip_test

_ROUNDING_ERROR = 1e-10
"""Share of the largest score below which a difference of two scores counts as none."""


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
    means: mean over the strata per model, NaN if the model has no items in a stratum.
    """

    strata: list[list[Difference | None]]
    overall: list[Difference | None]
    means: MeanIntervals


def compare(
    scores: Sequence[Stratum],
    pairs: Sequence[tuple[int, int]],
    maximum: float = 100.0,
    one_sided: bool = False,
) -> Comparison:
    """Subtract the second model's scores from the first's, for each pair of columns of `scores`.

    An item counts for a pair if it counts for both models. Scores are in [0, maximum]. one_sided:
    whether to compute the one-sided bounds, which takes longer than all the rest.

    Raises ValueError if there is no stratum.
    """
    if not scores:
        raise ValueError("no questions to compare")
    differences = [subtract(stratum, pairs, maximum) for stratum in scores]
    of_strata = [compare_means([stratum], maximum, one_sided) for stratum in differences]
    overall = of_strata[0] if len(scores) == 1 else compare_means(differences, maximum, one_sided)
    return Comparison(of_strata, overall, mean_intervals(scores, maximum))


def subtract(scores: Stratum, pairs: Sequence[tuple[int, int]], maximum: float = 100.0) -> Stratum:
    """Return the differences of pairs of columns; rounding errors of means count as 0."""
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    differences = scores.values[:, first] - scores.values[:, second]
    differences[np.abs(differences) < _ROUNDING_ERROR * maximum] = 0.0
    return scores.with_values(differences)


def compare_means(
    strata: Sequence[Stratum], maximum: float = 100.0, one_sided: bool = False
) -> list[Difference | None]:
    """Return the differences of the mean of the strata's means, per column of differences."""
    n = np.sum([stratum.n for stratum in strata], axis=0)
    intervals = difference_intervals(strata, maximum)
    weights = [1 / np.maximum(stratum.n, 1) for stratum in strata]
    p_values = sign_flip_test(strata, weights if len(strata) > 1 else None)
    detectable = detectable_difference(*difference_variances(strata, maximum), n)
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


class Spread(NamedTuple):
    """The largest minus the smallest mean of several columns, over the items that count in all.

    n: the items. lowest, highest: means. low, high: 95 % interval of the spread of the true means.
    """

    n: int
    lowest: float
    highest: float
    low: float
    high: float

    @property
    def value(self) -> float:
        """The observed spread."""
        return self.highest - self.lowest


def spread_of_means(scores: Stratum, maximum: float = 100.0) -> Spread | None:
    """Return the spread over the columns of `scores`, in [0, maximum]; None without common items.

    The largest of several means exceeds the smallest even if all true means are equal. The
    interval allows for that: it is from simultaneous intervals of all differences of two columns,
    those of `difference_intervals` with Bonferroni's correction. The true spread is the largest
    true difference, so it is at least the largest lower bound and at most the largest upper bound.

    Raises ValueError for fewer than two columns.
    """
    columns = scores.values.shape[1]
    if columns < 2:
        raise ValueError("a spread needs two columns")
    counted = np.asarray(~np.isnan(scores.values).any(axis=1))
    n = int(np.count_nonzero(counted))
    if n == 0:
        return None
    values = np.where(counted[:, None], scores.values, np.nan)
    pairs = list(combinations(range(columns), 2))
    differences = np.column_stack([values[:, i] - values[:, j] for i, j in pairs])
    mean, low, high = difference_intervals([scores.with_values(differences)], maximum)
    tail = (1 - CONFIDENCE_LEVEL) / (2 * len(pairs))
    half = np.maximum(high - mean, mean - low) * NormalDist().inv_cdf(1 - tail) / Z_TWO_SIDED
    means = values[counted].mean(axis=0)
    return Spread(
        n,
        float(means.min()),
        float(means.max()),
        max(0.0, float(np.max(np.abs(mean) - half))),
        min(maximum, float(np.max(np.abs(mean) + half))),
    )
