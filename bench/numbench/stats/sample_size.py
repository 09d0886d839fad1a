"""Numbers of items and samples that give a mean score a precision, or show a difference."""

from __future__ import annotations

import math
from collections.abc import Callable, Sequence
from typing import NamedTuple

import numpy as np

from numbench.stats.design import Column, Design, Stratum, residual_squares
from numbench.stats.intervals import Z_TWO_SIDED
from numbench.stats.mcnemar import DiscordantCounts
from numbench.stats.power import Z_POWER, minimum_detectable_difference


class ItemVariance(NamedTuple):
    """Variance of the score of one sample of an item, in squared units of the scores.

    between: of the items' expected scores. within: of repeated samples of an item. residual: the
    share of `between` that remains within strata of difficulty, 1 if the items are not stratified.
    """

    between: float
    within: float = 0.0
    residual: float = 1.0

    def of_mean(self, items: int, samples: int = 1, pool: int | None = None) -> float:
        """Return the variance of the mean score of `items` items with `samples` samples each.

        pool: size of the pool whose strata the items are drawn from, None for independent items.
        """
        share = 0.0 if pool is None else max(0.0, 1 - items / pool)
        between = self.between * (share * self.residual + 1 - share)
        return (between + self.within / samples) / items


def largest_variance(mean: float, maximum: float = 100.0) -> ItemVariance:
    """Return the largest variance of scores in [0, maximum] with this mean."""
    return ItemVariance(max(mean * (maximum - mean), 0.0))


def item_variance(
    samples: Sequence[Sequence[float]], design: Design | None = None, maximum: float = 100.0
) -> ItemVariance:
    """Estimate the variance from the scores of each item's samples, in the order of the design.

    If items have several samples, the components are those of the analysis of variance; otherwise
    the whole variance counts as between items, so that more samples promise nothing. Includes two
    pseudo-items, 0 and maximum. Raises ValueError without scores.
    """
    if not samples or not all(samples):
        raise ValueError("no scores")
    means: Column = np.array([float(np.mean(scores)) for scores in samples])
    n, mean = len(means), float(means.mean())
    stratum = Stratum("", means[:, None], design)
    pseudo = mean**2 + (maximum - mean) ** 2
    of_means = (float(residual_squares(stratum._replace(design=None))[0]) + pseudo) / n
    ordered = stratum._replace(design=design and design._replace(share_per_item=1 / n))
    residual_of_means = (float(residual_squares(ordered)[0]) + pseudo) / n
    repeated = [scores for scores in samples if len(scores) > 1]
    if not repeated:
        residual = min(1.0, residual_of_means / of_means)
        return ItemVariance(of_means, 0.0, residual)
    freedom = sum(len(scores) - 1 for scores in repeated)
    within = sum(float(np.var(scores)) * len(scores) for scores in repeated) / freedom
    noise = within * float(np.mean([1 / len(scores) for scores in samples]))
    between = max(of_means - noise, 0.0)
    remaining = max(min(residual_of_means - noise, between), 0.0)
    return ItemVariance(between, within, remaining / between if between else 1.0)


def items_for_precision(
    variance: ItemVariance,
    half_width: float,
    samples: int = 1,
    pool: int | None = None,
    mean: float = 0.0,
) -> int:
    """Return the number of items for a 95 % interval of ± half_width around the mean score.

    The half-width is that of Wilson's interval with the effective number of items of a score
    `mean`, in percent, and at least the number of items. So a variance of 0 takes items, too: at 0
    and 100 % the half-width is 50 · z² / (n + z²) points.

    Raises ValueError if half_width is not positive.
    """
    if not half_width > 0:
        raise ValueError(f"half-width {half_width}")

    def is_enough(items: int) -> bool:
        of_mean = variance.of_mean(items, samples, pool)
        effective = max(items, mean * (100 - mean) / of_mean) if of_mean else items
        ratio = Z_TWO_SIDED**2 / effective
        squared = of_mean + 50**2 * ratio / effective
        return Z_TWO_SIDED * math.sqrt(squared) / (1 + ratio) <= half_width

    return _least(is_enough)


def items_for_difference(
    variance: ItemVariance, difference: float, samples: int = 1, full_errors: bool = False
) -> int:
    """Return the number of items that show a mean difference with 80 % power at the 5 % level.

    variance: of the differences between two models' scores on an item. full_errors: whether
    scores are 0 or 100, so that at least as many items have to differ as the exact test needs.

    Raises ValueError if the difference is not positive.
    """
    if not difference > 0:
        raise ValueError(f"difference {difference}")
    spread = variance.of_mean(1, samples)
    items = max(1, math.ceil(spread * ((Z_TWO_SIDED + Z_POWER) / difference) ** 2))
    return max(items, _items_of_exact_test(difference / 100)) if full_errors else items


def _items_of_exact_test(share: float) -> int:
    """Return the least number of items of which this share in one direction is detected."""
    return _least(lambda items: (least := _least_share(items)) is not None and least <= share)


def _least(is_enough: Callable[[int], bool]) -> int:
    """Return the least number from 1 that is enough, if all larger ones are too."""
    low, high = 0, 1
    while not is_enough(high):
        low, high = high, 2 * high
    while high - low > 1:
        middle = (low + high) // 2
        low, high = (low, middle) if is_enough(middle) else (middle, high)
    return high


def _least_share(items: int) -> float | None:
    return minimum_detectable_difference(DiscordantCounts(0, 0, items))
