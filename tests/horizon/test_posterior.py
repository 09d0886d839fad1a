"""What the posterior says of precision, ends of the sizes and the fit of a curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression
from scipy.stats import norm

from numbench.horizon.goodness_of_fit import SizeCount, fit_p_value, isotonic_rates
from numbench.horizon.psychometric import GRID_STEP, LOG2_HORIZONS, Posterior
from numbench.horizon.sizes import task_sizes
from numbench.horizon.stopping import Limits, stop_reason
from numbench.tasks.scaled import COPY


def test_the_precision_has_to_be_reached_twice() -> None:
    posterior = Posterior((2, 4, 6, 8, 10))
    for size, right in ((2, 9), (4, 9), (6, 6), (8, 2), (10, 0)):
        posterior.update(size, right, 9 - right)
    limits = Limits(precision := posterior.log2_horizon_deviation() + 1e-6)
    assert stop_reason(posterior, 45, limits, 2 * precision) is None
    assert stop_reason(posterior, 45, limits, precision) == "precision"
    assert stop_reason(posterior, 45, Limits(precision - 1e-5), precision) is None


@pytest.mark.parametrize(("deviation", "place"), [(0.04, 0.0), (0.06, 0.5), (0.25, 0.3)])
def test_an_interval_of_few_grid_steps_is_that_of_the_density(
    deviation: float, place: float
) -> None:
    """A normal density of log₂ h50, known at the points of the grid, has these quantiles."""
    middle = LOG2_HORIZONS[100] + place * GRID_STEP
    posterior = Posterior(task_sizes(COPY))
    density = norm.logpdf(LOG2_HORIZONS, middle, deviation)
    posterior._log_weights = np.zeros_like(posterior._log_weights) + density[:, None]
    posterior._normalized = None
    found = np.log2(posterior.horizon())
    expected = norm.ppf([0.5, 0.025, 0.975], middle, deviation)
    assert found == pytest.approx(expected, abs=0.04 * deviation)


def test_a_horizon_between_neighbours_is_as_precise_as_can_be() -> None:
    limits = Limits(precision=0.05)
    posterior = Posterior((1, 2, 3, 4))
    posterior.update(1, 25, 0)
    assert stop_reason(posterior, 25, limits, np.inf) is None
    posterior.update(2, 0, 25)
    assert posterior.log2_horizon_deviation() > limits.precision
    assert stop_reason(posterior, 50, limits, np.inf) == "precision"
    # With a size left out, an answer could say more.
    wide = Posterior((1, 3, 4))
    wide.update(1, 25, 0)
    wide.update(3, 0, 25)
    assert stop_reason(wide, 50, limits, np.inf) is None


@pytest.mark.parametrize("largest", [17, 4096])
def test_a_few_right_answers_prove_no_horizon_beyond_the_sizes(largest: int) -> None:
    posterior = Posterior((1, 2, 4, 8, 16, largest))
    posterior.update(largest, 4)
    assert stop_reason(posterior, 4, Limits(), np.inf) is None
    posterior.update(largest, 20)
    assert stop_reason(posterior, 24, Limits(), np.inf) == "above"


@given(st.lists(st.tuples(st.integers(1, 9), st.floats(0, 1)), min_size=1, max_size=15))
def test_isotonic_rates_are_those_of_scipy(answers: list[tuple[int, float]]) -> None:
    counts = tuple(
        SizeCount(size, round(share * total), total)
        for size, (total, share) in enumerate(answers, 1)
    )
    rates = [count.right / count.total for count in counts]
    expected = isotonic_regression(rates, weights=[c.total for c in counts], increasing=False).x
    assert isotonic_rates(counts) == pytest.approx(expected)


def test_a_collapse_in_two_stages_does_not_fit() -> None:
    sizes = (1, 2, 3, 4, 6, 8, 11, 16, 23, 32, 45, 64)
    rates = (1, 1, 1, 0.6, 0.6, 0.6, 0.6, 0.6, 0.6, 0.05, 0, 0)
    for shown, fits in (((0.95, 0.9, 0.85, 0.8, 0.7, 0.6, 0.5, 0.4, 0.3, 0.2, 0.15, 0.1), True),
                        (rates, False)):  # fmt: skip
        counts = tuple(SizeCount(s, round(40 * r), 40) for s, r in zip(sizes, shown, strict=True))
        posterior = Posterior(sizes)
        for count in counts:
            posterior.update(count.size, count.right, count.total - count.right)
        assert (fit_p_value(posterior, counts) > 0.05) == fits
