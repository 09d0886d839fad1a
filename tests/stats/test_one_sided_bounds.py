"""One-sided bounds: Clopper and Pearson's, a simulation of the weights, and error rates."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given, settings
from hypothesis import strategies as st
from scipy.stats import beta

from numbench.stats.design import Stratum
from numbench.stats.one_sided_bounds import one_sided_bounds


@given(st.integers(2, 600), st.data())
@settings(max_examples=60)
def test_losses_of_the_worst_size_have_the_bound_of_clopper_and_pearson(
    n: int, data: st.DataObject
) -> None:
    losses = data.draw(st.integers(0, n - 1))
    values = np.zeros((n, 1))
    values[:losses] = -100.0
    expected = -100 * beta.ppf(0.95, losses + 1, n - losses)
    bound = float(one_sided_bounds([Stratum("", values)]).at_least[0])
    assert bound == pytest.approx(expected, rel=0.006)
    # Where it differs by more than rounding, it is on the safe side.
    assert bound <= expected + 0.002


def test_bound_is_the_quantile_of_weighted_means() -> None:
    rng = np.random.default_rng(5)
    values = rng.choice([-1.0, -0.3, 0.0, 0.1, 0.8], size=(60, 1)) * rng.random((60, 1))
    weights = rng.dirichlet(np.ones(61), 100_000)
    bounds = one_sided_bounds([Stratum("", values)], 1.0)
    for bound, worst, share in ((bounds.at_least, -1.0, 0.05), (bounds.at_most, 1.0, 0.95)):
        means = weights @ np.append(values, worst)
        assert np.mean(means < bound[0]) == pytest.approx(share, abs=0.003)


def test_items_that_do_not_count_change_nothing_and_no_items_have_no_bound() -> None:
    values = np.random.default_rng(6).normal(0, 0.2, (30, 1))
    gaps = np.vstack([values, np.full((9, 1), np.nan)])
    expected = one_sided_bounds([Stratum("", values)], 1.0)
    result = one_sided_bounds([Stratum("", gaps)], 1.0)
    assert result.at_least[0] == pytest.approx(expected.at_least[0])
    empty = one_sided_bounds([Stratum("", values), Stratum("b", np.full((3, 1), np.nan))])
    assert np.isnan(empty.at_least[0]) and np.isnan(empty.at_most[0])
    with pytest.raises(ValueError, match="no questions"):
        one_sided_bounds([])


@pytest.mark.parametrize(
    ("margin", "loss", "small"), [(0.5, 1.0, 0.0), (0.6, 1.0, 0.07), (2.0, 1.0, 0.07), (1, 0.5, 0)]
)
def test_a_regression_of_the_margin_is_excluded_in_5_percent(
    margin: float, loss: float, small: float
) -> None:
    rng = np.random.default_rng(8)
    drawn = np.where(rng.random((500, 2000)) < margin / 100 / loss, -loss, 0.0)
    noise = rng.choice([-small, small], drawn.shape) * (rng.random(drawn.shape) < 0.2)
    bounds = one_sided_bounds([Stratum("", np.where(drawn < 0, drawn, noise))], 1.0)
    # Three standard errors above 5 %.
    assert np.mean(bounds.at_least > -margin / 100) <= 0.05 + 3 * (0.0475 / 2000) ** 0.5
