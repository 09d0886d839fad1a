"""The training loop: start or resume, train, validate, save, and stop on request."""

from __future__ import annotations

import io
import os
import platform
import time
from collections.abc import Callable
from dataclasses import asdict, dataclass, field
from pathlib import Path
from pickle import UnpicklingError
from typing import Any, NamedTuple

import msgspec
import numpy as np
import torch
from filelock import FileLock, Timeout

from bittoken.checkpoint import save_checkpoint
from bittoken.data import Batch, TrainingData
from bittoken.encodings.base import FloatArray
from bittoken.evaluation import exact_by_operator, predict, teacher_forced_scores, token_losses
from bittoken.mixture import LossScale, Mixture, harmonic_mean, restore_plain, to_plain
from bittoken.network import Network
from bittoken.optimizer import Optimizers
from bittoken.recipe import Recipe
from bittoken.text import make_tokenizer
from bittoken.tokens import Samples, Vocabulary, read_text_tokens
from numbench._version import __version__
from numbench.core.jsonl import encode, read_json, read_lines, write_atomically, write_json
from numbench.errors import BadInput, NumbenchError

RECIPE_FILE, METRICS_FILE = "recipe.json", "metrics.jsonl"
CHECKPOINT_FOLDER, STATE_FILE, TOKENIZER_FILE = "checkpoint", "state.pt", "tokenizer.json"

CONFIRMING_VALIDATIONS = 2
"""The number of consecutive validations that must reach `stop_exact`."""

LogEntry = dict[str, Any]


@dataclass
class Progress:
    """The progress of a training; its fields are saved with the state.

    questions, tokens: samples and tokens so far. seconds, cpu_seconds: elapsed time, and CPU time
    of this process. losses, targets: each task's summed loss and number of targets since the last
    validation.
    """

    step: int = 0
    questions: int = 0
    tokens: int = 0
    seconds: float = 0.0
    cpu_seconds: float = 0.0
    losses: list[float] = field(default_factory=list)
    targets: list[float] = field(default_factory=list)


class TrainingResult(NamedTuple):
    """The last step of `train`, and whether the training is complete."""

    step: int
    is_complete: bool


def train(
    recipe: Recipe,
    folder: Path,
    on_step: Callable[[Progress, float], bool] = lambda progress, loss: False,
    on_log_entry: Callable[[LogEntry], None] = lambda entry: None,
) -> TrainingResult:
    """Train with `recipe` in `folder`, or resume the training that is saved there.

    on_step: called after each step, with its mean loss; if it returns True, the training is saved
    and ends. The best checkpoint by harmonic mean (paper, "Hyperparameters") is in
    `folder`/checkpoint.

    Raises BadInput if another training uses the folder, or it contains one with another recipe.
    """
    folder.mkdir(parents=True, exist_ok=True)
    try:
        with FileLock(folder / ".lock", timeout=0):
            return Training(recipe, folder, on_log_entry).run(on_step)
    except Timeout:
        raise BadInput(
            f"{folder}: another training uses this folder; wait for it or choose another --out"
        ) from None
    except OSError as error:
        raise NumbenchError(
            f"{folder}: {error}; free disk space and run the same command again"
        ) from error


