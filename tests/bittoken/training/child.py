"""A training that ends in the middle: `child FOLDER kill|interrupt STEP`, for `test_state`."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch

from bench.bittoken.training.run import Watch, train
from bench.bittoken.training.trainer import StepResult, Trainer
from tests.bittoken.training.tiny import recipe


def main(folder: Path, end: str, at: int) -> None:
    torch.set_num_threads(1)
    stopped: list[int] = []
    signal.signal(signal.SIGINT, lambda number, frame: stopped.append(number))

    def step(trainer: Trainer, result: StepResult) -> None:
        if trainer.progress.step == at:
            os.kill(os.getpid(), {"kill": signal.SIGKILL, "interrupt": signal.SIGINT}[end])

    train(recipe(), folder, Watch(step=step), lambda: bool(stopped))


main(Path(sys.argv[1]), sys.argv[2], int(sys.argv[3]))
