"""Run a training in a folder: start or resume it, validate, save, and stop on request."""

from __future__ import annotations

import os
import platform
import threading
import time
from collections.abc import Callable, Iterator
from contextlib import closing
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from filelock import FileLock, Timeout

from bittoken import checkpoint
from bittoken.training import state
from bittoken.training.batch_sources import BatchProcesses, BatchSource, BatchThread
from bittoken.training.distributed import DistributedContext
from bittoken.training.live import TrainingCallbacks, show_progress
from bittoken.training.metrics_log import METRICS_FILE, LogEntry, MetricsLog
from bittoken.training.mixture import Batch, BatchSize, DataLoader, Mixture
from bittoken.training.recipe import RECIPE_FILE, Recipe, differing_fields
from bittoken.training.state import DataLoaders, StoredLoader
from bittoken.training.text_data import TOKENIZER_FILE, open_text_data
from bittoken.training.trainer import Trainer
from bittoken.training.validation import expected_chance_accuracy, validate
from bittoken.vocabulary import Vocabulary
from numbench._version import __version__
from numbench.errors import BadInput
from numbench.jsonl import read_json, write_json
from numbench.signals import stop_on_signals

STATE_FOLDER, CHECKPOINT_FOLDER, LOCK_FILE = "state", "checkpoint", ".lock"


class TrainingResult(NamedTuple):
    """The progress of a training when `train` returns, and its best validation."""

    folder: Path
    step: int
    steps: int
    best: float
    best_step: int
    has_reached_target: bool = False

    @property
    def is_complete(self) -> bool:
        """Whether all steps are done, or the training ended early at its target."""
        return self.step == self.steps or self.has_reached_target


def train(
    recipe: Recipe,
    folder: Path,
    callback: TrainingCallbacks | None = None,
    should_stop: Callable[[], bool] = lambda: False,
    minutes: float | None = None,
) -> TrainingResult:
    """Train with `recipe` in `folder`, or resume the training that is saved there.

    should_stop: called after each step; if it returns True, the training is saved and ends.
    minutes: time limit, after which the training is saved and ends.
    The best checkpoint by harmonic mean (paper, "Hyperparameters") is in `folder`/checkpoint.
    Raises BadInput if another training uses the folder, or it contains one with another recipe.
    """
    distributed = DistributedContext()
    try:
        with _locked(folder, distributed):
            training = _TrainingRun(recipe, folder, callback or TrainingCallbacks(), distributed)
            with closing(training):
                return training.run(_stop_at_deadline(should_stop, minutes))
    finally:
        distributed.close()


def resume_step(recipe: Recipe, folder: Path) -> int:
    """Return the saved step of the training in `folder`, 0 if there is none.

    Raises BadInput if the folder contains a training with another recipe.
    """
    _check_recipe(recipe, folder)
    return state.saved_step(folder / STATE_FOLDER)


