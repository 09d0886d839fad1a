"""Numbers of items and samples: inversion of the variance, simulation and worked examples."""

from __future__ import annotations

import math

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.stats import binom

from numbench.stats.design import Design, Matrix, Stratum
from numbench.stats.intervals import difference_intervals, difference_variances
from numbench.stats.planning import (
    ItemVariance,
    detectable_difference,
    item_variance,
    items_for_difference,
    items_for_precision,
    non_inferiority_power,
)
from numbench.stats.sign_flips import sign_flip_test

Z = 1.959963984540054


@given(
    st.floats(1, 2500), st.floats(0, 2500), st.floats(0, 1), st.integers(1, 8),
    st.sampled_from([None, 10_000]), st.floats(0.2, 5),
)  # fmt: skip
def test_items_are_the_fewest_with_the_precision(
    between: float,
    within: float,
    residual: float,
    samples: int,
    pool: int | None,
    half_width: float,
) -> None:
    variance = ItemVariance(between, within, residual)
    items = items_for_precision(variance, half_width, samples, pool)
    assert wilson_half_width(variance.of_mean(items, samples, pool), items) <= half_width
    if items > 1:
        fewer = variance.of_mean(items - 1, samples, pool)
        assert wilson_half_width(fewer, items - 1) > half_width


def wilson_half_width(variance: float, items: int) -> float:
    return Z * math.sqrt(variance + (50 * Z / items) ** 2) / (1 + Z**2 / items)


def detectable(differences: Matrix) -> list[float]:
    column = Stratum("", differences)
    found = detectable_difference(*difference_variances([column]), column.n)
    return found.tolist()  # type: ignore[no-any-return]


def test_six_items_have_to_differ() -> None:
    # The number of items that differ exceeds five with a probability of 80%.
    for items in (6, 50, 500):
        (least,) = detectable(np.zeros((items, 1)))
        assert binom.sf(5, items, least / 100) == pytest.approx(0.8, abs=0.001) or least > 96
        assert items_for_difference(ItemVariance(1.0), least) <= items
    assert np.isnan(detectable(np.zeros((5, 1)))).all()


def test_a_margin_has_half_the_chance_where_the_bound_of_equal_models_is() -> None:
    error = 1.2
    at_bound = 1.6448536 * math.hypot(error, 100 / 500) + 100 / 500
    assert non_inferiority_power(at_bound, error**2, 500) == pytest.approx(0.5)
    assert non_inferiority_power(at_bound + 0.8416 * error, error**2, 500) == pytest.approx(
        0.8, abs=0.001
    )
    assert [non_inferiority_power(margin, 0.0, 500) for margin in (0.5, 0.6)] == [0.0, 1.0]


@pytest.mark.parametrize("samples", [1, 3])
def test_residual_is_the_share_that_difficulty_does_not_explain(samples: int) -> None:
    rng = np.random.default_rng(2)
    p = np.linspace(1, 0, 3000)
    scores = 100.0 * (rng.random((3000, samples)) < p[:, None])
    variance = item_variance(scores, Design(np.arange(3000), 1 / 3000))
    remaining = variance.between * variance.residual + variance.within
    assert remaining == pytest.approx(100**2 * float(np.mean(p * (1 - p))), rel=0.08)


@pytest.mark.parametrize(("errors", "difference", "most"), [(0.002, 1.0, 1.0), (0.3, 3.0, 0.86)])
def test_planned_items_give_a_verdict_in_80_percent(
    errors: float, difference: float, most: float
) -> None:
    rng = np.random.default_rng(5)

    def scores(share: float, items: int, samples: int) -> Matrix:
        wrong = rng.random((items, samples)) < share
        return np.asarray(100 * (1 - wrong * rng.beta(1.5, 1.5, wrong.shape)))

    pilot = scores(errors, 20_000, 1)
    variance = item_variance(pilot).with_pseudo_items(500, float(pilot.mean()))
    items = items_for_difference(ItemVariance(2 * variance.between), difference)
    low = max(errors - difference / 100, 0.0)
    drawn = scores(low, items, 500) - scores(low + difference / 50, items, 500)
    stratum = Stratum("", drawn)
    p = sign_flip_test([stratum])
    power = np.mean((p <= 0.05) & (difference_intervals([stratum]).low > 0))
    # Where few items differ, the plan allows for differences of 100 points.
    assert 0.75 <= power <= most


def test_wrong_arguments_are_rejected() -> None:
    with pytest.raises(ValueError, match="half-width"):
        items_for_precision(ItemVariance(1.0), 0.0)
    with pytest.raises(ValueError, match="difference"):
        items_for_difference(ItemVariance(1.0), -1.0)
    with pytest.raises(ValueError, match="no scores"):
        item_variance(np.full((2, 1), np.nan))
