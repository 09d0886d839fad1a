"""Ranks, rank correlations and bins, compared with computations by definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import spearmanr

from numbench.stats.rank_statistics import FloatArray, average_ranks, quantile_bins, spearman

values = st.lists(st.integers(-5, 5), min_size=1, max_size=40)
pairs = st.lists(st.tuples(st.integers(-4, 4), st.integers(-9, 9)), min_size=2, max_size=40)


def column(numbers: list[int]) -> FloatArray:
    return np.array(numbers, dtype=np.float64)


def naive_rank(numbers: list[int], value: int) -> float:
    """Return the mean position, from 1, of equal values in the sorted list."""
    positions = [index for index, other in enumerate(sorted(numbers), 1) if other == value]
    return sum(positions) / len(positions)


def naive_spearman(x: list[int], y: list[int]) -> float | None:
    """Return Pearson's correlation of the naive ranks."""
    a, b = ([naive_rank(side, value) for value in side] for side in (x, y))
    n = len(x)
    covariance = sum((p - sum(a) / n) * (q - sum(b) / n) for p, q in zip(a, b, strict=True))
    norm = math.sqrt(sum((p - sum(a) / n) ** 2 for p in a) * sum((q - sum(b) / n) ** 2 for q in b))
    return covariance / norm if norm else None


@given(values)
def test_equal_values_share_the_mean_of_their_ranks(numbers: list[int]) -> None:
    expected = [naive_rank(numbers, value) for value in numbers]
    assert average_ranks(column(numbers)).tolist() == expected


@given(pairs)
def test_spearman_is_the_correlation_of_ranks(points: list[tuple[int, int]]) -> None:
    x, y = [p for p, _ in points], [q for _, q in points]
    correlation, expected = spearman(column(x), column(y)), naive_spearman(x, y)
    if expected is None:
        assert correlation is None
    else:
        assert correlation == pytest.approx(expected, abs=1e-12)
        assert correlation == pytest.approx(float(spearmanr(x, y).statistic), abs=1e-12)


def test_spearman_depends_only_on_the_order() -> None:
    x = column([1, 2, 3, 4])
    assert spearman(x, np.exp(x)) == pytest.approx(1)
    assert spearman(x, -(x**3)) == pytest.approx(-1)
    # 1 − 6 Σd² / n(n² − 1) with d = (0, 1, 1, 0)
    assert spearman(x, column([1, 3, 2, 4])) == pytest.approx(0.8)


def test_spearman_is_none_if_all_values_are_equal() -> None:
    assert spearman(column([1, 2]), column([3, 3])) is None
    assert spearman(column([]), column([])) is None
    with pytest.raises(ValueError, match="lengths: 2 and 1"):
        spearman(column([1, 2]), column([1]))


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 9))
def test_bins_follow_the_order_of_the_values(numbers: list[int], max_bins: int) -> None:
    bins = quantile_bins(column(numbers), max_bins)
    assert bins.shape == (len(numbers),)
    assert set(bins.tolist()) == set(range(len(set(bins.tolist()))))
    assert len(set(bins.tolist())) <= max_bins
    for a, bin_a in zip(numbers, bins.tolist(), strict=True):
        for b, bin_b in zip(numbers, bins.tolist(), strict=True):
            assert (a != b or bin_a == bin_b) and (a >= b or bin_a <= bin_b)


def test_bins_of_distinct_values_have_equal_sizes() -> None:
    shuffled = column([(7 * index) % 40 for index in range(40)])
    assert np.bincount(quantile_bins(shuffled, 8)).tolist() == [5] * 8
