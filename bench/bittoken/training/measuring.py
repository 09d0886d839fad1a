"""Validation: what every task can do by now, and what follows for the next batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.bittoken.data.packing import Ints
from bench.bittoken.predicting import log_probabilities
from bench.bittoken.text.perplexity import perplexity
from bench.bittoken.training.balance import generalized_mean
from bench.bittoken.training.mixture import Batch, Feed, Mixture
from bench.bittoken.training.recipe import TEXT
from bench.bittoken.training.trainer import Trainer
from bench.tasks.guessing import guessing
from bench.tasks.lists import MAX_LENGTH

Metrics = dict[str, Any]

_MOST_MAPS = 256
"""Validations of a training whose log lines hold a score per level, at most: a log stays small."""


def chance(task: str) -> float:
    """The exact matches of `guessing` over the lengths of lists, which are uniform."""
    # An interval's reference is an operand too.
    more = int(task == "interval")
    lengths = range(2, MAX_LENGTH + 1)
    return float(np.mean([guessing(task, length + more) for length in lengths]))


def validate(trainer: Trainer, mixture: Mixture, full: Feed, leveled: Feed) -> Metrics:
    """Measure every task, move its frontier and the tasks' ratios; what was found."""
    tokens = trainer.recipe.training.validation_tokens
    equal = np.full(len(mixture.tasks), 1 / len(mixture.tasks))
    batch = mixture.batch(full, tokens, equal, leveled=False)
    score, exact = trainer.judge(batch)
    mixture.measured(batch.task, score)
    found: Metrics = {
        task: {
            "score": round(float(score[batch.task == number].mean()), 5),
            "exact": round(float(exact[batch.task == number].mean()), 5),
            "items": int((batch.task == number).sum()),
        }
        for number, task in enumerate(mixture.tasks)
    }
    if TEXT in mixture.tasks:
        found[TEXT]["perplexity"] = _perplexity(trainer, batch, mixture.tasks.index(TEXT))
    if mixture.curricula:
        own = np.array([task in mixture.curricula for task in mixture.tasks], np.float64)
        batch = mixture.batch(leveled, tokens, own / own.sum())
        score, exact = trainer.judge(batch)
        level = batch.level
        mixture.measured_levels(batch.task, level, score)
        for name, curriculum in mixture.curricula.items():
            mine = batch.task == mixture.tasks.index(name)
            while curriculum.advance(trainer.zeta(curriculum.frontier, curriculum.levels - 1)):
                pass
            found[name] |= {
                "frontier": curriculum.frontier,
                "levels": curriculum.levels,
                "opened_score": round(float(score[mine].mean()), 5),
                "opened_exact": round(float(exact[mine].mean()), 5),
            }
            if _maps(trainer):
                found[name]["level_score"] = _by_level(level[mine], score[mine], curriculum.levels)
    # Not rounded: where a task stays at 0 the mean is of the order of its epsilon, and the other
    # tasks, by which checkpoints are then chosen, count in digits beyond the tenth.
    return {"tasks": found, "harmonic_mean": generalized_mean(mixture.performance, -1.0)}


def _by_level(level: Ints, score: np.ndarray, levels: int) -> list[float | None]:
    """The mean score of each level, None where no item is of it."""
    count = np.bincount(level, minlength=levels)
    total = np.bincount(level, score, levels)
    return [
        round(s / n, 3) if n else None for s, n in zip(total.tolist(), count.tolist(), strict=True)
    ]


def _maps(trainer: Trainer) -> bool:
    """Whether this validation is one of the evenly spaced ones that are told by level."""
    training = trainer.recipe.training
    every = -(-training.steps // (training.validate_every * _MOST_MAPS))
    return trainer.progress.step // training.validate_every % every == 0


def _perplexity(trainer: Trainer, batch: Batch, text: int) -> float | None:
    """exp of the mean loss of the batch's text, numbers as tokens; None where it is not finite."""
    windows = batch.samples.take(np.flatnonzero(batch.task == text))
    try:
        found = perplexity(log_probabilities(trainer.network), [windows], trainer.vocabulary).all
    except FloatingPointError:
        return None
    return found if found is None else round(found, 4)
