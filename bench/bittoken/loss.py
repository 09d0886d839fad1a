"""The training loss: cross-entropy of the next token + 10 × number loss, on answers only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bittoken.encodings.base import FloatArray
from bittoken.network import Network
from bittoken.tokens import NUM, Samples, Vocabulary

NUMBER_LOSS = 10.0
"""The weight of the number loss relative to the cross-entropy of the token (paper)."""

LOSS_SCALE = 10.0
"""The value to which each task's loss is normalized after the warm-up (paper)."""

_DECAY = 0.9
"""The decay per step of the running means that determine the normalization."""


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


class LossScale:
    """Factors that equalize the tasks' losses after the warm-up (appendix "Multitask learning").

    They are 1 during the warm-up. After it, each is fixed to LOSS_SCALE / the running mean of the
    task's loss.
    """

    def __init__(self, tasks: int) -> None:
        self.factors = np.ones(tasks)
        self.means = np.full(tasks, np.nan)

    def observe(self, means: FloatArray, counts: FloatArray) -> None:
        """Update the running means with the mean losses of a step of the warm-up."""
        old = np.where(np.isnan(self.means), means, self.means)
        self.means = np.where(counts > 0, _DECAY * old + (1 - _DECAY) * means, self.means)

    def freeze(self) -> None:
        """Fix the factors at the end of the warm-up."""
        is_known = self.means > 0
        self.factors = np.where(is_known, LOSS_SCALE / np.where(is_known, self.means, 1), 1.0)
