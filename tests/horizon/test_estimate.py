"""The horizon from the answers of a measurement."""

from __future__ import annotations

import random

import numpy as np
import pytest
from scipy.optimize import brentq, minimize
from scipy.special import expit, logit

from numbench.horizon.estimate import SizeOutcome, estimate_horizon
from numbench.horizon.generated_tokens import tokens_at
from numbench.horizon.goodness_of_fit import SizeCount, isotonic_crossing, isotonic_rates
from numbench.horizon.psychometric import LOG2_HORIZONS, Curve, Estimate
from numbench.horizon.sizes import guess_rates, task_sizes
from numbench.tasks.scaled import COPY, LONG_COMPARISON, LONG_MAX, LONG_MULTIPLICATION
from tests.horizon.outcomes import invented_outcomes

SIZES = (1, 2, 4, 6, 8, 11, 16, 32)


def test_many_answers_give_the_curve_that_a_logistic_regression_finds() -> None:
    outcomes = invented_outcomes(Curve(6.3, 3.0, 0.0), SIZES, 400)
    horizon = estimate_horizon(LONG_MULTIPLICATION, outcomes)
    size = np.array([outcome.size for outcome in outcomes])
    is_right = np.array([outcome.right for outcome in outcomes])

    def loss(parameters: np.ndarray) -> float:
        log_h, slope = parameters
        p = expit(slope * (log_h - np.log(size)))
        return -float(np.sum(is_right * np.log(p) + (1 - is_right) * np.log1p(-p)))

    log_h, slope = minimize(loss, [1.0, 1.0], method="Nelder-Mead").x
    assert horizon.h50.value == pytest.approx(np.exp(log_h), rel=0.01)
    h90 = np.exp(log_h - logit(0.9) / slope)
    assert horizon.h90 is not None and horizon.h90.low < h90 < horizon.h90.high
    assert horizon.h50.low < 6.3 < horizon.h50.high
    assert horizon.fits


def test_the_estimate_does_not_depend_on_the_order_of_the_answers() -> None:
    outcomes = invented_outcomes(Curve(20.0, 2.0, 0.02), SIZES, 7)
    outcomes = [
        o._replace(right=share / 3) for share, o in zip([0, 1, 2, 3] * 14, outcomes, strict=True)
    ]
    shuffled = random.Random(3).sample(outcomes, len(outcomes))
    assert estimate_horizon(COPY, shuffled) == estimate_horizon(COPY, outcomes)


def test_no_answers_leave_the_prior() -> None:
    horizon = estimate_horizon(LONG_MULTIPLICATION, [])
    assert (horizon.items, horizon.stop, horizon.isotonic, horizon.tokens_at_h50) == (
        (0, None, None, None)
    )
    assert horizon.interval_text(horizon.h50) == "[< 1, ≥ 4,096]"
    assert sum(horizon.log2_h50_weights) == pytest.approx(1)
    assert len(horizon.log2_h50_weights) == len(LOG2_HORIZONS)


@pytest.mark.parametrize(
    ("right", "largest", "text"), [(1.0, None, "≥ 4,096"), (1.0, 100, "≥ 99"), (0.0, None, "< 1")]
)
def test_horizons_outside_the_sizes_are_bounds(
    right: float, largest: int | None, text: str
) -> None:
    sizes = task_sizes(COPY, largest)
    outcomes = [SizeOutcome(size, right) for size in (sizes[0], sizes[-1])] * 30
    horizon = estimate_horizon(COPY, outcomes, largest)
    assert horizon.text(horizon.h50.value) == text
    assert horizon.largest == sizes[-1]


def test_guessing_right_half_of_the_time_is_no_horizon() -> None:
    outcomes = invented_outcomes(
        Curve(30.0, 4.0, 0.0), task_sizes(LONG_COMPARISON)[::4], 60, 5, 0.5
    )
    horizon = estimate_horizon(LONG_COMPARISON, outcomes)
    assert horizon.h50.low < 30 < horizon.h50.high
    assert horizon.isotonic == pytest.approx(30, rel=0.3)
    assert horizon.band[-1].probability == pytest.approx(0.5, abs=0.03)


@pytest.mark.parametrize(("share", "is_reached"), [(1.0, True), (0.95, True), (0.7, False)])
def test_a_model_that_never_reaches_90_percent_has_no_h90(share: float, is_reached: bool) -> None:
    rates = share * Curve(20.0, 3.0, 0.0).probability(np.array(SIZES, np.float64))
    outcomes = [
        SizeOutcome(size, float(i < round(100 * rate)))
        for size, rate in zip(SIZES, rates.tolist(), strict=True)
        for i in range(100)
    ]
    horizon = estimate_horizon(COPY, outcomes)
    assert (horizon.h90 is not None) == is_reached
    assert horizon.h90 is None or 1 <= horizon.h90.value < horizon.h50.value


