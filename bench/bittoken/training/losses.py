"""What is minimised: cross-entropy of the next token + 10 × number loss, answers only."""

from __future__ import annotations

from typing import NamedTuple

import numpy as np
import torch
from torch import Tensor
from torch.nn import functional

from bench.bittoken.data.packing import Samples
from bench.bittoken.network import Network
from bench.bittoken.vocabulary import NUM, Vocabulary


class Targets(NamedTuple):
    """What is to be predicted, and from where.

    places: positions whose next token carries loss, (P,). tokens: those next tokens. codes: their
    codes. sample: the sample of each place.
    """

    places: Tensor
    tokens: Tensor
    codes: Tensor
    sample: Tensor

    @classmethod
    def of(cls, samples: Samples, device: torch.device | str = "cpu") -> Targets:
        """Of each sample the tokens behind its question; the last token predicts nothing."""
        answers = samples.lengths - samples.questions
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
    """What both heads say at the places of targets: float32, (P, vocabulary) and (P, outputs)."""

    logits: Tensor
    outputs: Tensor | None


def predict(network: Network, hidden: Tensor, targets: Targets) -> Predictions:
    """The heads' outputs at the targets' places."""
    chosen = hidden[targets.places]
    outputs = network.numbers(chosen).float() if network.encoding is not None else None
    return Predictions(network.logits(chosen).float(), outputs)


def token_losses(
    network: Network, said: Predictions, targets: Targets, number_weight: float
) -> Tensor:
    """ℒ of each target, shape (P,): CE + weight · ℒ_num where the target is a number."""
    loss = functional.cross_entropy(said.logits, targets.tokens, reduction="none")
    if network.encoding is None or said.outputs is None:
        return loss
    number = Vocabulary(network.config.encoding).ids[NUM]
    at = torch.nonzero(targets.tokens == number).squeeze(1)
    own = network.encoding.loss(said.outputs[at], targets.codes[at])
    return loss.index_add(0, at, own.to(loss.dtype), alpha=number_weight)


def by_task(losses: Tensor, task: Tensor, tasks: int) -> tuple[Tensor, Tensor]:
    """Mean loss and number of targets of each task, shape (tasks,); a task without targets: 0.

    task: the task of each target, (P,).
    """
    count = torch.bincount(task, minlength=tasks).to(losses.dtype)
    total = torch.zeros(tasks, dtype=losses.dtype, device=losses.device)
    total = total.index_add(0, task, losses)
    return total / count.clamp(min=1), count


class LossScale:
    """Brings every task's loss to one size after the warm-up (appendix "Multitask learning").

    Until then losses count as they are. Then each is multiplied by `size` / its running mean,
    once and for all.
    """

    def __init__(self, tasks: int, size: float) -> None:
        self.factors = np.ones(tasks)
        self.means = np.full(tasks, np.nan)
        self._size = size

    def observe(self, means: np.ndarray, counts: np.ndarray) -> None:
        """Take in the mean losses of one step, before the end of the warm-up."""
        old = np.where(np.isnan(self.means), means, self.means)
        new = _KEPT * old + (1 - _KEPT) * means
        self.means = np.where(counts > 0, new, self.means)

    def settle(self) -> None:
        """Fix the factors."""
        if self._size:
            known = ~np.isnan(self.means) & (self.means > 0)
            self.factors = np.where(known, self._size / np.where(known, self.means, 1), 1.0)


_KEPT = 0.9