class Training:
    """A training in a folder: its data, network and progress."""

    def __init__(
        self,
        recipe: Recipe,
        folder: Path,
        on_log_entry: Callable[[LogEntry], None] = lambda entry: None,
    ) -> None:
        """Start the training, or continue from its saved state."""
        self._recipe, self._folder, self._on_log_entry = recipe, folder, on_log_entry
        _check_recipe(recipe, folder)
        is_new = not (folder / METRICS_FILE).is_file()
        if is_new:
            write_json(folder / RECIPE_FILE, recipe)
        self._device = torch.device("cuda" if torch.cuda.is_available() else "cpu")
        self._tokenizer: Path | None = None
        tokens = list[str]()
        if recipe.data.text_vocabulary is not None:
            self._tokenizer = folder / TOKENIZER_FILE
            if is_new:
                make_tokenizer(self._tokenizer, Path(recipe.data.text_vocabulary))
            tokens = read_text_tokens(self._tokenizer)
        is_bf16 = recipe.training.precision == "bf16"
        self._precision = torch.autocast(self._device.type, torch.bfloat16, enabled=is_bf16)
        self._vocabulary = Vocabulary(recipe.model.encoding, tokens)
        self._data = TrainingData(recipe, self._vocabulary, self._tokenizer)
        self._mixture = Mixture(recipe, self._data.levels)
        torch.manual_seed(recipe.training.seed)
        self._network = Network(recipe.config(len(self._vocabulary))).to(self._device)
        if recipe.training.compile:
            self._network.compile(dynamic=True)
        self._optimizers = Optimizers(self._network, recipe)
        self._loss_scale = LossScale(len(recipe.data.tasks))
        self._progress, self._best = Progress(), dict[str, torch.Tensor]()
        if (folder / STATE_FILE).is_file():
            self._restore(folder / STATE_FILE)
        self._saved_step = self._progress.step
        _cut_log(folder / METRICS_FILE, self._progress.step)
        self._validations = [] if is_new else read_validations(folder)
        self._started = time.monotonic() - self._progress.seconds
        self._cpu_started = time.process_time() - self._progress.cpu_seconds

    def run(self, on_step: Callable[[Progress, float], bool]) -> TrainingResult:
        """Train until the end, or until `on_step` returns True."""
        progress, training = self._progress, self._recipe.training
        is_stopping = False
        if not self._is_complete:
            self._write_log(self._start_entry())
        while not (self._is_complete or is_stopping):
            interval = progress.step // training.validate_every
            end = min((interval + 1) * training.validate_every, training.steps)
            for batches in self._data.steps(self._mixture, progress.step, end):
                is_stopping = on_step(progress, self.step(batches))
                if is_stopping:
                    break
            if progress.step == end:
                self._validate(interval)
            if is_stopping or progress.step - self._saved_step >= training.save_every:
                self._save()
        if progress.step > self._saved_step:
            self._save()
        return TrainingResult(progress.step, self._is_complete)

    @property
    def _is_complete(self) -> bool:
        """Whether all steps are done, or the last validations reached the target."""
        training, last = self._recipe.training, self._validations[-CONFIRMING_VALIDATIONS:]
        has_reached_target = len(last) == CONFIRMING_VALIDATIONS and all(
            task["exact"] >= training.stop_exact > 0
            for entry in last
            for task in entry["tasks"].values()
        )
        return self._progress.step == training.steps or has_reached_target

    def step(self, batches: list[Batch]) -> float:
        """Train on the micro-batches of one step and return the mean loss of a target."""
        progress, tasks = self._progress, len(self._recipe.data.tasks)
        total = sum(int(batch.samples.is_target.sum()) for batch in batches)
        factors = torch.from_numpy(self._loss_scale.factors).float().to(self._device)
        sums, counts = torch.zeros(2, tasks, dtype=torch.float64, device=self._device)
        # One backward pass converts the weights to bfloat16 once, but needs memory for all of them.
        separate = self._recipe.training.micro_tokens > 0
        for group in [[batch] for batch in batches] if separate else [batches]:
            with self._precision:
                outputs = [predict(self._network, b.samples, self._device) for b in group]
            loss = torch.zeros((), device=self._device)
            for batch, predictions in zip(group, outputs, strict=True):
                losses = token_losses(self._network, predictions, self._vocabulary)
                task = torch.from_numpy(batch.task).to(self._device)[predictions.row]
                loss = loss + (losses * factors[task]).sum() / total
                sums.index_add_(0, task, losses.detach().double())
                counts += torch.bincount(task, minlength=tasks)
            loss.backward()  # type: ignore[no-untyped-call]
        self._optimizers.step(progress.step)
        loss_sums, targets = sums.cpu().numpy(), counts.cpu().numpy()
        if progress.step < self._recipe.warmup_steps:
            self._loss_scale.observe(loss_sums / np.maximum(targets, 1), targets)
        progress.step += 1
        if progress.step == self._recipe.warmup_steps:
            self._loss_scale.freeze()
        progress.losses = (np.array(progress.losses or 0.0) + loss_sums).tolist()
        progress.targets = (np.array(progress.targets or 0.0) + targets).tolist()
        progress.questions += sum(len(batch.task) for batch in batches)
        progress.tokens += sum(int(batch.samples.lengths.sum()) for batch in batches)
        return float(loss_sums.sum() / total)

    @torch.no_grad()
    def _score(self, samples: Samples, task: str) -> tuple[FloatArray, FloatArray]:
        """Return score and exact match of each sample."""
        with self._precision:
            predictions = predict(self._network, samples, self._device)
        return teacher_forced_scores(predictions, task, len(samples.lengths), self._vocabulary)

    def _validate(self, number: int) -> None:
        """Score every task, log the scores, and update the task ratios and curricula.

        number: of this validation; each has its own questions.
        """
        progress, mixture, tasks = self._progress, self._mixture, self._recipe.data.tasks
        self._measure_time()
        means = np.array(progress.losses) / np.maximum(progress.targets, 1)
        entry: LogEntry = {
            "step": progress.step,
            "questions": progress.questions,
            "tokens": progress.tokens,
            "seconds": round(progress.seconds, 1),
            "cpu_seconds": round(progress.cpu_seconds, 1),
            "rate": round(self._recipe.rate_share(progress.step), 5),
            "loss": dict(zip(tasks, means.round(6).tolist(), strict=True)),
            "ratio": dict(zip(tasks, mixture.ratios.round(6).tolist(), strict=True)),
            "tasks": {},
        }
        scores = np.zeros(len(tasks))
        for index, task in enumerate(tasks):
            samples, _ = self._data.validation(number, task)
            score, exact = self._score(samples, task)
            scores[index] = score.mean()
            entry["tasks"][task] = {
                "score": _rounded_mean(score), "exact": _rounded_mean(exact), "items": len(score),
                "operators": exact_by_operator(samples, exact, task, self._vocabulary),
            }  # fmt: skip
        mixture.update_ratios(scores)
        for task, curriculum in mixture.curricula.items():
            samples, level = self._data.validation(number, task, curriculum.shares())
            score, exact = self._score(samples, task)
            mixture.update_curriculum(task, level, score, progress.step)
            entry["tasks"][task] |= {
                "frontier": curriculum.frontier,
                "levels": len(curriculum.distribution),
                "opened_score": _rounded_mean(score),
                "opened_exact": _rounded_mean(exact),
            }
        # Not rounded: if a task scores 0, the other tasks only change late digits.
        entry["harmonic_mean"] = harmonic_mean(scores)
        progress.losses, progress.targets = [], []
        self._validations.append(entry)
        if _best(self._validations) is entry:
            self._best = _copied(self._network.state_dict())
        self._write_log(entry)

    def _measure_time(self) -> None:
        self._progress.seconds = time.monotonic() - self._started
        self._progress.cpu_seconds = time.process_time() - self._cpu_started

    def _save(self) -> None:
        """Save checkpoint and state; the state last, so that it has its checkpoint."""
        progress, best = self._progress, _best(self._validations)
        self._measure_time()
        metadata = {
            "recipe": msgspec.to_builtins(self._recipe),
            "step": best["step"] if best else progress.step,
            "steps": self._recipe.training.steps,
            "harmonic_mean": best["harmonic_mean"] if best else None,
            "tokens": best["tokens"] if best else progress.tokens,
            "version": __version__,
        }
        weights, checkpoint = self._best or None, self._folder / CHECKPOINT_FOLDER
        save_checkpoint(checkpoint, self._network, metadata, self._tokenizer, weights)
        state = {
            "progress": asdict(progress),
            "network": _copied(self._network.state_dict()),
            "best": self._best,
            "optimizers": self._optimizers.state_dict(),
            "mixture": self._mixture.state(),
            "loss_scale": to_plain(self._loss_scale),
        }
        content = io.BytesIO()
        torch.save(state, content)
        write_atomically(self._folder / STATE_FILE, content.getvalue())
        self._saved_step = progress.step

    def _restore(self, path: Path) -> None:
        """Continue from the saved state. Raises BadInput if it is damaged."""
        try:
            state: dict[str, Any] = torch.load(path, map_location="cpu", weights_only=True)
            self._network.load_state_dict(state["network"])
            self._optimizers.load_state_dict(state["optimizers"])
            self._mixture.restore(state["mixture"])
            restore_plain(self._loss_scale, state["loss_scale"])
            restore_plain(self._progress, state["progress"])
            self._best = state["best"]
        except (
            OSError, EOFError, RuntimeError, ValueError, TypeError, LookupError, UnpicklingError
        ) as error:  # fmt: skip
            raise BadInput(
                f"{path}: cannot load the saved state ({str(error).partition(chr(10))[0]}); "
                "restore the file, or train into another folder"
            ) from error

    def _start_entry(self) -> LogEntry:
        cpu = f"{platform.machine()} CPU, {os.cpu_count()} cores"
        is_gpu = self._device.type == "cuda"
        return {
            "step": self._progress.step,
            "event": "resumed" if self._progress.step else "started",
            "recipe": self._recipe.name,
            "parameters": sum(p.numel() for p in self._network.parameters()),
            "device": torch.cuda.get_device_name(self._device) if is_gpu else cpu,
            "threads": torch.get_num_threads(),
            "torch": str(torch.__version__),
            "version": __version__,
        }

    def _write_log(self, entry: LogEntry) -> None:
        with (self._folder / METRICS_FILE).open("ab") as file:
            file.write(encode(entry))
            file.flush()
            os.fsync(file.fileno())
        self._on_log_entry(entry)


