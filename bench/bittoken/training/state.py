"""All that an interrupted training needs to go on as if nothing had been: tensors, tables, JSON.

One folder per saved step; `latest` names the whole one. Nothing in it is unpickled.
"""

from __future__ import annotations

import os
import shutil
from contextlib import suppress
from pathlib import Path
from typing import Any

import msgspec
import numpy as np
import pyarrow as pa
import pyarrow.ipc
import torch
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file
from torch import Tensor

from bench.bittoken.training.crew import Crew
from bench.bittoken.training.mixture import Feed, Mixture
from bench.bittoken.training.trainer import Progress, Trainer
from bench.errors import BadInput, NumbenchError
from bench.jsonl import write_atomically

LATEST, _STEP = "latest", "step-"
Feeds = dict[str, Feed]
Weights = dict[str, Tensor]

_DAMAGE = (
    OSError, KeyError, TypeError, ValueError, RuntimeError, msgspec.DecodeError, SafetensorError
)  # fmt: skip
"""What files that are not whole, or not ours, can raise when they are read."""


def save(
    folder: Path, trainer: Trainer, mixture: Mixture, feeds: Feeds, best: Weights, crew: Crew
) -> None:
    """Write the state under `folder`; the one before is removed once this one is whole.

    NumbenchError where the disk refuses it.
    """
    name = f"{_STEP}{trainer.progress.step:07d}"
    place = folder / name
    try:
        _write(place, trainer, mixture, feeds, best, crew)
        crew.wait()
        if crew.leads:
            write_atomically(folder / LATEST, name.encode())
    except (OSError, SafetensorError) as error:
        raise NumbenchError(
            f"{place}: {error}; once that is mended, the same command goes on"
        ) from error
    if crew.leads:
        for old in folder.glob(f"{_STEP}*"):
            if old.name != name:
                shutil.rmtree(old)


def _write(
    place: Path, trainer: Trainer, mixture: Mixture, feeds: Feeds, best: Weights, crew: Crew
) -> None:
    place.mkdir(parents=True, exist_ok=True)
    _save_own(place, mixture, feeds, crew.rank)
    if crew.leads:
        tensors = {f"best.{key}": value for key, value in best.items()}
        save_file(tensors | _tensors(trainer), place / "tensors.safetensors")
        plain = {
            "progress": vars(trainer.progress),
            "factors": trainer.scale.factors.tolist(),
            "means": [None if np.isnan(mean) else mean for mean in trainer.scale.means.tolist()],
            "processes": crew.world,
        }
        write_atomically(place / "state.json", msgspec.json.encode(plain))
    _sync(place)


def restore(
    folder: Path, trainer: Trainer, mixture: Mixture, feeds: Feeds, crew: Crew
) -> Weights | None:
    """Go on from the state under `folder`: the best weights so far, or None where nothing is.

    BadInput where the state is damaged or of another number of processes.
    """
    if not (folder / LATEST).is_file():
        return None
    place = folder
    try:
        place = folder / (folder / LATEST).read_text().strip()
        plain: dict[str, Any] = msgspec.json.decode((place / "state.json").read_bytes())
        tensors = load_file(place / "tensors.safetensors")
        if plain["processes"] != crew.world:
            raise BadInput(
                f"{folder} was saved by {plain['processes']} processes, this training has "
                f"{crew.world}: start as many as before"
            )
        best = _restore_tensors(trainer, tensors)
        trainer.progress = Progress(**plain["progress"])
        trainer.scale.factors = np.array(plain["factors"])
        trainer.scale.means = np.array(plain["means"], np.float64)
        _restore_own(place, mixture, feeds, crew.rank)
    except _DAMAGE as error:
        raise BadInput(
            f"{place}: the saved state does not load ({error}); "
            "restore the folder, or train into a new one"
        ) from error
    return best


def saved_step(folder: Path) -> int:
    """The step of the state under `folder`, 0 where there is none. BadInput where it is damaged."""
    try:
        return int((folder / LATEST).read_text().strip().removeprefix(_STEP))
    except FileNotFoundError:
        return 0
    except ValueError as error:
        raise BadInput(f"{folder / LATEST}: names no step; restore the folder") from error


def weights(trainer: Trainer) -> Weights:
    """A copy of the network's parameters."""
    return {name: p.detach().cpu().clone() for name, p in trainer.network.named_parameters()}


def _optimizer_states(trainer: Trainer) -> dict[str, dict[str, Tensor]]:
    """Each parameter's optimiser state, by name. A state yet to come is empty."""
    return {
        name: trainer.optimizers.owner(parameter).state.get(parameter, {})
        for name, parameter in trainer.network.named_parameters()
    }


def _tensors(trainer: Trainer) -> Weights:
    tensors = {f"network.{name}": value for name, value in weights(trainer).items()}
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
            # Adam keeps its count of steps on the CPU, unlike its moments.
            place = "cpu" if part == "step" else parameter.device
            owner = trainer.optimizers.owner(parameter)
            owner.state[parameter][part] = value.to(place)
    return best


def _sync(place: Path) -> None:
    """Have all of `place` on the disk, so that a loss of power after `latest` names it is none."""
    for path in place.iterdir():
        # Another process may be renaming its own, which it has synced.
        with suppress(FileNotFoundError), path.open("rb") as file:
            os.fsync(file.fileno())


def _save_own(place: Path, mixture: Mixture, feeds: Feeds, rank: int) -> None:
    """What each process has of its own: between validations mixtures drift apart."""
    plain: dict[str, Any] = {"mixture": mixture.state(), "feeds": {}}
    for name, feed in feeds.items():
        plain["feeds"][name], stocks = feed.state()
        for task, stock in stocks.items():
            path = str(place / _stock(rank, name, task))
            with pa.OSFile(path, "wb") as file, pa.ipc.new_file(file, stock.schema) as writer:
                writer.write_table(stock)
    write_atomically(place / f"process-{rank}.json", msgspec.json.encode(plain))


def _restore_own(place: Path, mixture: Mixture, feeds: Feeds, rank: int) -> None:
    plain = msgspec.json.decode((place / f"process-{rank}.json").read_bytes())
    mixture.restore(plain["mixture"])
    for name, feed in feeds.items():
        stocks = {}
        for task in feed.pooled:
            with pa.OSFile(str(place / _stock(rank, name, task)), "rb") as file:
                stocks[task] = pa.ipc.open_file(file).read_all()
        feed.restore(plain["feeds"][name], stocks)


def _stock(rank: int, feed: str, task: str) -> str:
    return f"stock-{rank}-{feed}-{task}.arrow"
