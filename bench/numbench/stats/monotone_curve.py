"""A monotone curve of a score against a cost, from the same items at several levels.

The levels share the items, so a resample takes an item at all levels: differences between levels
are paired.
"""

from __future__ import annotations

from typing import NamedTuple

import numpy as np

from numbench.stats.bootstrap import RESAMPLES, percentile_bounds
from numbench.stats.design import Column, Matrix, Stratum, residual_squares
from numbench.stats.isotonic import crossings, heights, sort_and_fit
from numbench.stats.resampling import bootstrap_weights

_GRID = 60


class Threshold(NamedTuple):
    """The cost at which the curve reaches a level, with its 95 % interval.

    −∞: the level is reached at the cheapest point or before; ∞: it is not reached. smallest,
    largest: the costs of the cheapest and the most expensive point.
    """

    value: float
    low: float
    high: float
    smallest: float
    largest: float

    @property
    def text(self) -> str:
        """As `512 [430, 610]`, with `≤` and `>` beyond the points."""
        return f"{self._bound(self.value)} [{self._bound(self.low)}, {self._bound(self.high)}]"

    def _bound(self, value: float) -> str:
        if value == np.inf:
            return f"> {self.largest:,.0f}"
        return f"≤ {self.smallest:,.0f}" if value == -np.inf else f"{value:,.0f}"


class MonotoneCurve(NamedTuple):
    """The isotonic regression of the mean score on the mean cost, by rising cost.

    costs, scores: means of the levels, as measured. fitted_costs, fitted: the points of the curve;
    between them it is linear in ln(1 + cost). grid, low, high: the 95 % band, point by point.
    """

    costs: Column
    scores: Column
    fitted_costs: Column
    fitted: Column
    grid: Column
    low: Column
    high: Column
    resampled_costs: Matrix
    resampled_fits: Matrix

    def threshold(self, level: float) -> Threshold:
        """Return the cost at which the curve reaches a score."""
        value = float(crossings(self.fitted_costs[None], self.fitted[None], level)[0])
        drawn = crossings(self.resampled_costs, self.resampled_fits, level)
        # Ranks, because the values may be infinite.
        low, high = np.quantile(drawn, [0.025, 0.975], method="inverted_cdf").tolist()
        ends = float(self.fitted_costs[0]), float(self.fitted_costs[-1])
        return Threshold(value, low, high, *ends)


def fit_curve(scores: Stratum, costs: Stratum, maximum: float = 100.0) -> MonotoneCurve:
    """Fit the curve of one task, with 10,000 resamples of its items.

    scores, costs: of shape (items, levels), the same items; all are known. Scores are in
    [0, maximum]. As in `mean_intervals`, the spread of the scores includes two pseudo-items, 0 and
    `maximum`, so that equal scores of all items have an interval, too.
    """
    drawn_scores, drawn_costs = _resample(scores, costs, maximum)
    mean_scores, mean_costs = scores.means, costs.means
    fitted_costs, fitted = sort_and_fit(mean_costs[None], mean_scores[None])
    resampled_costs, resampled = sort_and_fit(drawn_costs, drawn_scores)
    ends = np.log1p(fitted_costs[0, [0, -1]])
    grid = np.expm1(np.linspace(ends[0], ends[1], _GRID))
    low, high = percentile_bounds(heights(resampled_costs, resampled, grid))
    return MonotoneCurve(
        mean_costs, mean_scores, fitted_costs[0], fitted[0], grid, low, high,
        resampled_costs, resampled,
    )  # fmt: skip


def _resample(scores: Stratum, costs: Stratum, maximum: float) -> tuple[Matrix, Matrix]:
    """Return resampled means of scores and costs, each of shape (resamples, levels)."""
    levels = scores.values.shape[1]
    ends = np.full((2, levels), [[0.0], [maximum]])
    smoothed = np.concatenate([scores.values, ends])
    spent = np.concatenate([costs.values, np.tile(costs.means, (2, 1))])
    count = len(smoothed)
    weights = np.concatenate(list(bootstrap_weights(count, RESAMPLES, scores.name)))
    drawn_scores = weights @ smoothed / count - smoothed.mean(axis=0)
    drawn_costs = weights @ spent / count - spent.mean(axis=0)
    return (
        np.clip(scores.means + _design_ratio(scores) * drawn_scores, 0.0, maximum),
        np.maximum(costs.means + _design_ratio(costs) * drawn_costs, 0.0),
    )


def _design_ratio(stratum: Stratum) -> Column:
    """Return per column the standard error under the design as a share of that without it."""
    independent = residual_squares(stratum._replace(design=None))
    ratio = np.sqrt(residual_squares(stratum) / np.where(independent > 0, independent, 1.0))
    return np.where(independent > 0, ratio, 1.0)
