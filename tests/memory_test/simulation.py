"""Simulated memory tests with planted truth: how often the rule gives each verdict."""

from collections import Counter
from collections.abc import Hashable, Mapping, Sequence
from typing import NamedTuple

import numpy as np
import numpy.typing as npt

from numbench.memory_test.rule import PairedDesign, Verdict, decide, power, shared_weights
from numbench.stats.design import Stratum
from numbench.stats.paired import compare_means

_MAXIMUM = 100.0


class PlantedTask(NamedTuple):
    """Probabilities of right answers of a model to the pairs of a task, without memory.

    frozen, fresh: of shape (pairs,). keys: pairs of different tasks with the same key are about
    the same operands, and are known or not known together.
    """

    name: str
    frozen: npt.NDArray[np.float64]
    fresh: npt.NDArray[np.float64]
    keys: Sequence[Hashable]


class Simulated(NamedTuple):
    """Verdicts of memory tests on a model that knows a share of the frozen items.

    stated: the least chance, by the rule, of the verdict `memory`.
    """

    verdicts: Mapping[Verdict, int]
    stated: float


def simulate(
    tasks: Sequence[PlantedTask], known: float, memory_tests: int, seed: int, margin: float = 3.0
) -> Simulated:
    """Return the verdicts for a model that knows a random share `known` of the frozen items."""
    rng = np.random.default_rng(seed)
    keys = {key for task in tasks for key in task.keys}
    memory = {key: rng.random(memory_tests) < known for key in sorted(keys, key=str)}
    strata = []
    for task in tasks:
        shape = (len(task.frozen), memory_tests)
        right_frozen = (rng.random(shape) < task.frozen[:, None]) | np.array(
            [memory[key] for key in task.keys]
        )
        right_fresh = rng.random(shape) < task.fresh[:, None]
        values = _MAXIMUM * (right_frozen.astype(float) - right_fresh)
        strata.append(Stratum(task.name, values, clusters=task.keys))
    weights = shared_weights([set(task.keys) for task in tasks])
    design = PairedDesign(len(tasks[0].frozen), weights)
    right = [float(task.fresh.mean()) for task in tasks]
    stated = power(design, right, known)
    return Simulated(Counter(verdicts(strata, margin)), stated)


def verdicts(strata: Sequence[Stratum], margin: float) -> list[Verdict]:
    """Return the verdict of each column of differences, frozen minus fresh, in points."""
    by_task = [compare_means([stratum], _MAXIMUM, one_sided=True) for stratum in strata]
    overall = compare_means(strata, _MAXIMUM, one_sided=True)
    return [
        decide([result for result in of_tasks if result], mean, margin)
        for *of_tasks, mean in zip(*by_task, overall, strict=True)
        if mean
    ]
