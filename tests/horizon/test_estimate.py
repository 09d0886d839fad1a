"""The horizon from the answers of a measurement."""

import random

import numpy as np
import pytest
from scipy.optimize import minimize
from scipy.special import expit, logit

from numbench.horizon.estimate import (
    SizeOutcome,
    TaskHorizon,
    compare_horizons,
    estimate_horizon,
    tokens_at,
)
from numbench.horizon.goodness_of_fit import SizeCount
from numbench.horizon.psychometric import LOG2_HORIZONS, SizeEstimate
from numbench.horizon.sizes import task_sizes
from numbench.tasks import SCALED_TASKS
from tests.horizon.outcomes import Curve, invented_outcomes
from tests.support.case_tables import each_row

COPY = SCALED_TASKS["copy"]
LONG_COMPARISON = SCALED_TASKS["long_comparison"]
LONG_MAX = SCALED_TASKS["long_max"]
LONG_MULTIPLICATION = SCALED_TASKS["long_multiplication"]

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


@each_row(__file__, "estimates")
def test_estimates_are_those_of_the_method_as_published(
    task: str, curve: list[float], step: int, each: int, guess: float, expected: list[float]
) -> None:
    sizes = task_sizes(SCALED_TASKS[task])[::step]
    outcomes = invented_outcomes(Curve(*curve), sizes, each, 5, guess)
    horizon = estimate_horizon(SCALED_TASKS[task], outcomes)
    h50, h90 = horizon.h50, horizon.h90 or ()
    numbers = (*h50, *h90, horizon.isotonic, horizon.fit_p, horizon.tokens_at_h50)
    assert numbers == pytest.approx(expected, rel=1e-6)


def test_the_estimate_does_not_depend_on_the_order_of_the_answers() -> None:
    outcomes = invented_outcomes(Curve(20.0, 2.0, 0.02), SIZES, 7)
    outcomes = [
        o._replace(right=share / 3) for share, o in zip([0, 1, 2, 3] * 14, outcomes, strict=True)
    ]
    shuffled = random.Random(3).sample(outcomes, len(outcomes))
    assert estimate_horizon(COPY, shuffled) == estimate_horizon(COPY, outcomes)


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


def test_the_tokens_of_the_prompt_at_h50_are_known_where_they_were_reported() -> None:
    curve, sizes = Curve(30.0, 4.0, 0.0), task_sizes(COPY, 300)[::3]
    outcomes = invented_outcomes(curve, sizes, 20, 5)
    assert estimate_horizon(COPY, outcomes).prompt_tokens_at_h50 is None
    reported = [outcome._replace(prompt_tokens=50.0 * outcome.size) for outcome in outcomes]
    horizon = estimate_horizon(COPY, reported)
    assert horizon.prompt_tokens_at_h50 == pytest.approx(50 * horizon.h50.value, rel=0.01)
    assert horizon.tokens_at_h50 == pytest.approx(10 * horizon.h50.value, rel=0.01)


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


def test_an_abrupt_end_has_an_h90_near_it() -> None:
    outcomes = [SizeOutcome(size, float(size <= 37)) for size in task_sizes(COPY, 300)] * 3
    horizon = estimate_horizon(COPY, outcomes)
    # The sizes next to the end are 35 and 38.
    assert 35 < horizon.h50.value < 38 and horizon.h90 is not None
    assert 33.5 < horizon.h90.value < horizon.h50.value
    assert horizon.h90.low < horizon.h90.value and 35 < horizon.h90.high < 39


def test_errors_at_every_size_do_not_move_the_horizon() -> None:
    """30% are incorrect however small the question is, and half are correct at 20 digits."""
    sizes = (2, 5, 8, 12, 16, 20, 25, 32, 40, 64)
    rates = Curve(20.0, 3.0, 0.3).probability(np.array(sizes, np.float64)).tolist()
    outcomes = [
        SizeOutcome(size, float(i < round(40 * rate)))
        for size, rate in zip(sizes, rates, strict=True)
        for i in range(40)
    ]
    horizon = estimate_horizon(COPY, outcomes)
    assert horizon.fits and horizon.fit_p > 0.2 and horizon.h90 is None
    assert horizon.h50.value == pytest.approx(20, rel=0.03)


