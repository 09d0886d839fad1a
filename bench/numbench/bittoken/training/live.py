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

from numbench.bittoken.training import flops
from numbench.bittoken.training.metrics_log import LogEntry
from numbench.bittoken.training.recipe import Recipe, task_display_name
from numbench.bittoken.training.trainer import StepResult, Trainer
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
    wrap_parts,
)

if TYPE_CHECKING:
    from rich.console import Console, ConsoleOptions, RenderResult
    from rich.table import Table

_STOPPING_MESSAGE = "stopping after this step and saving; press Ctrl-C again to exit at once"


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

        def measured(line: LogEntry) -> None:
            meter.on_log_entry(line)
            show(meter.snapshot._replace(stopping=stopping()))

        def step(trainer: Trainer, done: StepResult) -> None:
            meter.on_step(trainer, done)
            show(meter.snapshot._replace(stopping=stopping()))

        yield TrainingCallbacks(step, measured)


def progress_format(name: str) -> ProgressFormat[ProgressSnapshot]:
    """Return how a training is shown in a log and on a terminal."""
    return ProgressFormat(
        line=progress_line,
        table=lambda now, ended: TrainingTable(name, now, ended),
        has_news=lambda now: now.tokens_per_second is not None,
        notices=lambda now: (
            SEPARATOR.join(_start_parts(now)),
            _STOPPING_MESSAGE if now.stopping else "",
        ),
        is_urgent=lambda now: now.stopping,
    )


class TrainingTable(NamedTuple):
    """The view of `TerminalDisplay`: as wide as the terminal, without tasks if it is too low."""

    name: str
    now: ProgressSnapshot
    ended: bool = False

    def __rich_console__(self, console: Console, options: ConsoleOptions) -> RenderResult:
        """Render heading, progress bar, speed, a row per task, and the last validation."""
        from rich.progress_bar import ProgressBar
        from rich.segment import Segment
        from rich.text import Text

        now, width = self.now, options.max_width
        above = wrap_parts([*_position_parts(now), *_speed_parts(now, self.ended)], width)
        stopping = now.stopping and not self.ended
        below = wrap_parts([_STOPPING_MESSAGE] if stopping else _validation_parts(now), width)
        heading = SEPARATOR.join([self.name, *_start_parts(now)])
        yield Text(printable(heading), style="bold", no_wrap=True, overflow="ellipsis")
        yield ProgressBar(now.total_steps, now.step, width=width)
        yield Segment.line()
        for text in above:
            yield Text(text, no_wrap=True, overflow="ellipsis")
        # Plus heading, bar, column names, and the cursor's line.
        lines = len(now.losses) + len(above) + len(below) + 4
        if now.losses and (self.ended or lines <= console.size.height):
            yield _table(now, width)
        for text in below:
            yield Text(text, no_wrap=True, overflow="ellipsis")


def progress_line(now: ProgressSnapshot, ended: bool = False) -> str:
    """Return the snapshot as one line of text, without the remaining time if it has `ended`."""
    scores = [
        f"{task_display_name(task)} {format_percent(metrics['score'])}"
        for task, metrics in now.last_validation.get("tasks", {}).items()
    ]
    parts = [*_position_parts(now), *_speed_parts(now, ended)]
    return SEPARATOR.join([*parts, ", ".join(scores)] if scores else parts)


def _start_parts(now: ProgressSnapshot) -> list[str]:
    entry = now.start_entry
    if not entry:
        return []
    processes = entry["processes"]
    device = entry["device"] if processes == 1 else f"{processes} × {entry['device']}"
    resumed = [f"resumed after step {entry['step']:,}"] if entry["step"] else []
    return [*resumed, f"{short_count(entry['parameters'])} parameters", device]


def _position_parts(now: ProgressSnapshot) -> list[str]:
    return [
        f"{short_count(now.tokens)} of {short_count(now.total_tokens)} tokens",
        f"step {now.step:,} of {now.total_steps:,}",
    ]


def _speed_parts(now: ProgressSnapshot, ended: bool) -> list[str]:
    parts = []
    if now.remaining_seconds is not None and not ended:
        parts.append(f"{format_duration(now.remaining_seconds)} remaining")
    parts.append(f"{format_duration(now.seconds)} elapsed")
    if now.tokens_per_second is not None:
        parts.append(f"{short_count(now.tokens_per_second)} tokens/s")
    if now.flop_utilization is not None:
        parts.append(f"MFU {now.flop_utilization:.0%}")
    if now.loss is not None:
        parts += [
            f"loss {now.loss:.3f}",
            f"learning rate {now.learning_rate_multiplier:.0%} of peak",
        ]
    return parts


def _validation_parts(now: ProgressSnapshot) -> list[str]:
    if not now.last_validation:
        return []
    parts = [f"validated at step {now.last_validation['step']:,}"]
    parts.append(f"harmonic mean {format_percent(now.last_validation['harmonic_mean'])}")
    if now.best is not None and now.best_step:
        parts.append(f"best {format_percent(now.best)} at step {now.best_step:,}")
    return parts


class _Row(NamedTuple):
    """One task: its loss, the metrics of its last validation, its share and its chance level."""

    task: str
    loss: float
    metrics: dict[str, Any]
    share: float | None
    chance: float | None


