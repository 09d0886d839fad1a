"""The training loop: batches in, checkpoints and a metrics log out."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bench.bittoken.attention import Layout
from bench.bittoken.data.packing import Samples
from bench.bittoken.network import Network
from bench.bittoken.training.crew import Crew
from bench.bittoken.training.curriculum import FALL, THRESHOLD, threshold
from bench.bittoken.training.losses import LossScale, Targets, by_task, predict, token_losses
from bench.bittoken.training.mixture import Batch
from bench.bittoken.training.optimizers import Optimizers, schedule
from bench.bittoken.training.recipe import Recipe
from bench.bittoken.training.validation import gathered, scores
from bench.bittoken.vocabulary import Vocabulary

Metrics = dict[str, Any]


class StepResult(NamedTuple):
    """Mean loss of each task in one step, unscaled, and its number of targets.

    pairs: of tokens, one of which attends to the other.
    """

    losses: np.ndarray
    targets: np.ndarray
    tokens: int
    pairs: int


@dataclass
class Progress:
    """How far a training has come.

    best: the highest harmonic mean so far, its step and the tokens by then. losses, targets: since
    the last validation each task's summed loss, and the number of its targets.
    """

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: float = -1.0
    best_step: int = 0
    best_tokens: int = 0
    losses: list[float] = field(default_factory=list)
    targets: list[float] = field(default_factory=list)

    def since(self, losses: np.ndarray, targets: np.ndarray) -> None:
        """Take in a step's mean losses."""
        old = np.array(self.losses or np.zeros(len(losses)))
        self.losses = (old + losses * targets).tolist()
        self.targets = (np.array(self.targets or np.zeros(len(losses))) + targets).tolist()


class Trainer:
    """One process's part of a training run; everything that a resumed run needs is in `state`."""

    def __init__(self, recipe: Recipe, vocabulary: Vocabulary, crew: Crew) -> None:
        self.recipe, self.vocabulary = recipe, vocabulary
        self.device, self._crew = crew.device, crew
        torch.manual_seed(recipe.training.seed)
        self.network = Network(recipe.config(len(vocabulary))).to(crew.device)
        self.optimizers = Optimizers(self.network, recipe.optimizer, recipe.training.steps)
        self.scale = LossScale(len(recipe.data.tasks), recipe.training.loss_scale)
        self.progress = Progress()
        self.forward: Callable[[Tensor, Tensor, Layout], Tensor] = self.network
        if recipe.training.compile:
            self.forward = torch.compile(self.network, dynamic=True)

    def step(self, batch: Batch) -> StepResult:
        """Train on one batch, this process's part of it."""
        count = len(self.recipe.data.tasks)
        whole = self._crew.total(np.array(_sizes(batch.samples)))
        total, targets = np.zeros(count), np.zeros(count)
        factors = torch.from_numpy(self.scale.factors).float().to(self.device)
        for part in _micro_batches(batch, self.recipe.training.micro_tokens):
            means, numbers = self._losses(part)
            loss = (means * factors * numbers / float(whole[0])).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            total += gathered(means * numbers)
            targets += gathered(numbers)
        self._crew.add_gradients(self.network)
        self.optimizers.step(self.progress.step)
        total, targets = self._crew.total(total), self._crew.total(targets)
        result = StepResult(total / np.maximum(targets, 1), targets, int(whole[1]), int(whole[2]))
        self._count(result)
        return result

    def _count(self, result: StepResult) -> None:
        warmup = round(self.recipe.optimizer.warmup * self.recipe.training.steps)
        if self.progress.step < warmup:
            self.scale.observe(result.losses, result.targets)
        self.progress.since(result.losses, result.targets)
        self.progress.step += 1
        self.progress.tokens += result.tokens
        if self.progress.step == warmup:
            self.scale.settle()

    def _losses(self, part: Batch) -> tuple[Tensor, Tensor]:
        with self._precision():
            hidden, targets = self._hidden(part.samples)
            said = predict(self.network, hidden, targets)
        losses = token_losses(self.network, said, targets, self.recipe.training.number_loss)
        task = torch.from_numpy(part.task).to(self.device)[targets.sample]
        return by_task(losses, task, len(self.recipe.data.tasks))

    def _hidden(self, samples: Samples) -> tuple[Tensor, Targets]:
        tokens = torch.from_numpy(samples.tokens).to(self.device)
        codes = torch.from_numpy(samples.codes).to(self.device)
        layout = Layout.of(samples.lengths, self.device)
        return self.forward(tokens, codes, layout), Targets.of(samples, self.device)

    @torch.no_grad()
    def judge(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Score and exact match of each sample, as `validation.scores`."""
        results = []
        for part in _micro_batches(batch, self.recipe.training.micro_tokens):
            with self._precision():
                hidden, targets = self._hidden(part.samples)
                said = predict(self.network, hidden, targets)
            names = [self.recipe.data.tasks[task] for task in part.task]
            results.append(scores(said, targets, names, self.vocabulary))
        score, exact = (np.concatenate(column) for column in zip(*results, strict=True))
        return score, exact

    def _precision(self) -> Any:
        if self.recipe.training.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def rate(self) -> float:
        """The learning rate as a share of its peak."""
        return schedule(
            self.progress.step, self.recipe.training.steps, self.recipe.optimizer.warmup
        )

    def zeta(self, level: int, hardest: int) -> float:
        """ζ of a level today."""
        if not self.recipe.data.falling_threshold:
            return THRESHOLD
        steps, warmup = self.recipe.training.steps, self.recipe.optimizer.warmup
        rising = self.progress.step < round(warmup * steps)
        return threshold(
            level,
            hardest,
            step=self.progress.step,
            last=steps,
            rate=1.0 if rising else self.rate(),
            peak=1.0,
            turn=schedule(round(FALL * steps), steps, warmup),
        )


def _micro_batches(batch: Batch, tokens: int) -> list[Batch]:
    """The batch in passes of about so many tokens each; 0: in one."""
    if not tokens or len(batch.samples.tokens) <= tokens:
        return [batch]
    ends = np.cumsum(batch.samples.lengths)
    part = (ends - 1) // tokens
    rows = [np.flatnonzero(part == number) for number in np.unique(part)]
    return [Batch(batch.samples.take(r), batch.task[r], batch.level[r]) for r in rows]


def _sizes(samples: Samples) -> tuple[int, int, int]:
    """Targets, tokens, and pairs of tokens, one of which attends to the other."""
    lengths = samples.lengths
    pairs = lengths * (lengths + 1) // 2
    return int((lengths - samples.questions).sum()), len(samples.tokens), int(pairs.sum())
