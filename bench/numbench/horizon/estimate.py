"""The horizon of a model on a task, from its answers, and whether it moved."""

from __future__ import annotations

from collections import defaultdict
from collections.abc import Sequence
from dataclasses import dataclass
from typing import NamedTuple

import numpy as np

from numbench.horizon import StopReason
from numbench.horizon.goodness_of_fit import (
    DOUBTFUL,
    MISFIT,
    SizeCount,
    fit_p_value,
    isotonic_crossing,
    largest_rate,
)
from numbench.horizon.psychometric import (
    LOG2_HORIZONS,
    RESULT,
    Floats,
    Posterior,
    SizeEstimate,
)
from numbench.horizon.sizes import size_text, task_sizes
from numbench.tasks import TASKS
from numbench.tasks.base import Task

BAND_DRAWS = 2000
"""Draws from the posterior for the band of the curve."""


BANDWIDTH = 1.0
"""Standard deviation of the weights of sizes around the wanted one, in doublings."""

ITERATIONS = 50
"""The most steps of the regression of tokens on size."""


class SizeOutcome(NamedTuple):
    """An answered item.

    size: of its question. right: the share of its samples that are right. total: the number of its
    samples. truncated: the number of them that the token limit cut off (these are not right).
    tokens, prompt_tokens: generated tokens and those of the prompt, means over the samples; None:
    not known.
    """

    size: int
    right: float
    total: int = 1
    truncated: int = 0
    tokens: float | None = None
    prompt_tokens: float | None = None


class BandPoint(NamedTuple):
    """The curve at a size: posterior median and 95 % interval of p, guesses included."""

    size: int
    probability: float
    low: float
    high: float


@dataclass(frozen=True)
class TaskHorizon:
    """The horizon of a model on a task.

    unit: what the size counts, in the plural. h50, h90: where 50 and 90% of the answers are correct
    without guesses (see `level`). h90 is None if the model does not reach 90% at a size that can be
    asked. tokens_at_h50: generated tokens per answer at h50, or at the largest or smallest size if
    h50 is beyond it; None: not known. prompt_tokens_at_h50: likewise, of the prompt. items:
    answered items. truncated: answers that the token
    limit cut off. stop: why the measurement is complete; None: it is not. fit_p: posterior
    predictive p-value of the curve. isotonic: where the isotonic regression crosses the level of
    h50; None: it does not. counts: the answers by size. band: the curve at every
    size. log2_h50_weights: posterior probabilities of
    `psychometric.LOG2_HORIZONS`. largest, smallest: the sizes that can be asked.
    """

    task: str
    unit: str
    h50: SizeEstimate
    h90: SizeEstimate | None
    tokens_at_h50: float | None
    prompt_tokens_at_h50: float | None
    items: int
    truncated: int
    stop: StopReason | None
    fit_p: float
    isotonic: float | None
    counts: tuple[SizeCount, ...]
    band: tuple[BandPoint, ...]
    log2_h50_weights: tuple[float, ...]
    largest: int
    smallest: int

    def __repr__(self) -> str:
        h90 = "not reached" if self.h90 is None else self.text(self.h90.value)
        h50 = f"{self.text(self.h50.value)} {self.interval_text(self.h50)}"
        return f"TaskHorizon({self.task!r}, h50: {h50} {self.unit}, h90: {h90}, {self.items} items)"

    @property
    def fits(self) -> bool:
        """Whether the curve gives h50; if not, the isotonic crossing does.

        Where the curve is doubtful, it still does if there is no crossing.
        """
        return self.fit_p >= (MISFIT if self.isotonic is None else DOUBTFUL)

    @property
    def is_doubtful(self) -> bool:
        """Whether the curve may all the same describe the answers."""
        return MISFIT <= self.fit_p < DOUBTFUL

    def level(self, size: float, without_guesses: float = 0.5) -> float:
        """Return the share of correct answers, guesses included, at a size of this task.

        without_guesses: the share without them: 0.5 at h50, which is halfway between chance and 1.
        """
        chance = self.chance(size)
        return chance + (1 - chance) * without_guesses

    def chance(self, size: float) -> float:
        """Return the probability that a guess is correct at the nearest size of this task."""
        nearest = round(min(max(size, self.smallest), self.largest))
        return TASKS[self.task].chance_accuracy(nearest)

    def text(self, size: float) -> str:
        """Return a size as text; `≥ 4,096` or `< 1` if it is outside the sizes of the task."""
        return size_text(size, self.smallest, self.largest)

    def interval_text(self, estimate: SizeEstimate) -> str:
        """Return the 95 % interval of an estimate: `[5.9, 6.8]`."""
        return f"[{self.text(estimate.low)}, {self.text(estimate.high)}]"


