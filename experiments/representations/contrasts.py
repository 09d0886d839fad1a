"""Fixed against floating point within a base and an operation, and the plan's predictions."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Literal, NamedTuple

import numpy as np
from scipy.stats import t

from experiments.sample_complexity.outcomes import TARGETS, Cell, Outcome, Outcomes
from experiments.sample_complexity.statistics import CONFIDENCE, Ratio, ratio_to_reference

Form = Literal["fixed", "floating"]

ENCODINGS: dict[int, dict[Form, str]] = {
    2: {"floating": "bittoken-no-reciprocal", "fixed": "base2-fixed"},
    10: {"floating": "base10", "fixed": "base10-fixed"},
}
"""The encodings by base and form."""

EXPECTED: dict[str, Form] = {
    "addition": "fixed",
    "multiplication": "floating",
    "division": "floating",
}
"""The form that needs fewer questions, by operation, if the plan's explanations are right."""

BITS = 8
TARGET = TARGETS[0]


class Difference(NamedTuple):
    """Exact match at the budget, fixed − floating, in [−1, 1], with its 95 % interval."""

    value: float
    low: float
    high: float


class Contrast(NamedTuple):
    """Fixed and floating point in one base and operation, paired by seed.

    slower: by form, the questions to 50 % that it needs relative to the other form; None if this is
    unknown (see plan.md) or there is one seed. difference: None with one seed.
    """

    slower: dict[Form, Ratio | None]
    difference: Difference | None

    def shows(self, better: Form) -> bool:
        """Return whether an interval shows that the form needs fewer questions or scores higher."""
        other: Form = "floating" if better == "fixed" else "fixed"
        ratio = self.slower[other]
        by_ratio = ratio is not None and ratio.low > 1
        if self.difference is None:
            return by_ratio
        low, high = self.difference.low, self.difference.high
        return by_ratio or (low > 0 if better == "fixed" else high < 0)

    def verdict(self, expected: Form) -> str:
        """Return whether the prediction that `expected` is better holds."""
        if self.difference is None:
            return "not decided"
        opposite: Form = "floating" if expected == "fixed" else "fixed"
        if self.shows(expected):
            return "contradictory" if self.shows(opposite) else "holds"
        return "opposite" if self.shows(opposite) else "not shown"


def contrast(outcomes: Outcomes, task: str, base: int) -> Contrast | None:
    """Return the contrast in one base and operation; None without a seed of both forms."""
    by_form = {
        form: outcomes.get(Cell(task, BITS, 0, name), ()) for form, name in ENCODINGS[base].items()
    }
    fixed, floating = by_form["fixed"], by_form["floating"]
    scores = {one.seed: final_score(one) for one in floating}
    differences = [final_score(one) - scores[one.seed] for one in fixed if one.seed in scores]
    if not differences:
        return None
    return Contrast(
        {
            "fixed": ratio_to_reference(fixed, floating, TARGET),
            "floating": ratio_to_reference(floating, fixed, TARGET),
        },
        _mean_difference(differences),
    )


def final_score(one: Outcome) -> float:
    """Return the exact match at the budget; 0.9 for a training that ended early at that level."""
    return TARGETS[-1] if one.reached[TARGETS[-1]] is not None else one.exact


def _mean_difference(values: Sequence[float]) -> Difference | None:
    if len(values) < 2:
        return None
    mean, error = float(np.mean(values)), float(np.std(values, ddof=1) / np.sqrt(len(values)))
    margin = float(t.ppf((1 + CONFIDENCE) / 2, len(values) - 1)) * error
    return Difference(mean, mean - margin, mean + margin)
