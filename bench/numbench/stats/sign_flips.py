"""The paired randomization test of the difference between two models.

If two models are equally good, their scores on an item are exchangeable, so the difference of the
item is as likely positive as negative. The test holds for any sampling design of the items.
"""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
from scipy import special

from numbench.stats.design import Column, Matrix, Stratum, sum_by_draw
from numbench.stats.random_streams import coin_flips

RESAMPLES = 19_999
_COLUMNS_PER_BATCH = 256
_UNITS = 2.0**30
"""Differences are integers of so many units for the largest one, so that sums of them are exact."""


def sign_flip_test(strata: Sequence[Stratum], weights: Sequence[Column] | None = None) -> Column:
    """Return the two-sided p-value of each column of differences, NaN if an item does not count.

    The statistic is the sum over all strata of the differences times the weights of the stratum,
    by default 1; items that were drawn together flip together. If all differences have one size,
    p is that of the exact sign test (for correct and incorrect answers, McNemar's test). Otherwise
    it is Hoeffding's bound if that is below 1/20,000, or else estimated from 19,999 random sign
    patterns and the identity. It is never 0, and 1 if no item differs.
    """
    values = [stratum.values for stratum in strata]
    if weights is not None:
        values = [matrix * weight for matrix, weight in zip(values, weights, strict=True)]
    blocks = sum_by_draw(strata, values)
    largest = np.max([np.abs(block).max(axis=0, initial=0.0) for block in blocks], axis=0)
    unit = np.where(largest > 0, largest, 1.0) / _UNITS
    blocks = [np.rint(block / unit) for block in blocks]
    observed = np.abs(np.sum([block.sum(axis=0) for block in blocks], axis=0))
    squares = np.sum([(block**2).sum(axis=0) for block in blocks], axis=0)
    differing = np.sum([np.count_nonzero(block, axis=0) for block in blocks], axis=0)
    with np.errstate(invalid="ignore", divide="ignore"):
        p = np.where(differing > 0, 2 * np.exp(-(observed**2) / (2 * squares)), 1.0)
    # A rounded difference is at most one unit from the exact one.
    sizes = [np.where(block == 0, np.inf, np.abs(block)) for block in blocks]
    smallest = np.min([of_block.min(axis=0, initial=np.inf) for of_block in sizes], axis=0)
    equal = (differing > 0) & (smallest >= _UNITS - 2)
    # Twice the binomial tail of the rarer sign.
    rarer = (differing - np.rint(observed / _UNITS)) / 2
    p[equal] = 2 * special.bdtr(rarer[equal], differing[equal], 0.5)
    sampled = np.flatnonzero(~equal & (differing > 0) & (p > 1 / (RESAMPLES + 1)))
    for batch in np.array_split(
        sampled, range(_COLUMNS_PER_BATCH, len(sampled), _COLUMNS_PER_BATCH)
    ):
        bound = (observed - differing)[batch]
        reached = _count_reached([block[:, batch] for block in blocks], strata, bound)
        p[batch] = (1 + reached) / (1 + RESAMPLES)
    return np.asarray(np.clip(p, np.finfo(float).tiny, 1.0))


def _count_reached(blocks: Sequence[Matrix], strata: Sequence[Stratum], bound: Column) -> Column:
    """Count the random sign patterns whose sum is at least as far from 0 as `bound`."""
    sums = np.tile(np.sum([block.sum(axis=0) for block in blocks], axis=0), (RESAMPLES, 1))
    for block, stratum in zip(blocks, strata, strict=True):
        start = 0
        # The flips of later items do not matter.
        items = 1 + int(np.flatnonzero(block.any(axis=1)).max(initial=-1))
        for flips in coin_flips(items, RESAMPLES, stratum.name) if items else ():
            sums[start : start + len(flips)] -= flips @ (2 * block[:items])
            start += len(flips)
    return np.asarray(np.count_nonzero(np.abs(sums) >= bound, axis=0))