def _check_recipe(recipe: Recipe, folder: Path) -> None:
    """Raise BadInput if `folder` contains a training with another recipe.

    A folder belongs to a recipe only from the first log entry on: before that, the start may have
    failed because of the recipe.
    """
    if not (folder / METRICS_FILE).is_file():
        return
    old = read_json(folder / RECIPE_FILE, dict[str, Any])
    new = msgspec.json.decode(msgspec.json.encode(recipe))
    differing = [part for part in new if old.get(part) != new[part]]
    if differing:
        raise BadInput(
            f"{folder} contains a training with another recipe (different: "
            f"{', '.join(differing)}); choose another --out"
        )


def _rounded_mean(values: FloatArray) -> float:
    return round(float(values.mean()), 5)


def _copied(weights: dict[str, torch.Tensor]) -> dict[str, torch.Tensor]:
    return {name: tensor.detach().cpu().clone() for name, tensor in weights.items()}


def _cut_log(path: Path, step: int) -> None:
    """Remove the log entries after a step, which will be repeated."""
    if path.is_file():
        lines = list(read_lines(path, msgspec.Raw, append_only=True))
        kept = [line for line in lines if msgspec.json.decode(line)["step"] <= step]
        write_atomically(path, b"".join(bytes(line) + b"\n" for line in kept))


def read_validations(folder: Path) -> list[LogEntry]:
    """Return the log entries of the validations of a training."""
    entries = read_lines(folder / METRICS_FILE, dict[str, Any], append_only=True)
    return [entry for entry in entries if "tasks" in entry]


def best_validation(folder: Path) -> LogEntry | None:
    """Return the validation whose weights are the checkpoint."""
    return _best(read_validations(folder))


def _best(validations: list[LogEntry]) -> LogEntry | None:
    """Return the last validation with the highest harmonic mean."""
    return max(reversed(validations), key=lambda entry: entry["harmonic_mean"], default=None)
