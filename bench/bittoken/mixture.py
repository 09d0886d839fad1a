"""Shares of tasks and difficulty levels in the training data, and weights of the tasks' losses.

Sources: paper, appendices "Curriculum learning" and "Multitask learning".
"""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass
from typing import Any

import numpy as np

from bittoken.encodings.base import FloatArray, IntArray
from bittoken.recipe import Recipe

FIRST_FRONTIER = 0.1
"""The frontier at the start, as a share of the hardest level."""

MAX_THRESHOLD = 0.9
"""ζ₀: the performance at the frontier above which the frontier advances."""

PREVIEW, PREVIEW_DECAY = 0.2, 0.8
"""The share of a task's questions beyond the frontier, and its decay from level to level."""

MOMENTUM = 0.5
"""α of the sampling ratios."""

THRESHOLD_DECAY_START = 0.5
"""The share of the training after which ζ of the hardest level starts to fall."""

LOSS_SCALE = 10.0
"""The value to which each task's loss is normalized after the warm-up (paper)."""

_LOSS_DECAY = 0.9
"""The decay per step of the running means that determine the normalization."""

_PRIOR_ITEMS = 8.0
"""The items that earlier measurements of a level count as, at most.

So many are needed to pass a level, too, and every level starts with so many of mean performance.
"""


def advance_threshold(recipe: Recipe, level: int, hardest: int, step: int) -> float:
    """Return ζ(level, step): the performance that unlocks the next level.

    ζ = min(S / step, L / (1 − rate)) · ζ₀ · level / hardest, and at most ζ₀. S is
    THRESHOLD_DECAY_START of all steps, the step at which ζ of the hardest level starts to fall
    (earlier for easier levels). L is the learning rate at step S. Rates are shares of the peak;
    during the warm-up, the threshold does not fall yet. Without `falling_threshold`, it is ζ₀.
    """
    if not recipe.data.falling_threshold:
        return MAX_THRESHOLD
    start = THRESHOLD_DECAY_START * recipe.training.steps
    rate = 1.0 if step < recipe.warmup_steps else recipe.rate_share(step)
    by_step = start / step if step else float("inf")
    by_rate = recipe.rate_share(round(start)) / (1 - rate) if rate < 1 else float("inf")
    return MAX_THRESHOLD * min(1.0, min(by_step, by_rate) * level / max(hardest, 1))


def preview_ratios(levels: int, frontier: int) -> FloatArray:
    """Return r(δ) of the levels beyond the frontier, with sum 0.2; zeros if there are none."""
    beyond = np.arange(levels) - frontier
    weights = np.where(beyond > 0, PREVIEW_DECAY ** np.maximum(beyond, 0), 0.0)
    total = weights.sum()
    return PREVIEW * weights / total if total else weights


def need_shares(performance: FloatArray, exponent: float) -> FloatArray:
    """Return (1 − p)^(1 − λ) / Σ (1 − p)^(1 − λ); equal shares if every p is 1."""
    weights = (1 - np.clip(performance, 0, 1)) ** (1 - exponent) + 1e-12
    return np.asarray(weights / weights.sum())


def harmonic_mean(performance: FloatArray, epsilon: float = 1e-6) -> float:
    """Return the harmonic mean of p + ε.

    With ε it is positive even if a task scores 0, so that the other tasks still determine the order
    of such means.
    """
    return float(1 / (1 / (np.asarray(performance, np.float64) + epsilon)).mean())


@dataclass
class Curriculum:
    """The curriculum of one task: its frontier and the performance at each level.

    distribution: share of each level in the task's full distribution. performance: running mean of
    p(δ) per level. measured: the number of items that it counts as; 0 if there is none. ratios:
    r(δ) of the levels up to the frontier, with sum 1.
    """

    distribution: FloatArray
    frontier: int
    performance: FloatArray
    measured: FloatArray
    ratios: FloatArray

    @classmethod
    def start(cls, distribution: FloatArray) -> Curriculum:
        """Return the curriculum before the first step."""
        levels = len(distribution)
        frontier = min(max(1, round(FIRST_FRONTIER * (levels - 1))), levels - 1)
        curriculum = cls(distribution, frontier, *np.zeros((3, levels)))
        curriculum.ratios = curriculum._needs()
        return curriculum

    def shares(self) -> FloatArray:
        """Return the share of the task's questions for each level, with sum 1."""
        preview = preview_ratios(len(self.distribution), self.frontier)
        return np.asarray(preview + (1 - preview.sum()) * self.ratios)

    def update(self, level: IntArray, score: FloatArray) -> None:
        """Update performance and ratios with the scores, in [0, 1], of items of these levels."""
        count = np.bincount(level, minlength=len(self.distribution))
        old = np.where(count, np.minimum(self.measured, _PRIOR_ITEMS), self.measured)
        total = old * self.performance + np.bincount(level, score, len(count))
        self.measured = old + count
        self.performance = total / np.maximum(self.measured, 1)
        self._rebalance()

    def advance(self, threshold: float) -> bool:
        """Unlock the next level if performance at the frontier exceeds `threshold`.

        Returns whether the frontier moved.
        """
        is_measured = self.measured[self.frontier] >= _PRIOR_ITEMS
        is_mastered = is_measured and self.performance[self.frontier] > threshold
        if is_mastered and self.frontier < len(self.distribution) - 1:
            self.frontier += 1
            # The new level is no longer part of the preview, so it needs a share in the ratios.
            self._rebalance()
            return True
        return False

    def _rebalance(self) -> None:
        self.ratios = MOMENTUM * self.ratios + (1 - MOMENTUM) * self._needs()

    def _needs(self) -> FloatArray:
        """Return the shares that the unlocked levels need, with sum 1.

        In proportion to 1 − p, as in the paper, and to the share of the level in the distribution,
        to which the unlocked levels add equal parts of that of the locked ones. So a network that
        has learned every level gets the distribution, and no level counts for more than its
        questions.
        """
        unlocked = np.arange(len(self.distribution)) <= self.frontier
        locked = self.distribution[~unlocked].sum()
        base = np.where(unlocked, self.distribution + locked / (self.frontier + 1), 0.0)
        measured = np.where(unlocked, self.measured, 0.0)
        mean = measured @ self.performance / max(measured.sum(), 1)
        known = self.measured * self.performance + _PRIOR_ITEMS * mean
        # Above the threshold, differences are noise.
        lacking = 1 - np.minimum(known / (self.measured + _PRIOR_ITEMS), MAX_THRESHOLD)
        return np.asarray(base * lacking / (base @ lacking))


