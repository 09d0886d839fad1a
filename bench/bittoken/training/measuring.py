"""Validation: what every task can do by now, and what follows for the next batches."""

from __future__ import annotations

from typing import Any

import numpy as np

from bench.bittoken.predicting import log_probabilities
from bench.bittoken.text.perplexity import perplexity
from bench.bittoken.training.balance import generalized_mean
from bench.bittoken.training.mixture import Batch, Feed, Mixture
from bench.bittoken.training.recipe import TEXT
from bench.bittoken.training.trainer import Trainer

Metrics = dict[str, Any]


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
        mixture.measured_levels(batch.task, batch.level, score)
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
    harmonic = generalized_mean(mixture.performance, -1.0)
    return {"tasks": found, "harmonic_mean": round(harmonic, 6)}


def _perplexity(trainer: Trainer, batch: Batch, text: int) -> float | None:
    """exp of the mean loss of the batch's text, numbers as tokens; None where it is not finite."""
    windows = batch.samples.take(np.flatnonzero(batch.task == text))
    try:
        found = perplexity(log_probabilities(trainer.network), [windows], trainer.vocabulary).all
    except FloatingPointError:
        return None
    return found if found is None else round(found, 4)
