"""The training loss: cross-entropy of the next token + 10 × number loss, on answers only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bittoken.data.packing import Samples
from bittoken.network import Network
from bittoken.vocabulary import NUM, Vocabulary


class Targets(NamedTuple):
    """The tokens to predict, and the positions that predict them.

    positions: positions whose next token has a loss, (P,). tokens: those next tokens, (P,). codes:
    their number codes, (P, columns). sample: the index of each target's sample, (P,).
    """

    positions: Tensor
    tokens: Tensor
    codes: Tensor
    sample: Tensor

    @classmethod
    def of(cls, samples: Samples, device: torch.device | str = "cpu") -> Targets:
        """Return the tokens after each sample's prompt as targets."""
        answers = samples.lengths - samples.prompt_lengths
        ends = np.cumsum(samples.lengths)
        before = np.cumsum(answers) - answers
        following = np.repeat(ends - answers - before, answers) + np.arange(int(answers.sum()))
        return cls(
            torch.from_numpy(following - 1).to(device),
            torch.from_numpy(samples.tokens[following]).to(device),
            torch.from_numpy(np.ascontiguousarray(samples.codes[following])).to(device),
            torch.from_numpy(np.repeat(np.arange(len(answers)), answers)).to(device),
        )


class Predictions(NamedTuple):
    """Both heads' outputs at the targets: float32, (P, vocabulary) and (P, outputs)."""

    logits: Tensor
    outputs: Tensor | None


def predict(network: Network, hidden: Tensor, targets: Targets) -> Predictions:
    """Return the heads' outputs at the targets' positions."""
    selected = hidden[targets.positions]
    outputs = network.number_outputs(selected).float() if network.encoding is not None else None
    return Predictions(network.logits(selected).float(), outputs)


def token_losses(
    network: Network, predictions: Predictions, targets: Targets, number_weight: float
) -> Tensor:
    """Return ℒ of each target, shape (P,): CE, plus weight · ℒ_num if the target is a number."""
    loss = functional.cross_entropy(predictions.logits, targets.tokens, reduction="none")
    if network.encoding is None or predictions.outputs is None:
        return loss
    number = Vocabulary(network.config.encoding).ids[NUM]
    rows = torch.nonzero(targets.tokens == number).squeeze(1)
    number_loss = network.encoding.loss(predictions.outputs[rows], targets.codes[rows])
    return loss.index_add(0, rows, number_loss.to(loss.dtype), alpha=number_weight)


def mean_loss_by_task(losses: Tensor, task: Tensor, tasks: int) -> tuple[Tensor, Tensor]:
    """Return mean loss and number of targets by task, each (tasks,); 0 for a task without targets.

    task: the index of each target's task, (P,).
    """
    count = torch.bincount(task, minlength=tasks).to(losses.dtype)
    total = torch.zeros(tasks, dtype=losses.dtype, device=losses.device)
    total = total.index_add(0, task, losses)
    return total / count.clamp(min=1), count


class LossScale:
    """Factors that equalise the tasks' losses after the warm-up (appendix "Multitask learning").

    They are 1 during the warm-up. After it, each is fixed to `size` / the running mean of the
    task's loss.
    """

    def __init__(self, tasks: int, size: float) -> None:
        self.factors = np.ones(tasks)
        self.means = np.full(tasks, np.nan)
        self._size = size

    def observe(self, means: np.ndarray, counts: np.ndarray) -> None:
        """Update the running means with the mean losses of a step of the warm-up."""
        old = np.where(np.isnan(self.means), means, self.means)
        new = _DECAY * old + (1 - _DECAY) * means
        self.means = np.where(counts > 0, new, self.means)

    def freeze(self) -> None:
        """Fix the factors at the end of the warm-up."""
        if self._size:
            known = ~np.isnan(self.means) & (self.means > 0)
            self.factors = np.where(known, self._size / np.where(known, self.means, 1), 1.0)


_DECAY = 0.9
