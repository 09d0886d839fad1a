"""How a mini-batch is divided among the tasks (paper, appendix "Multitask learning")."""

from __future__ import annotations

import numpy as np
from numpy.typing import NDArray

from bench.bittoken.training.curriculum import MOMENTUM, needs

Floats = NDArray[np.float64]


def generalized_mean(performance: Floats, exponent: float, epsilon: float = 1e-6) -> float:
    """(mean of (p + ε)^λ)^(1/λ): −1 gives the harmonic, 0 the geometric, 1 the arithmetic mean."""
    values = np.asarray(performance, np.float64) + epsilon
    if exponent == 0:
        return float(np.exp(np.log(values).mean()))
    return float((values**exponent).mean() ** (1 / exponent))


def rebalanced(ratios: Floats, performance: Floats, exponent: float) -> Floats:
    """r_new = α · r_old + (1 − α) · (1 − p)^(1 − λ) / Σ (1 − p)^(1 − λ), α = 0.5."""
    return MOMENTUM * ratios + (1 - MOMENTUM) * needs(performance, exponent)


def capped(ratios: Floats, most: float) -> Floats:
    """Ratios of at most `most`, what is cut off shared out among the others in proportion.

    `most` below an equal share means an equal share (paper, "capped maximum task ratio").
    """
    most = max(most, 1 / len(ratios))
    fixed = np.zeros(len(ratios), np.bool_)
    result: Floats = ratios / ratios.sum()
    while (over := ~fixed & (result > most + 1e-12)).any():
        fixed |= over
        result[fixed] = most
        free = ~fixed
        rest = 1 - most * fixed.sum()
        weight = ratios[free].sum()
        result[free] = ratios[free] * rest / weight if weight > 0 else rest / max(free.sum(), 1)
    return result
