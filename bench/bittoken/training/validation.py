"""Validation during training: scores by task, and the update of curricula and task ratios.

Scores are teacher-forced (see `teacher_forcing`).
"""

from __future__ import annotations

from typing import Any

import numpy as np

from bittoken.encodings.base import IntArray
from bittoken.perplexity import log_probabilities, perplexity
from bittoken.training.curriculum import generalized_mean
from bittoken.training.mixture import Batch, BatchSize, DataLoader, Mixture
from bittoken.training.recipe import TEXT
from bittoken.training.trainer import Trainer
from numbench.tasks import TASKS
from numbench.tasks.number_sampling import MAX_LIST_LENGTH

Metrics = dict[str, Any]

_MAX_LEVEL_MAPS = 256
"""Maximum number of validations per training that log a score per level, to keep the log small."""


def expected_chance_accuracy(task: str) -> float:
    """Return the mean chance accuracy of a task over its list lengths, which are uniform."""
    if task not in TASKS:
        return 0.0
    # The reference number of an interval question is an operand too.
    extra = int(task == "interval")
    lengths = range(2, MAX_LIST_LENGTH + 1)
    return float(np.mean([TASKS[task].chance_accuracy(length + extra) for length in lengths]))


def validate(trainer: Trainer, mixture: Mixture, full: DataLoader, leveled: DataLoader) -> Metrics:
    """Score every task, update the task ratios and curricula, and return the metrics.

    full: loader of the full distribution of every task. leveled: loader with difficulty levels.
    """
    equal = np.full(len(mixture.tasks), 1 / len(mixture.tasks))
    size = _size(trainer, len(mixture.tasks))
    batch = mixture.batch(full, size, equal, use_curriculum=False)
    score, exact = trainer.score_samples(batch)
    mixture.update_task_ratios(batch.task, score)
    metrics: Metrics = {
        task: {
            "score": round(float(score[batch.task == number].mean()), 5),
            "exact": round(float(exact[batch.task == number].mean()), 5),
            "items": int((batch.task == number).sum()),
        }
        for number, task in enumerate(mixture.tasks)
    }
    if TEXT in mixture.tasks:
        metrics[TEXT]["perplexity"] = _perplexity(trainer, batch, mixture.tasks.index(TEXT))
    if mixture.curricula:
        for task, level_metrics in _validate_levels(trainer, mixture, leveled).items():
            metrics[task] |= level_metrics
    target = trainer.recipe.training.stop_exact
    reached = all(metrics[task]["exact"] >= target for task in mixture.tasks)
    trainer.progress.successes = trainer.progress.successes + 1 if reached else 0
    # Not rounded: if a task scores 0, the mean is near epsilon, and the other tasks, which then
    # decide between checkpoints, only change its late digits (see `generalized_mean`).
    return {"tasks": metrics, "harmonic_mean": generalized_mean(mixture.performance, -1.0)}


def _size(trainer: Trainer, tasks: int) -> BatchSize:
    """Return the size of a validation batch for this number of tasks."""
    training = trainer.recipe.training
    if training.validation_tokens:
        return BatchSize(tokens=training.validation_tokens)
    return BatchSize(questions=training.validation_items * tasks)


def _validate_levels(trainer: Trainer, mixture: Mixture, leveled: DataLoader) -> Metrics:
    """Score the tasks with a curriculum on samples drawn by level, and advance their frontiers."""
    has_curriculum = np.array([task in mixture.curricula for task in mixture.tasks], np.float64)
    size = _size(trainer, len(mixture.curricula))
    batch = mixture.batch(leveled, size, has_curriculum / has_curriculum.sum())
    score, exact = trainer.score_samples(batch)
    level = batch.level
    mixture.update_curricula(batch.task, level, score)
    metrics: Metrics = {}
    for name, curriculum in mixture.curricula.items():
        is_task = batch.task == mixture.tasks.index(name)
        while curriculum.advance(
            trainer.curriculum_threshold(curriculum.frontier, curriculum.levels - 1)
        ):
            pass
        curriculum.unlock(trainer.min_unlocked_share)
        metrics[name] = {
            "frontier": curriculum.frontier,
            "levels": curriculum.levels,
            "opened_score": round(float(score[is_task].mean()), 5),
            "opened_exact": round(float(exact[is_task].mean()), 5),
        }
        if _logs_level_scores(trainer):
            metrics[name]["level_score"] = _mean_by_level(
                level[is_task], score[is_task], curriculum.levels
            )
    return metrics


def _mean_by_level(level: IntArray, score: np.ndarray, levels: int) -> list[float | None]:
    """Return the mean score of each level, None for a level without items."""
    count = np.bincount(level, minlength=levels)
    total = np.bincount(level, score, levels)
    return [
        round(s / n, 3) if n else None for s, n in zip(total.tolist(), count.tolist(), strict=True)
    ]


def _logs_level_scores(trainer: Trainer) -> bool:
    """Return whether this validation is one of the evenly spaced ones that log level scores."""
    training = trainer.recipe.training
    every = -(-training.steps // (training.validate_every * _MAX_LEVEL_MAPS))
    return trainer.progress.step // training.validate_every % every == 0


def _perplexity(trainer: Trainer, batch: Batch, text: int) -> float | None:
    """Return the perplexity of the batch's text over all tokens, None if it is not finite."""
    windows = batch.samples.take(np.flatnonzero(batch.task == text))
    try:
        value = perplexity(log_probabilities(trainer.network), [windows], trainer.vocabulary).all
    except FloatingPointError:
        return None
    return None if value is None else round(value, 4)
