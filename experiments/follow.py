"""Check whether a training reproduces the log of another: python -m experiments.follow LOG AGAIN.

LOG and AGAIN are folders of trainings with the same recipe, with `recipe.json` and `metrics.jsonl`.
On the same machine the losses are identical. Other processors round differently, and the trainings
slowly diverge.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bittoken.training import metrics_log
from bittoken.training.recipe import RECIPE_FILE, Recipe, differing_fields
from experiments.command_line import run_command
from numbench.errors import BadInput
from numbench.jsonl import read_json

TOLERANCE = 0.1
"""The maximum relative difference of a loss for a training to count as reproduced."""


class LossComparison(NamedTuple):
    """One task's loss at one validation, in the reference log and in the new training."""

    step: int
    task: str
    logged: float
    again: float

    @property
    def difference(self) -> float:
        """The difference relative to the logged loss; infinite if one of them is NaN."""
        difference = abs(self.again - self.logged) / max(abs(self.logged), 1e-9)
        return math.inf if math.isnan(difference) else difference


def compare_losses(logged: Path, again: Path) -> list[LossComparison]:
    """Return the losses of all validations that are in both logs.

    Raises BadInput if a folder has no log or no recipe, the recipes differ, or the logs have no
    validation in common.
    """
    first, second = (read_json(folder / RECIPE_FILE, Recipe) for folder in (logged, again))
    if fields := [field for field in differing_fields(first, second) if field != "name"]:
        raise BadInput(f"{again}: has another recipe than {logged}; different: {', '.join(fields)}")
    old, new = (
        {
            entry["step"]: entry["loss"]
            for entry in metrics_log.validation_entries(metrics_log.read_log(folder))
        }
        for folder in (logged, again)
    )
    comparisons = [
        LossComparison(step, task, _number(loss), _number(new[step][task]))
        for step, losses in old.items()
        if step in new
        for task, loss in losses.items()
        if task in new[step]
    ]
    if not comparisons:
        raise BadInput(f"{again}: has no validation in common with {logged}; train for longer")
    return comparisons


def _number(loss: float | None) -> float:
    """Return the loss of a log entry, which has null for NaN."""
    return math.nan if loss is None else loss


def report(comparisons: Sequence[LossComparison]) -> str:
    """Return one line per validation and a summary."""
    lines = []
    for step in dict.fromkeys(one.step for one in comparisons):
        at_step = [one for one in comparisons if one.step == step]
        losses = ", ".join(f"{one.task} {one.logged:.4f} {one.again:.4f}" for one in at_step)
        lines.append(f"step {step:,}: {losses}")
    largest = max(comparisons, key=lambda one: one.difference)
    if largest.difference == 0:
        lines.append("identical in all logged digits")
    else:
        where = f"{largest.task} at step {largest.step:,}"
        lines.append(f"maximum difference: {100 * largest.difference:.2g} % ({where})")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Return exit code 0 if the training is reproduced, 1 if not, 2 if they cannot be compared."""
    parser = argparse.ArgumentParser(prog="python -m experiments.follow", description=__doc__)
    parser.add_argument("logged", type=Path, metavar="LOG", help="folder of the reference training")
    parser.add_argument("again", type=Path, metavar="AGAIN", help="folder of the new training")
    options = parser.parse_args(arguments)

    def compare() -> int:
        comparisons = compare_losses(options.logged, options.again)
        print(report(comparisons))
        return int(any(one.difference > TOLERANCE for one in comparisons))

    return run_command(compare)


if __name__ == "__main__":
    sys.exit(main())