class Mixture:
    """The tasks' shares of the training data, and the curriculum of every task that has one."""

    def __init__(self, recipe: Recipe, levels: Mapping[str, FloatArray]) -> None:
        """levels: of each task with a curriculum, the share of each level in its distribution."""
        self.tasks = recipe.data.tasks
        self._recipe = recipe
        shares = np.array(recipe.data.shares or np.ones(len(self.tasks)))
        self.ratios = shares / shares.sum()
        self.curricula = {task: Curriculum.start(each) for task, each in levels.items()}

    def shares(self, task: str) -> FloatArray:
        """Return the share of a task's questions for each level; a single one without levels."""
        curriculum = self.curricula.get(task)
        return curriculum.shares() if curriculum else np.ones(1)

    def update_ratios(self, score: FloatArray) -> None:
        """Rebalance the tasks by their scores, in [0, 1], on the full distribution.

        r_new = α · r_old + (1 − α) · (1 − p)^(1 − λ) / Σ (1 − p)^(1 − λ), with α = 0.5. Fixed
        shares stay.
        """
        if self._recipe.data.shares:
            return
        needs = need_shares(score, self._recipe.data.balance)
        self.ratios = MOMENTUM * self.ratios + (1 - MOMENTUM) * needs

    def update_curriculum(self, task: str, level: IntArray, score: FloatArray, step: int) -> None:
        """Unlock levels after a validation of this task at this step, drawn by level."""
        curriculum = self.curricula[task]
        curriculum.update(level, score)
        last = len(curriculum.distribution) - 1
        while curriculum.advance(advance_threshold(self._recipe, curriculum.frontier, last, step)):
            pass

    def state(self) -> dict[str, Any]:
        """Return the state for `restore`, as plain values."""
        curricula = {task: to_plain(curriculum) for task, curriculum in self.curricula.items()}
        return {"ratios": self.ratios.tolist(), "curricula": curricula}

    def restore(self, state: Mapping[str, Any]) -> None:
        """Continue from the state of a mixture with the same recipe."""
        self.ratios = np.array(state["ratios"])
        for task, curriculum in self.curricula.items():
            restore_plain(curriculum, state["curricula"][task])


class LossScale:
    """Factors that equalize the tasks' losses after the warm-up (appendix "Multitask learning").

    They are 1 during the warm-up. After it, each is fixed to LOSS_SCALE / the running mean of the
    task's loss.
    """

    def __init__(self, tasks: int) -> None:
        self.factors = np.ones(tasks)
        self.means = np.full(tasks, np.nan)

    def observe(self, means: FloatArray, counts: FloatArray) -> None:
        """Update the running means with the mean losses of a step of the warm-up."""
        old = np.where(np.isnan(self.means), means, self.means)
        self.means = np.where(counts > 0, _LOSS_DECAY * old + (1 - _LOSS_DECAY) * means, self.means)

    def freeze(self) -> None:
        """Fix the factors at the end of the warm-up."""
        is_known = self.means > 0
        self.factors = np.where(is_known, LOSS_SCALE / np.where(is_known, self.means, 1), 1.0)


def to_plain(record: object) -> dict[str, Any]:
    """Return the attributes of an object, arrays as lists."""
    return {
        name: value.tolist() if isinstance(value, np.ndarray) else value
        for name, value in vars(record).items()
    }


def restore_plain(record: object, state: Mapping[str, Any]) -> None:
    """Set the attributes of an object to those of `to_plain`."""
    for name, value in vars(record).items():
        saved = state[name]
        setattr(record, name, np.array(saved) if isinstance(value, np.ndarray) else saved)
