"""Intervals of means, compared with independent computations."""

from __future__ import annotations

import math
import random

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.stats.intervals import bootstrap_means, wilson

Z = 1.959963984540054


@given(st.integers(1, 2000), st.data())
def test_wilson_bounds_are_the_critical_values_of_the_score_test(
    n: int, data: st.DataObject
) -> None:
    successes = data.draw(st.integers(0, n))
    low, high = wilson(successes, n)
    p = successes / n
    for bound in {low, high} - {0.0, 1.0}:
        score = abs(p - bound) / math.sqrt(bound * (1 - bound) / n)
        assert score == pytest.approx(Z, rel=1e-6)
    assert 0 <= low <= p <= high <= 1


def test_wilson_reproduces_a_textbook_interval() -> None:
    low, high = wilson(81, 263)
    assert (round(low, 4), round(high, 4)) == (0.2553, 0.3662)


def test_wilson_bounds_are_exact_at_0_and_1_and_the_width_is_positive() -> None:
    assert wilson(0, 500).low == 0.0
    assert wilson(500, 500).high == 1.0
    assert 0 < wilson(0, 500).high < 0.01
    assert 0.99 < wilson(500, 500).low < 1


@pytest.mark.parametrize(("successes", "n"), [(0, 0), (3, 2), (-1, 2)])
def test_wilson_rejects_impossible_counts(successes: int, n: int) -> None:
    with pytest.raises(ValueError, match="observations"):
        wilson(successes, n)


def test_bootstrap_agrees_with_a_plain_loop() -> None:
    draw = random.Random(7)
    values = [draw.expovariate(0.01) for _ in range(60)]
    means = sorted(sum(draw.choices(values, k=60)) / 60 for _ in range(20_000))
    (interval,) = bootstrap_means([np.array(values)])
    spread = means[-500] - means[500]
    assert interval.low == pytest.approx(means[500], abs=0.03 * spread)
    assert interval.high == pytest.approx(means[-500], abs=0.03 * spread)


def test_bootstrap_of_two_items_has_the_known_distribution() -> None:
    # Means 0, 1/2, 1 with probabilities 1/4, 1/2, 1/4: both tails exceed 2.5 %.
    assert bootstrap_means([np.array([0.0, 1.0])]) == [(0.0, 1.0)]


def test_interval_depends_only_on_its_own_column() -> None:
    values, others = np.linspace(0, 100, 40), np.arange(40.0) ** 2
    (alone,) = bootstrap_means([values])
    together = bootstrap_means([others, np.ones(7), values])
    assert together[2] == pytest.approx(alone)
    assert together[1] == (1.0, 1.0)


def test_bootstrap_interval_is_reproducible() -> None:
    ((low, high),) = bootstrap_means([np.arange(10.0)])
    assert (low, high) == (pytest.approx(2.8), pytest.approx(6.2))


def test_bootstrap_rejects_an_empty_column() -> None:
    with pytest.raises(ValueError, match="without values"):
        bootstrap_means([np.array([])])


def test_long_columns_are_drawn_in_chunks() -> None:
    (interval,) = bootstrap_means([np.tile([0.0, 1.0], 1_000)])
    half = Z * 0.5 / math.sqrt(2_000)
    assert interval.low == pytest.approx(0.5 - half, abs=1e-3)
    assert interval.high == pytest.approx(0.5 + half, abs=1e-3)
