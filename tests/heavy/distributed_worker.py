"""One of two processes of a training, started by `tests/heavy/test_distributed.py`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import numpy as np
import torch

from bittoken.training.distributed import DistributedContext
from bittoken.training.live import TrainingCallbacks
from bittoken.training.run import train
from bittoken.training.trainer import StepResult, Trainer
from tests.bittoken.training.tiny import TrainingParts, gradients, recipe


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in trainer.network.named_parameters()}


def three_steps(out: Path) -> None:
    distributed = DistributedContext()
    rank = distributed.rank
    assert distributed.all_reduce_sum(np.array([1.0 + rank])).tolist() == [3.0]
    assert distributed.broadcast({"from": rank}) == {"from": 0}
    parts = TrainingParts(recipe(), distributed, rank)
    result = gradients(parts, parts.batch(400))
    if distributed.is_main_process:
        torch.save(result, out / "gradients.pt")
    parts = TrainingParts(recipe(), distributed, rank)
    for _ in range(3):
        parts.trainer.step(parts.batch(400))
    torch.save(weights(parts.trainer), out / f"weights-{rank}.pt")
    if distributed.is_main_process:
        torch.save(parts.trainer.progress.losses, out / "progress.pt")
    distributed.barrier()
    distributed.close()


def train_until(folder: Path, stop_step: int | None = None) -> dict[str, torch.Tensor]:
    seen: list[Trainer] = []

    def on_step(trainer: Trainer, result: StepResult) -> None:
        seen[:] = [trainer]

    def should_stop() -> bool:
        return stop_step is not None and bool(seen) and seen[0].progress.step >= stop_step

    train(recipe(), folder, TrainingCallbacks(on_step=on_step), should_stop)
    return weights(seen[0])


def main(out: Path, ports: Iterator[str]) -> None:
    torch.set_num_threads(1)
    rank = os.environ["RANK"]
    # Each process group uses another port, because the previous one may still be in use.
    os.environ["MASTER_PORT"] = next(ports)
    three_steps(out)
    os.environ["MASTER_PORT"] = next(ports)
    torch.save(train_until(out / "reference"), out / f"reference-{rank}.pt")
    os.environ["MASTER_PORT"] = next(ports)
    train_until(out / "resumed", stop_step=7)
    os.environ["MASTER_PORT"] = next(ports)
    torch.save(train_until(out / "resumed"), out / f"resumed-{rank}.pt")


main(Path(sys.argv[1]), iter(sys.argv[2:]))