_COLUMNS: tuple[tuple[str, Callable[[_Row], str], int], ...] = (
    ("Loss", lambda row: f"{row.loss:.3f}", 34),
    ("Score", lambda row: format_percent(row.metrics.get("score")), 0),
    ("Exact", lambda row: format_percent(row.metrics.get("exact")), 0),
    ("Chance", lambda row: format_percent(row.chance) if row.chance else NO_VALUE, 42),
    ("Share", lambda row: format_percent(row.share), 50),
    ("Unlocked", lambda row: _format_unlocked_levels(row.metrics), 64),
    ("Unlocked score", lambda row: format_percent(row.metrics.get("opened_score")), 76),
)
"""Heading, format and minimum terminal width of each column."""


def _table(now: ProgressSnapshot, width: int) -> Table:
    """Return the table of tasks with the columns that fit into `width` characters."""
    table = progress_table(width)
    table.add_column("Task", no_wrap=True)
    columns = [(name, figure) for name, figure, needs in _COLUMNS if width >= needs]
    for name, _ in columns:
        table.add_column(name, justify="right", no_wrap=True)
    metrics, shares = now.last_validation.get("tasks", {}), now.last_validation.get("ratio", {})
    for task, loss in now.losses.items():
        chance = now.start_entry.get("chance", {}).get(task)
        row = _Row(task, loss, metrics.get(task, {}), shares.get(task), chance)
        table.add_row(task_display_name(task), *(figure(row) for _, figure in columns))
    return table


def _format_unlocked_levels(metrics: dict[str, Any]) -> str:
    if "frontier" not in metrics:
        return NO_VALUE
    return f"{metrics['frontier'] + 1} of {metrics['levels']}"


_LOSS_DECAY = 0.95
"""Decay per step of the displayed running losses."""

_SPEED_WINDOW_SECONDS = 60.0
"""The window over which speed is measured, including validations and saving."""

_EMPTY: Mapping[str, Any] = MappingProxyType({})


class ProgressSnapshot(NamedTuple):
    """The progress of a training at one moment.

    seconds: elapsed since the start of this process. learning_rate_multiplier: the learning rate as
    a share of its peak. loss: running mean over predicted tokens; losses: the same by task.
    flop_utilization: share of the devices' peak (model FLOPs utilization). last_validation: its log
    entry. start_entry: the log entry of this start. best: highest harmonic mean, at `best_step`.
    stopping: whether a stop has been requested.
    """

    step: int
    total_steps: int
    tokens: int
    total_tokens: int
    seconds: float = 0.0
    learning_rate_multiplier: float = 0.0
    loss: float | None = None
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
        self.snapshot = ProgressSnapshot(0, recipe.training.steps, 0, recipe.training.tokens)

    def on_log_entry(self, entry: LogEntry) -> None:
        """Update the snapshot with a log entry."""
        if "tasks" in entry:
            self.snapshot = self.snapshot._replace(last_validation=entry)
            return
        self.snapshot = self.snapshot._replace(start_entry=entry, step=entry["step"])

    def on_step(self, trainer: Trainer, result: StepResult) -> None:
        """Update the snapshot with a step."""
        if self._sizes is None:
            self._sizes = flops.ParameterCounts.of(trainer.network)
        progress = trainer.progress
        self._flops += flops.step_flops(self._recipe, self._sizes, result)
        self._losses = _LOSS_DECAY * self._losses + result.losses * result.target_counts
        self._targets = _LOSS_DECAY * self._targets + result.target_counts
        speed = self._speed(progress.step, progress.tokens)
        self.snapshot = self.snapshot._replace(
            step=progress.step,
            tokens=progress.tokens,
            seconds=self._clock() - self._start_time,
            learning_rate_multiplier=trainer.learning_rate_multiplier(),
            loss=float(self._losses.sum() / max(self._targets.sum(), 1e-9)),
            losses=self._mean_losses(),
            best=progress.best if progress.best_step else None,
            best_step=progress.best_step,
            **speed,
        )

    def _mean_losses(self) -> dict[str, float]:
        tasks = zip(self._recipe.data.tasks, self._losses, self._targets, strict=True)
        return {task: float(loss / count) for task, loss, count in tasks if count > 0}

    def _speed(self, step: int, tokens: int) -> dict[str, Any]:
        """Return speed, remaining time and utilization, from the steps of the last minute."""
        marks, time_now = self._marks, self._clock()
        marks.append((time_now, step, tokens, self._flops))
        while len(marks) > 2 and time_now - marks[1][0] >= _SPEED_WINDOW_SECONDS:
            marks.popleft()
        first_time, first_step, first_tokens, first_flops = marks[0]
        seconds = time_now - first_time
        if seconds <= 0:
            return {"tokens_per_second": None, "remaining_seconds": None, "flop_utilization": None}
        start = self.snapshot.start_entry
        peak = flops.peak_flops(start.get("device", ""), self._recipe.training.precision)
        used = (self._flops - first_flops) / seconds
        steps_left = self._recipe.training.steps - step
        return {
            "tokens_per_second": (tokens - first_tokens) / seconds,
            "remaining_seconds": steps_left * seconds / (step - first_step),
            "flop_utilization": used / (peak * start.get("processes", 1)) if peak else None,
        }
