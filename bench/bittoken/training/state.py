"""The saved state of a training, from which it resumes with identical results.

One folder per saved step, with tensors (safetensors), tables (Arrow) and JSON; the file `latest`
names the complete one. Loading unpickles nothing.
"""

from __future__ import annotations

import os
import shutil
from collections.abc import Mapping
from contextlib import suppress
from pathlib import Path
from typing import Any, Protocol

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bittoken.training.distributed import DistributedContext
from bittoken.training.mixture import Mixture
from bittoken.training.trainer import Trainer, TrainerProgress
from numbench.errors import BadInput, NumbenchError
from numbench.jsonl import write_atomically

LATEST, _STEP = "latest", "step-"


class StoredLoader(Protocol):
    """A source of samples whose state is saved."""

    @property
    def buffered_tasks(self) -> tuple[str, ...]: ...

    def state(self) -> tuple[dict[str, Any], dict[str, pa.Table]]: ...

    def restore(self, metadata: dict[str, Any], samples: dict[str, pa.Table]) -> None: ...


DataLoaders = Mapping[str, StoredLoader]
Weights = dict[str, Tensor]

_LOAD_ERRORS = (
    OSError, KeyError, TypeError, ValueError, RuntimeError, msgspec.DecodeError, SafetensorError
)  # fmt: skip
"""Errors that damaged or foreign files can cause when they are read."""


def save(
    folder: Path,
    trainer: Trainer,
    mixture: Mixture,
    loaders: DataLoaders,
    best: Weights,
    distributed: DistributedContext,
) -> None:
    """Write the state under `folder`, then remove the previous one.

    Raises NumbenchError if writing fails.
    """
    name = f"{_STEP}{trainer.progress.step:07d}"
    path = folder / name
    try:
        _write(path, trainer, mixture, loaders, best, distributed)
        distributed.barrier()
        if distributed.is_main_process:
            write_atomically(folder / LATEST, name.encode())
    except (OSError, SafetensorError) as error:
        raise NumbenchError(
            f"{path}: {error}; fix this and run the same command again to resume"
        ) from error
    if distributed.is_main_process:
        for old in folder.glob(f"{_STEP}*"):
            if old.name != name:
                shutil.rmtree(old)


def _write(
    path: Path,
    trainer: Trainer,
    mixture: Mixture,
    loaders: DataLoaders,
    best: Weights,
    distributed: DistributedContext,
) -> None:
    path.mkdir(parents=True, exist_ok=True)
    _save_process_state(path, mixture, loaders, distributed.rank)
    if distributed.is_main_process:
        tensors = {f"best.{key}": value for key, value in best.items()}
        save_file(tensors | _tensors(trainer), path / "tensors.safetensors")
        metadata = {
            "progress": vars(trainer.progress),
            "factors": trainer.loss_scale.factors.tolist(),
            "means": [
                None if np.isnan(mean) else mean for mean in trainer.loss_scale.means.tolist()
            ],
            "processes": distributed.world_size,
        }
        write_atomically(path / "state.json", msgspec.json.encode(metadata))
    _sync(path)


def restore(
    folder: Path,
    trainer: Trainer,
    mixture: Mixture,
    loaders: DataLoaders,
    distributed: DistributedContext,
) -> Weights | None:
    """Load the state under `folder` and return the best weights so far, None if there is no state.

    Raises BadInput if the state is damaged or from another number of processes.
    """
    if not (folder / LATEST).is_file():
        return None
    path = folder
    try:
        path = folder / (folder / LATEST).read_text().strip()
        metadata: dict[str, Any] = msgspec.json.decode((path / "state.json").read_bytes())
        tensors = load_file(path / "tensors.safetensors")
        if metadata["processes"] != distributed.world_size:
            raise BadInput(
                f"{folder} was saved by {metadata['processes']} processes, this training has "
                f"{distributed.world_size}; start the same number as before"
            )
        best = _restore_tensors(trainer, tensors)
        trainer.progress = TrainerProgress(**metadata["progress"])
        trainer.loss_scale.factors = np.array(metadata["factors"])
        trainer.loss_scale.means = np.array(metadata["means"], np.float64)
        _restore_process_state(path, mixture, loaders, distributed.rank)
    except _LOAD_ERRORS as error:
        raise BadInput(
            f"{path}: cannot load the saved state ({error}); "
            "restore the folder, or train into a new one"
        ) from error
    return best


