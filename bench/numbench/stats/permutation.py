"""The paired randomisation test of the difference between two models.

Under the null hypothesis, the two scores of an item are exchangeable. The test swaps them on
random subsets of items and counts how often the mean difference is at least as large as the
observed one. For scores of 0 and 1 it is the exact McNemar test. It keeps its level with few
differing items, where a bootstrap does not.
"""

from __future__ import annotations

from collections.abc import Sequence
from functools import cache
from typing import NamedTuple

import numpy as np

from numbench.stats.resampling import (
    Column,
    Matrix,
    Stratum,
    coin_flips,
    column_batches,
    round_for_exact_sums,
)

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


def permutation_test(strata: Sequence[Stratum]) -> PValues:
    """Test columns of differences between two models' scores, NaN if an item does not count.

    p is the share of permutations whose mean difference is at least as large as the observed
    one: of 19,999 random permutations and the identity, or of all permutations.

    Raises ValueError if there is no stratum.
    """
    if not strata:
        raise ValueError("no items to compare")
    parts = [_test_columns(batch) for batch in column_batches(strata)]
    return PValues(
        [np.concatenate([part.strata[index] for part in parts]) for index in range(len(strata))],
        np.concatenate([part.overall for part in parts]),
    )


def _test_columns(strata: Sequence[Stratum]) -> PValues:
    columns = strata[0].values.shape[1]
    permuted_mean, observed_mean = np.zeros((PERMUTATIONS, columns)), np.zeros(columns)
    scaled_values, p_values = [], []
    for stratum in strata:
        values = np.nan_to_num(round_for_exact_sums(stratum.values))
        scale = 1 / (len(strata) * np.maximum(stratum.n, 1))
        observed = values.sum(axis=0)
        permuted = _permuted_sums(values, stratum.name)
        p_values.append(_p_values(permuted, observed, values))
        permuted_mean += permuted * scale
        observed_mean += observed * scale
        scaled_values.append(values * scale)
    overall = _p_values(permuted_mean, observed_mean, np.concatenate(scaled_values))
    return PValues(p_values, overall)


def _p_values(permuted: Matrix, observed: Column, values: Matrix) -> Column:
    extreme = np.abs(permuted) >= np.abs(observed) * (1 - _TIE_TOLERANCE)
    p = np.asarray((1 + np.count_nonzero(extreme, axis=0)) / (1 + len(permuted)))
    differing = np.count_nonzero(values, axis=0)
    for index in np.flatnonzero(differing <= MAX_EXACT_ITEMS).tolist():
        column = values[:, index]
        p[index] = _exact_p_value(column[column != 0])
    return p


def _permuted_sums(values: Matrix, stream: str) -> Matrix:
    """Return the sum of each column with random signs, shape (permutations, columns)."""
    sums = np.empty((PERMUTATIONS, values.shape[1]))
    start = 0
    for flips in coin_flips(len(values), PERMUTATIONS, stream):
        np.matmul(flips, -2 * values, out=sums[start : start + len(flips)])
        start += len(flips)
    sums += values.sum(axis=0)
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
