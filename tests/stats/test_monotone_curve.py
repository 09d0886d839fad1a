"""Isotonic regression, thresholds of a curve, and ratios of means."""

from __future__ import annotations

from itertools import pairwise

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.stats.design import Stratum
from numbench.stats.isotonic import crossings, heights, non_increasing, sort_and_fit
from numbench.stats.monotone_curve import fit_curve
from numbench.stats.ratio import ratio_of_means

VALUES = st.lists(st.integers(0, 20), min_size=1, max_size=7)


def pool_adjacent_violators(values: list[float], weights: list[float]) -> list[float]:
    """Return the non-increasing regression by pooling, an independent computation."""
    blocks = [[value, weight, 1] for value, weight in zip(values, weights, strict=True)]
    merged: list[list[float]] = []
    for block in blocks:
        merged.append(block)
        while len(merged) > 1 and merged[-2][0] < merged[-1][0]:
            value, weight, count = merged.pop()
            first = merged[-1]
            first[0] = (first[0] * first[1] + value * weight) / (first[1] + weight)
            first[1] += weight
            first[2] += count
    return [value for value, _, count in merged for _ in range(int(count))]


@given(VALUES, st.data())
def test_isotonic_regression_is_that_of_pooling(values: list[int], data: st.DataObject) -> None:
    size = len(values)
    weights = data.draw(st.lists(st.integers(1, 5), min_size=size, max_size=size))
    fitted = non_increasing(np.array([values], float), np.array(weights, float))[0]
    assert fitted == pytest.approx(pool_adjacent_violators(values, weights))


@given(VALUES, st.integers(0, 20))
def test_the_curve_is_at_the_level_where_it_crosses_it(values: list[int], level: int) -> None:
    x, y = sort_and_fit(np.arange(len(values))[None] * 7.0, np.array([values], float))
    assert all(a <= b + 1e-9 for a, b in pairwise(y[0].tolist()))
    crossing = float(crossings(x, y, level)[0])
    if crossing == -np.inf:
        assert y[0, 0] >= level
    elif crossing == np.inf:
        assert y[0, -1] < level
    else:
        assert heights(x, y, np.array([crossing]))[0, 0] == pytest.approx(level)


def test_threshold_between_two_levels_is_interpolated() -> None:
    scores = np.repeat([[20.0, 80.0]], 50, axis=0)
    costs = np.repeat([[99.0, 9_999.0]], 50, axis=0)
    curve = fit_curve(Stratum("a", scores), Stratum("a", costs))
    known = curve.threshold(50)
    # Halfway on the logarithmic axis from 100 to 10,000.
    assert known.value == pytest.approx(999, rel=1e-6)
    assert known.low < 999 < known.high
    assert curve.threshold(90).text.startswith("> 9,999 [")
    assert curve.threshold(10).text.startswith("≤ 99 [")


def test_levels_out_of_order_are_pooled() -> None:
    scores = np.repeat([[60.0, 40.0, 90.0]], 30, axis=0)
    costs = np.repeat([[200.0, 100.0, 400.0]], 30, axis=0)
    curve = fit_curve(Stratum("a", scores), Stratum("a", costs))
    assert curve.fitted_costs == pytest.approx([100, 200, 400])
    assert curve.fitted == pytest.approx([40, 60, 90])
    # The second level is no better for twice the tokens: one score for both.
    pooled = fit_curve(Stratum("a", scores), Stratum("a", costs[:, [1, 0, 2]]))
    assert pooled.fitted == pytest.approx([50, 50, 90])


def test_equal_scores_have_a_band() -> None:
    scores = Stratum("a", np.repeat([[0.0, 100.0]], 40, axis=0))
    curve = fit_curve(scores, Stratum("a", np.repeat([[10.0, 1_000.0]], 40, axis=0)))
    assert curve.high[0] > 1.0
    assert curve.low[-1] < 99.0


def test_ratio_of_constants_has_no_width() -> None:
    ratio = ratio_of_means(
        [Stratum("a", np.full((9, 1), 6.0))], [Stratum("a", np.full((9, 1), 2.0))]
    )
    assert ratio == pytest.approx((3.0, 3.0, 3.0))
    assert ratio_of_means([Stratum("a", np.ones((3, 1)))], [Stratum("a", np.zeros((3, 1)))]) is None


def test_ratio_uses_the_covariance_of_its_parts() -> None:
    # Where every item has the same ratio, the spread of the items is no error of the ratio.
    below = np.arange(1.0, 41.0)[:, None]
    ratio = ratio_of_means([Stratum("a", 5 * below)], [Stratum("a", below)])
    assert ratio == pytest.approx((5.0, 5.0, 5.0))
    apart = ratio_of_means([Stratum("a", 5 * below[::-1])], [Stratum("a", below)])
    assert apart and apart.high > 1.5 * apart.low