def saved_step(folder: Path) -> int:
    """Return the step of the state under `folder`, 0 if there is none.

    Raises BadInput if it is damaged.
    """
    try:
        return int((folder / LATEST).read_text().strip().removeprefix(_STEP))
    except FileNotFoundError:
        return 0
    except ValueError as error:
        raise BadInput(
            f"{folder / LATEST}: not the name of a saved step; restore the folder"
        ) from error


def copy_weights(trainer: Trainer) -> Weights:
    """Return a copy of the network's parameters on the CPU."""
    return {name: p.detach().cpu().clone() for name, p in trainer.network.named_parameters()}


def _optimizer_states(trainer: Trainer) -> dict[str, dict[str, Tensor]]:
    """Return the optimiser state of each parameter by name, empty before the first step."""
    return {
        name: trainer.optimizers.optimizer_for(parameter).state.get(parameter, {})
        for name, parameter in trainer.network.named_parameters()
    }


def _tensors(trainer: Trainer) -> Weights:
    tensors = {f"network.{name}": value for name, value in copy_weights(trainer).items()}
    for name, state in _optimizer_states(trainer).items():
        for part, value in state.items():
            tensors[f"optimizer.{part}.{name}"] = torch.as_tensor(value).detach().cpu().clone()
    return tensors


@torch.no_grad()
def _restore_tensors(trainer: Trainer, tensors: Weights) -> Weights:
    parameters = dict(trainer.network.named_parameters())
    for name in parameters:
        if f"network.{name}" not in tensors:
            raise KeyError(name)
    best: Weights = {}
    for key, value in tensors.items():
        kind, _, name = key.partition(".")
        if kind == "best":
            best[name] = value
        elif kind == "network":
            parameters[name].copy_(value)
        else:
            part, _, name = name.partition(".")
            parameter = parameters[name]
            # Adam keeps its step count on the CPU, unlike its moments.
            device = "cpu" if part == "step" else parameter.device
            optimizer = trainer.optimizers.optimizer_for(parameter)
            optimizer.state[parameter][part] = value.to(device)
    return best


def _sync(folder: Path) -> None:
    """Sync all files of `folder`, so that a power cut after `latest` names it loses nothing."""
    for path in folder.iterdir():
        # Another process may rename its file at this moment; it has synced that itself.
        with suppress(FileNotFoundError), path.open("rb") as file:
            os.fsync(file.fileno())


def _save_process_state(folder: Path, mixture: Mixture, loaders: DataLoaders, rank: int) -> None:
    """Save the state that differs between processes: data loaders, and running sample lengths."""
    metadata: dict[str, Any] = {"mixture": mixture.state(), "feeds": {}}
    for name, loader in loaders.items():
        metadata["feeds"][name], tables = loader.state()
        for task, table in tables.items():
            path = str(folder / _buffer_file(rank, name, task))
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, table.schema) as writer:
                writer.write_table(table)
    write_atomically(folder / f"process-{rank}.json", msgspec.json.encode(metadata))


def _restore_process_state(folder: Path, mixture: Mixture, loaders: DataLoaders, rank: int) -> None:
    metadata = msgspec.json.decode((folder / f"process-{rank}.json").read_bytes())
    mixture.restore(metadata["mixture"])
    for name, loader in loaders.items():
        tables = {}
        for task in loader.buffered_tasks:
            with pa.OSFile(str(folder / _buffer_file(rank, name, task)), "rb") as file:
                tables[task] = pa.ipc.open_file(file).read_all()
        loader.restore(metadata["feeds"][name], tables)


def _buffer_file(rank: int, loader: str, task: str) -> str:
    return f"stock-{rank}-{loader}-{task}.arrow"
