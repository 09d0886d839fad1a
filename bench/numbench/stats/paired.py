"""Paired comparison of models: difference, interval, p-value, minimum detectable difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numbench.stats.design import Column, Counts, Stratum, residual_squares, sum_by_draw
from numbench.stats.intervals import (
    MeanIntervals,
    difference_intervals,
    item_contributions,
    mean_intervals,
)
from numbench.stats.mcnemar import ALPHA, DiscordantCounts, mcnemar, tango_interval
from numbench.stats.one_sided_bounds import one_sided_bounds
from numbench.stats.permutation import permutation_test
from numbench.stats.power import minimum_detectable_difference
from numbench.stats.power_of_means import minimum_detectable_mean_difference

_ROUNDING_ERROR = 1e-10
"""Share of the largest score below which a difference of two scores counts as none."""


class Difference(NamedTuple):
    """A mean difference over n items with its 95 % bounds, in the unit of the scores.

    p: two-sided p-value of the randomisation test. minimum_detectable: the true difference of
    which 80 % of samples are significant (see `is_significant`), with p for a single test; None if
    it cannot be estimated from the items. at_least, at_most: 95 % one-sided bounds, each of which
    holds alone. They allow for rare differences of the largest size that no item showed, so they
    may lie outside low … high.
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
        """Return whether p, the p-value or a corrected one, is at most 5 % and 0 is excluded.

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
    scores: Sequence[Stratum], pairs: Sequence[tuple[int, int]], maximum: float = 100.0
) -> Comparison:
    """Subtract the second model's scores from the first's, for each pair of columns of `scores`.

    An item counts for a pair if it counts for both models. Scores are in [0, maximum].

    Raises ValueError if there is no stratum.
    """
    if not scores:
        raise ValueError("no items to compare")
    differences = [_differences(stratum, pairs, maximum) for stratum in scores]
    p_values = permutation_test(differences)
    return Comparison(
        [
            _to_differences([stratum], p, maximum)
            for stratum, p in zip(differences, p_values.strata, strict=True)
        ],
        _to_differences(differences, p_values.overall, maximum),
        mean_intervals(scores, maximum),
    )


def compare_matches(
    matches: Stratum, pairs: Sequence[tuple[int, int]]
) -> list[tuple[Difference, DiscordantCounts] | None]:
    """Return the difference and the numbers of discordant items of each pair of columns of 0 and 1.

    p is that of the exact McNemar test. The two-sided bounds are Tango's with the design effect,
    which includes two pseudo-items, one in each direction. None for a pair without common items.
    """
    differences = _differences(matches, pairs, 1.0)
    bounds = one_sided_bounds([differences], 1.0)
    rows = zip(
        np.count_nonzero(differences.values > 0, axis=0).tolist(),
        np.count_nonzero(differences.values < 0, axis=0).tolist(),
        differences.n.tolist(),
        _design_effects(differences).tolist(),
        *(column.tolist() for column in bounds),
        strict=True,
    )
    return [
        _difference_of_matches(DiscordantCounts(first_only, second_only, n), *others) if n else None
        for first_only, second_only, n, *others in rows
    ]


def _difference_of_matches(
    counts: DiscordantCounts, design_effect: float, at_least: float, at_most: float
) -> tuple[Difference, DiscordantCounts]:
    result = Difference(
        counts.n,
        counts.difference,
        *tango_interval(counts, design_effect=design_effect),
        mcnemar(counts.first_only, counts.second_only),
        minimum_detectable_difference(counts),
        at_least,
        at_most,
    )
    return result, counts


def _design_effects(differences: Stratum) -> Column:
    independent = residual_squares(differences._replace(design=None))
    return np.asarray((residual_squares(differences) + 2) / (independent + 2))


def _differences(scores: Stratum, pairs: Sequence[tuple[int, int]], maximum: float) -> Stratum:
    """Subtract scores; rounding errors of means over samples are no differences."""
    first, second = np.array(pairs, dtype=np.int64).reshape(-1, 2).T
    differences = scores.values[:, first] - scores.values[:, second]
    differences[np.abs(differences) < _ROUNDING_ERROR * maximum] = 0.0
    return scores.with_values(differences)


def _to_differences(
    strata: Sequence[Stratum], p_values: Column, maximum: float
) -> list[Difference | None]:
    """Return the differences of the mean over the strata, per column."""
    n: Counts = np.sum([stratum.n for stratum in strata], axis=0)
    intervals = difference_intervals(strata, maximum)
    columns = (*intervals, p_values, *one_sided_bounds(strata, maximum))
    rows = zip(n.tolist(), *(column.tolist() for column in columns), strict=True)
    detectable = _minimum_detectable(strata, maximum)
    return [
        None if math.isnan(mean) else Difference(n, mean, low, high, p, least, at_least, at_most)
        for (n, mean, low, high, p, at_least, at_most), least in zip(rows, detectable, strict=True)
    ]


def _minimum_detectable(strata: Sequence[Stratum], maximum: float) -> list[float | None]:
    """Return the minimum detectable difference per column; draws without counted items drop out."""
    contributions = item_contributions(strata)
    sums = sum_by_draw(strata, contributions)
    counted = sum_by_draw(strata, [(~np.isnan(part)).astype(float) for part in contributions])
    items = np.sum([stratum.n for stratum in strata], axis=0)
    return [
        minimum_detectable_mean_difference(column[is_counted], maximum / max(n, 1), maximum)
        for column, is_counted, n in zip(sums.T, counted.T > 0, items.tolist(), strict=True)
    ]
