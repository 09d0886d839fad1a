"""Compare encodings on the paper's range of numbers, in minutes on a GPU: see gpu.sh.

    python -m studies.multitask.gpu OUT --minutes 7

First each encoding trains for a few seconds, to measure its speed. Then all train on the same
number of questions, as many as fit, and answer the same fresh questions. Writes to OUT the recipe
and the log of each training, and scores.json.
"""

from __future__ import annotations

import argparse
import json
import shutil
import time
from collections.abc import Callable, Sequence
from pathlib import Path
from tempfile import TemporaryDirectory
from typing import Any

import torch

from bittoken.recipe import load_recipe
from bittoken.train import Progress, train
from studies.multitask.train import evaluate

RECIPE = Path(__file__).with_name("gpu.toml")
ENCODINGS = ("bittoken", "fone", "digit")
SIZE = 500
"""Questions per task in the evaluation."""

TRAINING_SHARE = 0.8
"""The share of the remaining time for training; the rest is for validations and answers."""

WARMUP_STEPS, LONG = 3, 10**12


def questions_per_second(
    encoding: str, folder: Path, settings: Sequence[str], seconds: float
) -> float:
    """Return how many questions per second an encoding trains on."""
    started: list[tuple[float, int]] = []
    speed = [0.0]

    def on_step(progress: Progress, loss: float) -> bool:
        if progress.step == WARMUP_STEPS:
            started.append((time.monotonic(), progress.questions))
        if not started:
            return False
        elapsed = time.monotonic() - started[0][0]
        speed[0] = (progress.questions - started[0][1]) / max(elapsed, 1e-9)
        return progress.step > WARMUP_STEPS and elapsed > seconds

    overrides = [f"model.encoding={encoding}", f"training.questions={LONG}", *settings]
    train(load_recipe(RECIPE, overrides), folder, on_step)
    return speed[0]


def common_questions(speeds: Sequence[float], seconds: float, batch: int) -> int:
    """Return the questions, in whole batches, that all encodings can train on in this time."""
    return max(int(seconds / sum(1 / speed for speed in speeds)) // batch, 1) * batch


def compare(
    out: Path, work: Path, seconds: float, settings: Sequence[str], size: int,
    calibration_seconds: float,
) -> dict[str, Any]:  # fmt: skip
    """Train and evaluate every encoding in this time; return what scores.json contains."""
    end = time.monotonic() + seconds
    speeds = {
        encoding: questions_per_second(
            encoding, work / f"speed-{encoding}", settings, calibration_seconds
        )
        for encoding in ENCODINGS
    }
    batch = load_recipe(RECIPE, settings).training.batch_questions
    remaining = TRAINING_SHARE * (end - time.monotonic())
    questions = common_questions([*speeds.values()], remaining, batch)
    content: dict[str, Any] = {
        "device": torch.cuda.get_device_name() if torch.cuda.is_available() else "CPU",
        "torch": str(torch.__version__),
        "questions_per_second": speeds,
        "results": {},
    }
    for encoding in ENCODINGS:
        folder = work / encoding
        overrides = [f"name={encoding}", f"model.encoding={encoding}"]
        recipe = load_recipe(RECIPE, [*overrides, f"training.questions={questions}", *settings])
        is_complete = train(recipe, folder, stop_at(end)).is_complete
        for name in ("recipe.json", "metrics.jsonl"):
            shutil.copyfile(folder / name, out / f"{encoding}-{name}")
        scores = evaluate(folder, work / "decimals", size, recipe.data.tasks, "15 digits")
        content["results"][encoding] = {"complete": is_complete, **scores}
        (out / "scores.json").write_text(json.dumps(content, indent=1) + "\n", encoding="utf-8")
    return content


def stop_at(end: float) -> Callable[[Progress, float], bool]:
    """Return what stops a training at a time, if it is slower than measured."""
    return lambda progress, loss: time.monotonic() > end


def main(arguments: Sequence[str] | None = None) -> None:
    """Run the comparison from the command line."""
    parser = argparse.ArgumentParser(prog="python -m studies.multitask.gpu")
    parser.add_argument("out", type=Path)
    parser.add_argument("--minutes", type=float, default=7.0, help="default: %(default)s")
    parser.add_argument("--set", action="append", default=[], metavar="KEY=VALUE", dest="settings")
    parser.add_argument("--size", type=int, default=SIZE, help="questions per task; %(default)s")
    parser.add_argument("--calibration", type=float, default=8.0, help="seconds; %(default)s")
    options = parser.parse_args(arguments)
    options.out.mkdir(parents=True, exist_ok=True)
    with TemporaryDirectory() as work:
        content = compare(
            options.out, Path(work), 60 * options.minutes, options.settings, options.size,
            options.calibration,
        )  # fmt: skip
    print(json.dumps(content, indent=1))


if __name__ == "__main__":
    main()
