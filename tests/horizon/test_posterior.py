"""What the posterior says of precision, ends of the sizes and the fit of a curve."""

from __future__ import annotations

import numpy as np

from numbench.horizon import Limits
from numbench.horizon.adaptive import stop_reason
from numbench.horizon.psychometric import Posterior


def test_the_precision_has_to_be_reached_twice() -> None:
    posterior = Posterior((2, 4, 6, 8, 10))
    for size, right in ((2, 9), (4, 9), (6, 6), (8, 2), (10, 0)):
        posterior.update(size, right, 9 - right)
    limits = Limits(precision := posterior.log2_horizon_deviation() + 1e-6)
    assert stop_reason(posterior, 45, limits, 2 * precision) is None
    assert stop_reason(posterior, 45, limits, precision) == "precision"
    assert stop_reason(posterior, 45, Limits(precision - 1e-5), precision) is None


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
