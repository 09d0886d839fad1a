"""One of two processes that train together; started by `test_trainer`."""

from __future__ import annotations

import os
import sys
from collections.abc import Iterator
from pathlib import Path

import torch

from bench.bittoken.training.crew import Crew
from bench.bittoken.training.run import Watch, train
from bench.bittoken.training.trainer import StepResult, Trainer
from tests.bittoken.training.tiny import Bench, gradients, recipe


def weights(trainer: Trainer) -> dict[str, torch.Tensor]:
    return {name: p.detach().clone() for name, p in trainer.network.named_parameters()}


def three_steps(out: Path) -> None:
    crew = Crew()
    assert crew.total(torch.tensor([1.0 + crew.rank]).numpy()).tolist() == [3.0]
    assert crew.shared({"from": crew.rank}) == {"from": 0}
    bench = Bench(recipe(), crew, crew.rank)
    found = gradients(bench, bench.batch(400))
    if crew.leads:
        torch.save(found, out / "gradients.pt")
    bench = Bench(recipe(), crew, crew.rank)
    for _ in range(3):
        bench.trainer.step(bench.batch(400))
    torch.save(weights(bench.trainer), out / f"weights-{crew.rank}.pt")
    if crew.leads:
        torch.save(bench.trainer.progress.losses, out / "progress.pt")
    crew.wait()
    crew.close()


def trained(folder: Path, stop_at: int | None = None) -> dict[str, torch.Tensor]:
    seen: list[Trainer] = []

    def step(trainer: Trainer, result: StepResult) -> None:
        seen[:] = [trainer]

    def stop() -> bool:
        return stop_at is not None and bool(seen) and seen[0].progress.step >= stop_at

    train(recipe(training={"tokens": 400 * 12}), folder, Watch(step=step), stop)
    return weights(seen[0])


def main(out: Path, ports: Iterator[str]) -> None:
    torch.set_num_threads(1)
    rank = os.environ["RANK"]
    # Each group meets at a port of its own, or one comes too early to where the last one was.
    os.environ["MASTER_PORT"] = next(ports)
    three_steps(out)
    os.environ["MASTER_PORT"] = next(ports)
    torch.save(trained(out / "whole"), out / f"whole-{rank}.pt")
    os.environ["MASTER_PORT"] = next(ports)
    trained(out / "parts", stop_at=7)
    os.environ["MASTER_PORT"] = next(ports)
    torch.save(trained(out / "parts"), out / f"parts-{rank}.pt")


main(Path(sys.argv[1]), iter(sys.argv[2:]))
