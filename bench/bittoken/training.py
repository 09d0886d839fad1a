"""The training loop: batches in, checkpoints and a metrics log out."""

from __future__ import annotations

import time
from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bench.bittoken.attention import Layout
from bench.bittoken.balance import generalized_mean
from bench.bittoken.curriculum import FALL, threshold
from bench.bittoken.losses import LossScale, Targets, by_task, predict, token_losses
from bench.bittoken.mixture import Batch, Feed, Mixture
from bench.bittoken.network import Network
from bench.bittoken.optimizers import Optimizers, schedule
from bench.bittoken.packing import Samples
from bench.bittoken.recipe import Recipe
from bench.bittoken.validation import gathered, scores
from bench.bittoken.vocabulary import Vocabulary

Metrics = dict[str, Any]


class StepResult(NamedTuple):
    """Mean loss of each task in one step, unscaled, and its number of targets."""

    losses: np.ndarray
    targets: np.ndarray
    tokens: int


@dataclass
class Progress:
    """How far a training has come. best: the highest harmonic mean so far, and its step."""

    step: int = 0
    tokens: int = 0
    seconds: float = 0.0
    best: float = -1.0
    best_step: int = 0


class Trainer:
    """One process's part of a training run; everything that a resumed run needs is in `state`."""

    def __init__(
        self, recipe: Recipe, vocabulary: Vocabulary, device: torch.device, world: int = 1
    ) -> None:
        self.recipe, self.vocabulary, self.device, self._world = recipe, vocabulary, device, world
        torch.manual_seed(recipe.training.seed)
        self.network = Network(recipe.config(len(vocabulary))).to(device)
        self.optimizers = Optimizers(
            self.network, recipe.optimizer, recipe.training.steps
        )
        self.scale = LossScale(len(recipe.data.tasks), recipe.training.loss_scale)
        self.progress = Progress()
        self.forward: Callable[[Tensor, Tensor, Layout], Tensor] = self.network
        if recipe.training.compile:
            self.forward = torch.compile(self.network, dynamic=True)

    def step(self, batch: Batch) -> StepResult:
        """Train on one batch."""
        training, count = self.recipe.training, len(self.recipe.data.tasks)
        total, targets = np.zeros(count), np.zeros(count)
        parts = _micro_batches(batch, training.micro_tokens)
        whole = sum(int((part.samples.lengths - part.samples.questions).sum()) for part in parts)
        factors = torch.from_numpy(self.scale.factors).float().to(self.device)
        for part in parts:
            means, numbers = self._losses(part)
            (means * factors * numbers / whole).sum().backward()
            total += gathered(means * numbers)
            targets += gathered(numbers)
        self.optimizers.step(self.progress.step)
        result = StepResult(total / np.maximum(targets, 1), targets, len(batch.samples.tokens))
        self._count(result)
        return result

    def _count(self, result: StepResult) -> None:
        warmup = round(self.recipe.optimizer.warmup * self.recipe.training.steps)
        if self.progress.step < warmup:
            self.scale.observe(result.losses, result.targets)
        self.progress.step += 1
        self.progress.tokens += result.tokens * self._world
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
        return tuple(np.concatenate(column) for column in zip(*results, strict=True))  # type: ignore

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
        steps, warmup = self.recipe.training.steps, self.recipe.optimizer.warmup
        return threshold(
            level,
            hardest,
            step=self.progress.step,
            last=steps,
            rate=self.rate(),
            peak=1.0,
            turn=schedule(round(FALL * steps), steps, warmup),
        )


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


def _micro_batches(batch: Batch, tokens: int) -> list[Batch]:
    """The batch in passes of about so many tokens each; 0: in one."""
    if not tokens or len(batch.samples.tokens) <= tokens:
        return [batch]
    ends = np.cumsum(batch.samples.lengths)
    part = (ends - 1) // tokens
    rows = [np.flatnonzero(part == number) for number in np.unique(part)]
    return [Batch(batch.samples.take(r), batch.task[r], batch.level[r]) for r in rows]


def now() -> float:
    """Seconds on a clock that only goes forward."""
    return time.perf_counter()
