"""The outcome of each training: questions to 50 and 90 % exact match, score at the budget."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from pathlib import Path
from typing import Any, NamedTuple

import numpy as np

from bittoken.training import metrics_log
from bittoken.training.recipe import Recipe
from bittoken.training.trainer import CONFIRMING_VALIDATIONS
from experiments.comparison import Comparison
from experiments.results_store import read_logged_recipe

TARGETS = (0.5, 0.9)
"""The levels of exact match; a training ends at the last one."""

FINAL_VALIDATIONS = 3
"""The validations whose mean is the score at the budget."""


class Cell(NamedTuple):
    """What the seeds of a training have in common."""

    task: str
    bits: int
    shift: int
    encoding: str


class Cost(NamedTuple):
    """What a training had used at a validation. cpu_seconds: including validations."""

    questions: int
    tokens: int
    cpu_seconds: float


class Outcome(NamedTuple):
    """The outcome of a training.

    reached: for each of TARGETS, the cost at the first of the validations in a row that reached it;
    None if the training is censored. end: the cost at its last validation. exact: the mean exact
    match of the last validations, in [0, 1]. curve: questions and exact match of all validations.
    """

    seed: int
    reached: Mapping[float, Cost | None]
    end: Cost
    exact: float
    curve: tuple[tuple[int, float], ...]


Outcomes = Mapping[Cell, tuple[Outcome, ...]]
"""The outcomes of the stored seeds of each cell."""


def read_outcomes(comparison: Comparison, folder: Path) -> tuple[Outcomes, dict[Cell, int]]:
    """Return the outcomes, and how many seeds are missing of each cell that is not complete."""
    declared: dict[Cell, list[str]] = {}
    for run in comparison.runs:
        declared.setdefault(cell_of(run.recipe), []).append(run.name)
    outcomes: dict[Cell, tuple[Outcome, ...]] = {}
    missing: dict[Cell, int] = {}
    for cell, names in declared.items():
        recipes = {name: read_logged_recipe(folder / name) for name in names}
        stored = {name: recipe for name, recipe in recipes.items() if recipe is not None}
        if stored:
            outcomes[cell] = tuple(
                outcome(recipe, metrics_log.read_log(folder / name))
                for name, recipe in stored.items()
            )
        if len(stored) < len(names):
            missing[cell] = len(names) - len(stored)
    return outcomes, missing


def cell_of(recipe: Recipe) -> Cell:
    """Return the cell of a training with one task on short integers."""
    (task,) = recipe.data.tasks
    assert recipe.data.bits is not None
    return Cell(task, recipe.data.bits, recipe.data.shift, recipe.model.encoding)


def outcome(recipe: Recipe, log: Iterable[dict[str, Any]]) -> Outcome:
    """Return the outcome of a training from its recipe and metrics log."""
    (task,) = recipe.data.tasks
    entries = metrics_log.validation_entries(list(log))
    exact = [float(entry["tasks"][task]["exact"]) for entry in entries]
    costs = [Cost(e["questions"], e["tokens"], e["cpu_seconds"]) for e in entries]
    first = {target: first_in_a_row(exact, target, CONFIRMING_VALIDATIONS) for target in TARGETS}
    return Outcome(
        seed=recipe.training.seed,
        reached={target: None if n is None else costs[n] for target, n in first.items()},
        end=costs[-1],
        exact=float(np.mean(exact[-FINAL_VALIDATIONS:])),
        curve=tuple((c.questions, e) for c, e in zip(costs, exact, strict=True)),
    )


def first_in_a_row(values: list[float], target: float, count: int) -> int | None:
    """Return the index of the first of `count` consecutive values of at least `target`."""
    for index in range(len(values) - count + 1):
        if min(values[index : index + count]) >= target:
            return index
    return None
