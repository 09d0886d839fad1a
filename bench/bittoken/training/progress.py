"""Where a training stands, as its displays show it."""

from __future__ import annotations

import time
from collections import deque
from collections.abc import Callable, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import numpy as np

from bench.bittoken.training import flops
from bench.bittoken.training.log import Line
from bench.bittoken.training.recipe import Recipe
from bench.bittoken.training.trainer import StepResult, Trainer

_KEPT = 0.95
"""How much of the losses shown is from before the last step."""

_WINDOW = 60.0
"""Seconds over which the pace is taken, validations and savings included."""


_NOTHING: Mapping[str, Any] = MappingProxyType({})


class Now(NamedTuple):
    """Where a training stands.

    seconds: since this call began. learning: the learning rate as a share of its peak. loss: mean
    over predicted tokens of the last steps; losses: the same by task. speed: tokens per second.
    left: seconds. used: share of the card's peak. measured: the log line of the last validation;
    about: the log's first line. best: highest harmonic mean, at `best_step`.
    """

    step: int
    steps: int
    tokens: int
    budget: int
    seconds: float = 0.0
    learning: float = 0.0
    loss: float | None = None
    losses: Mapping[str, float] = _NOTHING
    speed: float | None = None
    left: float | None = None
    used: float | None = None
    measured: Mapping[str, Any] = _NOTHING
    about: Mapping[str, Any] = _NOTHING
    best: float | None = None
    best_step: int = 0


class Meter:
    """Takes in steps and log lines; tells where the training stands."""

    def __init__(self, recipe: Recipe, clock: Callable[[], float] = time.monotonic) -> None:
        self._recipe, self._clock = recipe, clock
        self._began = clock()
        tasks = len(recipe.data.tasks)
        self._losses, self._targets = np.zeros(tasks), np.zeros(tasks)
        # Time, step, tokens and operations up to then.
        self._marks: deque[tuple[float, int, int, float]] = deque()
        self._flops = 0.0
        self._sizes: flops.Sizes | None = None
        self.now = Now(0, recipe.training.steps, 0, recipe.training.tokens)

    def heard(self, line: Line) -> None:
        """Take in a line of the log."""
        if "tasks" in line:
            self.now = self.now._replace(measured=line)
            return
        self.now = self.now._replace(about=line, step=line["step"])

    def stepped(self, trainer: Trainer, done: StepResult) -> None:
        """Take in a step."""
        if self._sizes is None:
            self._sizes = flops.Sizes.of(trainer.network)
        progress = trainer.progress
        self._flops += flops.step_flops(self._recipe, self._sizes, done)
        self._losses = _KEPT * self._losses + done.losses * done.targets
        self._targets = _KEPT * self._targets + done.targets
        pace = self._pace(progress.step, progress.tokens)
        self.now = self.now._replace(
            step=progress.step,
            tokens=progress.tokens,
            seconds=self._clock() - self._began,
            learning=trainer.rate(),
            loss=float(self._losses.sum() / max(self._targets.sum(), 1e-9)),
            losses=self._by_task(),
            best=progress.best if progress.best_step else None,
            best_step=progress.best_step,
            **pace,
        )

    def _by_task(self) -> dict[str, float]:
        tasks = zip(self._recipe.data.tasks, self._losses, self._targets, strict=True)
        return {task: float(loss / count) for task, loss, count in tasks if count > 0}

    def _pace(self, step: int, tokens: int) -> dict[str, Any]:
        """Speed, time left and use of the card, from the steps of the last minute."""
        marks, now = self._marks, self._clock()
        marks.append((now, step, tokens, self._flops))
        while len(marks) > 2 and now - marks[1][0] >= _WINDOW:
            marks.popleft()
        then, first, before, flops_before = marks[0]
        seconds = now - then
        if seconds <= 0:
            return {"speed": None, "left": None, "used": None}
        left = (self._recipe.training.steps - step) * seconds / (step - first)
        speed = (tokens - before) / seconds
        device, processes = self.now.about.get("device", ""), self.now.about.get("processes", 1)
        peak = flops.peak(device, self._recipe.training.precision)
        used = (self._flops - flops_before) / seconds / (peak * processes) if peak else None
        return {"speed": speed, "left": left, "used": used}
