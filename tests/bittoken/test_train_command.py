"""`bittoken train`: start, interrupt, resume, and the commands that do not train."""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
from pathlib import Path

import pytest

from bittoken.training.recipe import load_recipe
from bittoken.training.state import saved_step
from bittoken.training.tables import plan_training
from numbench.cli import main

pytestmark = pytest.mark.slow

RECIPE = """# A tiny training.
[model]
encoding = "bittoken"
layers = 1
heads = 2
width = 128
[data]
tasks = ["minmax", "addition", "sorting"]
curriculum = ["minmax", "addition"]
digits = 4
[training]
tokens = 16384
batch_tokens = 1024
validate_every = 8
validation_tokens = 1024
save_every = 8
"""
PROGRAM = "from numbench.cli import main; main()"


@pytest.fixture(scope="module")
def recipe(tmp_path_factory: pytest.TempPathFactory) -> Path:
    path = tmp_path_factory.mktemp("recipe") / "tiny.toml"
    path.write_text(RECIPE)
    return path


@pytest.fixture(scope="module")
def ended(recipe: Path) -> tuple[Path, subprocess.CompletedProcess[str]]:
    """Return the folder of a complete training, and its process."""
    out = recipe.parent / "out"
    return out, numbench("train", "--config", str(recipe), "--out", str(out))


def numbench(*arguments: str, code: str = PROGRAM) -> subprocess.CompletedProcess[str]:
    command = [sys.executable, "-c", code, *arguments]
    environment = os.environ | {"COLUMNS": "100"}
    return subprocess.run(
        command, capture_output=True, text=True, timeout=200, check=False, env=environment
    )


def call(monkeypatch: pytest.MonkeyPatch, *arguments: str) -> int:
    """Run the command in this process and return its exit code."""
    monkeypatch.setattr(sys, "argv", ["numbench", "train", *arguments])
    with pytest.raises(SystemExit) as exit_:
        main()
    return int(exit_.value.code or 0)


