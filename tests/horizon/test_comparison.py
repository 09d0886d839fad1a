"""The comparison of two horizons, against draws from both posteriors."""

import numpy as np
import pytest

from numbench.horizon.estimate import TaskHorizon, compare_horizons, estimate_horizon
from numbench.horizon.psychometric import LOG2_HORIZONS
from numbench.tasks import SCALED_TASKS
from tests.horizon.outcomes import Curve, invented_outcomes


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
