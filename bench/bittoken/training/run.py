"""A training run in a folder: started, interrupted, gone on with, ended."""

from __future__ import annotations

import os
import platform
import time
from collections.abc import Callable, Iterator
from concurrent.futures import ThreadPoolExecutor
from dataclasses import dataclass
from pathlib import Path
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from filelock import FileLock, Timeout

from bench import __version__
from bench.bittoken import checkpoint
from bench.bittoken.training import state
from bench.bittoken.training.crew import Crew
from bench.bittoken.training.log import FILE, Line, MetricsLog
from bench.bittoken.training.measuring import chance, validate
from bench.bittoken.training.mixture import Batch, Feed, Mixture
from bench.bittoken.training.recipe import Recipe
from bench.bittoken.training.text import TOKENIZER, open_text
from bench.bittoken.training.trainer import StepResult, Trainer
from bench.bittoken.vocabulary import Vocabulary
from bench.errors import BadInput
from bench.jsonl import read_json, write_json

RECIPE, STATE, CHECKPOINT, LOCK = "recipe.json", "state", "checkpoint", ".lock"


class Outcome(NamedTuple):
    """Where a training stands when `train` returns."""

    folder: Path
    step: int
    steps: int
    best: float
    best_step: int

    @property
    def ended(self) -> bool:
        """Whether the whole budget is spent."""
        return self.step == self.steps


@dataclass
class Watch:
    """Who looks on. `step` hears of every step, `measured` of every validation."""

    step: Callable[[Trainer, StepResult], None] = lambda trainer, result: None
    measured: Callable[[Line], None] = lambda line: None


def train(
    recipe: Recipe,
    folder: Path,
    watch: Watch,
    stop: Callable[[], bool] = lambda: False,
    minutes: float | None = None,
) -> Outcome:
    """Train by `recipe` in `folder`, from where the last training there stopped.

    stop: asked after each step. minutes: after so many the training is saved and left for later.
    The best checkpoint by harmonic mean (paper, "Hyperparameters") is in `folder`/checkpoint.
    BadInput where another training uses the folder, or it holds one of another recipe.
    """
    crew = Crew()
    try:
        with _locked(folder, crew):
            return _Run(recipe, folder, watch, crew).go(_deadline(stop, minutes))
    finally:
        crew.close()


def reached(recipe: Recipe, folder: Path) -> int:
    """The step that the training in `folder` is saved at; 0 where it has yet to begin.

    BadInput where it holds a training by another recipe than `recipe`.
    """
    _check_recipe(recipe, folder)
    return state.saved_step(folder / STATE)