def test_a_training_shows_progress_and_results(
    ended: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, done = ended
    assert done.returncode == 0
    output = done.stderr.splitlines()
    assert " tiny: 216k parameters · " in output[0]
    assert "step 2 of 16 · " in output[1]
    assert "step 16 of 16 · " in output[-2]
    assert output[-1] == f"{out}: all 16 steps are done"
    lines = done.stdout.splitlines()
    rows = [text.split() for text in lines]
    rows = rows[rows.index(["Task", "Score", "Exact", "Chance"]) :]
    assert rows[0] == ["Task", "Score", "Exact", "Chance"]
    assert [row[0] for row in rows[1:4]] == ["MinMax", "Add", "Sorting"]
    assert [row[-1] for row in rows[1:4]] == ["32.1%", "–", "17.9%"]
    assert f"best checkpoint: {out / 'checkpoint'}" in done.stdout
    assert lines[-1].endswith(
        f"numbench run --model checkpoint/{out / 'checkpoint'} --dataset v1 "
        "--tasks minmax,addition,sorting"
    )
    for name in ("loss", "scores", "curriculum", "shares"):
        assert f"{out / 'figures' / name}.png" in done.stdout
        assert (out / "figures" / f"{name}.svg").is_file()


def test_the_scores_shown_are_those_of_the_checkpoint(
    ended: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    out, done = ended
    config = json.loads((out / "checkpoint" / "config.json").read_text())
    lines = [json.loads(text) for text in (out / "metrics.jsonl").read_text().splitlines()]
    (chosen,) = [
        line for line in lines if "tasks" in line and line["step"] == config["training"]["step"]
    ]
    assert f"validation at step {chosen['step']}, " in done.stdout
    assert f"Add {chosen['tasks']['addition']['score']:.1%}" in " ".join(done.stdout.split())


def test_the_log_has_chance_and_scores_by_level(
    ended: tuple[Path, subprocess.CompletedProcess[str]],
) -> None:
    lines = [json.loads(text) for text in (ended[0] / "metrics.jsonl").read_text().splitlines()]
    assert lines[0]["chance"] == {"minmax": 0.320833, "addition": 0.0, "sorting": 0.179167}
    for line in lines[1:]:
        for task in ("minmax", "addition"):
            found = line["tasks"][task]
            assert len(found["level_score"]) == found["levels"]
            known = [score for score in found["level_score"] if score is not None]
            assert known
            assert min(known) <= found["opened_score"] + 1e-3
            assert max(known) >= found["opened_score"] - 1e-3
        assert "level_score" not in line["tasks"]["sorting"]


def test_a_complete_training_is_left_unchanged(
    ended: tuple[Path, subprocess.CompletedProcess[str]], recipe: Path
) -> None:
    out, _ = ended
    before = {path: path.read_bytes() for path in out.rglob("*") if path.is_file()}
    again = numbench("train", "--config", str(recipe), "--out", str(out))
    assert again.returncode == 0
    assert again.stderr == f"{out}: this training is complete, all 16 steps are done\n"
    assert "best checkpoint: " in again.stdout
    assert {path: path.read_bytes() for path in out.rglob("*") if path.is_file()} == before


def test_another_recipe_is_refused(
    ended: tuple[Path, subprocess.CompletedProcess[str]], recipe: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    changed = ("--config", str(recipe), "--set", "training.seed=2")
    assert call(monkeypatch, *changed, "--out", str(ended[0])) == 2
    assert "different: training.seed" in capsys.readouterr().err


def test_figures_are_redrawn_from_the_log_alone(
    ended: tuple[Path, subprocess.CompletedProcess[str]], recipe: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    (tmp_path / "metrics.jsonl").write_bytes((ended[0] / "metrics.jsonl").read_bytes())
    arguments = ("--config", str(recipe), "--out", str(tmp_path), "--plots")
    assert call(monkeypatch, *arguments) == 0
    drawn = tmp_path / "figures" / "scores.png"
    assert str(drawn) in capsys.readouterr().out
    assert drawn.read_bytes() == (ended[0] / "figures" / "scores.png").read_bytes()
    (tmp_path / "metrics.jsonl").write_text("")
    assert call(monkeypatch, *arguments) == 2
    assert "no validation results yet" in capsys.readouterr().err


def test_an_interrupted_training_is_saved_and_resumed(recipe: Path, tmp_path: Path) -> None:
    changed = ("--set", "training.tokens=1_000_000", "--set", "training.save_every=1000")
    command = ("train", "--config", str(recipe), "--out", str(tmp_path), *changed)
    process = subprocess.Popen(
        [sys.executable, "-c", PROGRAM, *command], stderr=subprocess.PIPE, text=True
    )
    assert process.stderr is not None
    for text in process.stderr:
        if "step 2 of 976" in text:
            break
    process.send_signal(signal.SIGINT)
    output = process.stderr.read()
    assert process.wait(100) == 130
    step = saved_step(tmp_path / "state")
    assert 2 < step < 976
    assert (
        f"{tmp_path}: stopped after step {step} of 976; run the same command again to continue"
        in output
    )
    assert "stopping after this step" in output
    again = numbench(*command, "--minutes", "0")
    assert again.returncode == 0
    assert f"{tmp_path}: resuming after step {step} of 976" in again.stderr
    assert f"time limit reached after step {step + 1} of 976; run the same" in again.stderr
    assert saved_step(tmp_path / "state") == step + 1


def test_a_dry_run_shows_what_would_be_trained(
    ended: tuple[Path, subprocess.CompletedProcess[str]], recipe: Path, tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    out = tmp_path / "out"
    assert call(monkeypatch, "--config", str(recipe), "--out", str(out), "--dry-run") == 0
    output = " ".join(capsys.readouterr().out.split())
    about = json.loads((ended[0] / "metrics.jsonl").read_text().splitlines()[0])
    assert f"parameters {about['parameters']:,} " in output
    assert "16,384 tokens: 16 steps, 1,024 tokens per step" in output
    assert "tasks MinMax, Add, Sorting" in output
    assert "curriculum MinMax, Add, by digits in base 2" in output
    assert not out.exists()
    planned = plan_training(load_recipe(recipe))
    weights = (ended[0] / "checkpoint" / "model.safetensors").stat().st_size
    assert planned.checkpoint_bytes == pytest.approx(weights, rel=0.02)
    (tensors,) = (ended[0] / "state").rglob("tensors.safetensors")
    assert planned.state_bytes == pytest.approx(tensors.stat().st_size, rel=0.02)


def test_a_dry_run_needs_neither_text_nor_vocabulary(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.chdir(tmp_path)
    assert call(monkeypatch, "--config", "multi-bittoken", "--dry-run") == 0
    output = " ".join(capsys.readouterr().out.split())
    assert "parameters 117," in output
    assert "data/fineweb (folder missing)" in output
    assert "data/gpt2.tiktoken (file missing; size assumed as GPT-2's)" in output


def test_a_failed_start_does_not_bind_the_folder_to_its_recipe(
    recipe: Path, tmp_path: Path
) -> None:
    arguments = ["train", "--config", str(recipe), "--out", str(tmp_path)]
    failed = numbench(*arguments, "--set", f"data.folder={tmp_path / 'nowhere'}")
    assert failed.returncode == 2
    done = numbench(*arguments, "--set", "training.tokens=1024")
    assert done.returncode == 0
    kept = json.loads((tmp_path / "recipe.json").read_text())
    assert (kept["training"]["tokens"], kept["data"].get("folder")) == (1024, None)


def test_bundled_recipes_have_descriptions(
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    assert call(monkeypatch, "--list") == 0
    output = capsys.readouterr().out
    assert "cpu " in output
    assert "Ten minutes on a CPU" in output


@pytest.mark.parametrize(
    ("arguments", "output"),
    [
        ((), "give --config RECIPE"),
        (("--config", "nowhere"), "no recipe 'nowhere'"),
        (("--config", "cpu", "--set", "model.depth=3"), "depth"),
        (("--config", "cpu", "--dry-run", "--plots"), "mutually exclusive"),
        (("--config", "cpu", "--threads", "0"), "--threads"),
    ],
)
def test_wrong_use_is_reported(
    arguments: tuple[str, ...], output: str,
    monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str],
) -> None:  # fmt: skip
    assert call(monkeypatch, *arguments) == 2
    assert output in capsys.readouterr().err


@pytest.mark.parametrize("package", ["torch", "safetensors", "tokenizers"])
def test_a_missing_extra_is_reported_with_the_install_command(package: str) -> None:
    hidden = (
        "import importlib.util as u; find = u.find_spec\n"
        f"u.find_spec = lambda name, *more: None if name == {package!r} else find(name, *more)\n"
    )
    done = numbench("train", "--config", "cpu", code=hidden + PROGRAM)
    assert done.returncode == 2
    assert done.stderr == "numbench: bittoken train needs an extra: pip install 'numbench[local]'\n"


def test_a_damaged_state_is_reported(recipe: Path, tmp_path: Path) -> None:
    (tmp_path / "state").mkdir()
    (tmp_path / "state" / "latest").write_text("nothing")
    done = numbench("train", "--config", str(recipe), "--out", str(tmp_path))
    assert done.returncode == 2
    assert "not the name of a saved step" in done.stderr
