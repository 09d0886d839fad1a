"""One training step: losses, gradients and the optimiser, on one process of a training."""

from __future__ import annotations

from collections.abc import Callable
from contextlib import nullcontext
from dataclasses import dataclass, field
from typing import Any, NamedTuple

import numpy as np
import torch
from torch import Tensor

from bittoken.attention import PackedLayout
from bittoken.data.packing import Samples
from bittoken.network import Network
from bittoken.training.curriculum import (
    MAX_THRESHOLD,
    THRESHOLD_DECAY_START,
    advance_threshold,
)
from bittoken.training.distributed import DistributedContext
from bittoken.training.losses import (
    LossScale,
    Targets,
    mean_loss_by_task,
    predict,
    token_losses,
)
from bittoken.training.mixture import Batch
from bittoken.training.optimizers import Optimizers, learning_rate_share
from bittoken.training.recipe import Recipe
from bittoken.training.teacher_forcing import teacher_forced_scores, to_numpy
from bittoken.vocabulary import Vocabulary

CONFIRMING_VALIDATIONS = 2
"""The number of consecutive validations that must reach `stop_exact`."""


class StepResult(NamedTuple):
    """The result of one step, over all processes.

    losses: mean unscaled loss of each task, (tasks,). target_counts: its targets, (tasks,).
    tokens: tokens of the batch. attention_pairs: pairs of tokens, one of which attends to the
    other. questions: samples of the batch.
    """

    losses: np.ndarray
    target_counts: np.ndarray
    tokens: int
    attention_pairs: int
    questions: int


@dataclass
class TrainerProgress:
    """The progress of a training; its fields are saved with the state.

    questions, tokens: samples and tokens so far. seconds, cpu_seconds: elapsed time, and CPU time
    of all threads of the main process. best, best_step, best_tokens: the highest harmonic mean so
    far, its step, and the tokens up to it. successes: the number of consecutive validations, up to
    the last one, that reached `stop_exact`. losses, targets: each task's summed loss and number of
    targets since the last validation.
    """

    step: int = 0
    questions: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    best: float = -1.0
    best_step: int = 0
    best_tokens: int = 0
    successes: int = 0
    losses: list[float] = field(default_factory=list)
    targets: list[float] = field(default_factory=list)

    def add_losses(self, losses: np.ndarray, targets: np.ndarray) -> None:
        """Add the mean losses and the target counts of a step."""
        sums = np.array(self.losses or np.zeros(len(losses)))
        self.losses = (sums + losses * targets).tolist()
        self.targets = (np.array(self.targets or np.zeros(len(losses))) + targets).tolist()


