"""The study's responses by the digits of the operands, and curves fitted to them."""

from __future__ import annotations

import tempfile
from collections import defaultdict
from collections.abc import Mapping, Sequence
from pathlib import Path
from typing import NamedTuple

from experiments.study_calibration.responses import import_configurations
from numbench.horizon.estimate import SizeOutcome
from numbench.horizon.goodness_of_fit import (
    SizeCount,
    fit_p_value,
    isotonic_crossing,
)
from numbench.horizon.psychometric import Curve, Estimate, Posterior
from numbench.reporting.entries import measure
from numbench.scoring import score_run

TASKS = ("addition", "multiplication", "division", "mean")
"""Tasks whose operands have between one and seventeen significant digits. Lists have at most five
elements."""

SIZES = tuple(range(1, 18))

Config = tuple[str, str]
"""Displayed name of a model and reasoning level."""

Responses = Mapping[str, Mapping[Config, Sequence[SizeOutcome]]]
"""Task → configuration → outcomes in the order of the questions."""


class Fit(NamedTuple):
    """What all responses of a configuration to a task say.

    isotonic: where the isotonic regression crosses 50 %; None: it does not.
    """

    posterior: Posterior
    counts: tuple[SizeCount, ...]
    h50: Estimate
    h90: Estimate
    curve: Curve
    p_value: float
    isotonic: float | None


def significant_digits(operand: str) -> int:
    """Return the digits of a decimal from its first to its last digit other than 0; 1 for zero."""
    digits = operand.removeprefix("-").replace(".", "").strip("0")
    return max(1, len(digits))


def question_digits(operands: Sequence[str]) -> int:
    """Return the significant digits of the longest operand."""
    return max(map(significant_digits, operands))


def read_responses(folder: Path) -> Responses:
    """Return the responses in the study's files, scored by exact answers.

    Raises BadInput like `import_study`.
    """
    responses: dict[str, dict[Config, list[SizeOutcome]]] = {task: {} for task in TASKS}
    with tempfile.TemporaryDirectory() as runs:
        scored = [score_run(path) for path in import_configurations(folder, Path(runs))]
        for run in measure(scored):
            config = run.entry.name, run.entry.reasoning
            for task in responses:
                responses[task][config] = [
                    SizeOutcome(
                        question_digits(row.item.operands),
                        float(row.score.exact_match),
                        tokens=row.response.usage.generated if row.response else None,
                    )
                    for row in run.scored.rows.get(task, ())
                ]
    return responses


def fit(outcomes: Sequence[SizeOutcome]) -> Fit:
    """Fit a curve to outcomes."""
    by_size: defaultdict[int, list[float]] = defaultdict(list)
    for outcome in outcomes:
        by_size[outcome.size].append(outcome.right)
    counts = tuple(
        SizeCount(size, sum(by_size[size]), len(by_size[size])) for size in sorted(by_size)
    )
    posterior = Posterior(SIZES)
    for count in counts:
        posterior.update(count.size, count.right, count.total - count.right)
    return Fit(
        posterior,
        counts,
        posterior.horizon(),
        posterior.horizon(0.9),
        posterior.curve(),
        fit_p_value(posterior, counts),
        isotonic_crossing(counts),
    )