class _Run:
    def __init__(self, recipe: Recipe, folder: Path, watch: Watch, crew: Crew) -> None:
        self._recipe, self._folder, self._watch, self._crew = recipe, folder, watch, crew
        if crew.leads:
            _keep_recipe(recipe, folder)
        crew.wait()
        self._text = open_text(recipe, folder, crew)
        tokens = self._text.bpe.tokens if self._text else ()
        vocabulary = Vocabulary(recipe.model.encoding, tokens)
        self._trainer = Trainer(recipe, vocabulary, crew)
        self._feeds = self._open_feeds(vocabulary)
        self._mixture = Mixture(recipe, self._feeds["train"].scales)
        best = state.restore(folder / STATE, self._trainer, self._mixture, self._feeds, crew)
        self._best = best or {}
        self._log = MetricsLog(folder, self._trainer.progress.step) if crew.leads else None
        self._began = time.monotonic() - self._trainer.progress.seconds
        self._saved = self._trainer.progress.step

    def go(self, stop: Callable[[], bool]) -> Outcome:
        progress, training = self._trainer.progress, self._recipe.training
        self._write(self._about())
        stopped = False
        while progress.step < training.steps and not stopped:
            until = (progress.step // training.validate_every + 1) * training.validate_every
            for batch in self._batches(min(until, training.steps) - progress.step, stop):
                result = self._trainer.step(batch)
                self._watch.step(self._trainer, result)
            stopped = self._crew.shared(stop())
            if progress.step in (until, training.steps):
                self._measure()
            if stopped or progress.step - self._saved >= training.save_every:
                self._save()
        if progress.step > self._saved:
            self._save()
        if self._log:
            self._log.close()
        return Outcome(
            self._folder, progress.step, training.steps, progress.best, progress.best_step
        )

    def _batches(self, count: int, stop: Callable[[], bool]) -> Iterator[Batch]:
        """`count` batches, each made while the one before is trained on; fewer where stopped.

        Whatever was made is also trained on, so that stocks and weights stay in step.
        """
        tokens = self._recipe.training.batch_tokens // self._crew.world

        def make() -> Batch:
            return self._mixture.batch(self._feeds["train"], tokens)

        with ThreadPoolExecutor(1) as pool:
            coming = pool.submit(make)
            for number in range(1, count + 1):
                batch = coming.result()
                last = number == count or self._crew.shared(stop())
                if not last:
                    coming = pool.submit(make)
                yield batch
                if last:
                    return

    def _measure(self) -> None:
        """Validate in the leading process; all go on with what it found."""
        progress = self._trainer.progress
        found: dict[str, Any] = {}
        if self._crew.leads:
            feeds = self._feeds
            found = validate(self._trainer, self._mixture, feeds["full"], feeds["leveled"])
            if found["harmonic_mean"] >= progress.best:
                progress.best, progress.best_step = found["harmonic_mean"], progress.step
                progress.best_tokens = progress.tokens
                self._best = state.weights(self._trainer)
        self._mixture.restore(self._crew.shared(self._mixture.state()))
        if self._crew.leads:
            self._write(self._line() | found)
        progress.losses, progress.targets = [], []

    def _line(self) -> Line:
        progress, tasks = self._trainer.progress, self._recipe.data.tasks
        progress.seconds = time.monotonic() - self._began
        means = np.array(progress.losses) / np.maximum(progress.targets, 1)
        return {
            "step": progress.step,
            "tokens": progress.tokens,
            "seconds": round(progress.seconds, 1),
            "rate": round(self._trainer.rate(), 5),
            "loss": {task: _rounded(mean) for task, mean in zip(tasks, means, strict=True)},
            "ratio": {
                task: _rounded(ratio)
                for task, ratio in zip(tasks, self._mixture.ratios, strict=True)
            },
        }

    def _save(self) -> None:
        """Checkpoint first: a state that is whole has its checkpoint beside it."""
        progress = self._trainer.progress
        progress.seconds = time.monotonic() - self._began
        if self._crew.leads:
            best = self._best or state.weights(self._trainer)
            checkpoint.save(
                self._folder / CHECKPOINT,
                self._trainer.network,
                self._told(),
                text_tokenizer=self._text.file if self._text else None,
                weights=best,
            )
        state.save(
            self._folder / STATE, self._trainer, self._mixture, self._feeds, self._best, self._crew
        )
        self._saved = progress.step

    def _told(self) -> dict[str, Any]:
        """What a checkpoint says of its training."""
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

    def _about(self) -> Line:
        network = self._trainer.network
        return {
            "step": self._trainer.progress.step,
            "event": "resumed" if self._trainer.progress.step else "started",
            "recipe": self._recipe.name,
            "parameters": sum(p.numel() for p in network.parameters()),
            "device": _device(self._crew.device),
            "processes": self._crew.world,
            "threads": torch.get_num_threads(),
            "chance": {task: _rounded(chance(task)) for task in self._recipe.data.tasks},
            "torch": str(torch.__version__),
            "version": __version__,
        }

    def _write(self, line: Line) -> None:
        if self._log:
            self._log.write(line)
            self._watch.measured(line)

    def _open_feeds(self, vocabulary: Vocabulary) -> dict[str, Feed]:
        recipe, text, rank = self._recipe, self._text, self._crew.rank
        reading = text.stream("train", vocabulary) if text else None
        feeds = {"train": Feed(recipe, vocabulary, "train", rank, reading, world=self._crew.world)}
        if self._crew.leads:
            kept = text.stream("val", vocabulary) if text else None
            feeds["full"] = Feed(recipe, vocabulary, "val", 0, kept, full=True)
            # Another stream than that of `full`, so that no item is measured twice.
            feeds["leveled"] = Feed(recipe, vocabulary, "val", 1, None)
        return feeds


def _deadline(stop: Callable[[], bool], minutes: float | None) -> Callable[[], bool]:
    if minutes is None:
        return stop
    end = time.monotonic() + 60 * minutes
    return lambda: stop() or time.monotonic() >= end


def _locked(folder: Path, crew: Crew) -> FileLock:
    folder.mkdir(parents=True, exist_ok=True)
    # Only the leading process holds the folder; the others have a lock of their own.
    lock = FileLock(folder / (LOCK if crew.leads else f"{LOCK}-{crew.rank}"))
    try:
        lock.acquire(timeout=0)
    except Timeout:
        raise BadInput(
            f"{folder}: another training runs there; wait for it or choose --out"
        ) from None
    return lock


def _keep_recipe(recipe: Recipe, folder: Path) -> None:
    _check_recipe(recipe, folder)
    if not (folder / FILE).is_file():
        # A start that failed may have left the text vocabulary of another recipe.
        (folder / TOKENIZER).unlink(missing_ok=True)
        write_json(folder / RECIPE, recipe)


def _check_recipe(recipe: Recipe, folder: Path) -> None:
    """A folder belongs to a recipe once its log is open: all that the recipe names was there."""
    path = folder / RECIPE
    if path.is_file() and (folder / FILE).is_file():
        old = read_json(path, dict[str, Any])
        differing = _differing(old, msgspec.to_builtins(recipe))
        if differing:
            raise BadInput(
                f"{folder} holds a training by another recipe (they differ in "
                f"{', '.join(differing)}): choose another --out"
            )


def _differing(old: Any, new: Any, name: str = "") -> list[str]:
    if isinstance(old, dict) and isinstance(new, dict):
        keys = sorted(set(old) | set(new))
        found = [_differing(old.get(k), new.get(k), f"{name}.{k}" if name else k) for k in keys]
        return [field for fields in found for field in fields]
    return [] if old == new or _list_of(old) == _list_of(new) else [name]


def _list_of(value: Any) -> Any:
    """Tuples as JSON has them."""
    return list(value) if isinstance(value, tuple) else value


def _rounded(value: float) -> float:
    return round(float(value), 6)


def _device(device: torch.device) -> str:
    if device.type == "cuda":
        return torch.cuda.get_device_name(device)
    return f"{platform.machine()} CPU, {os.cpu_count()} cores"