def estimate_horizon(
    task: Task,
    outcomes: Sequence[SizeOutcome],
    largest: int | None = None,
    stop: StopReason | None = None,
) -> TaskHorizon:
    """Return the horizon of a model on a scaled task. The order of the outcomes has no influence.

    largest: the largest size that can be asked; None: the largest of the task. stop: why the
    measurement is complete; None: it is not.
    """
    assert task.sizes is not None
    permitted = task_sizes(task, largest)
    sizes = sorted({*permitted, *(outcome.size for outcome in outcomes)})
    posterior = Posterior(sizes, list(map(task.chance_accuracy, sizes)), RESULT)
    counts = _count_by_size(task, outcomes)
    for count in counts:
        posterior.update(count.size, count.right, count.total - count.right)
    h50, h90 = posterior.horizon(), posterior.horizon(0.9)
    # Both must say that 90% are correct at a size that can be asked: the curve, with a probability
    # of one half or more, and the isotonic regression of the answers.
    is_h90_reached = h90.value >= sizes[0] and largest_rate(counts) >= 0.9
    nearest = min(max(h50.value, sizes[0]), sizes[-1])
    prompts = [outcome._replace(tokens=outcome.prompt_tokens) for outcome in outcomes]
    drawn = posterior.sample_predictions(BAND_DRAWS)
    low, median, high = np.quantile(drawn, (0.025, 0.5, 0.975), axis=0).tolist()
    return TaskHorizon(
        task=task.name,
        unit=task.sizes.unit,
        h50=h50,
        h90=h90 if is_h90_reached else None,
        tokens_at_h50=tokens_at(nearest, counts),
        prompt_tokens_at_h50=tokens_at(nearest, _count_by_size(task, prompts)),
        items=len(outcomes),
        truncated=sum(outcome.truncated for outcome in outcomes),
        stop=stop,
        fit_p=fit_p_value(posterior, counts),
        isotonic=isotonic_crossing(counts),
        counts=counts,
        band=tuple(map(BandPoint, posterior.sizes, median, low, high)),
        log2_h50_weights=tuple(posterior.horizon_weights().tolist()),
        largest=sizes[-1],
        smallest=sizes[0],
    )


def _count_by_size(task: Task, outcomes: Sequence[SizeOutcome]) -> tuple[SizeCount, ...]:
    """Return the counts of the sizes with answers, by size."""
    by_size: defaultdict[int, list[SizeOutcome]] = defaultdict(list)
    # Sums do not depend on the order of the answers.
    for outcome in sorted(outcomes, key=lambda outcome: outcome.right):
        by_size[outcome.size].append(outcome)
    counts = []
    for size, known in sorted(by_size.items()):
        tokens = sorted(outcome.tokens for outcome in known if outcome.tokens is not None)
        right = float(sum(outcome.right for outcome in known))
        mean = float(np.mean(tokens)) if tokens else None
        counts.append(SizeCount(size, right, len(known), mean, task.chance_accuracy(size)))
    return tuple(counts)


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


class HorizonShift(NamedTuple):
    """The horizon of a new measurement compared with that of an old one.

    ratio: new h50 over old h50, median and 95 % interval. larger: the posterior probability that
    the new one is larger. smallest, largest: the sizes that both measurements could ask; a horizon
    beyond counts as if it were at their end, so that the ratio is then a bound.
    """

    ratio: SizeEstimate
    larger: float
    smallest: int
    largest: int

    @property
    def p(self) -> float:
        """The two-sided p-value: twice the smaller of the probabilities of the two directions."""
        return min(1.0, 2 * min(self.larger, 1 - self.larger))


def compare_horizons(old: TaskHorizon, new: TaskHorizon) -> HorizonShift:
    """Return how far a horizon moved, from the posteriors of both as if they were independent.

    Both may have asked the same items. What these have in common makes the answers of two runs
    more alike, so the difference varies less than is assumed here: the test is conservative.
    """
    smallest, largest = max(old.smallest, new.smallest), min(old.largest, new.largest)
    return shift(old.log2_h50_weights, new.log2_h50_weights, smallest, largest)


def shift(old: Sequence[float], new: Sequence[float], smallest: int, largest: int) -> HorizonShift:
    """Return how far a horizon moved, from the posterior probabilities of `LOG2_HORIZONS`."""
    placed = np.clip(LOG2_HORIZONS, np.log2(smallest), np.log2(largest))
    old_values, old_weights = _grouped(placed, np.asarray(old))
    new_values, new_weights = _grouped(placed, np.asarray(new))
    pairs = np.outer(new_weights, old_weights).ravel()
    values, weights = _grouped((new_values[:, None] - old_values).ravel(), pairs)
    middle = np.cumsum(weights) - weights / 2
    low, value, high = np.interp((0.025, 0.5, 0.975), middle, values)
    larger = float(weights[values > 0].sum() + weights[values == 0].sum() / 2)
    return HorizonShift(SizeEstimate(2**value, 2**low, 2**high), larger, smallest, largest)


def _grouped(values: Floats, weights: Floats) -> tuple[Floats, Floats]:
    """Return the different values, increasing, with the sum of their weights."""
    different, group = np.unique(values, return_inverse=True)
    return different, np.asarray(np.bincount(group, weights), np.float64)
