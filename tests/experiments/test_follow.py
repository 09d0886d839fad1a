"""Comparison of a training with the log of another."""

from __future__ import annotations

import json
from collections.abc import Sequence
from pathlib import Path

import pytest

from bittoken.training.recipe import load_recipe
from bittoken.training.run import train
from experiments.follow import compare_losses, main
from numbench.jsonl import write_json
from tests.experiments.tiny import RECIPE


def write_log(folder: Path, losses: Sequence[float | None], seed: int = 1) -> Path:
    """Write the recipe and the losses of a training into a folder."""
    folder.mkdir()
    write_json(folder / "recipe.json", load_recipe("cpu", (f"training.seed={seed}",)))
    entries = [
        {"step": 64 * (n + 1), "tasks": {}, "loss": {"minmax": loss}}
        for n, loss in enumerate(losses)
    ]
    (folder / "metrics.jsonl").write_text("".join(json.dumps(entry) + "\n" for entry in entries))
    return folder


@pytest.mark.parametrize(
    ("again", "code", "expected"),
    [
        ([2.0, 1.0], 0, "identical in all logged digits"),
        ([2.0, 1.05], 0, "maximum difference: 5 % (minmax at step 128)"),
        ([2.0, 1.2], 1, "maximum difference: 20 % (minmax at step 128)"),
        ([2.0, None], 1, "maximum difference: inf % (minmax at step 128)"),
    ],
)
def test_report_and_exit_code(
    again: list[float | None],
    code: int,
    expected: str,
    tmp_path: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    folders = [write_log(tmp_path / "old", [2.0, 1.0, 0.5]), write_log(tmp_path / "new", again)]
    assert main([str(folder) for folder in folders]) == code
    assert expected in capsys.readouterr().out


def test_trainings_that_cannot_be_compared_are_rejected(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    old = write_log(tmp_path / "old", [2.0])
    assert main([str(old), str(write_log(tmp_path / "other", [2.0], seed=2))]) == 2
    assert "another recipe" in capsys.readouterr().err
    assert main([str(old), str(write_log(tmp_path / "short", []))]) == 2
    assert "train for longer" in capsys.readouterr().err


def test_training_follows_itself(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE.format(tokens=1024))
    recipe = load_recipe(tmp_path / "tiny.toml")
    for name in ("first", "second"):
        train(recipe, tmp_path / name)
    assert main([str(tmp_path / "first"), str(tmp_path / "second")]) == 0
    assert (
        max(one.difference for one in compare_losses(tmp_path / "first", tmp_path / "second")) == 0
    )
