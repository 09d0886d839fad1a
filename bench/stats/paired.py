"""Two models' scores on the same items: difference, interval, p-value, needed difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench.stats.bootstrap import Bounded, bootstrap
from bench.stats.normal import Z_LEVEL, Z_POWER
from bench.stats.strata import Column, Counts, Stratum
from bench.stats.swaps import swap_p_values


class Difference(NamedTuple):
    """A mean difference over n items with its 95 % bounds, in the unit of the scores.

    p: two-sided, of the randomisation test. smallest: the true difference that would be shown
    with a power of 80 %, None where the items do not tell.
    """

    n: int
    difference: float
    low: float
    high: float
    p: float
    smallest: float | None


class Differences(NamedTuple):
    """Per stratum and column, and per column of the mean of strata; None without items."""

    strata: list[list[Difference | None]]
    overall: list[Difference | None]


def paired_differences(strata: Sequence[Stratum]) -> Differences:
    """Columns are differences of two models' scores per item, NaN where one does not count.

    ValueError without a stratum.
    """
    bounds, p = bootstrap(strata), swap_p_values(strata)
    variances = [_variance_of_mean(stratum) for stratum in strata]
    counts = [stratum.n for stratum in strata]
    of_all = np.sum(variances, axis=0) / len(strata) ** 2
    return Differences(
        [_listed(*row) for row in zip(counts, bounds.strata, p.strata, variances, strict=True)],
        _listed(np.sum(counts, axis=0), bounds.overall, p.overall, of_all),
    )


def smallest_difference(standard_error: float) -> float | None:
    """The true difference that is shown with a power of 80 % at the 5 % level.

    (z₀.₉₇₅ + z₀.₈)·standard error of the mean difference, which is sd/√n for n items. None where
    that is 0 or not known: equal scores do not tell how much unequal ones would vary.
    """
    needed = (Z_LEVEL + Z_POWER) * standard_error
    return needed if needed > 0 else None


def _listed(
    n: Counts, bounds: Bounded, p_values: Column, variances: Column
) -> list[Difference | None]:
    columns = (column.tolist() for column in (n, *bounds, p_values, variances))
    return [
        None
        if math.isnan(mean)
        else Difference(count, mean, low, high, p, smallest_difference(math.sqrt(variance)))
        for count, mean, low, high, p, variance in zip(*columns, strict=True)
    ]


def _variance_of_mean(stratum: Stratum) -> Column:
    """The squared standard error of each column's mean; NaN with fewer than two items."""
    n = stratum.n
    usable = np.where(n > 1, n, 2)
    centred = stratum.values - np.nansum(stratum.values, axis=0) / np.maximum(n, 1)
    variance = np.nansum(centred**2, axis=0) / (usable - 1) / usable
    return np.asarray(np.where(n > 1, variance, np.nan))
