"""Simulate `numbench compare` on the scores of published models, and print the result as Markdown.

    python benchmarks/gate.py [--samples 1000] | tee benchmarks/gate.md

Two runs of one model are drawn from the answers of two models that score alike: on each question,
one run has the answer of either at random, and the other the other's, or with some probability the
same one. Questions are drawn from the 500 of a task, with replacement. The new run then loses as
many points as the comparison of two equal runs says that it detects.
"""

from __future__ import annotations

import argparse
import sys
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Literal, NamedTuple

import numpy as np
import numpy.typing as npt

sys.path.insert(0, str(Path(__file__).parents[1]))

from numbench.dataset.store import open_dataset
from numbench.reporting.references import DATASET, read_references
from numbench.reporting.values import common_items
from numbench.stats.design import Stratum
from numbench.stats.multiple_testing import holm
from numbench.stats.paired import compare

Array = npt.NDArray[np.float64]
Pair = tuple[Array, Array]
Loss = Literal["lost answers", "answers of a weaker model"]

SEED = 20251
QUESTIONS = (50, 100, 500)
SHARED = (0.0, 0.7)
MODELS = (
    ("Kimi K2 0905 (none)", "Gemini 2.5 Flash (none)", "Llama 4 Maverick (none)"),
    ("GPT OSS 120B (maximal)", "Gemini 2.5 Pro (maximal)", "Gemini 2.5 Flash (maximal)"),
)
"""Two models that score alike, and a weaker one."""


class Gate(NamedTuple):
    """Decisions on `samples` pairs of runs: how many failed, and the mean detectable drop."""

    failed: float
    detectable: float


class Scores(NamedTuple):
    """The scores of two alike models and of a weaker one on the questions of a task."""

    first: Array
    second: Array
    weaker: Array

    def loss(self, kind: Loss) -> float:
        """Return the mean loss in points if every answer is lost."""
        kept = self.weaker.mean() if kind == "answers of a weaker model" else 0.0
        return float((self.first.mean() + self.second.mean()) / 2 - kept)


def read_scores(models: Sequence[str]) -> dict[str, Scores]:
    """Return task → scores on the questions that all three models answered."""
    dataset = open_dataset(DATASET)
    known = {one.label: one.values.tasks for one in read_references(dataset, "", dataset.tasks)}
    return {
        task: Scores(*(one.score for one in common_items([known[name][task] for name in models])))
        for task in dataset.tasks
    }


def draw(
    rng: np.random.Generator,
    scores: Scores,
    shape: tuple[int, int],
    shared: float,
    loss: Loss = "lost answers",
    share: float = 0.0,
) -> Pair:
    """Return the scores of the new run, of which a share is lost, and of the old one."""
    index = rng.integers(len(scores.first), size=shape)
    first, second = scores.first[index], scores.second[index]
    swapped = rng.random(shape) < 0.5
    old, new = np.where(swapped, second, first), np.where(swapped, first, second)
    new = np.where(rng.random(shape) < shared, old, new)
    worse = scores.weaker[index] if loss == "answers of a weaker model" else 0.0
    return np.where(rng.random(shape) < share, worse, new), old


def decide(runs: dict[str, Pair], on: Sequence[str] = ()) -> Gate:
    """Return how the gate decides on each pair of runs: on the mean, or on the tasks `on`."""
    samples = next(iter(runs.values()))[0].shape[1]
    pairs = [(column, samples + column) for column in range(samples)]
    strata = [Stratum(task, np.hstack(runs[task])) for task in on or runs]
    known = compare(strata, pairs, tests=max(1, len(on)))
    # One row of results per decisive test.
    results = known.strata if on else [known.overall]
    corrected = [holm([one.p for one in of_sample]) for of_sample in zip(*results, strict=True)]
    failed = [
        any(
            one.is_significant(p) and one.difference < 0
            for one, p in zip(of_sample, p_values, strict=True)
        )
        for of_sample, p_values in zip(zip(*results, strict=True), corrected, strict=True)
    ]
    return Gate(
        float(np.mean(failed)),
        float(np.mean([one.minimum_detectable or np.nan for one in results[0] if one])),
    )


class Runs(NamedTuple):
    """How pairs of runs are drawn; shape: questions per task, pairs."""

    scores: dict[str, Scores]
    shape: tuple[int, int]
    shared: float

    def draw(self, loss: Loss, points: float, only: str | None = None) -> dict[str, Pair]:
        """Return task → the pairs of runs; the mean loses `points`, or the task `only` does."""
        rng = np.random.default_rng(SEED)
        losses = {task: each.loss(loss) for task, each in self.scores.items()}
        total = losses[only] if only else sum(losses.values()) / len(losses)
        return {
            task: draw(
                rng, each, self.shape, self.shared, loss, points / total * (only in (None, task))
            )
            for task, each in self.scores.items()
        }


def simulate(samples: int, questions: Sequence[int] = QUESTIONS) -> Iterator[tuple[str, ...]]:
    """Yield the rows of the table."""
    for models in MODELS:
        scores = read_scores(models)
        tasks = tuple(scores)
        for shared in SHARED:
            for count in questions:
                runs = Runs(scores, (count, samples), shared)
                equal = runs.draw("lost answers", 0.0)
                mean, of_task = decide(equal), decide(equal, tasks)
                powers = [
                    decide(runs.draw("lost answers", mean.detectable)),
                    decide(runs.draw("lost answers", mean.detectable * len(tasks), tasks[0])),
                    decide(runs.draw("answers of a weaker model", mean.detectable)),
                ]
                power = decide(runs.draw("lost answers", of_task.detectable, tasks[0]), tasks)
                yield (
                    models[0], f"{shared:.0%}", str(count), f"{mean.failed:.1%}",
                    f"{mean.detectable:.2f}", *(f"{one.failed:.1%}" for one in powers),
                    f"{of_task.failed:.1%}", f"{of_task.detectable:.1f}", f"{power.failed:.1%}",
                )  # fmt: skip


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--samples", type=int, default=1000)
    samples = parser.parse_args().samples
    print(f"# The gate, simulated\n\n`python benchmarks/gate.py --samples {samples}`. {__doc__}")
    columns = (
        "model", "same answers", "questions per task", "false alarms (All)", "detectable drop",
        "power, answers lost", "power, all lost in one task", "power, answers of a weaker model",
        "false alarms (--on nine tasks)", "detectable drop of a task", "power, answers lost",
    )  # fmt: skip
    print(f"| {' | '.join(columns)} |\n|---|{'---:|' * (len(columns) - 1)}")
    for row in simulate(samples):
        print(f"| {' | '.join(row)} |", flush=True)


if __name__ == "__main__":
    main()
