"""Bundled checkpoints: creation from a training, the card, and the committed checkpoint."""

from __future__ import annotations

import json
import re
import shlex
import shutil
import subprocess
import sys
from pathlib import Path

import pytest
import torch

from bittoken.checkpoint import load
from bittoken.training.live import TrainingCallbacks
from bittoken.training.recipe import load_recipe
from bittoken.training.run import train
from experiments.results_store import TrainingScores
from experiments.ship import DATASETS, ship, write_card
from numbench.dataset.store import open_dataset
from numbench.errors import BadInput
from numbench.jsonl import read_json, write_json
from numbench.runner.spec import RunSpec
from tests.experiments.tiny import RECIPE, ROOT

pytestmark = pytest.mark.slow

INTEGERS = RECIPE.replace("digits = 4", "bits = 8")
SIZE = 9
SHIPPED = ROOT / "bench/bittoken/checkpoints/small"


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    (folder / "tiny.toml").write_text(INTEGERS.format(tokens=2048))
    train(load_recipe(folder / "tiny.toml"), folder / "tiny")
    return folder / "tiny"


@pytest.fixture(scope="module")
def shipped(training: Path, data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A bundled checkpoint, `out`, and the answers that its scores are from, `scratch`."""
    folder = tmp_path_factory.mktemp("shipped")
    (folder / "out").mkdir()
    (folder / "out/notes.md").write_text("It fails.\n")
    with pytest.MonkeyPatch.context() as patch:
        # The test of the committed card draws real figures.
        patch.setattr("experiments.ship.plot_training", write_empty_figures)
        ship(training, folder / "out", folder / "scratch", [data], SIZE)
    return folder


def write_empty_figures(folder: Path) -> None:
    (folder / "figures").mkdir()
    for name in ("scores", "curriculum"):
        (folder / "figures" / f"{name}.png").touch()


def test_training_becomes_a_checkpoint_with_a_card(training: Path, shipped: Path) -> None:
    out = shipped / "out"
    network, best = (load(f).network.state_dict() for f in (out, training / "checkpoint"))
    assert all(torch.equal(network[name], best[name].bfloat16().float()) for name in best)
    assert (out / "model.safetensors").stat().st_size < 0.6 * (
        training / "checkpoint/model.safetensors"
    ).stat().st_size
    assert (out / "metrics.jsonl").read_bytes() == (training / "metrics.jsonl").read_bytes()
    text = (out / "README.md").read_text()
    scores = read_json(out / "scores-bits8.json", TrainingScores)
    minmax = scores.tasks["minmax"].exact_match
    assert f"| MinMax | exact match | 32.1 | {minmax.value:.1f} (" in text
    assert "| Sorting |" not in text, "it is not trained"
    assert "It fails." in text and "{" not in text
    assert "integers up to 255" in text
    assert [name.split("@")[0] for name in re.findall(r"`([^`@]+@\w+)`<br>", text)] == [
        *("bits7", "bits8", "bits9", "bits10", "bits12"),
        "data",
    ]
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (out / link).is_file(), link


def test_cards_command_generates_the_evaluated_items(shipped: Path, tmp_path: Path) -> None:
    text = (shipped / "out/README.md").read_text()
    command = re.search(r"numbench (generate .*) \\\n +(.*) --out", text)
    assert command is not None
    arguments = [*shlex.split(" ".join(command.groups())), "--out", str(tmp_path / "again")]
    subprocess.run([sys.executable, "-m", "numbench", *arguments], check=True)
    scores = read_json(shipped / "out/scores-bits8.json", TrainingScores)
    assert open_dataset(tmp_path / "again").manifest.sha256 == scores.dataset.sha256


def test_training_on_decimal_fractions_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE.format(tokens=2048))
    write_json(tmp_path / "recipe.json", load_recipe(tmp_path / "tiny.toml"))
    with pytest.raises(BadInput, match=r"data\.bits is not set"):
        ship(tmp_path, tmp_path / "out", tmp_path / "scratch")


def test_unfinished_training_is_rejected(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(INTEGERS.format(tokens=2048))
    recipe = load_recipe(tmp_path / "tiny.toml")
    steps: list[int] = []
    callbacks = TrainingCallbacks(on_step=lambda trainer, result: steps.append(1))
    train(recipe, tmp_path / "tiny", callbacks, lambda: len(steps) >= 4)
    with pytest.raises(BadInput, match="only 4 of 8 steps are done"):
        ship(tmp_path / "tiny", tmp_path / "out", tmp_path / "scratch")
    assert not (tmp_path / "out").exists()


def test_missing_notes_are_reported_before_the_evaluation(training: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"notes\.md is missing"):
        ship(training, tmp_path / "out", tmp_path / "scratch")
    assert not list(tmp_path.iterdir())


def test_training_without_a_validation_is_rejected(training: Path, tmp_path: Path) -> None:
    begun = shutil.copytree(training, tmp_path / "begun")
    log = begun / "metrics.jsonl"
    log.write_text(log.read_text().splitlines(keepends=True)[0])
    with pytest.raises(BadInput, match="only 0 of 8 steps are done"):
        ship(begun, tmp_path / "out", tmp_path / "scratch")


def test_interrupted_shipping_leaves_no_scores_of_other_weights(
    training: Path, shipped: Path, data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shutil.copytree(shipped / "out", tmp_path / "out")

    def interrupt(spec: RunSpec) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.ship.run", interrupt)
    with pytest.raises(KeyboardInterrupt):
        ship(training, out, tmp_path / "scratch", [data], SIZE)
    assert not list(out.glob("scores-*")) and not (out / DATASETS).exists()
    with pytest.raises(BadInput, match=r"datasets\.json is missing"):
        write_card(out)


def test_card_with_another_recipe_is_rejected(shipped: Path, tmp_path: Path) -> None:
    out = shutil.copytree(shipped / "out", tmp_path / "out")
    recipe = json.loads((out / "recipe.json").read_text())
    recipe["training"]["seed"] = 9
    (out / "recipe.json").write_text(json.dumps(recipe))
    with pytest.raises(BadInput, match="scores are from another training"):
        write_card(out)


def test_card_with_another_log_or_other_datasets_is_rejected(shipped: Path, tmp_path: Path) -> None:
    out = shutil.copytree(shipped / "out", tmp_path / "out")
    log = out / "metrics.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(BadInput, match="than the recipe or the log"):
        write_card(out)
    (out / "scores-bits9.json").unlink()
    with pytest.raises(BadInput, match="are from different datasets"):
        write_card(out)


def test_committed_card_is_generated_from_its_files(tmp_path: Path) -> None:
    again = tmp_path / "small"
    shutil.copytree(SHIPPED, again)
    write_card(again)
    assert (again / "README.md").read_text() == (SHIPPED / "README.md").read_text()
    figures = sorted(SHIPPED.glob("figures/*.svg"))
    assert figures
    for figure in figures:
        assert _labels(again / "figures" / figure.name) == _labels(figure), figure.name


def _labels(svg: Path) -> list[str]:
    """Return the texts of a figure; its other bytes depend on the version of matplotlib."""
    return re.findall(r"<!-- (.*) -->", svg.read_text())


def test_committed_checkpoint_is_small_and_has_the_bundled_recipe() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*")) < 15e6
    recipe = load_recipe("small")
    assert read_json(SHIPPED / "scores-v1.json", TrainingScores).recipe == recipe
    assert load(SHIPPED).training["recipe"] == json.loads((SHIPPED / "recipe.json").read_bytes())