def test_estimates_come_from_streams_that_no_version_of_numpy_changes(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    outcomes = invented_outcomes(Curve(20.0, 2.0, 0.02), SIZES, 7)
    first = estimate_horizon(COPY, outcomes)

    def refuse(*_: object) -> None:
        raise AssertionError("numpy's own distributions may change with its version")

    monkeypatch.setattr(np.random, "default_rng", refuse)
    assert estimate_horizon(COPY, outcomes) == first


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


def test_texts_show_one_decimal_below_a_hundred() -> None:
    horizon = estimate_horizon(COPY, [])
    texts = [horizon.text(x) for x in (0.0, 0.99, 6.3, 41, 99.94, 99.96, 1234.5, 4096, np.inf)]
    assert texts == ["< 1", "< 1", "6.3", "41.0", "99.9", "100", "1,234", "≥ 4,096", "≥ 4,096"]
    assert horizon.interval_text(SizeEstimate(6, 5.94, 6.81)) == "[5.9, 6.8]"


def test_tokens_at_a_size_are_those_of_a_power_law() -> None:
    counts = [SizeCount(s, 1.0, 5, tokens=3 * s**1.4) for s in (2, 5, 11, 40)]
    assert tokens_at(7.5, counts) == pytest.approx(3 * 7.5**1.4)
    assert tokens_at(1.9, counts) is None
    assert tokens_at(41, counts) is None
    assert tokens_at(5, [SizeCount(5, 1.0, 3, tokens=20.0), SizeCount(9, 0, 1)]) == 20.0
    assert tokens_at(5, [SizeCount(5, 1.0, 3, tokens=0.0), SizeCount(9, 0, 1, tokens=0.0)]) == 0.0


def horizon_at(h50: float, seed: int = 1, largest: int | None = None) -> TaskHorizon:
    sizes = [2**k for k in range(13) if largest is None or 2**k <= largest]
    outcomes = invented_outcomes(Curve(h50, 3.0, 0.0), sizes, 12, seed)
    return estimate_horizon(SCALED_TASKS["copy"], outcomes, largest)


def test_ratio_and_probability_are_those_of_independent_draws() -> None:
    old, new = horizon_at(20.0), horizon_at(28.0, seed=2)
    shift = compare_horizons(old, new)
    rng = np.random.default_rng(4)
    # Within a step of the grid, the posterior is uniform.
    drawn = [
        rng.choice(LOG2_HORIZONS, 200_000, p=np.array(h.log2_h50_weights) / sum(h.log2_h50_weights))
        + rng.uniform(-1 / 32, 1 / 32, 200_000)
        for h in (old, new)
    ]
    difference = drawn[1] - drawn[0]
    assert shift.larger == pytest.approx(np.mean(difference > 0), abs=0.01)
    expected = 2 ** np.quantile(difference, (0.5, 0.025, 0.975))
    assert list(shift.ratio) == pytest.approx(list(expected), rel=0.03)
    assert shift.p == pytest.approx(2 * (1 - shift.larger))


def test_horizons_beyond_the_sizes_of_both_are_not_different() -> None:
    shift = compare_horizons(horizon_at(30_000.0), horizon_at(30_000.0, 2))
    assert shift.larger == pytest.approx(0.5, abs=0.02)
    limited = compare_horizons(horizon_at(30_000.0, largest=64), horizon_at(30_000.0))
    assert limited.largest == 64
    assert limited.larger == pytest.approx(0.5, abs=0.02)


def test_a_horizon_beyond_the_sizes_gives_a_bound_of_the_ratio() -> None:
    shift = compare_horizons(horizon_at(20.0), horizon_at(30_000.0, 2))
    assert shift.larger > 0.999
    assert shift.ratio.value < 4096 / 15
