"""Monotone regression, and where a monotone curve reaches a level."""

from __future__ import annotations

import numpy as np

from numbench.stats.design import Column, Matrix


def non_increasing(values: Matrix, weights: Column) -> Matrix:
    """Return the weighted isotonic regression of every row: the closest values that never increase.

    It is min over a ≤ i of max over b ≥ i of the mean of the values a … b (Robertson, Wright and
    Dykstra 1988, section 1.4).
    """
    weighted = values * weights
    fitted = np.full_like(weighted, np.inf)
    for first in range(values.shape[1]):
        means = np.cumsum(weighted[:, first:], axis=1) / np.cumsum(weights[first:])
        highest = np.maximum.accumulate(means[:, ::-1], axis=1)[:, ::-1]
        fitted[:, first:] = np.minimum(fitted[:, first:], highest)
    return fitted


def sort_and_fit(x: Matrix, y: Matrix) -> tuple[Matrix, Matrix]:
    """Return every row sorted by x, with the isotonic regression of y, which never decreases."""
    order = np.argsort(x, axis=1, kind="stable")
    x, y = np.take_along_axis(x, order, axis=1), np.take_along_axis(y, order, axis=1)
    return x, -non_increasing(-y, np.ones(x.shape[1]))


def crossings(x: Matrix, y: Matrix, level: float) -> Column:
    """Return for every row the x at which the curve reaches a level.

    x, y: as of `sort_and_fit`. Between two points y is linear in ln(1 + x). −∞ if the first point
    is at the level or above, ∞ if the last one is below.
    """
    reached = y >= level
    after = np.argmax(reached, axis=1)
    rows = np.arange(len(x))
    before = np.maximum(after - 1, 0)
    logs = np.log1p(x)
    rise = y[rows, after] - y[rows, before]
    share = np.divide(level - y[rows, before], rise, out=np.zeros(len(x)), where=rise > 0)
    log = logs[rows, before] + share * (logs[rows, after] - logs[rows, before])
    found = np.where(reached[:, 0], -np.inf, np.expm1(log))
    return np.asarray(np.where(reached[:, -1], found, np.inf))


def heights(x: Matrix, y: Matrix, grid: Column) -> Matrix:
    """Return y of every row at the points of a grid, constant beyond its ends."""
    logs, points = np.log1p(x), np.log1p(grid)
    known = np.repeat(y[:, :1], len(grid), axis=1)
    for end in range(1, x.shape[1]):
        start, width = logs[:, end - 1, None], np.diff(logs[:, end - 1 : end + 1], axis=1)
        share = np.divide(
            points - start, width, out=(points >= start).astype(np.float64), where=width > 0
        )
        known += np.diff(y[:, end - 1 : end + 1], axis=1) * np.clip(share, 0.0, 1.0)
    return np.asarray(known)
