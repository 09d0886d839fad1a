"""Validation during training: scores by task, and the update of curricula and task ratios.

Scores are teacher-forced: every token is predicted from the tokens of the correct answer before it.
They control the training; reported scores come from `numbench run`.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from decimal import Decimal
from typing import Any

import numpy as np
from torch import Tensor

from bittoken.data import Batch, TrainingData
from bittoken.encodings.base import FloatArray, NumberEncoding
from bittoken.loss import Predictions
from bittoken.mixture import Mixture, harmonic_mean
from bittoken.recipe import TEXT
from bittoken.tokens import answer_text
from bittoken.vocabulary import Vocabulary
from numbench.scoring.metrics import log_smape, round_significant
from numbench.tasks import TASKS

_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")

Scorer = Callable[[Batch], tuple[FloatArray, FloatArray]]
"""Returns the score and exact match of each sample of a batch."""


def validate(
    score: Scorer, data: TrainingData, mixture: Mixture, step: int, number: int
) -> dict[str, Any]:
    """Score every task, update the task ratios and curricula, and return the metrics.

    number: of this validation; each has its own questions.
    """
    metrics: dict[str, dict[str, Any]] = {}
    scores = np.zeros(len(mixture.tasks))
    for index, task in enumerate(mixture.tasks):
        result, exact = score(data.validation(number, task))
        scores[index] = result.mean()
        metrics[task] = {"score": _round(result), "exact": _round(exact), "items": len(result)}
    mixture.update_ratios(scores)
    for task, curriculum in mixture.curricula.items():
        batch = data.leveled_validation(number, task, curriculum.shares())
        result, exact = score(batch)
        mixture.update_curriculum(task, batch.level, result, step)
        metrics[task] |= {
            "frontier": curriculum.frontier,
            "levels": curriculum.levels,
            "opened_score": _round(result),
            "opened_exact": _round(exact),
        }
    # Not rounded: if a task scores 0, the other tasks only change late digits.
    return {"tasks": metrics, "harmonic_mean": harmonic_mean(scores)}


def _round(values: FloatArray) -> float:
    return round(float(values.mean()), 5)


def teacher_forced_scores(
    predictions: Predictions, task: str, rows: int, vocabulary: Vocabulary
) -> tuple[FloatArray, FloatArray]:
    """Return the headline score of each sample (log-sMAPE or exact match), and its exact match.

    rows: the number of samples, all of this task. An exact match has all tokens right and all
    numbers equal to 15 significant digits. The score of text is the share of tokens that are right.
    """
    predicted, expected, row = (
        part.cpu().numpy()
        for part in (predictions.logits.argmax(-1), predictions.tokens, predictions.row)
    )
    values, truths = _values(predictions, vocabulary.encoding)
    is_number = expected == vocabulary.number_id
    is_right = (predicted == expected) & (~is_number | _equal_to_15_digits(values, truths))
    exact = np.ones(rows)
    np.minimum.at(exact, row, is_right.astype(np.float64))
    score = exact.copy()
    for sample in np.flatnonzero(exact == 0):
        targets = slice(*np.searchsorted(row, [sample, sample + 1]))
        if task == TEXT:
            score[sample] = is_right[targets].mean()
        elif TASKS[task].metric == "log_smape":
            answer = _number(predicted[targets], values[targets], vocabulary)
            truth = _number(expected[targets], truths[targets], vocabulary)
            if answer is not None and truth is not None:
                score[sample] = log_smape(answer, truth)
    return score, exact


def _values(
    predictions: Predictions, encoding: NumberEncoding | None
) -> tuple[FloatArray, FloatArray]:
    """Return the predicted and the expected number at every target, whatever its token."""
    if encoding is None or predictions.outputs is None:
        unknown = np.full(len(predictions.tokens), np.nan)
        return unknown, unknown
    codes: tuple[Tensor, Tensor] = encoding.predict(predictions.outputs), predictions.codes
    predicted, expected = (
        encoding.decode(np.ascontiguousarray(part.cpu().numpy())) for part in codes
    )
    return predicted, expected


def _equal_to_15_digits(values: FloatArray, truths: FloatArray) -> np.ndarray:
    """Return which values are equal when rounded to 15 significant digits."""
    equal: np.ndarray = values == truths
    with np.errstate(invalid="ignore"):
        near = np.flatnonzero(~equal & (np.abs(values - truths) <= 1e-14 * np.abs(truths)))
    for index in near:
        equal[index] = f"{values[index]:.14e}" == f"{truths[index]:.14e}"
    return equal


def _number(tokens: np.ndarray, values: FloatArray, vocabulary: Vocabulary) -> Decimal | None:
    """Return the number that an answer consists of, rounded; None if it is not a plain decimal."""
    numbers = values[tokens == vocabulary.number_id].tolist()
    text = answer_text(tokens.tolist(), numbers, vocabulary)
    return round_significant(Decimal(text)) if _DECIMAL.fullmatch(text) else None
