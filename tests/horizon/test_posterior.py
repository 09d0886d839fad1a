"""What the posterior says of precision, ends of the sizes and the fit of a curve."""

from __future__ import annotations

import numpy as np
import pytest
from hypothesis import given
from hypothesis import strategies as st
from scipy.optimize import isotonic_regression

from numbench.horizon.goodness_of_fit import SizeCount, fit_p_value, isotonic_rates
from numbench.horizon.psychometric import LAPSES, LOG2_HORIZONS, SLOPES, Posterior, shallower_half
from numbench.horizon.stopping import Limits, stop_reason


def test_the_shallower_half_has_the_slopes_up_to_their_median() -> None:
    weights = np.zeros((len(LOG2_HORIZONS), len(SLOPES), len(LAPSES)))
    weights[10, 1, 0], weights[20, 3, 2], weights[30, 5, 1] = 0.3, 0.4, 0.3
    half = shallower_half(weights.reshape(len(LOG2_HORIZONS), -1))
    # Of the slope with the median, the half takes what is missing.
    assert half[10] == pytest.approx(0.6) and half[20] == pytest.approx(0.4)
    assert half.sum() == pytest.approx(1)


def test_a_horizon_between_neighbours_is_as_precise_as_can_be() -> None:
    limits = Limits(precision=0.05)
    posterior = Posterior((1, 2, 3, 4))
    posterior.update(1, 25, 0)
    assert stop_reason(posterior, 25, limits) is None
    posterior.update(2, 0, 25)
    assert posterior.log2_horizon_deviation() > limits.precision
    assert stop_reason(posterior, 50, limits) == "precision"
    # With a size left out, an answer could say more.
    wide = Posterior((1, 3, 4))
    wide.update(1, 25, 0)
    wide.update(3, 0, 25)
    assert stop_reason(wide, 50, limits) is None


@pytest.mark.parametrize("largest", [17, 4096])
def test_a_few_right_answers_prove_no_horizon_beyond_the_sizes(largest: int) -> None:
    posterior = Posterior((1, 2, 4, 8, 16, largest))
    posterior.update(largest, 4)
    assert stop_reason(posterior, 4, Limits()) is None
    posterior.update(largest, 20)
    assert stop_reason(posterior, 24, Limits()) == "above"


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
