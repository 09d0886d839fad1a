"""Whether a training follows the log of another: python -m experiments.follow LOG AGAIN.

LOG and AGAIN are folders of trainings by one recipe, with `recipe.json` and `metrics.jsonl`. On one
machine the losses are equal to the bit; other processors round otherwise, and from such differences
trainings slowly part.
"""

from __future__ import annotations

import argparse
import math
import sys
from collections.abc import Sequence
from pathlib import Path
from typing import NamedTuple

from bench.bittoken.training import log
from bench.bittoken.training.recipe import Recipe
from bench.errors import BadInput
from bench.jsonl import read_json
from experiments.command import ending
from experiments.kept import RECIPE, differing

TOLERANCE = 0.1
"""The relative difference of a loss up to which a training counts as following."""


class Compared(NamedTuple):
    """One task's loss at one validation, in the log and again."""

    step: int
    task: str
    logged: float
    again: float

    @property
    def difference(self) -> float:
        """Relative to the logged loss; infinite where one of them is no number."""
        found = abs(self.again - self.logged) / max(abs(self.logged), 1e-9)
        return math.inf if math.isnan(found) else found


def compare(logged: Path, again: Path) -> list[Compared]:
    """The losses of all validations that both logs have.

    BadInput where one folder has no log or no recipe, the recipes are not the same, or the logs
    share no validation.
    """
    fields = differing(read_json(logged / RECIPE, Recipe), read_json(again / RECIPE, Recipe))
    if other := [field for field in fields if field != "name"]:
        raise BadInput(f"{again}: another recipe than {logged}, in {', '.join(other)}")
    old, new = (
        {line["step"]: line["loss"] for line in log.measures(log.read(folder))}
        for folder in (logged, again)
    )
    found = [
        Compared(step, task, _number(loss), _number(new[step][task]))
        for step, losses in old.items()
        if step in new
        for task, loss in losses.items()
        if task in new[step]
    ]
    if not found:
        raise BadInput(f"{again}: no validation that {logged} has too; train for longer")
    return found


def _number(loss: float | None) -> float:
    """Logs hold null for a loss that is no number."""
    return math.nan if loss is None else loss


def report(found: Sequence[Compared]) -> str:
    """One line per validation and one on all of them."""
    lines = []
    for step in dict.fromkeys(one.step for one in found):
        own = [one for one in found if one.step == step]
        losses = ", ".join(f"{one.task} {one.logged:.4f} {one.again:.4f}" for one in own)
        lines.append(f"step {step:,}: {losses}")
    most = max(found, key=lambda one: one.difference)
    if most.difference == 0:
        lines.append("equal to the last digit of the log")
    else:
        where = f"{most.task} at step {most.step:,}"
        lines.append(f"differs by {100 * most.difference:.2g} % at most ({where})")
    return "\n".join(lines)


def main(arguments: Sequence[str] | None = None) -> int:
    """Exit code 0 where it follows, 1 where not, 2 where there is nothing to compare."""
    parser = argparse.ArgumentParser(prog="python -m experiments.follow", description=__doc__)
    parser.add_argument("logged", type=Path, metavar="LOG", help="folder of the training of record")
    parser.add_argument("again", type=Path, metavar="AGAIN", help="folder of the new training")
    given = parser.parse_args(arguments)

    def work() -> int:
        found = compare(given.logged, given.again)
        print(report(found))
        return int(any(one.difference > TOLERANCE for one in found))

    return ending(work)


if __name__ == "__main__":
    sys.exit(main())
