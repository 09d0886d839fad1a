"""The registered rule of a memory test: its verdicts, and the share of known items that it finds.

The rule compares the shares of right answers pair by pair. The answers to a frozen and a fresh item
are exchangeable for a model that has not seen the frozen one, so the paired permutation test of
`numbench.stats` keeps its level for any model.
"""

from __future__ import annotations

import math
from collections.abc import Hashable, Sequence, Set
from pathlib import Path
from statistics import NormalDist
from typing import Literal, NamedTuple

from msgspec import Struct

from numbench.core.installation import read_toml
from numbench.stats.intervals import ALPHA, Z_TWO_SIDED
from numbench.stats.multiple_testing import holm
from numbench.stats.paired import Difference
from numbench.stats.power import POWER

Verdict = Literal["memory", "equivalent", "inconclusive", "frozen harder"]

_NORMAL = NormalDist()
_TEXTS = read_toml(Path(__file__).with_suffix(".toml"))


class Rule(Struct, frozen=True, kw_only=True):
    """The rule of a memory test, with its numbers.

    pairs: frozen items of each task with their fresh counterparts. margin: in points. tests: those
    that Holm's correction covers. detectable: the least share of known items that gives the verdict
    `memory` with 80% power, for a model that is right on half of the fresh items; None: no share.
    """

    protocol: Literal["exact"] = "exact"
    metric: Literal["exact_match"] = "exact_match"
    significance: float = ALPHA
    margin: float
    pairs: int
    tasks: int
    tests: int
    detectable: float | None = None
    text: str

    @property
    def summary(self) -> str:
        """The size of the test, and what it finds."""
        share = self.detectable
        known = "no" if share is None else f"a share of {share:.1%} or more of"
        tasks = f"{self.tasks} task{'s' * (self.tasks > 1)}"
        return str(_TEXTS["summary"].format(rule=self, tasks=tasks, known=known))


class PairedDesign(NamedTuple):
    """The size of a memory test: pairs of each task, and `shared_weights` of the tasks."""

    pairs: int
    weights: tuple[float, ...]

    @property
    def tasks(self) -> int:
        """The number of tasks."""
        return len(self.weights)

    @property
    def tests(self) -> int:
        """The number of tests: of every task, and of their mean."""
        return self.tasks + 1 if self.tasks > 1 else 1

    def error(self, variances: Sequence[float]) -> float:
        """Return the standard error of the mean over the tasks, at most.

        variances: of the difference of a pair, for each task.
        """
        weighted = math.fsum(w * v for w, v in zip(self.weights, variances, strict=True))
        return math.sqrt(weighted / self.pairs) / self.tasks


def shared_weights(operands: Sequence[Set[Hashable]]) -> tuple[float, ...]:
    """Return, for each task, 1 and the part of its questions that each other task shares.

    Tasks like Mean and Std ask about the same operands. Answers to these may be right or wrong
    together, so that the covariance of two tasks is at most half the sum of their variances.
    """
    return tuple(
        1 + sum(len(own & other) / len(own) for other in operands if other is not own)
        for own in operands
    )


def register_rule(design: PairedDesign, margin: float) -> Rule:
    """Return the rule for a memory test of this size."""
    share = detectable_share(design, [0.5] * design.tasks)
    return Rule(
        margin=margin,
        pairs=design.pairs,
        tasks=design.tasks,
        tests=design.tests,
        detectable=None if share is None else round(share, 4),
        text=_TEXTS["text"].format(alpha=ALPHA, margin=margin),
    )


def adjusted_p_values(tasks: Sequence[Difference], overall: Difference) -> list[float]:
    """Return the p-values of the tasks and of their mean after Holm's correction, in this order.

    The mean of a single task is not a separate test.
    """
    if len(tasks) == 1:
        return [tasks[0].p, tasks[0].p]
    return holm([*(result.p for result in tasks), overall.p])


def decide(tasks: Sequence[Difference], overall: Difference, margin: float) -> Verdict:
    """Return the verdict of the rule, from the differences of the tasks and of their mean."""
    results = [*tasks, overall]
    significant = [
        result
        for result, p in zip(results, adjusted_p_values(tasks, overall), strict=True)
        if result.is_significant(p)
    ]
    if any(result.difference > 0 for result in significant):
        return "memory"
    if significant:
        return "frozen harder"
    if -margin < overall.at_least and overall.at_most < margin:
        return "equivalent"
    return "inconclusive"


def power(design: PairedDesign, right: Sequence[float], known: float) -> float:
    """Return the chance that the test of the mean over the tasks gives the verdict `memory`.

    right: share of right answers to fresh items, for each task. known: share of the frozen items
    that the model answers from memory, the same in each task. The two answers of a pair are taken
    to be independent, and the smallest of the p-values to be needed (Bonferroni), so that the
    verdict is at least so likely.
    """
    gains = [known * (1 - share) for share in right]
    variances = [
        p * (1 - p) + (p + gain) * (1 - p - gain) for p, gain in zip(right, gains, strict=True)
    ]
    error, mean = design.error(variances), math.fsum(gains) / design.tasks
    # The permutation test takes the mean of the differences for a part of their spread.
    squares = [variance + gain**2 for variance, gain in zip(variances, gains, strict=True)]
    z = _NORMAL.inv_cdf(1 - ALPHA / 2 / design.tests)
    pseudo_items = 2 / (design.tasks * design.pairs) ** 2
    needed = max(z * design.error(squares), Z_TWO_SIDED * math.sqrt(error**2 + pseudo_items))
    return _NORMAL.cdf((mean - needed) / error) if error else float(mean > needed)


def detectable_share(design: PairedDesign, right: Sequence[float]) -> float | None:
    """Return the least share of known items that gives `memory` with 80% power.

    None if even a model that knows all items is found less often: it was right anyway.
    """
    if power(design, right, 1.0) < POWER:
        return None
    # Deferred: it takes a third of a second to load.
    from scipy.optimize import brentq

    def excess(known: float) -> float:
        return power(design, right, known) - POWER

    return float(brentq(excess, 0.0, 1.0))
