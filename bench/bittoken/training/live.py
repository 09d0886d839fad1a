"""Progress of a training on stderr: a live table on a terminal, occasional lines in a log."""

from __future__ import annotations

import os
import time
from collections import deque
from collections.abc import Callable, Iterator, Mapping
from contextlib import contextmanager
from dataclasses import dataclass
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, NamedTuple

import numpy as np

from bittoken.training import flops
from bittoken.training.metrics_log import LogEntry
from bittoken.training.recipe import Recipe, task_display_name
from bittoken.training.trainer import StepResult, Trainer
from numbench.errors import printable
from numbench.progress_display import (
    NO_VALUE,
    SEPARATOR,
    ProgressFormat,
    format_duration,
    format_percent,
    progress_table,
    short_count,
    show_states,
)

if TYPE_CHECKING:
    from rich.console import RenderableType
    from rich.table import Table

_STOPPING_MESSAGE = "stopping after this step and saving; press Ctrl-C again to exit at once"

_LOSS_DECAY = 0.95
"""Decay per step of the displayed running losses."""

_SPEED_WINDOW_SECONDS = 60.0
"""The window over which speed is measured, including validations and saving."""

_EMPTY: Mapping[str, Any] = MappingProxyType({})


@dataclass(frozen=True)
class TrainingCallbacks:
    """Functions that `train` calls after every step and every log entry."""

    on_step: Callable[[Trainer, StepResult], None] = lambda trainer, result: None
    on_log_entry: Callable[[LogEntry], None] = lambda entry: None


@contextmanager
def show_progress(recipe: Recipe, stopping: Callable[[], bool]) -> Iterator[TrainingCallbacks]:
    """Yield callbacks that show the training on stderr, as a table or as log lines.

    stopping: whether a stop has been requested. Only the main process prints.
    """
    if os.environ.get("RANK", "0") != "0":
        yield TrainingCallbacks()
        return
    meter = ProgressMeter(recipe)
    with show_states(recipe.name, progress_format(recipe.name)) as show:

        def on_log_entry(entry: LogEntry) -> None:
            meter.on_log_entry(entry)
            show(meter.snapshot._replace(stopping=stopping()))

        def on_step(trainer: Trainer, result: StepResult) -> None:
            meter.on_step(trainer, result)
            show(meter.snapshot._replace(stopping=stopping()))

        yield TrainingCallbacks(on_step, on_log_entry)


class ProgressSnapshot(NamedTuple):
    """The progress of a training at one moment.

    seconds: elapsed since the start of this process. losses: running mean over predicted tokens, by
    task. flop_utilization: share of the devices' peak (model FLOPs utilization). last_validation:
    its log entry. start_entry: the log entry of this start. best: highest harmonic mean, at
    `best_step`. stopping: whether a stop has been requested.
    """

    step: int
    total_steps: int
    tokens: int
    seconds: float = 0.0
    losses: Mapping[str, float] = _EMPTY
    tokens_per_second: float | None = None
    remaining_seconds: float | None = None
    flop_utilization: float | None = None
    last_validation: Mapping[str, Any] = _EMPTY
    start_entry: Mapping[str, Any] = _EMPTY
    best: float | None = None
    best_step: int = 0
    stopping: bool = False


class ProgressMeter:
    """Computes the snapshot from steps and log entries."""

    def __init__(self, recipe: Recipe, clock: Callable[[], float] = time.monotonic) -> None:
        self._recipe, self._clock = recipe, clock
        self._start_time = clock()
        tasks = len(recipe.data.tasks)
        self._losses, self._targets = np.zeros(tasks), np.zeros(tasks)
        # Time, step, tokens and operations at recent steps.
        self._marks: deque[tuple[float, int, int, float]] = deque()
        self._flops = 0.0
        self._sizes: flops.ParameterCounts | None = None
        self.snapshot = ProgressSnapshot(0, recipe.training.steps, 0)

    def on_log_entry(self, entry: LogEntry) -> None:
        """Update the snapshot with a log entry."""
        if "tasks" not in entry:
            self.snapshot = self.snapshot._replace(start_entry=entry, step=entry["step"])
            return
        self.snapshot = self.snapshot._replace(last_validation=entry)
        mean, best = entry["harmonic_mean"], self.snapshot.best
        if best is None or mean >= best:
            self.snapshot = self.snapshot._replace(best=mean, best_step=entry["step"])

    def on_step(self, trainer: Trainer, result: StepResult) -> None:
        """Update the snapshot with a step."""
        if self._sizes is None:
            self._sizes = flops.ParameterCounts.of(trainer.network)
        progress = trainer.progress
        self._flops += flops.step_flops(self._recipe, self._sizes, result)
        self._losses = _LOSS_DECAY * self._losses + result.losses * result.target_counts
        self._targets = _LOSS_DECAY * self._targets + result.target_counts
        tasks = zip(self._recipe.data.tasks, self._losses, self._targets, strict=True)
        self.snapshot = self.snapshot._replace(
            step=progress.step,
            tokens=progress.tokens,
            seconds=self._clock() - self._start_time,
            losses={task: float(loss / count) for task, loss, count in tasks if count > 0},
            best=progress.best if progress.best_step else None,
            best_step=progress.best_step,
            **self._speed(progress.step, progress.tokens),
        )

    def _speed(self, step: int, tokens: int) -> dict[str, Any]:
        """Return speed, remaining time and utilization, from the steps of the last minute."""
        marks, time_now = self._marks, self._clock()
        marks.append((time_now, step, tokens, self._flops))
        while len(marks) > 2 and time_now - marks[1][0] >= _SPEED_WINDOW_SECONDS:
            marks.popleft()
        first_time, first_step, first_tokens, first_flops = marks[0]
        seconds = time_now - first_time
        if seconds <= 0:
            return {}
        start = self.snapshot.start_entry
        peak = flops.peak_flops(start.get("device", ""), self._recipe.training.precision)
        used = (self._flops - first_flops) / seconds
        steps_left = self._recipe.training.steps - step
        return {
            "tokens_per_second": (tokens - first_tokens) / seconds,
            "remaining_seconds": steps_left * seconds / (step - first_step),
            "flop_utilization": used / (peak * start.get("processes", 1)) if peak else None,
        }


