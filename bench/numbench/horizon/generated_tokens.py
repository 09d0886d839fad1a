"""How many tokens a model generates for a question of a given size."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np

from numbench.horizon.goodness_of_fit import SizeCount

BANDWIDTH = 1.0
"""Standard deviation of the weights of sizes around the wanted one, in doublings."""

ITERATIONS = 50


def tokens_at(size: float, counts: Sequence[SizeCount]) -> float | None:
    """Return the expected generated tokens of an answer at a size; None if it is not among sizes.

    Around the wanted size, mean tokens are a power of the size: a local quasi-Poisson regression
    of the mean tokens on ln size with log link, which estimates a mean and not a median.
    """
    known = [count for count in counts if count.tokens is not None]
    if not known or not known[0].size <= size <= known[-1].size:
        return None
    doublings = np.log2([count.size for count in known]) - np.log2(size)
    means = np.array([count.tokens for count in known], np.float64)
    totals = np.array([count.total for count in known], np.float64)
    weights = totals * np.exp(-((doublings / BANDWIDTH) ** 2) / 2)
    if np.count_nonzero(weights > 1e-6 * weights.max()) < 2 or not means.any():
        return float(np.average(means, weights=weights))
    features = np.column_stack([np.ones(len(known)), doublings])
    beta = np.array([np.log(np.average(means, weights=weights)), 0.0])
    for _ in range(ITERATIONS):
        fitted = np.exp(features @ beta)
        scaled = features * (weights * fitted)[:, None]
        step = np.linalg.lstsq(features.T @ scaled, features.T @ (weights * (means - fitted)))[0]
        beta += np.clip(step, -1, 1)
        if np.abs(step).max() < 1e-9:
            break
    return float(np.exp(beta[0]))
