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

from numbench.stats.design import Column, Indices, Matrix, Stratum, cluster_pairs
from numbench.stats.resampling import coin_flips, column_batches, round_for_exact_sums

PERMUTATIONS = 19_999
MAX_EXACT_ITEMS = 12
"""With at most this many differing items, all permutations are enumerated."""

# The mean of strata is not an exact sum; values within this relative tolerance count as equal,
# which makes p larger, not smaller.
_TIE_TOLERANCE = 1e-12


class PValues(NamedTuple):
    """Two-sided p-values per column, never 0; 1 if no item differs.

    overall: of the unweighted mean over the strata; undefined if a stratum has no items.
    """

    strata: list[Column]
    overall: Column


class _Swaps(NamedTuple):
    """Which coin decides about each item of a stratum: the coin's stratum and its index there.

    Items of different strata that were drawn together share a coin.
    """

    strata: Indices
    items: Indices


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
    swaps = _assign_swaps(strata)
    parts = [_test_columns(batch, swaps) for batch in column_batches(strata)]
    return PValues(
        [np.concatenate([part.strata[index] for part in parts]) for index in range(len(strata))],
        np.concatenate([part.overall for part in parts]),
    )


def _assign_swaps(strata: Sequence[Stratum]) -> list[_Swaps]:
    swaps: list[_Swaps] = []
    for index, stratum in enumerate(strata):
        assigned = _Swaps(
            np.full(len(stratum.values), index), np.arange(len(stratum.values), dtype=np.int64)
        )
        for other in range(index):
            here, there = cluster_pairs(stratum, strata[other])
            # An item that has a coin of an earlier stratum keeps it.
            free = assigned.strata[here] == index
            assigned.strata[here[free]] = swaps[other].strata[there[free]]
            assigned.items[here[free]] = swaps[other].items[there[free]]
        swaps.append(assigned)
    return swaps


def _test_columns(strata: Sequence[Stratum], swaps: Sequence[_Swaps]) -> PValues:
    columns = strata[0].values.shape[1]
    # Per stratum of coins, the values that its coins swap, one block per stratum of items.
    blocks: dict[int, list[tuple[int, Matrix]]] = defaultdict(list)
    values_of = []
    for index, (stratum, assigned) in enumerate(zip(strata, swaps, strict=True)):
        values = np.nan_to_num(round_for_exact_sums(stratum.values))
        values_of.append(values)
        for source in np.unique(assigned.strata).tolist():
            items = assigned.strata == source
            block = np.zeros_like(strata[source].values)
            block[assigned.items[items]] = values[items]
            blocks[source].append((index, block))
    scales = [1 / (len(strata) * np.maximum(stratum.n, 1)) for stratum in strata]
    sums = [np.tile(values.sum(axis=0), (PERMUTATIONS, 1)) for values in values_of]
    for source, of_coins in blocks.items():
        swapped = _swapped_sums(np.hstack([block for _, block in of_coins]), strata[source].name)
        for number, (index, _) in enumerate(of_coins):
            sums[index] += swapped[:, number * columns : (number + 1) * columns]
    observed = [values.sum(axis=0) for values in values_of]
    p_values = [_p_values(*each) for each in zip(sums, observed, values_of, strict=True)]
    together = np.concatenate(
        [sum(scales[index] * block for index, block in of_coins) for of_coins in blocks.values()]
    )
    overall = _p_values(
        _weighted_sum(sums, scales), np.asarray(_weighted_sum(observed, scales)), together
    )
    return PValues(p_values, overall)


def _weighted_sum(parts: Sequence[Matrix], weights: Sequence[Column]) -> Matrix:
    total = parts[0] * weights[0]
    for part, weight in zip(parts[1:], weights[1:], strict=True):
        total = total + part * weight
    return total


def _p_values(permuted: Matrix, observed: Column, values: Matrix) -> Column:
    """Return p per column. values: what each coin swaps, shape (coins, columns)."""
    extreme = np.abs(permuted) >= np.abs(observed) * (1 - _TIE_TOLERANCE)
    count = np.count_nonzero(extreme, axis=0)
    p = np.asarray((1 + count) / (1 + len(permuted)))
    unreached = count == 0
    squares = np.sum(values[:, unreached] ** 2, axis=0)
    bound = 2 * np.exp(-(observed[unreached] ** 2) / (2 * squares))
    p[unreached] = np.minimum(p[unreached], np.maximum(bound, np.finfo(float).tiny))
    differing = np.count_nonzero(values, axis=0)
    for index in np.flatnonzero(differing <= MAX_EXACT_ITEMS).tolist():
        column = values[:, index]
        p[index] = _exact_p_value(column[column != 0])
    return p


def _swapped_sums(values: Matrix, stream: str) -> Matrix:
    """Return what random swaps add to the sum of each column, shape (permutations, columns)."""
    sums = np.empty((PERMUTATIONS, values.shape[1]))
    start = 0
    for flips in coin_flips(len(values), PERMUTATIONS, stream):
        np.matmul(flips, -2 * values, out=sums[start : start + len(flips)])
        start += len(flips)
    return sums


def _exact_p_value(values: Column) -> float:
    if not len(values):
        return 1.0
    sums = _all_sign_patterns(len(values)) @ values
    return float(np.mean(np.abs(sums) >= abs(values.sum()) * (1 - _TIE_TOLERANCE)))


@cache
def _all_sign_patterns(items: int) -> Matrix:
    """Return all sign patterns up to a global sign, which does not change the absolute sum."""
    patterns = np.arange(2 ** (items - 1))[:, None] >> np.arange(items)
    return np.asarray(1.0 - 2.0 * (patterns & 1))
