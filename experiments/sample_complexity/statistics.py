"""Geometric means and ratios over a few seeds, with intervals, as plan.md defines them.

Targets are levels of exact match, see `outcomes.TARGETS`.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import NamedTuple

import numpy as np
from scipy.stats import t

from experiments.sample_complexity.outcomes import Outcome

CONFIDENCE = 0.95


class Estimate(NamedTuple):
    """A positive value with its 95 % interval."""

    value: float
    low: float
    high: float


class Ratio(NamedTuple):
    """The questions that an encoding needs, relative to BitTokens.

    value: the geometric mean; a lower bound of it if a seed of the encoding is censored. low, high:
    the interval; high is None for a lower bound. pairs: the ratio of each seed (or its lower
    bound).
    """

    value: float
    low: float
    high: float | None
    pairs: tuple[float, ...]

    @property
    def shows_more(self) -> bool:
        """Whether the encoding needs more questions: every seed, and the interval's lower bound."""
        return min(self.pairs) > 1 and self.low > 1


def geometric_mean(values: Sequence[float]) -> Estimate:
    """Return the geometric mean with Student's t interval on the logarithms (at least 2 values)."""
    logs = np.log2(np.asarray(values, np.float64))
    mean, error = float(logs.mean()), float(logs.std(ddof=1) / np.sqrt(len(logs)))
    margin = float(t.ppf((1 + CONFIDENCE) / 2, len(logs) - 1)) * error
    return Estimate(*(float(2.0**x) for x in (mean, mean - margin, mean + margin)))


def ratio_to_reference(
    outcomes: Sequence[Outcome], reference: Sequence[Outcome], target: float
) -> Ratio | None:
    """Return the ratio of the questions to a target, paired by seed.

    None if a seed of the reference is censored, or there are fewer than two seeds.
    """
    by_seed = {one.seed: one for one in reference}
    pairs = [(one, by_seed[one.seed]) for one in outcomes if one.seed in by_seed]
    known = [(one, cost) for one, base in pairs if (cost := base.reached[target]) is not None]
    if len(pairs) < 2 or len(known) < len(pairs):
        return None
    ratios = tuple(
        (one.reached[target] or one.end).questions / cost.questions for one, cost in known
    )
    estimate = geometric_mean(ratios)
    is_bound = any(one.reached[target] is None for one, _ in pairs)
    return Ratio(estimate.value, estimate.low, None if is_bound else estimate.high, ratios)


def growth_per_bit(
    points: Sequence[tuple[int, Sequence[Outcome]]], target: float
) -> list[float] | None:
    """Return for each seed the factor by which the questions to a target grow per bit.

    points: pairs of k and the outcomes at k. It is the slope of the least-squares line through the
    logarithms at the values of k without a censored seed; None if there are fewer than two.
    """
    known = [(bits, one) for bits, one in points if all(o.reached[target] for o in one)]
    # While a seed is missing, only the seeds that all values of k have.
    common = set.intersection(*({o.seed for o in one} for _, one in known)) if known else set()
    if len(known) < 2 or not common:
        return None
    factors = []
    for seed in sorted(common):
        seeds = [next(o for o in one if o.seed == seed) for _, one in known]
        questions = [cost.questions for o in seeds if (cost := o.reached[target]) is not None]
        slope = np.polyfit([bits for bits, _ in known], np.log2(questions), 1)[0]
        factors.append(float(2.0**slope))
    return factors
