"""Which levels of difficulty a task is trained on (paper, appendix "Curriculum learning")."""

from __future__ import annotations

from dataclasses import dataclass

import numpy as np
from numpy.typing import NDArray

Floats = NDArray[np.float64]

FIRST_FRONTIER = 0.1
"""The frontier at the start, as a share of the hardest level."""

THRESHOLD = 0.9
"""ζ₀: the performance at the frontier with which it advances."""

PREVIEW, PREVIEW_DECAY = 0.2, 0.8
"""The share of a task's tokens beyond the frontier, and how it falls off from level to level."""

MOMENTUM = 0.5
"""α of the sampling ratios."""

FALL = 0.5
"""The share of the training after which ζ of the hardest level begins to fall."""


def threshold(
    level: int, hardest: int, *, step: int, last: int, rate: float, peak: float, turn: float
) -> float:
    """ζ(level, step, learning rate): the performance that opens the next level.

    ζ = min(S / step, L / (peak − rate)) · ζ₀ · level / hardest, and never above ζ₀: it begins to
    fall at S = FALL · `last` steps for the hardest level, earlier for easier ones. L = `turn` is
    the learning rate at that step, `rate` today's, `peak` its maximum, which stands for today's
    throughout the warm-up: there is nothing to fall yet.
    """
    start = FALL * last
    by_step = start / step if step else float("inf")
    by_rate = turn / (peak - rate) if rate < peak else float("inf")
    return THRESHOLD * min(1.0, min(by_step, by_rate) * level / max(hardest, 1))


def preview_ratios(levels: int, frontier: int) -> Floats:
    """r(δ) of the levels beyond the frontier, adding up to 0.2; zeros where there are none."""
    beyond = np.arange(levels) - frontier
    weights = np.where(beyond > 0, PREVIEW_DECAY ** np.maximum(beyond, 0), 0.0)
    total = weights.sum()
    return PREVIEW * weights / total if total else weights


def needs(performance: Floats, exponent: float) -> Floats:
    """(1 − p)^(1 − λ) / Σ (1 − p)^(1 − λ); equal shares where nothing is left to learn."""
    weights = (1 - np.clip(performance, 0, 1)) ** (1 - exponent)
    total = weights.sum()
    shares: Floats = weights / total if total > 0 else np.full(len(weights), 1 / len(weights))
    return shares


@dataclass
class Curriculum:
    """The state of one task: its frontier, and how well each level up to it is done.

    performance: running mean of p(δ) per level, 0 where nothing was measured. ratios: r(δ) of
    the levels up to the frontier, adding up to 1. seen: measured items at the frontier since it
    came there.
    """

    levels: int
    frontier: int
    performance: Floats
    ratios: Floats
    seen: float = 0.0

    @classmethod
    def start(cls, levels: int) -> Curriculum:
        """Before the first step."""
        frontier = min(max(1, round(FIRST_FRONTIER * (levels - 1))), levels - 1)
        opened = np.arange(levels) <= frontier
        return cls(levels, frontier, np.zeros(levels), opened / opened.sum())

    def shares(self) -> Floats:
        """The share of the task's samples that each level gets, adding up to 1."""
        preview = preview_ratios(self.levels, self.frontier)
        shares: Floats = preview + (1 - preview.sum()) * self.ratios
        return shares

    def measured(self, level: NDArray[np.int64], score: Floats) -> None:
        """Take in the scores, in [0, 1], of items of these levels, and rebalance the ratios."""
        count = np.bincount(level, minlength=self.levels)
        mean = np.bincount(level, score, self.levels) / np.maximum(count, 1)
        # Few items tell little: a level's running mean moves with their number.
        weight = count / (count + _INERTIA)
        self.performance += weight * (mean - self.performance)
        self.seen += float(count[self.frontier])
        self._rebalance()

    def advance(self, zeta: float) -> bool:
        """Open the next level where the frontier is mastered, and give it a share; whether so."""
        enough = self.seen >= _ENOUGH and self.performance[self.frontier] > zeta
        if not enough or self.frontier == self.levels - 1:
            return False
        self.frontier += 1
        self.seen = 0.0
        # The level leaves the preview: without a share of its own it would not be drawn at all.
        self._rebalance()
        return True

    def _rebalance(self) -> None:
        opened = np.arange(self.levels) <= self.frontier
        new = np.zeros(self.levels)
        new[opened] = needs(self.performance[opened], exponent=0.0)
        self.ratios = MOMENTUM * self.ratios + (1 - MOMENTUM) * new


_INERTIA, _ENOUGH = 8.0, 8.0
"""Items that weigh as much as all measured before; items that a level must have shown."""
