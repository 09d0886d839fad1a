"""A training that kills itself after a step; arguments: FOLDER STEP (for `test_state`)."""

from __future__ import annotations

import os
import signal
import sys
from pathlib import Path

import torch

from bittoken.training.live import TrainingCallbacks
from bittoken.training.run import train
from bittoken.training.trainer import StepResult, Trainer
from tests.bittoken.training.tiny import recipe


def main(folder: Path, kill_step: int) -> None:
    torch.set_num_threads(1)

    def on_step(trainer: Trainer, result: StepResult) -> None:
        if trainer.progress.step == kill_step:
            os.kill(os.getpid(), signal.SIGKILL)

    train(recipe(), folder, TrainingCallbacks(on_step=on_step))


main(Path(sys.argv[1]), int(sys.argv[2]))
