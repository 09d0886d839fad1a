"""Two models' scores on the same items: difference, interval, p-value, needed difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from bench.stats.bootstrap import Bounded, bootstrap
from bench.stats.mcnemar import fewest_discordant
from bench.stats.normal import Z_LEVEL, Z_POWER
from bench.stats.strata import Column, Counts, Stratum
from bench.stats.swaps import swap_p_values


class Difference(NamedTuple):
    """A mean difference over n items with its 95 % bounds, in the unit of the scores.

    p: two-sided, of the randomisation test. smallest: the true difference that would be shown
    with a power of 80 %, None where the items do not tell or are too few to show any.
    """

    n: int
    difference: float
    low: float
    high: float
    p: float
    smallest: float | None


class Comparison(NamedTuple):
    """Per stratum and pair, and per pair of the mean of strata, the difference; None without items.

    `means`: of each model the mean of strata, NaN where one has no items.
    """

    strata: list[list[Difference | None]]
    overall: list[Difference | None]
    means: Bounded


def compare(
    scores: Sequence[Stratum], pairs: Sequence[tuple[int, int]], largest: float = math.inf
) -> Comparison:
    """The first model's scores less the second's, for each pair of columns of `scores`.

    An item counts for a pair if it counts for both. largest: how far two scores can be apart.
    ValueError without a stratum.
    """
    if not scores:
        raise ValueError("no items to compare")
    differences = [_differences(stratum, pairs) for stratum in scores]
    # One bootstrap of both, as it is the draws that take the time.
    both = [
        Stratum(one.name, np.concatenate([one.values, other.values], axis=1))
        for one, other in zip(scores, differences, strict=True)
    ]
    found, p = bootstrap(both), swap_p_values(differences)
    models = scores[0].values.shape[1]
    variances = [_variance_of_mean(stratum) for stratum in differences]
    counts = [stratum.n for stratum in differences]
    smallest = [
        _smallest([stratum], [variance], largest)
        for stratum, variance in zip(differences, variances, strict=True)
    ]
    of_all = _smallest(differences, variances, largest)
    return Comparison(
        [
            _listed(n, bounds.columns(slice(models, None)), p_values, needed)
            for n, bounds, p_values, needed in zip(
                counts, found.strata, p.strata, smallest, strict=True
            )
        ],
        _listed(
            np.sum(counts, axis=0), found.overall.columns(slice(models, None)), p.overall, of_all
        ),
        found.overall.columns(slice(models)),
    )


def _differences(scores: Stratum, pairs: Sequence[tuple[int, int]]) -> Stratum:
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Stratum(scores.name, scores.values[:, first] - scores.values[:, second])


def smallest_difference(
    standard_error: float, shares: Column, largest: float = math.inf
) -> float | None:
    """The true difference that is shown with a power of 80 % at the 5 % level.

    shares: how much each item that counts adds to the mean difference, its difference/n. The
    larger of (z₀.₉₇₅ + z₀.₈)·standard error of the mean difference, which is sd/√n, and what six
    differing items of the mean size of those found add: with fewer the randomisation test cannot
    reach 5 %. None where there are fewer than six items, none differ (equal scores do not tell
    how much unequal ones would vary), the error is not known, or more than `largest` is needed.
    """
    differing = np.abs(shares[shares != 0])
    if len(shares) < fewest_discordant() or not len(differing) or math.isnan(standard_error):
        return None
    floor = fewest_discordant() * float(differing.mean())
    needed = max((Z_LEVEL + Z_POWER) * standard_error, floor)
    return needed if needed <= largest else None


def _smallest(
    differences: Sequence[Stratum], variances: Sequence[Column], largest: float
) -> list[float | None]:
    """Of the unweighted mean of the strata, per column."""
    errors = np.sqrt(np.sum(variances, axis=0)) / len(differences)
    shares = np.concatenate(
        [one.values / (len(differences) * np.maximum(one.n, 1)) for one in differences]
    )
    return [
        smallest_difference(error, column[~np.isnan(column)], largest)
        for error, column in zip(errors.tolist(), shares.T, strict=True)
    ]


def _listed(
    n: Counts, bounds: Bounded, p_values: Column, smallest: Sequence[float | None]
) -> list[Difference | None]:
    columns = (column.tolist() for column in (n, *bounds, p_values))
    return [
        None if math.isnan(mean) else Difference(count, mean, low, high, p, needed)
        for count, mean, low, high, p, needed in zip(*columns, smallest, strict=True)
    ]


def _variance_of_mean(stratum: Stratum) -> Column:
    """The squared standard error of each column's mean; NaN with fewer than two items."""
    n = stratum.n
    usable = np.where(n > 1, n, 2)
    centred = stratum.values - np.nansum(stratum.values, axis=0) / np.maximum(n, 1)
    variance = np.nansum(centred**2, axis=0) / (usable - 1) / usable
    return np.asarray(np.where(n > 1, variance, np.nan))
