"""The queue: order, failures, interruptions and changed declarations; one real run end to end.

Most tests replace the worker by `fake_worker`, which needs no torch. `tests/heavy/test_queue.py`
kills and interrupts real trainings.
"""

from __future__ import annotations

import asyncio
import json
import multiprocessing
import os
import signal
import sys
import threading
from collections.abc import Iterator, Sequence
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from bittoken.training.recipe import Recipe
from experiments import queue
from experiments.results_store import TrainingScores, read_scores, store_log
from numbench.cli import app
from numbench.jsonl import read_json, write_json
from numbench.scoring import headline_score, score_run
from tests.experiments.runs import store_scores
from tests.experiments.tiny import declare, queue_arguments, wait_for_log


def run_queue(
    capsys: pytest.CaptureFixture[str], declaration: Path, *arguments: str
) -> tuple[int, list[str], str]:
    """Run the queue in this process; return exit code, lines of stdout, and stderr."""
    code = queue.main(queue_arguments(declaration, *arguments))
    captured = capsys.readouterr()
    return code, captured.out.split(), captured.err


def read_log(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def completed(data: Path, tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The declaration of two runs, one of which is completed by real commands in this process."""

    async def run_numbench(self: queue.Queue, name: str, arguments: Sequence[str]) -> bool:
        code = await asyncio.to_thread(app, list(arguments), standalone_mode=False)
        return not code

    declaration = declare(tmp_path_factory.mktemp("queue"), data, tokens=4096)
    with pytest.MonkeyPatch.context() as patch:
        patch.setattr(queue.Queue, "_run_numbench", run_numbench)
        patch.setattr("bittoken.training.plots.plot_training", lambda folder: [])
        assert queue.main(queue_arguments(declaration, "--only", "*digit*")) == 0
    return declaration


def test_completed_run_has_everything_that_the_tables_need(completed: Path, data: Path) -> None:
    stored = completed.parent / "stored" / "multi-digit-s1"
    scores = json.loads((stored / "scores.json").read_text())
    entries = read_log(stored)
    validations = [entry for entry in entries if "tasks" in entry]
    assert [entry["step"] for entry in validations] == [4, 8, 12, 16]
    assert scores["recipe"] == json.loads((stored / "recipe.json").read_text())
    assert scores["recipe"]["name"] == scores["run"] == "multi-digit-s1"
    assert scores["parameters"] == entries[0]["parameters"]
    assert scores["tokens"] == entries[-1]["tokens"]
    assert scores["seconds"] == entries[-1]["seconds"]
    assert scores["device"] == entries[0]["device"]
    assert scores["threads"] == 1
    manifest = json.loads((data / "manifest.json").read_text())
    assert scores["dataset"] == {"name": "data", "sha256": manifest["sha256"]}
    best = max(validations, key=lambda entry: (entry["harmonic_mean"], entry["step"]))
    assert scores["best_step"] == best["step"]


def test_stored_scores_are_the_means_over_items(completed: Path) -> None:
    (answers,) = (completed.parent / "scratch" / "multi-digit-s1").glob("answers-*")
    rows = score_run(answers).rows
    scores = read_scores(completed.parent / "stored" / "multi-digit-s1")
    assert scores is not None
    assert scores.tasks["minmax"].log_smape is None
    for task, score in scores.tasks.items():
        headlines = [headline_score(task, row.score) for row in rows[task]]
        assert score.items == len(headlines) == 4
        assert score.headline.value == pytest.approx(100 * sum(headlines) / 4)
        assert score.headline.low <= score.headline.value <= score.headline.high


def test_completed_run_is_not_repeated(completed: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in (completed.parent / "stored").rglob("*.json*")}
    assert run_queue(capsys, completed, "--list") == (0, ["multi-bittoken-s1"], "")
    code, _, message = run_queue(capsys, completed, "--only", "*digit*")
    assert (code, message) == (0, "completed 0 of 0 runs\n")
    assert {path: path.read_bytes() for path in before} == before


def test_run_without_a_dataset_is_complete_with_its_log(
    completed: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    lines = completed.read_text().splitlines(keepends=True)
    declaration = tmp_path / "declaration.toml"
    declaration.write_text("".join(line for line in lines if not line.startswith("dataset")))
    scratch, stored = completed.parent / "scratch", tmp_path / "stored"
    recipe = read_json(completed.parent / "stored" / "multi-digit-s1" / "recipe.json", Recipe)
    store_log(scratch / "multi-digit-s1", recipe, stored / "multi-digit-s1")
    assert {path.name for path in (stored / "multi-digit-s1").iterdir()} == {
        "recipe.json",
        "metrics.jsonl",
    }
    assert run_queue(capsys, declaration, "--list") == (0, ["multi-bittoken-s1"], "")
    (stored / "multi-digit-s1" / "metrics.jsonl").unlink()
    code, remaining, _ = run_queue(capsys, declaration, "--list")
    assert (code, remaining) == (0, ["multi-bittoken-s1", "multi-digit-s1"])


@pytest.fixture
def declaration(data: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """The declaration of two runs, whose trainings and scores are faked."""

    def store(scratch: Path, answers: Path, recipe: Recipe, folder: Path) -> TrainingScores:
        assert (scratch / "saved").is_file()
        assert answers.is_dir()
        manifest = json.loads((data / "manifest.json").read_text())
        return store_scores(folder, recipe, dataset_sha256=manifest["sha256"])

    monkeypatch.setattr(queue, "WORKER", "tests.experiments.fake_worker")
    monkeypatch.setattr(queue, "store_run", store)
    return declare(tmp_path, data, tokens=8192)


def let_trainings_finish(declaration: Path) -> None:
    declaration.with_name("finish").touch()


def is_stored(declaration: Path, encoding: str) -> bool:
    return read_scores(declaration.parent / "stored" / f"multi-{encoding}-s1") is not None


def run_log(declaration: Path, encoding: str) -> str:
    return (declaration.parent / "scratch" / f"multi-{encoding}-s1.log").read_text()


def test_runs_are_trained_by_several_workers(
    declaration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    def finish_when_both_run() -> None:
        for encoding in ("bittoken", "digit"):
            wait_for_log(declaration, f"multi-{encoding}-s1", "started")
        let_trainings_finish(declaration)

    helper = threading.Thread(target=finish_when_both_run)
    helper.start()
    code, _, message = run_queue(capsys, declaration, "--workers", "2")
    helper.join()
    assert code == 0
    assert "completed 2 of 2 runs" in message
    assert is_stored(declaration, "bittoken") and is_stored(declaration, "digit")


@pytest.fixture
def forked_queue(declaration: Path) -> Iterator[multiprocessing.process.BaseProcess]:
    """The queue in a process of its own, whose first training has started."""

    def run() -> None:
        with declaration.with_name("queue.log").open("w", buffering=1) as sys.stderr:
            os._exit(queue.main(queue_arguments(declaration)))

    process = multiprocessing.get_context("fork").Process(target=run)
    process.start()
    wait_for_log(declaration, "multi-bittoken-s1", "started")
    yield process
    process.kill()
    process.join()


def test_killed_queue_leaves_no_process_and_resumes(
    forked_queue: multiprocessing.process.BaseProcess,
    declaration: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    forked_queue.kill()
    forked_queue.join()
    # The training locks its folder for as long as it runs, and saves before it exits.
    with FileLock(declaration.parent / "scratch" / "multi-bittoken-s1" / ".lock"):
        assert (declaration.parent / "scratch" / "multi-bittoken-s1" / "saved").is_file()
    let_trainings_finish(declaration)
    code, _, message = run_queue(capsys, declaration)
    assert (code, "completed 2 of 2 runs" in message) == (0, True)
    assert run_log(declaration, "bittoken").split() == ["started", "resumed"]
    assert run_log(declaration, "digit").split() == ["started"]


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM, signal.SIGHUP])
def test_interrupted_queue_saves_and_exits_with_130(
    number: signal.Signals,
    forked_queue: multiprocessing.process.BaseProcess,
    declaration: Path,
) -> None:
    assert forked_queue.pid is not None
    os.kill(forked_queue.pid, number)
    forked_queue.join()
    assert forked_queue.exitcode == 130
    assert (declaration.parent / "scratch" / "multi-bittoken-s1" / "saved").is_file()
    assert "the same command resumes" in declaration.with_name("queue.log").read_text()


def test_second_queue_in_the_same_folder_is_rejected(
    forked_queue: multiprocessing.process.BaseProcess,
    declaration: Path,
    capsys: pytest.CaptureFixture[str],
) -> None:
    code, _, message = run_queue(capsys, declaration)
    assert code == 2
    assert "another queue uses this folder" in message
    remaining = ["multi-bittoken-s1", "multi-digit-s1"]
    assert run_queue(capsys, declaration, "--list") == (0, remaining, "")


def test_failed_run_is_reported_and_the_others_continue(
    declaration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (declaration.parent / "scratch").mkdir()
    (declaration.parent / "scratch" / "multi-bittoken-s1").write_text("a file, not a folder")
    let_trainings_finish(declaration)
    code, _, message = run_queue(capsys, declaration)
    assert code == 1
    assert "train exited with code 1" in message
    assert "failed: multi-bittoken-s1" in message
    assert is_stored(declaration, "digit") and not is_stored(declaration, "bittoken")


def test_time_limit_is_not_a_failure(declaration: Path, capsys: pytest.CaptureFixture[str]) -> None:
    code, _, message = run_queue(capsys, declaration, "--minutes", "0.001")
    assert code == 0
    assert "time limit reached; the same command resumes" in message
    assert "completed 0 of 2 runs" in message


def test_changed_declaration_is_reported_and_retrained_only_with_again(
    declaration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    let_trainings_finish(declaration)
    assert run_queue(capsys, declaration)[0] == 0
    stored = declaration.parent / "stored"
    before = {path: path.read_bytes() for path in stored.rglob("*.json*")}
    recipe = declaration.with_name("tiny.toml")
    recipe.write_text(recipe.read_text().replace("tokens = 8192", "tokens = 4096"))
    code, _, message = run_queue(capsys, declaration)
    assert code == 2
    assert (
        "multi-digit-s1: the stored run differs from the declaration in training.tokens; "
        "use --again to retrain it"
    ) in message
    assert {path: path.read_bytes() for path in before} == before
    code, _, message = run_queue(capsys, declaration, "--again", "--only", "*digit*")
    assert (code, "completed 1 of 1 runs" in message) == (0, True)
    scores = read_scores(stored / "multi-digit-s1")
    assert scores is not None and scores.recipe.training.tokens == 4096
    other = stored / "multi-bittoken-s1" / "scores.json"
    assert other.read_bytes() == before[other]


def test_unfinished_training_with_a_changed_recipe_is_replaced_only_with_again(
    declaration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    let_trainings_finish(declaration)
    scratch = declaration.parent / "scratch" / "multi-digit-s1"
    assert run_queue(capsys, declaration, "--only", "*bittoken*")[0] == 0
    scores = read_scores(declaration.parent / "stored" / "multi-bittoken-s1")
    assert scores is not None
    write_json(scratch / "recipe.json", scores.recipe)
    code, _, message = run_queue(capsys, declaration)
    assert code == 2
    assert "multi-digit-s1: the unfinished training differs from the declaration in" in message
    assert not is_stored(declaration, "digit")
    assert run_queue(capsys, declaration, "--again")[0] == 0
    assert not (scratch / "recipe.json").exists()
    assert is_stored(declaration, "digit")


def test_pattern_without_a_match_is_rejected(
    declaration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    code, _, message = run_queue(capsys, declaration, "--only", "mutli-*")
    assert (code, message.count("\n")) == (2, 1)
    assert "no run matches" in message


def test_scratch_that_is_a_file_is_reported_in_one_line(
    declaration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    (declaration.parent / "scratch").write_text("a file, not a folder")
    code, _, message = run_queue(capsys, declaration)
    assert (code, message.count("\n")) == (1, 1)
    assert str(declaration.parent / "scratch") in message


@pytest.mark.parametrize(
    ("old", "new", "expected"),
    [
        ('"digit"', '"bittoken"', "two runs are named 'multi-bittoken-s1'"),
        ("{encoding}", "{encodings}", "'each' has no 'encodings'"),
        ('"tiny"', '"huge"', "no recipe"),
        ('set = ["', 'set = ["data.digits=5", "', "is trained on at most 5 digits"),
        ('set = ["', 'set = [\'data.tasks=["mean"]\', "', "dataset data lacks mean"),
        ("dataset", "data_set", "data_set"),
        ('"tiny"', '"tïny"', "can't decode"),
    ],
)
def test_invalid_declaration_is_rejected(
    old: str, new: str, expected: str, declaration: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    # In Latin-1, text that is not ASCII is not valid UTF-8.
    declaration.write_text(declaration.read_text().replace(old, new), encoding="latin-1")
    code, out, message = run_queue(capsys, declaration)
    assert (code, out) == (2, [])
    assert expected in message
