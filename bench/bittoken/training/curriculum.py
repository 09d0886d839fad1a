"""Curricula over difficulty levels, and the balance of tasks in a mini-batch.

Sources: paper, appendices "Curriculum learning" and "Multitask learning".
"""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

from bittoken.encodings.base import FloatArray

FIRST_FRONTIER = 0.1
"""The frontier at the start, as a share of the hardest level."""

MAX_THRESHOLD = 0.9
"""ζ₀: the performance at the frontier above which the frontier advances."""

PREVIEW, PREVIEW_DECAY = 0.2, 0.8
"""The share of a task's tokens beyond the frontier, and its decay from level to level."""

MOMENTUM = 0.5
"""α of the sampling ratios."""

THRESHOLD_DECAY_START = 0.5
"""The share of the training after which ζ of the hardest level starts to fall."""

_PRIOR_ITEMS = 8.0
"""The number of items that have the same weight as all earlier measurements of a level."""

_MIN_FRONTIER_ITEMS = 8.0
"""The number of items of the frontier that must be measured before it advances."""


def advance_threshold(
    level: int,
    hardest: int,
    *,
    step: int,
    total_steps: int,
    learning_rate: float,
    peak_rate: float,
    decay_start_rate: float,
) -> float:
    """Return ζ(level, step, learning rate): the performance that unlocks the next level.

    ζ = min(S / step, L / (peak − rate)) · ζ₀ · level / hardest, and at most ζ₀. S is
    THRESHOLD_DECAY_START · `total_steps`, the step at which ζ of the hardest level starts to fall
    (earlier for easier levels). L is `decay_start_rate`, the learning rate at step S. During the
    warm-up, pass `peak_rate` as `learning_rate`: the threshold does not fall yet.
    """
    decay_start = THRESHOLD_DECAY_START * total_steps
    by_step = decay_start / step if step else float("inf")
    by_rate = (
        decay_start_rate / (peak_rate - learning_rate)
        if learning_rate < peak_rate
        else float("inf")
    )
    return MAX_THRESHOLD * min(1.0, min(by_step, by_rate) * level / max(hardest, 1))


def preview_ratios(levels: int, frontier: int) -> FloatArray:
    """Return r(δ) of the levels beyond the frontier, with sum 0.2; zeros if there are none."""
    beyond = np.arange(levels) - frontier
    weights = np.where(beyond > 0, PREVIEW_DECAY ** np.maximum(beyond, 0), 0.0)
    total = weights.sum()
    return PREVIEW * weights / total if total else weights


def need_shares(performance: FloatArray, exponent: float) -> FloatArray:
    """Return (1 − p)^(1 − λ) / Σ (1 − p)^(1 − λ); equal shares if every p is 1."""
    weights = (1 - np.clip(performance, 0, 1)) ** (1 - exponent)
    total = weights.sum()
    shares: FloatArray = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
    return shares


@dataclass
class Curriculum:
    """The curriculum of one task: its frontier and the performance at each unlocked level.

    performance: running mean of p(δ) per level, 0 if not measured. ratios: r(δ) of the levels up
    to the frontier, with sum 1. seen: number of items measured at the frontier since it advanced.
    """

    levels: int
    frontier: int
    performance: FloatArray
    ratios: FloatArray
    seen: float = 0.0

    @classmethod
    def start(cls, levels: int) -> Curriculum:
        """Return the curriculum before the first step."""
        frontier = min(max(1, round(FIRST_FRONTIER * (levels - 1))), levels - 1)
        unlocked = np.arange(levels) <= frontier
        return cls(levels, frontier, np.zeros(levels), unlocked / unlocked.sum())

    def shares(self) -> FloatArray:
        """Return the share of the task's samples for each level, with sum 1."""
        preview = preview_ratios(self.levels, self.frontier)
        shares: FloatArray = preview + (1 - preview.sum()) * self.ratios
        return shares

    def update(self, level: NDArray[np.int64], score: FloatArray) -> None:
        """Update performance and ratios with the scores, in [0, 1], of items of these levels."""
        count = np.bincount(level, minlength=self.levels)
        mean = np.bincount(level, score, self.levels) / np.maximum(count, 1)
        # The weight of a new mean grows with its number of items.
        weight = count / (count + _PRIOR_ITEMS)
        self.performance += weight * (mean - self.performance)
        self.seen += float(count[self.frontier])
        self._rebalance()

    def advance(self, threshold: float) -> bool:
        """Unlock the next level if performance at the frontier exceeds `threshold`.

        Returns whether the frontier moved.
        """
        mastered = self.seen >= _MIN_FRONTIER_ITEMS and self.performance[self.frontier] > threshold
        if not mastered or self.frontier == self.levels - 1:
            return False
        self.frontier += 1
        self.seen = 0.0
        # The new level is no longer part of the preview, so it needs a share in the ratios.
        self._rebalance()
        return True

    def unlock(self, share: float) -> None:
        """Unlock at least this share of the levels."""
        while self.frontier < int(share * (self.levels - 1)):
            self.frontier += 1
            self.seen = 0.0
            self._rebalance()

    def _rebalance(self) -> None:
        unlocked = np.arange(self.levels) <= self.frontier
        new = np.zeros(self.levels)
        new[unlocked] = need_shares(self.performance[unlocked], exponent=0.0)
        self.ratios = MOMENTUM * self.ratios + (1 - MOMENTUM) * new


def generalized_mean(performance: FloatArray, exponent: float, epsilon: float = 1e-6) -> float:
    """Return (mean of (p + ε)^λ)^(1/λ): harmonic for −1, geometric for 0, arithmetic for 1.

    With ε the harmonic mean is positive even if a task scores 0, so that the other tasks still
    determine the order of such means.
    """
    values = np.asarray(performance, np.float64) + epsilon
    if exponent == 0:
        return float(np.exp(np.log(values).mean()))
    return float((values**exponent).mean() ** (1 / exponent))


def rebalanced(ratios: FloatArray, performance: FloatArray, exponent: float) -> FloatArray:
    """Return r_new = α · r_old + (1 − α) · (1 − p)^(1 − λ) / Σ (1 − p)^(1 − λ), with α = 0.5."""
    return MOMENTUM * ratios + (1 - MOMENTUM) * need_shares(performance, exponent)


def capped(ratios: FloatArray, max_share: float) -> FloatArray:
    """Return ratios of at most `max_share`; the excess goes to the others in proportion.

    `max_share` below an equal share means an equal share (paper, "capped maximum task ratio").
    """
    max_share = max(max_share, 1 / len(ratios))
    fixed = np.zeros(len(ratios), np.bool_)
    result: FloatArray = ratios / ratios.sum()
    while (over := ~fixed & (result > max_share + 1e-12)).any():
        fixed |= over
        result[fixed] = max_share
        free = ~fixed
        rest = 1 - max_share * fixed.sum()
        weight = ratios[free].sum()
        result[free] = ratios[free] * rest / weight if weight > 0 else rest / max(free.sum(), 1)
    return result
