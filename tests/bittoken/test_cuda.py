"""The small models on a GPU give what they give on a CPU. Skipped where there is no GPU."""

import json
from pathlib import Path
from typing import Any

import numpy as np
import pytest
import torch

from bittoken.checkpoint import load_checkpoint
from bittoken.encodings import ENCODINGS
from bittoken.generation import generate
from bittoken.recipe import load_recipe
from bittoken.tokens import encode_questions
from bittoken.train import train
from numbench.tasks.prompts import Question

pytestmark = pytest.mark.skipif(not torch.cuda.is_available(), reason="needs a GPU with CUDA")
CUDA, CPU = torch.device("cuda"), torch.device("cpu")
SETTINGS = [
    "data.tasks=['minmax','addition']", "data.curriculum=['addition']", "data.bits=8",
    "model.layers=2", "training.questions=12800", "training.batch_questions=128",
    "training.validate_every=20", "training.validation_items=64", "training.save_every=20",
]  # fmt: skip


@pytest.mark.parametrize("name", ["bittoken", "fone", "xval", "base10"])
def test_encodings_give_the_same_on_a_gpu(name: str) -> None:
    encoding = ENCODINGS[name]
    values = np.concatenate([[0.0, 1.0, 255.0, 0.1], np.random.default_rng(1).uniform(0, 1e6, 99)])
    codes = torch.from_numpy(encoding.encode(values))
    vectors = encoding.vector(codes), encoding.vector(codes.to(CUDA)).cpu()
    torch.testing.assert_close(*vectors)
    outputs = torch.randn(len(codes), encoding.outputs, generator=torch.Generator().manual_seed(1))
    predicted = encoding.predict(outputs), encoding.predict(outputs.to(CUDA)).cpu()
    torch.testing.assert_close(*predicted)
    losses = encoding.loss(outputs, codes), encoding.loss(outputs.to(CUDA), codes.to(CUDA)).cpu()
    torch.testing.assert_close(*losses, rtol=1e-4, atol=1e-4)


def test_the_bundled_checkpoint_answers_the_same_on_a_gpu() -> None:
    rng = np.random.default_rng(5)
    pairs = rng.integers(1, 256, (200, 2)).astype(str).tolist()
    questions = [Question("addition", "+", tuple(pair)) for pair in pairs]
    answers = []
    for device in (CPU, CUDA):
        loaded = load_checkpoint("small")
        loaded.network.to(device)
        answers.append(
            generate(
                loaded.network, loaded.vocabulary, encode_questions(questions, loaded.vocabulary)
            )
        )
    same = sum(first == second for first, second in zip(*answers, strict=True))
    assert same >= 198


@pytest.mark.parametrize("compiled", ["false", "true"])
def test_a_training_on_a_gpu_learns_and_resumes(tmp_path: Path, compiled: str) -> None:
    def stop(progress: Any, loss: float) -> bool:
        return bool(progress.step == 30)

    recipe = load_recipe("cpu", [*SETTINGS, f"training.compile={compiled}"])
    assert not train(recipe, tmp_path, stop).is_complete
    assert train(recipe, tmp_path).is_complete
    lines = (tmp_path / "metrics.jsonl").read_text().splitlines()
    entries = [json.loads(line) for line in lines]
    assert entries[0]["device"] == torch.cuda.get_device_name()
    losses = [entry["loss"] for entry in entries if "loss" in entry]
    assert [entry["step"] for entry in entries if "loss" in entry] == [20, 40, 60, 80, 100]
    assert all(losses[-1][task] < losses[0][task] / 2 for task in losses[0])
