"""How well a network predicts during a training: losses and scores.

The loss is the cross-entropy of the next token + 10 × the number loss, on answers only. Scores are
teacher-forced: every token is predicted from the tokens of the correct answer before it. They
control the training; reported scores come from `numbench run`.
"""

from __future__ import annotations

import re
from decimal import Decimal
from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import FloatArray, NumberEncoding
from bittoken.network import Network
from bittoken.recipe import TEXT
from bittoken.tokens import NUM, OPERATOR_TOKENS, Samples, Vocabulary, answer_text
from numbench.scoring.metrics import log_smape, round_significant
from numbench.tasks import TASKS

NUMBER_LOSS = 10.0
"""The weight of the number loss relative to the cross-entropy of the token (paper)."""

_DECIMAL = re.compile(r"-?[0-9]+(\.[0-9]+)?")


class Predictions(NamedTuple):
    """The targets of P predictions and both heads' outputs for them.

    tokens: the correct tokens, (P,). codes: their number codes, (P, columns). row: the sample of
    each target, (P,). logits: float32 (P, vocabulary). outputs: those of the number head, float32
    (P, outputs); None if numbers are written as text.
    """

    tokens: Tensor
    codes: Tensor
    row: Tensor
    logits: Tensor
    outputs: Tensor | None


def predict(network: Network, samples: Samples, device: torch.device) -> Predictions:
    """Return the predictions of all tokens that have a loss, each from the tokens before it."""
    tokens, codes = (torch.from_numpy(part).to(device) for part in (samples.tokens, samples.codes))
    row, column = (torch.from_numpy(index).to(device) for index in samples.is_target.nonzero())
    # The last token predicts nothing.
    hidden = network(tokens[:, :-1], codes[:, :-1])[row, column - 1]
    outputs = network.number_outputs(hidden).float() if network.encoding is not None else None
    return Predictions(
        tokens[row, column], codes[row, column], row, network.logits(hidden).float(), outputs
    )


def token_losses(network: Network, predictions: Predictions, vocabulary: Vocabulary) -> Tensor:
    """Return ℒ of each target, shape (P,): CE, plus 10 · ℒ_num if the target is a number."""
    loss = functional.cross_entropy(predictions.logits, predictions.tokens, reduction="none")
    if network.encoding is None or predictions.outputs is None:
        return loss
    rows = torch.nonzero(predictions.tokens == vocabulary.ids[NUM]).squeeze(1)
    number_loss = network.encoding.loss(predictions.outputs[rows], predictions.codes[rows])
    return loss.index_add(0, rows, number_loss.to(loss.dtype), alpha=NUMBER_LOSS)


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


def exact_by_operator(
    samples: Samples, exact: FloatArray, task: str, vocabulary: Vocabulary
) -> dict[str, float]:
    """Return the exact match for each operator, if the samples have several."""
    result = {}
    for operator in TASKS[task].operators if task in TASKS else ():
        token = vocabulary.ids[OPERATOR_TOKENS[operator]]
        rows = (samples.tokens == token).any(axis=1)
        if rows.any() and not rows.all():
            result[operator] = round(float(exact[rows].mean()), 5)
    return result


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
    """Return which values are equal when rounded to 15 significant digits; −0 equals 0."""
    texts = [[f"{value:.14e}" for value in (part + 0.0).tolist()] for part in (values, truths)]
    return np.asarray(np.array(texts[0]) == np.array(texts[1]))


def _number(tokens: np.ndarray, values: FloatArray, vocabulary: Vocabulary) -> Decimal | None:
    """Return the number that an answer consists of, rounded; None if it is not a plain decimal."""
    numbers = values[tokens == vocabulary.number_id].tolist()
    text = answer_text(tokens.tolist(), numbers, vocabulary)
    return round_significant(Decimal(text)) if _DECIMAL.fullmatch(text) else None
