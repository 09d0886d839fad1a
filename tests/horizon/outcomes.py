"""Invented answers of models with a known curve."""

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np

from numbench.horizon.estimate import SizeOutcome
from numbench.horizon.psychometric import Floats, probabilities


class Curve(NamedTuple):
    """The parameters of a curve without guessing. horizon: h50. slope: β. lapse: λ."""

    horizon: float
    slope: float
    lapse: float

    def probability(self, sizes: Floats) -> Floats:
        """Return the probability of a right answer at each size, if the model never guesses."""
        horizon, slope, lapse = (np.asarray(x, np.float64) for x in self)
        return probabilities(np.log(horizon), slope, lapse, np.log(sizes))


def invented_outcomes(
    curve: Curve, sizes: Sequence[int], each: int, seed: int = 1, guess: float = 0.0
) -> list[SizeOutcome]:
    """Return `each` answers at every size, right with the probability of the curve or a guess.

    An answer takes ten tokens per unit of size.
    """
    rng = np.random.default_rng(seed)
    p = guess + (1 - guess) * curve.probability(np.array(sizes, np.float64))
    return [
        SizeOutcome(size, float(rng.random() < probability), tokens=10.0 * size)
        for size, probability in zip(sizes, p.tolist(), strict=True)
        for _ in range(each)
    ]