class Trainer:
    """One process's network, optimisers, loss scale and progress."""

    def __init__(
        self, recipe: Recipe, vocabulary: Vocabulary, distributed: DistributedContext
    ) -> None:
        self.recipe, self.vocabulary = recipe, vocabulary
        self.device, self._distributed = distributed.device, distributed
        torch.manual_seed(recipe.training.seed)
        self.network = Network(recipe.config(len(vocabulary))).to(distributed.device)
        self.optimizers = Optimizers(self.network, recipe.optimizer, recipe.training.steps)
        self.loss_scale = LossScale(len(recipe.data.tasks), recipe.training.loss_scale)
        self.progress = TrainerProgress()
        self.forward: Callable[[Tensor, Tensor, PackedLayout], Tensor] = self.network
        if recipe.training.compile:
            self.forward = torch.compile(self.network, dynamic=True)

    def step(self, batch: Batch) -> StepResult:
        """Train on this process's part of one batch and return the result over all processes."""
        reduce = self._distributed.all_reduce_sum
        task_count = len(self.recipe.data.tasks)
        targets, tokens, pairs, questions = reduce(np.array(_sizes(batch.samples))).tolist()
        loss_sums, target_counts = np.zeros(task_count), np.zeros(task_count)
        factors = torch.from_numpy(self.loss_scale.factors).float().to(self.device)
        for micro_batch in _micro_batches(batch, self.recipe.training.micro_tokens):
            means, counts = self._losses(micro_batch)
            loss = (means * factors * counts / float(targets)).sum()
            loss.backward()  # type: ignore[no-untyped-call]
            loss_sums += to_numpy(means * counts)
            target_counts += to_numpy(counts)
        self._distributed.all_reduce_gradients(self.network)
        self.optimizers.step(self.progress.step)
        loss_sums, target_counts = reduce(loss_sums), reduce(target_counts)
        losses = loss_sums / np.maximum(target_counts, 1)
        result = StepResult(losses, target_counts, int(tokens), int(pairs), int(questions))
        self._update_progress(result)
        return result

    def _update_progress(self, result: StepResult) -> None:
        warmup_steps = round(self.recipe.optimizer.warmup * self.recipe.training.steps)
        if self.progress.step < warmup_steps:
            self.loss_scale.observe(result.losses, result.target_counts)
        self.progress.add_losses(result.losses, result.target_counts)
        self.progress.step += 1
        self.progress.questions += result.questions
        self.progress.tokens += result.tokens
        if self.progress.step == warmup_steps:
            self.loss_scale.freeze()

    def _losses(self, micro_batch: Batch) -> tuple[Tensor, Tensor]:
        with self._precision():
            hidden, targets = self._hidden(micro_batch.samples)
            predictions = predict(self.network, hidden, targets)
        losses = token_losses(self.network, predictions, targets, self.recipe.training.number_loss)
        task = torch.from_numpy(micro_batch.task).to(self.device)[targets.sample]
        return mean_loss_by_task(losses, task, len(self.recipe.data.tasks))

    def _hidden(self, samples: Samples) -> tuple[Tensor, Targets]:
        tokens = torch.from_numpy(samples.tokens).to(self.device)
        codes = torch.from_numpy(samples.codes).to(self.device)
        layout = PackedLayout.from_lengths(samples.lengths, self.device)
        return self.forward(tokens, codes, layout), Targets.of(samples, self.device)

    @torch.no_grad()
    def score_samples(self, batch: Batch) -> tuple[np.ndarray, np.ndarray]:
        """Return score and exact match of each sample, see `teacher_forced_scores`."""
        results = []
        for micro_batch in _micro_batches(batch, self.recipe.training.micro_tokens):
            with self._precision():
                hidden, targets = self._hidden(micro_batch.samples)
                predictions = predict(self.network, hidden, targets)
            names = [self.recipe.data.tasks[task] for task in micro_batch.task]
            results.append(teacher_forced_scores(predictions, targets, names, self.vocabulary))
        score, exact = (np.concatenate(column) for column in zip(*results, strict=True))
        return score, exact

    def _precision(self) -> Any:
        if self.recipe.training.precision == "float32":
            return nullcontext()
        return torch.autocast(self.device.type, torch.bfloat16)

    def learning_rate_multiplier(self) -> float:
        """Return the current learning rate as a share of its peak."""
        return self._learning_rate_share(self.progress.step)

    def _learning_rate_share(self, step: int) -> float:
        config = self.recipe.optimizer
        return learning_rate_share(step, self.recipe.training.steps, config.warmup, config.schedule)

    @property
    def has_reached_target(self) -> bool:
        """Whether enough consecutive validations reached `stop_exact`."""
        has_target = self.recipe.training.stop_exact > 0
        return has_target and self.progress.successes >= CONFIRMING_VALIDATIONS

    @property
    def min_unlocked_share(self) -> float:
        """The share of every curriculum's levels that must be unlocked at the current step.

        It rises linearly to 1 at `curriculum_end`.
        """
        end = self.recipe.data.curriculum_end
        if end is None:
            return 0.0
        done = self.progress.step / self.recipe.training.steps
        return min(done / end, 1.0) if end else 1.0

    def curriculum_threshold(self, level: int, hardest: int) -> float:
        """Return ζ of a level at the current step: the score that unlocks the next level."""
        if not self.recipe.data.falling_threshold:
            return MAX_THRESHOLD
        steps, warmup = self.recipe.training.steps, self.recipe.optimizer.warmup
        in_warmup = self.progress.step < round(warmup * steps)
        decay_start = round(THRESHOLD_DECAY_START * steps)
        return advance_threshold(
            level,
            hardest,
            step=self.progress.step,
            total_steps=steps,
            learning_rate=1.0 if in_warmup else self.learning_rate_multiplier(),
            peak_rate=1.0,
            decay_start_rate=self._learning_rate_share(decay_start),
        )


def _micro_batches(batch: Batch, tokens: int) -> list[Batch]:
    """Divide the batch into micro-batches of about `tokens` tokens; 0 means one."""
    if not tokens or len(batch.samples.tokens) <= tokens:
        return [batch]
    ends = np.cumsum(batch.samples.lengths)
    index = (ends - 1) // tokens
    rows = [np.flatnonzero(index == number) for number in np.unique(index)]
    return [Batch(batch.samples.take(r), batch.task[r], batch.level[r]) for r in rows]


def _sizes(samples: Samples) -> tuple[int, int, int, int]:
    """Return the numbers of targets, of tokens, of pairs of tokens that attend, and of samples."""
    lengths = samples.lengths
    pairs = lengths * (lengths + 1) // 2
    targets = int((lengths - samples.prompt_lengths).sum())
    return targets, len(samples.tokens), int(pairs.sum()), len(lengths)
