"""Training with two processes equals training with one on both their batches."""

from __future__ import annotations

import os
import socket
import subprocess
import sys
from contextlib import ExitStack
from pathlib import Path

import numpy as np
import pytest
import torch

from bittoken.data.packing import concatenate_samples
from bittoken.training.mixture import Batch
from tests.bittoken.training.tiny import TrainingParts, assert_close, gradients, recipe

pytestmark = pytest.mark.heavy


def free_ports(count: int) -> list[str]:
    with ExitStack() as stack:
        listeners = [stack.enter_context(socket.socket()) for _ in range(count)]
        for listener in listeners:
            listener.bind(("127.0.0.1", 0))
        return [str(listener.getsockname()[1]) for listener in listeners]


@pytest.fixture(scope="module")
def output(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The results of two processes of `distributed_worker`."""
    out = tmp_path_factory.mktemp("distributed")
    environment = {"WORLD_SIZE": "2", "MASTER_ADDR": "127.0.0.1", "CUDA_VISIBLE_DEVICES": ""}
    ports = free_ports(4)
    processes = [
        subprocess.Popen(
            [sys.executable, "-m", "tests.heavy.distributed_worker", str(out), *ports],
            env={**os.environ, **environment, "RANK": str(rank)},
            stderr=subprocess.PIPE,
            text=True,
        )
        for rank in range(2)
    ]
    try:
        outputs = [process.communicate(timeout=600) for process in processes]
    finally:
        for process in processes:
            process.kill()
    assert [process.returncode for process in processes] == [0, 0], outputs
    return out


def joint_batch(first: TrainingParts, second: TrainingParts) -> Batch:
    one, two = first.batch(400), second.batch(400)
    assert one.samples.tokens.tolist() != two.samples.tokens.tolist()
    samples = concatenate_samples([one.samples, two.samples])
    return Batch(samples, np.r_[one.task, two.task], np.r_[one.level, two.level])


def two_ranks() -> tuple[TrainingParts, TrainingParts]:
    return TrainingParts(recipe()), TrainingParts(recipe(), rank=1)


def test_gradients_are_those_of_one_process_with_both_batches(output: Path) -> None:
    single, other = two_ranks()
    expected = gradients(single, joint_batch(single, other))
    assert_close(expected, torch.load(output / "gradients.pt"))


def test_steps_are_those_of_one_process_with_both_batches(output: Path) -> None:
    first, second = (torch.load(output / f"weights-{rank}.pt") for rank in range(2))
    single, other = two_ranks()
    start = {name: p.detach().clone() for name, p in single.trainer.network.named_parameters()}
    for _ in range(3):
        single.trainer.step(joint_batch(single, other))
    for name, parameter in single.trainer.network.named_parameters():
        assert torch.equal(first[name], second[name])
        # Newton–Schulz in bfloat16 amplifies the rounding of float32.
        moved = (parameter.detach() - start[name]).norm()
        assert (first[name] - parameter.detach()).norm() < 0.1 * moved, name
    progress = torch.load(output / "progress.pt")
    assert progress == pytest.approx(single.trainer.progress.losses, rel=1e-3)


def test_stopped_training_resumes_with_identical_results(output: Path) -> None:
    for rank in range(2):
        reference, resumed = (
            torch.load(output / f"{name}-{rank}.pt") for name in ("reference", "resumed")
        )
        assert all(torch.equal(reference[name], resumed[name]) for name in reference)