def progress_format(name: str) -> ProgressFormat[ProgressSnapshot]:
    """Return how a training is shown in a log and on a terminal."""
    return ProgressFormat(
        line=log_line,
        table=lambda now, ended: training_view(name, now, ended),
        has_news=lambda now: now.tokens_per_second is not None,
        notices=lambda now: (
            SEPARATOR.join(_start_parts(now)),
            _STOPPING_MESSAGE if now.stopping else "",
        ),
        is_urgent=lambda now: now.stopping,
    )


def log_line(now: ProgressSnapshot, ended: bool = False) -> str:
    """Return the progress with the score of each task in the last validation."""
    scores = [
        f"{task_display_name(task)} {format_percent(metrics['score'])}"
        for task, metrics in now.last_validation.get("tasks", {}).items()
    ]
    line = progress_line(now, ended)
    return SEPARATOR.join([line, ", ".join(scores)]) if scores else line


def progress_line(now: ProgressSnapshot, ended: bool = False) -> str:
    """Return the snapshot as one line of text, without the remaining time if it has `ended`."""
    parts = [f"step {now.step:,} of {now.total_steps:,}", f"{short_count(now.tokens)} tokens"]
    if now.remaining_seconds is not None and not ended:
        parts.append(f"{format_duration(now.remaining_seconds)} remaining")
    parts.append(f"{format_duration(now.seconds)} elapsed")
    if now.tokens_per_second is not None:
        parts.append(f"{short_count(now.tokens_per_second)} tokens/s")
    if now.flop_utilization is not None:
        parts.append(f"MFU {now.flop_utilization:.0%}")
    if now.last_validation:
        parts.append(f"harmonic mean {format_percent(now.last_validation['harmonic_mean'])}")
    if now.best is not None:
        parts.append(f"best {format_percent(now.best)} at step {now.best_step:,}")
    return SEPARATOR.join(parts)


def training_view(name: str, now: ProgressSnapshot, ended: bool = False) -> RenderableType:
    """Return what a terminal shows: heading, progress bar, progress, and a row per task."""
    from rich.console import Group
    from rich.progress_bar import ProgressBar
    from rich.table import Table
    from rich.text import Text

    heading = printable(SEPARATOR.join([name, *_start_parts(now)]))
    bar = Table.grid(expand=True)
    bar.add_column(ratio=1)
    bar.add_row(ProgressBar(now.total_steps, now.step))
    stopping = [Text(_STOPPING_MESSAGE)] if now.stopping and not ended else []
    return Group(
        Text(heading, style="bold", no_wrap=True, overflow="ellipsis"),
        bar,
        Text(progress_line(now, ended)),
        *stopping,
        _task_table(now),
    )


def _start_parts(now: ProgressSnapshot) -> list[str]:
    entry = now.start_entry
    if not entry:
        return []
    processes = entry["processes"]
    device = entry["device"] if processes == 1 else f"{processes} × {entry['device']}"
    resumed = [f"resumed after step {entry['step']:,}"] if entry["step"] else []
    return [*resumed, f"{short_count(entry['parameters'])} parameters", device]


def _task_table(now: ProgressSnapshot) -> Table:
    """Return the loss of each task, and its metrics in the last validation."""
    table = progress_table(80)
    table.add_column("Task", no_wrap=True)
    for heading in ("Loss", "Score", "Exact", "Chance", "Share", "Unlocked levels"):
        table.add_column(heading, justify="right")
    shares, chances = now.last_validation.get("ratio", {}), now.start_entry.get("chance", {})
    for task, loss in now.losses.items():
        metrics = now.last_validation.get("tasks", {}).get(task, {})
        percentages = (
            metrics.get("score"),
            metrics.get("exact"),
            chances.get(task) or None,
            shares.get(task),
        )
        has_curriculum = "frontier" in metrics
        table.add_row(
            task_display_name(task),
            f"{loss:.3f}",
            *(format_percent(share) for share in percentages),
            f"{metrics['frontier'] + 1} of {metrics['levels']}" if has_curriculum else NO_VALUE,
        )
    return table