def test_the_curve_alone_does_not_prove_an_h90() -> None:
    # The prior of a curve without lapses outweighs two answers of three.
    outcomes = [SizeOutcome(4, right) for right in (1.0, 1.0, 0.0)]
    outcomes += [SizeOutcome(40, right) for right in (1.0, 1.0, 0.0, 1.0, 0.0)]
    assert estimate_horizon(COPY, outcomes).h90 is None


def test_a_level_is_between_chance_and_all_answers() -> None:
    comparison, largest = (estimate_horizon(task, []) for task in (LONG_COMPARISON, LONG_MAX))
    assert [comparison.level(7.3), comparison.level(7.3, 0.9)] == [0.75, pytest.approx(0.95)]
    assert [largest.level(size) for size in (0.0, 5.2, 5000.0)] == pytest.approx(
        [0.75, 0.6, 0.5 + 0.5 / 4096]
    )


def test_a_curve_with_two_stages_does_not_fit() -> None:
    rates = {1: 1.0, 2: 1.0, 4: 0.6, 8: 0.6, 16: 0.6, 32: 0.6, 64: 0.6, 128: 0.0, 256: 0.0}
    outcomes = [
        SizeOutcome(size, float(i < 50 * rate)) for size, rate in rates.items() for i in range(50)
    ]
    horizon = estimate_horizon(COPY, outcomes)
    assert not horizon.fits
    # 60 % at 64 and 0 % at 128: a sixth of the way on the logarithmic axis.
    assert horizon.isotonic == pytest.approx(64 * 2 ** (1 / 6))


def test_counts_hold_what_was_answered() -> None:
    outcomes = [
        SizeOutcome(8, 0.5, 4, truncated=1, tokens=100.0),
        SizeOutcome(8, 1.0, 4, tokens=50.0),
        SizeOutcome(2, 1.0, 4),
    ]
    horizon = estimate_horizon(COPY, outcomes)
    assert horizon.counts == (SizeCount(2, 1.0, 1), SizeCount(8, 1.5, 2, 1, 75.0))
    assert (horizon.items, horizon.truncated) == (3, 1)


def test_sizes_are_within_the_axis_and_the_limit() -> None:
    assert task_sizes(COPY, 20) == (*range(1, 18), 19)
    assert task_sizes(LONG_MAX)[0] == 2
    assert task_sizes(COPY)[-1] == 4096
    assert guess_rates(LONG_MAX, (2, 4)) == (0.5, 0.25)
    with pytest.raises(ValueError, match="no size in 2 … 1"):
        task_sizes(LONG_MAX, 1)


def test_texts_show_one_decimal_below_a_hundred() -> None:
    horizon = estimate_horizon(COPY, [])
    texts = [horizon.text(x) for x in (0.0, 0.99, 6.3, 41, 99.94, 99.96, 1234.5, 4096, np.inf)]
    assert texts == ["< 1", "< 1", "6.3", "41.0", "99.9", "100", "1,234", "≥ 4,096", "≥ 4,096"]
    assert horizon.interval_text(Estimate(6, 5.94, 6.81)) == "[5.9, 6.8]"


def test_isotonic_rates_without_guessing_never_increase() -> None:
    counts = (
        SizeCount(2, 9.0, 10, guess=0.5),
        SizeCount(4, 6.0, 10, guess=0.25),
        SizeCount(8, 7.0, 10, guess=0.125),
    )
    without = [
        (rate - c.guess) / (1 - c.guess)
        for rate, c in zip(isotonic_rates(counts), counts, strict=True)
    ]
    assert without[0] == pytest.approx(0.8)
    assert without[1] == pytest.approx(without[2])
    assert isotonic_crossing(counts) is None


def test_tokens_at_a_size_are_those_of_a_power_law() -> None:
    counts = [SizeCount(s, 1.0, 5, tokens=3 * s**1.4) for s in (2, 5, 11, 40)]
    assert tokens_at(7.5, counts) == pytest.approx(3 * 7.5**1.4)
    assert tokens_at(1.9, counts) is None
    assert tokens_at(41, counts) is None
    assert tokens_at(5, [SizeCount(5, 1.0, 3, tokens=20.0), SizeCount(9, 0, 1)]) == 20.0
    assert tokens_at(5, [SizeCount(5, 1.0, 3, tokens=0.0), SizeCount(9, 0, 1, tokens=0.0)]) == 0.0


def test_tokens_at_a_size_solve_the_weighted_likelihood_equations() -> None:
    counts = [
        SizeCount(4, 1, 3, tokens=90),
        SizeCount(8, 1, 9, tokens=40),
        SizeCount(9, 1, 2, tokens=7),
    ]
    x = np.log2([4, 8, 9]) - np.log2(6)
    weights = np.array([3, 9, 2]) * np.exp(-(x**2) / 2)

    def intercept(slope: float) -> float:
        return float(np.log(weights @ [90, 40, 7] / (weights @ np.exp(slope * x))))

    def slope_equation(slope: float) -> float:
        return float((weights * x) @ (np.array([90, 40, 7]) - np.exp(intercept(slope) + slope * x)))

    expected = np.exp(intercept(brentq(slope_equation, -20, 20)))
    assert tokens_at(6, counts) == pytest.approx(expected)
