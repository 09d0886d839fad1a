"""One-sided bounds of mean differences whose error rate holds if large losses are rare.

Gaffke's bound: among all weightings of the items and of one further item with the worst possible
difference, drawn uniformly, the 5 % quantile of the weighted mean. For differences of 0 and the
worst value this is the bound of Clopper and Pearson.

Sources: N. Gaffke, Three test statistics for a nonparametric one-sided hypothesis on the mean of
a nonnegative variable (2005); M. Phan, P. S. Thomas, E. Learned-Miller, Towards Practical Mean
Bounds for Small Samples (2021). The quantile: O. E. Barndorff-Nielsen, Approximate interval
probabilities (1990).
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy import special

from numbench.stats.design import Column, Matrix, Stratum
from numbench.stats.intervals import (
    CONFIDENCE_LEVEL,
    mean_of_means,
    variance_of_mean,
)

_Z = special.ndtri(1 - CONFIDENCE_LEVEL)
_BISECTION_STEPS = 32
_LOG_RANGE = 20.0
"""The pole is searched at distances of exp(±20) times the worst difference from it."""


class OneSidedBounds(NamedTuple):
    """Lower and upper 95 % bounds per column, each of which holds alone."""

    at_least: Column
    at_most: Column


def one_sided_bounds(strata: Sequence[Stratum], maximum: float = 100.0) -> OneSidedBounds:
    """Return bounds of the mean of the strata's mean differences, for each column.

    Differences are in [−maximum, maximum]. With a sampling design, the distance of the bounds from
    the mean has the ratio of the standard errors, each of which includes one difference of
    `maximum`. NaN for a column without items in a stratum.

    Raises ValueError if there is no stratum.
    """
    if not strata:
        raise ValueError("no questions to compare")
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
        is_likely = w + np.log(u / w) / w > _Z
        low, high = np.where(is_likely, low, middle), np.where(is_likely, middle, high)
    return bound
