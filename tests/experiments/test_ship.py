"""A checkpoint that is shipped: from a training to its card; and the one that comes along."""

from __future__ import annotations

import json
import re
import shutil
from itertools import pairwise
from pathlib import Path

import pytest
import torch

from bench.bittoken.checkpoint import load
from bench.bittoken.training.recipe import load_recipe
from bench.bittoken.training.run import Watch, train
from bench.dataset.generate import generate
from bench.dataset.settings import Settings
from bench.errors import BadInput
from bench.jsonl import read_json
from bench.runner.spec import RunSpec
from bench.scoring import score_run
from experiments.card import DIFFICULTY
from experiments.kept import Scores
from experiments.ship import ship, write_card
from experiments.thirds import Third, thirds
from tests.experiments.tiny import RECIPE, ROOT

NEW = Settings(name="new", size=12, seed=5)
SHIPPED = ROOT / "checkpoints/small"


@pytest.fixture(scope="module")
def training(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("training")
    (folder / "tiny.toml").write_text(RECIPE.format(tokens=16 * 1024))
    train(load_recipe(folder / "tiny.toml"), folder / "tiny", Watch())
    return folder / "tiny"


@pytest.fixture(scope="module")
def made(training: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A shipped checkpoint, `out`, beside the answers that its scores come from."""
    folder = tmp_path_factory.mktemp("made")
    known = generate(Settings(name="known", size=8), folder / "known").dataset.path
    (folder / "out").mkdir()
    (folder / "out/notes.md").write_text("It fails.\n")
    ship(training, folder / "out", folder / "scratch", [known], [NEW])
    return folder


def test_a_training_becomes_a_checkpoint_with_a_card(training: Path, made: Path) -> None:
    out = made / "out"
    network, best = (load(f).network.state_dict() for f in (out, training / "checkpoint"))
    assert all(torch.equal(network[name], best[name].bfloat16().float()) for name in best)
    assert (out / "model.safetensors").stat().st_size < 0.6 * (
        training / "checkpoint/model.safetensors"
    ).stat().st_size
    assert (out / "metrics.jsonl").read_bytes() == (training / "metrics.jsonl").read_bytes()
    text = (out / "README.md").read_text()
    scores = read_json(out / "scores-known.json", Scores)
    sorting, minmax = scores.tasks["sorting"].exact_match, scores.tasks["minmax"].exact_match
    assert f"| MinMax | exact match | 32.1 | {minmax.value:.1f} (" in text
    assert f"| (Sorting) | exact match | 17.9 | {sorting.value:.1f} (" in text
    assert "It fails." in text and "{" not in text
    parts = read_json(out / DIFFICULTY, dict[str, dict[str, list[Third]]])
    assert {name: set(found) for name, found in parts.items()} == {
        "known": {"minmax", "addition"},
        "new": {"minmax", "addition"},
    }
    for link in re.findall(r"\]\(([^)]+)\)", text):
        assert (out / link).is_file(), link


def test_thirds_hold_every_item_once_and_average_to_the_score(made: Path) -> None:
    run = score_run(made / "scratch/answers-new")
    scores = read_json(made / "out/scores-new.json", Scores)
    for task, parts in thirds(run, tuple(scores.tasks)).items():
        assert sum(part.items for part in parts) == NEW.size
        assert all(a.hardest < b.easiest for a, b in pairwise(parts))
        mean = sum(part.items * part.score.value for part in parts) / NEW.size
        assert mean == pytest.approx(scores.tasks[task].headline.value)


def test_a_training_that_has_not_ended_is_not_shipped(tmp_path: Path) -> None:
    (tmp_path / "tiny.toml").write_text(RECIPE.format(tokens=16 * 1024))
    stop: list[int] = []
    train(
        load_recipe(tmp_path / "tiny.toml"),
        tmp_path / "tiny",
        Watch(step=lambda trainer, result: stop.append(1)),
        lambda: len(stop) >= 8,
    )
    with pytest.raises(BadInput, match="only 8 of 16 steps are done"):
        ship(tmp_path / "tiny", tmp_path / "out", tmp_path / "scratch")
    assert not (tmp_path / "out").exists()


def test_without_notes_nothing_is_asked(training: Path, tmp_path: Path) -> None:
    with pytest.raises(BadInput, match=r"notes\.md is missing"):
        ship(training, tmp_path / "out", tmp_path / "scratch")
    assert not list(tmp_path.iterdir())


def test_a_training_without_a_validation_is_not_shipped(training: Path, tmp_path: Path) -> None:
    begun = shutil.copytree(training, tmp_path / "begun")
    log = begun / "metrics.jsonl"
    log.write_text(log.read_text().splitlines(keepends=True)[0])
    with pytest.raises(BadInput, match="only 0 of 16 steps are done"):
        ship(begun, tmp_path / "out", tmp_path / "scratch")


def test_shipping_that_breaks_off_leaves_no_scores_of_other_weights(
    training: Path, made: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = shutil.copytree(made / "out", tmp_path / "out")

    def broken(spec: RunSpec) -> None:
        raise KeyboardInterrupt

    monkeypatch.setattr("experiments.ship.run", broken)
    with pytest.raises(KeyboardInterrupt):
        ship(training, out, tmp_path / "scratch", [made / "known"], [])
    assert not list(out.glob("scores-*")) and not (out / DIFFICULTY).exists()
    with pytest.raises(BadInput, match=r"difficulty\.json is missing"):
        write_card(out)


def test_a_card_of_mixed_files_is_refused(made: Path, tmp_path: Path) -> None:
    out = shutil.copytree(made / "out", tmp_path / "out")
    recipe = json.loads((out / "recipe.json").read_text())
    recipe["training"]["seed"] = 9
    (out / "recipe.json").write_text(json.dumps(recipe))
    with pytest.raises(BadInput, match="scores are of another training"):
        write_card(out)


def test_a_card_beside_the_log_of_another_training_is_refused(made: Path, tmp_path: Path) -> None:
    out = shutil.copytree(made / "out", tmp_path / "out")
    log = out / "metrics.jsonl"
    log.write_text("".join(log.read_text().splitlines(keepends=True)[:-1]))
    with pytest.raises(BadInput, match="than its recipe or log"):
        write_card(out)
    (out / "scores-new.json").unlink()
    with pytest.raises(BadInput, match="are of other datasets"):
        write_card(out)


def test_the_committed_card_is_what_the_files_beside_it_say(tmp_path: Path) -> None:
    again = tmp_path / "small"
    shutil.copytree(SHIPPED, again)
    write_card(again)
    for path in sorted(SHIPPED.rglob("*")):
        if path.is_file():
            assert (again / path.relative_to(SHIPPED)).read_bytes() == path.read_bytes(), path


def test_the_shipped_checkpoint_is_small_and_of_the_shipped_recipe() -> None:
    assert sum(path.stat().st_size for path in SHIPPED.rglob("*")) < 15e6
    recipe = load_recipe("small")
    assert read_json(SHIPPED / "scores-v1.json", Scores).recipe == recipe
    assert load(SHIPPED).training["recipe"] == json.loads((SHIPPED / "recipe.json").read_bytes())
