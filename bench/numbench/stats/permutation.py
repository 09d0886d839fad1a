"""The paired randomisation test of the difference between two models.

Under the null hypothesis, the two scores of an item are exchangeable. The test swaps them on
random subsets of items and counts how often the mean difference is at least as large as the
observed one. For scores of 0 and 1 it is the exact McNemar test. It keeps its level with few
differing items, where a bootstrap does not, and for any sampling design of the items.
"""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from numbench.stats.design import Column, DrawIndices, Matrix, Stratum, draw_indices
from numbench.stats.resampling import (
    coin_flips,
    column_batches,
    round_for_exact_sums,
    sum_errors,
)

PERMUTATIONS = 19_999
MAX_EXACT_ITEMS = 12
"""With at most this many differing items, all permutations are enumerated."""


class PValues(NamedTuple):
    """Two-sided p-values per column, never 0; 1 if no item differs.

    overall: of the unweighted mean over the strata; undefined if a stratum has no items.
    """

    strata: list[Column]
    overall: Column


def permutation_test(strata: Sequence[Stratum]) -> PValues:
    """Test columns of differences between two models' scores, NaN if an item does not count.

    p is the share of permutations whose mean difference is at least as large as the observed
    one: of 19,999 random permutations and the identity, or of all permutations. If no random
    permutation reaches the observed difference, p is Hoeffding's bound of that share, if it is
    smaller.

    Raises ValueError if there is no stratum.
    """
    if not strata:
        raise ValueError("no items to compare")
    draws = draw_indices(strata)
    parts = [_test_columns(batch, draws) for batch in column_batches(strata)]
    return PValues(
        [np.concatenate([part.strata[index] for part in parts]) for index in range(len(strata))],
        np.concatenate([part.overall for part in parts]),
    )


def _test_columns(strata: Sequence[Stratum], draws: Sequence[DrawIndices]) -> PValues:
    columns = strata[0].values.shape[1]
    # Per stratum of coins, the values that its coins swap, one block per stratum of items.
    blocks: dict[int, list[tuple[int, Matrix]]] = defaultdict(list)
    values_of = [np.nan_to_num(round_for_exact_sums(stratum.values)) for stratum in strata]
    for index, (values, of_items) in enumerate(zip(values_of, draws, strict=True)):
        for source in np.unique(of_items.strata).tolist():
            items = of_items.strata == source
            block = np.zeros_like(strata[source].values)
            block[of_items.items[items]] = values[items]
            blocks[source].append((index, block))
    scales = [1 / (len(strata) * np.maximum(stratum.n, 1)) for stratum in strata]
    sums = [np.tile(values.sum(axis=0), (PERMUTATIONS, 1)) for values in values_of]
    for source, of_coins in blocks.items():
        swapped = _swapped_sums(np.hstack([block for _, block in of_coins]), strata[source].name)
        for number, (index, _) in enumerate(of_coins):
            sums[index] += swapped[:, number * columns : (number + 1) * columns]
    observed = [values.sum(axis=0) for values in values_of]
    errors = [sum_errors(values) for values in values_of]
    p_values = [_p_values(*each) for each in zip(sums, observed, values_of, errors, strict=True)]
    together = np.concatenate(
        [sum(scales[index] * block for index, block in of_coins) for of_coins in blocks.values()]
    )
    overall = _p_values(
        _weighted_sum(sums, scales),
        _weighted_sum(observed, scales),
        together,
        _weighted_sum(errors, scales),
    )
    return PValues(p_values, overall)


def _weighted_sum(parts: Sequence[Matrix], weights: Sequence[Column]) -> Matrix:
    total = parts[0] * weights[0]
    for part, weight in zip(parts[1:], weights[1:], strict=True):
        total = total + part * weight
    return total


def _p_values(permuted: Matrix, observed: Column, values: Matrix, errors: Column) -> Column:
    """Return p per column.

    values: what each coin swaps, shape (coins, columns). errors: bounds of rounding errors; sums
    that differ by less count as equal, which makes p larger, not smaller.
    """
    extreme = np.abs(permuted) >= np.abs(observed) - errors
    count = np.count_nonzero(extreme, axis=0)
    p = np.asarray((1 + count) / (1 + len(permuted)))
    unreached = count == 0
    squares = np.sum(values[:, unreached] ** 2, axis=0)
    bound = 2 * np.exp(-(observed[unreached] ** 2) / (2 * squares))
    p[unreached] = np.minimum(p[unreached], np.maximum(bound, np.finfo(float).tiny))
    differing = np.count_nonzero(values, axis=0)
    for index in np.flatnonzero(differing <= MAX_EXACT_ITEMS).tolist():
        column = values[:, index]
        p[index] = _exact_p_value(column[column != 0], errors[index])
    return p


def _swapped_sums(values: Matrix, stream: str) -> Matrix:
    """Return what random swaps add to the sum of each column, shape (permutations, columns)."""
    sums = np.empty((PERMUTATIONS, values.shape[1]))
    start = 0
    for flips in coin_flips(len(values), PERMUTATIONS, stream):
        np.matmul(flips, -2 * values, out=sums[start : start + len(flips)])
        start += len(flips)
    return sums


def _exact_p_value(values: Column, error: float) -> float:
    if not len(values):
        return 1.0
    sums = _all_sign_patterns(len(values)) @ values
    return float(np.mean(np.abs(sums) >= abs(values.sum()) - error))


@cache
def _all_sign_patterns(items: int) -> Matrix:
    """Return all sign patterns up to a global sign, which does not change the absolute sum."""
    patterns = np.arange(2 ** (items - 1))[:, None] >> np.arange(items)
    return np.asarray(1.0 - 2.0 * (patterns & 1))
