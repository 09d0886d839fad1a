"""Paired comparison of models: difference, interval, p-value, minimum detectable difference."""

from __future__ import annotations

import math
from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numbench.stats.design import Column, Counts, Stratum, residual_squares
from numbench.stats.intervals import (
    Z_ONE_SIDED,
    MeanIntervals,
    difference_intervals,
    item_contributions,
    mean_intervals,
)
from numbench.stats.mcnemar import DiscordantCounts, mcnemar, tango_interval
from numbench.stats.permutation import permutation_test
from numbench.stats.power import minimum_detectable_difference, minimum_detectable_mean_difference

_ROUNDING_ERROR = 1e-10
"""Share of the largest score below which a difference of two scores counts as none."""


class Difference(NamedTuple):
    """A mean difference over n items with its 95 % bounds, in the unit of the scores.

    p: two-sided p-value of the randomisation test. minimum_detectable: the true difference
    detected with 80 % power at the 5 % level; None if it cannot be estimated from the items.
    at_least, at_most: 95 % one-sided bounds, each of which holds alone. Those of means allow for
        rare differences of the largest size, and may lie outside low … high.
    """

    n: int
    difference: float
    low: float
    high: float
    p: float
    minimum_detectable: float | None
    at_least: float = -math.inf
    at_most: float = math.inf


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


def compare_matches(matches: Stratum) -> tuple[Difference, DiscordantCounts]:
    """Return the difference of two columns of 0 and 1, and the numbers of discordant items.

    p is that of the exact McNemar test. The bounds are Tango's with the design effect, which
    includes two pseudo-items, one in each direction.

    Raises ValueError if no item counts for both.
    """
    first, second = matches.values.T
    differences = first - second
    counted = differences[~np.isnan(differences)]
    if not len(counted):
        raise ValueError("no items to compare")
    counts = DiscordantCounts(
        int(np.count_nonzero(counted > 0)), int(np.count_nonzero(counted < 0)), len(counted)
    )
    design_effect = _design_effect(matches.with_values(differences[:, None]))
    detectable = minimum_detectable_difference(counts)
    result = Difference(
        counts.n,
        counts.difference,
        *tango_interval(counts, design_effect=design_effect),
        mcnemar(counts.first_only, counts.second_only),
        detectable,
        *tango_interval(counts, Z_ONE_SIDED, design_effect),
    )
    return result, counts


def _design_effect(differences: Stratum) -> float:
    independent = residual_squares(differences._replace(design=None))[0]
    return float((residual_squares(differences)[0] + 2) / (independent + 2))


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
    two_sided = difference_intervals(strata, maximum)
    one_sided = difference_intervals(strata, maximum, Z_ONE_SIDED, unseen=maximum)
    n: Counts = np.sum([stratum.n for stratum in strata], axis=0)
    detectable = [
        minimum_detectable_mean_difference(column[~np.isnan(column)], maximum)
        for column in item_contributions(strata).T
    ]
    columns = (column.tolist() for column in (n, *two_sided, p_values, *one_sided[1:]))
    return [
        None if math.isnan(mean) else Difference(count, mean, low, high, p, least, lowest, highest)
        for count, mean, low, high, p, lowest, highest, least in zip(
            *columns, detectable, strict=True
        )
    ]
