"""Ranks, rank correlations and bins, held against computations by definition."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from bench.report.ranks import Floats, average_ranks, quantile_bins, spearman

values = st.lists(st.integers(-5, 5), min_size=1, max_size=40)
pairs = st.lists(st.tuples(st.integers(-4, 4), st.integers(-9, 9)), min_size=2, max_size=40)


def column(numbers: list[int]) -> Floats:
    return np.array(numbers, dtype=np.float64)


def naive_rank(numbers: list[int], value: int) -> float:
    """The mean of the places, from 1, that equal values take up in the sorted list."""
    places = [place for place, other in enumerate(sorted(numbers), 1) if other == value]
    return sum(places) / len(places)


def naive_spearman(x: list[int], y: list[int]) -> float | None:
    """Pearson's correlation of the naive ranks, sum by sum."""
    a, b = ([naive_rank(side, value) for value in side] for side in (x, y))
    n = len(x)
    over = sum((p - sum(a) / n) * (q - sum(b) / n) for p, q in zip(a, b, strict=True))
    under = math.sqrt(sum((p - sum(a) / n) ** 2 for p in a) * sum((q - sum(b) / n) ** 2 for q in b))
    return over / under if under else None


@given(values)
def test_equal_values_share_the_mean_of_their_ranks(numbers: list[int]) -> None:
    expected = [naive_rank(numbers, value) for value in numbers]
    assert average_ranks(column(numbers)).tolist() == expected


@given(pairs)
def test_spearman_is_the_correlation_of_ranks(points: list[tuple[int, int]]) -> None:
    x, y = [p for p, _ in points], [q for _, q in points]
    found, expected = spearman(column(x), column(y)), naive_spearman(x, y)
    if expected is None:
        assert found is None
    else:
        assert found == pytest.approx(expected, abs=1e-12)


def test_spearman_sees_order_alone() -> None:
    x = column([1, 2, 3, 4])
    assert spearman(x, np.exp(x)) == pytest.approx(1)
    assert spearman(x, -(x**3)) == pytest.approx(-1)
    # 1 − 6 Σd² / n(n² − 1) with d = (0, 1, 1, 0)
    assert spearman(x, column([1, 3, 2, 4])) == pytest.approx(0.8)


def test_spearman_is_unknown_where_nothing_varies() -> None:
    assert spearman(column([1, 2]), column([3, 3])) is None
    assert spearman(column([]), column([])) is None
    with pytest.raises(ValueError, match="2 values against 1"):
        spearman(column([1, 2]), column([1]))


@given(st.lists(st.integers(0, 30), max_size=60), st.integers(1, 9))
def test_bins_hold_every_value_once_and_in_order(numbers: list[int], most: int) -> None:
    bins = quantile_bins(column(numbers), most)
    assert bins.shape == (len(numbers),)
    assert set(bins.tolist()) == set(range(len(set(bins.tolist()))))
    assert len(set(bins.tolist())) <= most
    for value, own in zip(numbers, bins.tolist(), strict=True):
        for other, others in zip(numbers, bins.tolist(), strict=True):
            assert (value != other or own == others) and (value >= other or own <= others)


def test_bins_without_equal_values_are_of_equal_size() -> None:
    shuffled = column([(7 * place) % 40 for place in range(40)])
    assert np.bincount(quantile_bins(shuffled, 8)).tolist() == [5] * 8