class _TrainingRun:
    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        callback: TrainingCallbacks,
        distributed: DistributedContext,
    ) -> None:
        self._recipe, self._folder = recipe, folder
        self._callback, self._distributed = callback, distributed
        if distributed.is_main_process:
            _write_recipe(recipe, folder)
        distributed.barrier()
        self._text = open_text_data(recipe, folder, distributed)
        tokens = self._text.bpe.tokens if self._text else ()
        vocabulary = Vocabulary(recipe.model.encoding, tokens)
        self._trainer = Trainer(recipe, vocabulary, distributed)
        train, self._validation_loaders = self._open_loaders(vocabulary)
        self._mixture = Mixture(recipe, train.scales)
        self._batch_source: BatchSource
        stored: StoredLoader = train
        if recipe.training.data_processes:
            stored = self._batch_source = BatchProcesses(
                recipe, folder, self._batch_size, distributed.rank, distributed.world_size
            )
        else:
            self._batch_source = BatchThread(self._mixture, train, self._batch_size)
        self._stored_loaders: DataLoaders = {"train": stored, **self._validation_loaders}
        best_weights = state.restore(
            folder / STATE_FOLDER, self._trainer, self._mixture, self._stored_loaders, distributed
        )
        self._best_weights = best_weights or {}
        self._log = (
            MetricsLog(folder, self._trainer.progress.step) if distributed.is_main_process else None
        )
        self._start_time = time.monotonic() - self._trainer.progress.seconds
        self._start_cpu_time = time.process_time() - self._trainer.progress.cpu_seconds
        self._saved_step = self._trainer.progress.step

    @property
    def _batch_size(self) -> BatchSize:
        training, processes = self._recipe.training, self._distributed.world_size
        return BatchSize(training.batch_tokens // processes, training.batch_questions // processes)

    def close(self) -> None:
        """Release the threads or processes that prepare batches."""
        self._batch_source.close()

    def run(self, should_stop: Callable[[], bool]) -> TrainingResult:
        progress, training = self._trainer.progress, self._recipe.training
        self._write(self._start_entry())
        stopped = False
        while progress.step < training.steps and not (stopped or self._trainer.has_reached_target):
            next_validation = (
                progress.step // training.validate_every + 1
            ) * training.validate_every
            count = min(next_validation, training.steps) - progress.step
            for batch in self._batches(count, should_stop):
                result = self._trainer.step(batch)
                self._callback.on_step(self._trainer, result)
            stopped = self._distributed.broadcast(should_stop())
            if progress.step in (next_validation, training.steps):
                self._validate()
            if stopped or progress.step - self._saved_step >= training.save_every:
                self._save()
        if progress.step > self._saved_step:
            self._save()
        if self._log:
            self._log.close()
        return TrainingResult(
            self._folder,
            progress.step,
            training.steps,
            progress.best,
            progress.best_step,
            self._trainer.has_reached_target,
        )

    def _batches(self, count: int, should_stop: Callable[[], bool]) -> Iterator[Batch]:
        """Yield `count` batches, prepared during earlier steps; fewer if stopped.

        Every requested batch is yielded, so that sample buffers and weights stay at the same step.
        """
        source, first = self._batch_source, self._trainer.progress.step
        requested, stopping = 0, False
        for number in range(count):
            if number == requested:
                if stopping:
                    return
                source.request(first + number)
                requested += 1
            batch = source.receive(first + number)
            if number + 1 < count and not stopping:
                stopping = self._distributed.broadcast(should_stop())
            while not stopping and requested < min(number + 1 + source.depth, count):
                source.request(first + requested)
                requested += 1
            yield batch

    def _validate(self) -> None:
        """Validate in the main process and copy the resulting mixture to all processes."""
        progress = self._trainer.progress
        metrics: dict[str, Any] = {}
        if self._distributed.is_main_process:
            loaders = self._validation_loaders
            metrics = validate(self._trainer, self._mixture, loaders["full"], loaders["leveled"])
            if metrics["harmonic_mean"] >= progress.best:
                progress.best, progress.best_step = metrics["harmonic_mean"], progress.step
                progress.best_tokens = progress.tokens
                self._best_weights = state.copy_weights(self._trainer)
        self._mixture.restore(self._distributed.broadcast(self._mixture.state()))
        self._batch_source.update(self._mixture)
        progress.successes = self._distributed.broadcast(progress.successes)
        if self._distributed.is_main_process:
            self._write(self._validation_entry() | metrics)
        progress.losses, progress.targets = [], []

    def _validation_entry(self) -> LogEntry:
        progress, tasks = self._trainer.progress, self._recipe.data.tasks
        self._measure_time()
        means = np.array(progress.losses) / np.maximum(progress.targets, 1)
        return {
            "step": progress.step,
            "questions": progress.questions,
            "tokens": progress.tokens,
            "seconds": round(progress.seconds, 1),
            "cpu_seconds": round(progress.cpu_seconds, 1),
            "rate": round(self._trainer.learning_rate_multiplier(), 5),
            "loss": {task: _round(mean) for task, mean in zip(tasks, means, strict=True)},
            "ratio": {
                task: _round(ratio) for task, ratio in zip(tasks, self._mixture.ratios, strict=True)
            },
        }

    def _measure_time(self) -> None:
        progress = self._trainer.progress
        progress.seconds = time.monotonic() - self._start_time
        progress.cpu_seconds = time.process_time() - self._start_cpu_time

    def _save(self) -> None:
        """Save checkpoint and state.

        The checkpoint comes first, so that a complete state always has its checkpoint.
        """
        self._measure_time()
        if self._distributed.is_main_process:
            checkpoint.save(
                self._folder / CHECKPOINT_FOLDER,
                self._trainer.network,
                self._checkpoint_metadata(),
                text_tokenizer=self._text.tokenizer_path if self._text else None,
                weights=self._best_weights or state.copy_weights(self._trainer),
            )
        state.save(
            self._folder / STATE_FOLDER,
            self._trainer,
            self._mixture,
            self._stored_loaders,
            self._best_weights,
            self._distributed,
        )
        self._saved_step = self._trainer.progress.step

    def _checkpoint_metadata(self) -> dict[str, Any]:
        """Return the description of the training that is stored in its checkpoint."""
        progress = self._trainer.progress
        best_step = progress.best_step or progress.step
        return {
            "recipe": msgspec.to_builtins(self._recipe),
            "step": best_step,
            "steps": self._recipe.training.steps,
            "harmonic_mean": progress.best if progress.best_step else None,
            "tokens": progress.best_tokens if progress.best_step else progress.tokens,
            "version": __version__,
        }

    def _start_entry(self) -> LogEntry:
        network = self._trainer.network
        return {
            "step": self._trainer.progress.step,
            "event": "resumed" if self._trainer.progress.step else "started",
            "recipe": self._recipe.name,
            "parameters": sum(p.numel() for p in network.parameters()),
            "device": _device_name(self._distributed.device),
            "processes": self._distributed.world_size,
            "threads": torch.get_num_threads(),
            "chance": {
                task: _round(expected_chance_accuracy(task)) for task in self._recipe.data.tasks
            },
            "torch": str(torch.__version__),
            "version": __version__,
        }

    def _write(self, entry: LogEntry) -> None:
        if self._log:
            self._log.write(entry)
            self._callback.on_log_entry(entry)

    def _open_loaders(self, vocabulary: Vocabulary) -> tuple[DataLoader, dict[str, DataLoader]]:
        """Return the loader of the training and, in the main process, those of validations."""
        recipe, text = self._recipe, self._text
        rank, world_size = self._distributed.rank, self._distributed.world_size
        train_text = text.stream("train", vocabulary) if text else None
        train = DataLoader(recipe, vocabulary, "train", rank, train_text, world_size=world_size)
        loaders = {}
        if self._distributed.is_main_process:
            val_text = text.stream("val", vocabulary) if text else None
            loaders["full"] = DataLoader(
                recipe, vocabulary, "val", 0, val_text, use_full_range=True
            )
            # Another rank than `full`, so that the two draw different items.
            loaders["leveled"] = DataLoader(recipe, vocabulary, "val", 1, None)
        return train, loaders


def _stop_at_deadline(should_stop: Callable[[], bool], minutes: float | None) -> Callable[[], bool]:
    if minutes is None:
        return should_stop
    end = time.monotonic() + 60 * minutes
    return lambda: should_stop() or time.monotonic() >= end


def _locked(folder: Path, distributed: DistributedContext) -> FileLock:
    folder.mkdir(parents=True, exist_ok=True)
    # The main process locks the folder; each other process has its own lock file.
    suffix = "" if distributed.is_main_process else f"-{distributed.rank}"
    lock = FileLock(folder / f"{LOCK_FILE}{suffix}")
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BadInput(
            f"{folder}: another training uses this folder; wait for it or choose another --out"
        ) from None
    return lock


def _write_recipe(recipe: Recipe, folder: Path) -> None:
    _check_recipe(recipe, folder)
    if not (folder / METRICS_FILE).is_file():
        # A failed start may have left the text vocabulary of another recipe.
        (folder / TOKENIZER_FILE).unlink(missing_ok=True)
        write_json(folder / RECIPE_FILE, recipe)


def _check_recipe(recipe: Recipe, folder: Path) -> None:
    """Raise BadInput if `folder` contains a training with another recipe.

    A folder belongs to a recipe only from the first log entry on: before that, the start may have
    failed because of the recipe.
    """
    path = folder / RECIPE_FILE
    if path.is_file() and (folder / METRICS_FILE).is_file():
        differing = differing_fields(read_json(path, dict[str, Any]), recipe)
        if differing:
            raise BadInput(
                f"{folder} contains a training with another recipe (different: "
                f"{', '.join(differing)}); choose another --out"
            )


def _round(value: float) -> float:
    return round(float(value), 6)


def _device_name(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {os.cpu_count()} cores"


class TrainingInterrupted(Exception):
    """A signal stopped a training early; its state is saved."""

    def __init__(self, result: TrainingResult) -> None:
        super().__init__()
        self.result = result


def train_interactive(recipe: Recipe, folder: Path, minutes: float | None = None) -> TrainingResult:
    """Train as `train` does, with progress on stderr.

    Raises TrainingInterrupted if a signal stopped the training, after it was saved.
    """
    stop_requested = threading.Event()
    with (
        stop_on_signals(stop_requested.set),
        show_progress(recipe, stop_requested.is_set) as callback,
    ):
        outcome = train(recipe, folder, callback, stop_requested.is_set, minutes)
    if stop_requested.is_set() and not outcome.is_complete:
        raise TrainingInterrupted(outcome)
    return outcome
