"""The spread over wordings: its interval, checked by simulation."""

from __future__ import annotations

import math

import numpy as np
import pytest

from numbench.stats.design import Matrix, Stratum
from numbench.stats.paired import spread_of_means

REPETITIONS = 400


def answers(rng: np.random.Generator, n: int, means: list[float], shared: float) -> Matrix:
    """Correct answers of n items in each wording; a share of the items has one answer in all."""
    uniform = np.where(rng.random((n, 1)) < shared, rng.random((n, 1)), rng.random((n, len(means))))
    return 100.0 * (uniform < np.array(means))


@pytest.mark.parametrize("means", [[0.5] * 6, [0.9] * 3, [0.3, 0.35, 0.4, 0.3, 0.3], [0.2, 0.6]])
@pytest.mark.parametrize("n", [60, 300])
def test_the_interval_covers_the_true_spread(means: list[float], n: int) -> None:
    rng = np.random.default_rng(int(1000 * sum(means)) + n)
    truth, covered, false_alarms = 100 * (max(means) - min(means)), 0, 0
    for _ in range(REPETITIONS):
        spread = spread_of_means(Stratum("", answers(rng, n, means, shared=0.7)))
        assert spread is not None
        assert 0 <= spread.low <= spread.value + 1e-9 <= spread.high + 2e-9
        covered += spread.low - 1e-9 <= truth <= spread.high + 1e-9
        false_alarms += spread.low > truth
    # 95 %, less three standard errors of the simulation.
    margin = 3 * math.sqrt(0.05 * 0.95 / REPETITIONS)
    assert covered / REPETITIONS >= 0.95 - margin
    assert false_alarms / REPETITIONS <= 0.05 + margin


def test_items_without_an_answer_in_every_wording_do_not_count() -> None:
    values = np.array([[100.0, 0.0], [100.0, 100.0], [100.0, np.nan], [np.nan, np.nan]])
    spread = spread_of_means(Stratum("", values))
    assert spread is not None
    assert (spread.n, spread.lowest, spread.highest, spread.value) == (2, 50.0, 100.0, 50.0)
    assert spread_of_means(Stratum("", values[2:])) is None
    with pytest.raises(ValueError, match="two columns"):
        spread_of_means(Stratum("", values[:, :1]))
