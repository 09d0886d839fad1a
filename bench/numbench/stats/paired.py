"""Paired comparison of models: difference, interval, p-value, minimum detectable difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numbench.stats.bootstrap import MeanIntervals, bootstrap
from numbench.stats.mcnemar import Z_CONFIDENCE, Z_POWER, min_significant_discordant
from numbench.stats.permutation import permutation_test
from numbench.stats.resampling import Column, Counts, Stratum


class Difference(NamedTuple):
    """A mean difference over n items with its 95 % bounds, in the unit of the scores.

    p: two-sided p-value of the randomisation test.
    minimum_detectable: the true difference detected with 80 % power at the 5 % level; None if it
        cannot be estimated from the items.
    """

    n: int
    difference: float
    low: float
    high: float
    p: float
    minimum_detectable: float | None


class Comparison(NamedTuple):
    """Differences of all pairs; None for a pair without common items.

    strata: per stratum and pair. overall: per pair, of the unweighted mean over the strata.
    means: mean over the strata per model, NaN if the model has no items in a stratum.
    """

    strata: list[list[Difference | None]]
    overall: list[Difference | None]
    means: MeanIntervals


def compare(
    scores: Sequence[Stratum], pairs: Sequence[tuple[int, int]], max_difference: float = math.inf
) -> Comparison:
    """Subtract the second model's scores from the first's, for each pair of columns of `scores`.

    An item counts for a pair if it counts for both models. max_difference: the largest possible
    difference of two scores.

    Raises ValueError if there is no stratum.
    """
    if not scores:
        raise ValueError("no items to compare")
    differences = [_differences(stratum, pairs) for stratum in scores]
    # Models and pairs share one bootstrap because the draws take most of the time.
    models = scores[0].values.shape[1]
    intervals = bootstrap(
        [
            Stratum(stratum.name, np.concatenate([stratum.values, difference.values], axis=1))
            for stratum, difference in zip(scores, differences, strict=True)
        ]
    )
    p_values = permutation_test(differences)
    variances = [_variance_of_mean(stratum) for stratum in differences]
    counts = [stratum.n for stratum in differences]
    of_pairs = slice(models, None)
    strata = [
        _to_differences(
            counts[index],
            intervals.strata[index].select_columns(of_pairs),
            p_values.strata[index],
            _minimum_detectable([stratum], [variances[index]], max_difference),
        )
        for index, stratum in enumerate(differences)
    ]
    overall = _to_differences(
        np.sum(counts, axis=0),
        intervals.overall.select_columns(of_pairs),
        p_values.overall,
        _minimum_detectable(differences, variances, max_difference),
    )
    return Comparison(strata, overall, intervals.overall.select_columns(slice(models)))


def minimum_detectable_mean_difference(
    standard_error: float, shares: Column, max_difference: float = math.inf
) -> float | None:
    """Return the true mean difference detected with 80 % power at the 5 % level.

    standard_error: of the mean difference, sd/√n. shares: contribution of each item that counts
    to the mean difference, its difference/n.

    The result is the larger of (z₀.₉₇₅ + z₀.₈) · standard_error and six times the mean absolute
    contribution of the differing items: with fewer than six differing items the randomisation
    test cannot reach 5 %. None if there are fewer than six items, if no item differs (equal scores
    do not show how much differences vary), if the error is unknown, or if the result exceeds
    `max_difference`.
    """
    differing = np.abs(shares[shares != 0])
    if (
        len(shares) < min_significant_discordant()
        or not len(differing)
        or math.isnan(standard_error)
    ):
        return None
    floor = min_significant_discordant() * float(differing.mean())
    detectable = max((Z_CONFIDENCE + Z_POWER) * standard_error, floor)
    return detectable if detectable <= max_difference else None


def _differences(scores: Stratum, pairs: Sequence[tuple[int, int]]) -> Stratum:
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    return Stratum(scores.name, scores.values[:, first] - scores.values[:, second])


def _minimum_detectable(
    differences: Sequence[Stratum], variances: Sequence[Column], max_difference: float
) -> list[float | None]:
    """Return the minimum detectable difference of the mean over the strata, per column."""
    errors = np.sqrt(np.sum(variances, axis=0)) / len(differences)
    shares = np.concatenate(
        [stratum.values / (len(differences) * np.maximum(stratum.n, 1)) for stratum in differences]
    )
    return [
        minimum_detectable_mean_difference(error, column[~np.isnan(column)], max_difference)
        for error, column in zip(errors.tolist(), shares.T, strict=True)
    ]


def _to_differences(
    n: Counts, bounds: MeanIntervals, p_values: Column, detectable: Sequence[float | None]
) -> list[Difference | None]:
    columns = (column.tolist() for column in (n, *bounds, p_values))
    return [
        None if math.isnan(mean) else Difference(count, mean, low, high, p, minimum)
        for count, mean, low, high, p, minimum in zip(*columns, detectable, strict=True)
    ]


def _variance_of_mean(stratum: Stratum) -> Column:
    """Return the squared standard error of each column's mean; NaN with fewer than two items."""
    n = stratum.n
    at_least_two = np.where(n > 1, n, 2)
    centred = stratum.values - np.nansum(stratum.values, axis=0) / np.maximum(n, 1)
    variance = np.nansum(centred**2, axis=0) / (at_least_two - 1) / at_least_two
    return np.asarray(np.where(n > 1, variance, np.nan))
