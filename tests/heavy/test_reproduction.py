"""Committed trainings start again as their logs say; the dataset `short` is generated again."""

from __future__ import annotations

import json
from pathlib import Path

import pytest

from bittoken.training.live import TrainingCallbacks
from bittoken.training.recipe import Recipe
from bittoken.training.run import train
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import open_dataset
from numbench.jsonl import read_json

pytestmark = pytest.mark.heavy
ROOT = Path(__file__).parents[2]


def first_losses(folder: Path) -> dict[str, float]:
    """Return the losses of the first validation of a log."""
    entries = map(json.loads, (folder / "metrics.jsonl").read_text().splitlines())
    losses: dict[str, float] = next(entry["loss"] for entry in entries if "loss" in entry)
    return losses


@pytest.mark.parametrize(
    "folder",
    [
        "bench/bittoken/checkpoints/small",
        *(
            f"results/products/runs/multiplication-8-{encoding}-s1"
            for encoding in ("bittoken", "digit", "subword", "fone", "base10")
        ),
    ],
)
def test_training_reproduces_its_log_up_to_the_first_validation(
    folder: str, tmp_path: Path
) -> None:
    recipe = read_json(ROOT / folder / "recipe.json", Recipe)
    steps: list[int] = []
    callbacks = TrainingCallbacks(on_step=lambda trainer, result: steps.append(1))
    train(recipe, tmp_path, callbacks, lambda: len(steps) >= recipe.training.validate_every)
    assert first_losses(tmp_path) == pytest.approx(first_losses(ROOT / folder), rel=0.1)


def test_dataset_short_is_the_generators_output(tmp_path: Path) -> None:
    again = generate(DatasetSettings(name="short", max_digits=4), tmp_path / "short")
    assert again.dataset.manifest == open_dataset(ROOT / "datasets" / "short").manifest
