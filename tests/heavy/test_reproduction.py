"""Committed trainings start again as their logs say; the dataset `short` is generated again."""

from __future__ import annotations

from pathlib import Path

import pytest

from bittoken.training.live import TrainingCallbacks
from bittoken.training.recipe import Recipe
from bittoken.training.run import train
from experiments.follow import TOLERANCE, compare_losses
from numbench.dataset.generate import generate
from numbench.dataset.settings import DatasetSettings
from numbench.dataset.store import open_dataset
from numbench.jsonl import read_json
from tests.experiments.tiny import ROOT

pytestmark = pytest.mark.heavy
ENCODINGS = ("bittoken", "digit", "subword", "fone")


@pytest.mark.parametrize(
    "folder",
    [
        "bench/bittoken/checkpoints/small",
        *(f"results/trained/multi-{e}-s1" for e in ENCODINGS),
        *(
            f"results/sample-complexity/runs/multiplication-8-{e}-s1"
            for e in (*ENCODINGS, "base10")
        ),
    ],
)
def test_training_reproduces_its_log_up_to_the_first_validation(
    folder: str, tmp_path: Path
) -> None:
    recipe = read_json(ROOT / folder / "recipe.json", Recipe)
    first_validation = recipe.training.validate_every
    steps: list[int] = []
    callbacks = TrainingCallbacks(on_step=lambda trainer, result: steps.append(1))
    train(recipe, tmp_path, callbacks, lambda: len(steps) >= first_validation)
    comparisons = compare_losses(ROOT / folder, tmp_path)
    assert {one.step for one in comparisons} == {first_validation}
    assert max(one.difference for one in comparisons) < TOLERANCE


def test_dataset_short_is_the_generators_output(tmp_path: Path) -> None:
    again = generate(DatasetSettings(name="short", max_digits=4), tmp_path / "short")
    assert again.dataset.manifest == open_dataset(ROOT / "datasets" / "short").manifest
