"""Numbers of items that give a mean score a precision, or show a difference; repeated samples.

All plans use one formula: a difference has a power of 80% if it is 1.96 + 0.84 standard errors. The
samples of one item are not independent of each other, so the item is the unit of every error.
"""

from __future__ import annotations

import math
from bisect import bisect_left
from collections.abc import Callable
from statistics import NormalDist
from typing import NamedTuple

import numpy as np
from scipy import special

from numbench.stats.design import Column, Counts, Design, Matrix, Stratum, residual_squares
from numbench.stats.intervals import CONFIDENCE_LEVEL, Z_TWO_SIDED

POWER = 0.80
Z_POWER = NormalDist().inv_cdf(POWER)
Z_ONE_SIDED = NormalDist().inv_cdf(CONFIDENCE_LEVEL)

MIN_DIFFERING = 6
"""The least number of items that have to differ, all in one direction, for p ≤ 5%: 2 / 2⁶."""


def detectable_difference(variance: Column, pseudo: Column, size: Column, items: Counts) -> Column:
    """Return the true mean difference of which 80% of samples give a verdict; NaN if none does.

    variance, pseudo, size: see `DifferenceVariances`. At least six items have to differ, all in one
    direction if there are only six.
    """
    with np.errstate(invalid="ignore"):
        # If this share of the items differs, six of them do with a probability of 80%.
        share = special.betaincinv(MIN_DIFFERING, items - MIN_DIFFERING + 1, POWER)
        error = Z_TWO_SIDED * np.sqrt(variance + pseudo) + Z_POWER * np.sqrt(variance)
        detectable = np.maximum(error, share * size)
    return np.asarray(np.where(items >= MIN_DIFFERING, detectable, np.nan))


class ItemVariance(NamedTuple):
    """Variance of the score of one sample of an item, in squared units of the scores.

    between: of the items' expected scores; an unbiased estimate of a value near 0 may be negative.
    within: of repeated samples of an item. residual: the share of `between` that remains within
    strata of difficulty, 1 if the items are not stratified.
    """

    between: float
    within: float = 0.0
    residual: float = 1.0

    def of_mean(self, items: int, samples: int = 1, pool: int | None = None) -> float:
        """Return the variance of the mean score of `items` items with `samples` samples each.

        pool: size of the pool whose strata the items are drawn from, None for independent items.
        """
        share = 0.0 if pool is None else max(0.0, 1 - items / pool)
        between = max(self.between, 0.0) * (share * self.residual + 1 - share)
        return (between + self.within / samples) / items

    def with_pseudo_items(self, items: int, mean: float, maximum: float = 100.0) -> ItemVariance:
        """Return the variance with two more items of `items`, scores of 0 and `maximum`.

        They account for scores that did not occur, as in the intervals of scores.
        """
        pseudo = (mean**2 + (maximum - mean) ** 2) / items
        observed = max(self.between, 0.0)
        between = observed + pseudo
        return ItemVariance(between, self.within, (observed * self.residual + pseudo) / between)


def largest_variance(mean: float, maximum: float = 100.0) -> ItemVariance:
    """Return the largest variance of scores in [0, maximum] with this mean."""
    return ItemVariance(max(mean * (maximum - mean), 0.0))


def item_variance(values: Matrix, design: Design | None = None) -> ItemVariance:
    """Estimate the variance from the scores of items and their samples, shape (items, samples).

    NaN for a sample that does not count. Items with several samples show the variance within, and
    all components are unbiased; otherwise the whole variance counts as between items, so that more
    samples promise nothing.

    Source: S. R. Searle, G. Casella, C. E. McCulloch, Variance Components (1992), section 3.6, with
    unweighted means of the items.
    """
    counts = np.count_nonzero(~np.isnan(values), axis=1)
    items = int(np.count_nonzero(counts))
    means = Stratum("", values.T).means
    freedom = int(counts.sum()) - items
    within = float(np.nansum((values - means[:, None]) ** 2)) / freedom if freedom else 0.0
    noise = within * float(np.mean(1 / counts[counts > 0]))
    stratum = Stratum("", means[:, None], design and design._replace(share_per_item=1 / items))
    all_items, neighbors = (
        float(residual_squares(part)[0]) / max(items - 1, 1)
        for part in (stratum._replace(design=None), stratum)
    )
    between = all_items - noise
    residual = min(max((neighbors - noise) / between, 0.0), 1.0) if between > 0 else 1.0
    return ItemVariance(between, within, residual)


def items_for_precision(
    variance: ItemVariance,
    half_width: float,
    samples: int = 1,
    pool: int | None = None,
    mean: float = 0.0,
) -> int:
    """Return the number of items for a 95% interval of ± half_width around the mean score.

    The half-width is that of Wilson's interval with the effective number of items of a score
    `mean`, in percent, and at least the number of items. So a variance of 0 takes items as well: at
    0 and 100% the half-width is 50 · z² / (n + z²) points.
    """

    def is_enough(items: int) -> bool:
        of_mean = variance.of_mean(items, samples, pool)
        effective = max(items, mean * (100 - mean) / of_mean) if of_mean else items
        ratio = Z_TWO_SIDED**2 / effective
        squared = of_mean + 50**2 * ratio / effective
        return Z_TWO_SIDED * math.sqrt(squared) / (1 + ratio) <= half_width

    return _least(is_enough)


def items_for_difference(variance: ItemVariance, difference: float, samples: int = 1) -> int:
    """Return the number of items of which a mean difference gives a verdict with 80% power.

    variance: of the differences between two models' scores on an item, in percent.
    """

    def is_enough(items: int) -> bool:
        of_mean = variance.of_mean(items, samples)
        pseudo = 2 * (of_mean * items + 100**2) / (items + 1) / items
        return bool(
            detectable_difference(
                np.array([of_mean]), np.array([pseudo]), np.array([100.0]), np.array([items])
            )[0]
            <= difference
        )

    return _least(is_enough)


def _least(is_enough: Callable[[int], bool]) -> int:
    """Return the least number from 1 that is enough, if all larger ones are too."""
    return 1 + bisect_left(range(1, 1 << 40), True, key=is_enough)


def pass_at_k(correct: Matrix, k: int) -> float | None:
    """Return the probability that at least one of `k` samples of an item is correct, unbiased.

    correct: 1 or 0. The mean over the items with at least `k` samples; None if there is none. Of
    the n samples of an item c are correct, and 1 - C(n - c, k) / C(n, k) of all choices of k
    samples contain one of these.

    Source: M. Chen et al., Evaluating Large Language Models Trained on Code (2021), section 2.1.
    """
    counts = np.count_nonzero(~np.isnan(correct), axis=1).tolist()
    correct_counts = np.nansum(correct, axis=1).astype(int).tolist()
    chances = [
        1 - math.comb(n - c, k) / math.comb(n, k)
        for n, c in zip(counts, correct_counts, strict=True)
        if n >= k
    ]
    return math.fsum(chances) / len(chances) if chances else None
