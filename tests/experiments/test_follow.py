"""A recipe that is trained again follows the log of record."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bench.bittoken.training.recipe import Recipe, load_recipe
from bench.bittoken.training.run import Watch, train
from bench.jsonl import read_json, write_json
from experiments.follow import TOLERANCE, compare, main
from tests.experiments.tiny import ROOT


def log(folder: Path, losses: Sequence[float | None], seed: int = 1) -> Path:
    """A training's folder, as far as its losses go."""
    folder.mkdir()
    write_json(folder / "recipe.json", load_recipe("cpu", (f"training.seed={seed}",)))
    lines = [
        {"step": 64 * (n + 1), "tasks": {}, "loss": {"minmax": loss}}
        for n, loss in enumerate(losses)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(line) + "\n" for line in lines))
    return folder


@pytest.mark.parametrize(
    ("again", "code", "words"),
    [
        ([2.0, 1.0], 0, "equal to the last digit"),
        ([2.0, 1.05], 0, "differs by 5 % at most (minmax at step 128)"),
        ([2.0, 1.2], 1, "differs by 20 % at most (minmax at step 128)"),
        ([2.0, None], 1, "differs by inf % at most (minmax at step 128)"),
    ],
)
def test_what_it_says(
    again: list[float | None],
    code: int,
    words: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folders = [log(tmp_path / "old", [2.0, 1.0, 0.5]), log(tmp_path / "new", again)]
    assert main([str(folder) for folder in folders]) == code
    assert words in capsys.readouterr().out


def test_other_recipes_and_empty_logs_are_told(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = log(tmp_path / "old", [2.0])
    assert main([str(old), str(log(tmp_path / "other", [2.0], seed=2))]) == 2
    assert "another recipe" in capsys.readouterr().err
    assert main([str(old), str(log(tmp_path / "short", []))]) == 2
    assert "train for longer" in capsys.readouterr().err


def test_a_training_of_record_begins_as_its_log_says(tmp_path: Path) -> None:
    begins_as_logged(ROOT / "results/trained/multi-bittoken-s1", tmp_path)


def begins_as_logged(record: Path, again: Path) -> None:
    """Train up to the first validation, and hold the losses against the log."""
    recipe = read_json(record / "recipe.json", Recipe)
    steps: list[int] = []
    watch = Watch(step=lambda trainer, result: steps.append(1))
    train(recipe, again, watch, lambda: len(steps) >= recipe.training.validate_every)
    found = compare(record, again)
    assert {one.step for one in found} == {recipe.training.validate_every}
    assert max(one.difference for one in found) < TOLERANCE
