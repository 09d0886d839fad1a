"""Killed, interrupted and damaged trainings: they resume identically or fail clearly."""

from __future__ import annotations

import errno
import json
import multiprocessing
import os
import shutil
import signal
import subprocess
import sys
from itertools import pairwise
from pathlib import Path
from typing import Any

import pyarrow as pa
import pyarrow.ipc
import pytest
import torch
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from bittoken.training import metrics_log, state
from bittoken.training.live import TrainingCallbacks
from bittoken.training.run import TrainingResult, train
from bittoken.training.trainer import StepResult, Trainer
from numbench.errors import BadInput, NumbenchError
from tests.bittoken.training.tiny import STEPS, TrainingParts, recipe, saved_step

pytestmark = pytest.mark.slow

KILL_STEP, SAVED_STEP = 10, 6


def train_tiny(folder: Path, **changes: dict[str, Any]) -> TrainingResult:
    return train(recipe(**changes), folder)


def validations(folder: Path) -> list[dict[str, Any]]:
    """Return the log entries of validations without the elapsed time."""
    return [
        {name: value for name, value in entry.items() if not name.endswith("seconds")}
        for entry in metrics_log.validation_entries(metrics_log.read_log(folder))
    ]


def saved_state(folder: Path) -> dict[str, Any]:
    """Return the state but its tensors and the elapsed time."""
    path = folder / "state" / (folder / "state" / "latest").read_text()
    metadata = json.loads((path / "state.json").read_text())
    del metadata["progress"]["seconds"], metadata["progress"]["cpu_seconds"]
    return {
        "metadata": metadata,
        "process": json.loads((path / "process-0.json").read_text()),
        "buffers": {file.name: file.read_bytes() for file in path.glob("*.arrow")},
    }


def assert_identical(folder: Path, reference: Path) -> None:
    """Compare bit for bit: weights, moments, best weights, buffers, curricula, checkpoint, log."""
    assert saved_step(folder) == saved_step(reference) == STEPS
    assert saved_state(folder) == saved_state(reference)
    last = f"state/step-{STEPS:07d}/tensors.safetensors"
    for path in (last, "checkpoint/model.safetensors"):
        tensors, expected = load_file(folder / path), load_file(reference / path)
        assert tensors.keys() == expected.keys()
        assert all(torch.equal(tensors[name], expected[name]) for name in tensors)
    assert validations(folder) == validations(reference)


@pytest.fixture(scope="module")
def reference(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """An uninterrupted training."""
    folder = tmp_path_factory.mktemp("reference")
    result = train_tiny(folder)
    assert (result.step, result.is_complete) == (STEPS, True)
    assert [entry["step"] for entry in validations(folder)] == [3, 6, 9, 12]
    return folder


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that was killed in step 10; the last saved state is that of step 6."""
    folder = tmp_path_factory.mktemp("killed") / "training"
    worker = "tests.bittoken.training.interrupted_training"
    process = subprocess.run([sys.executable, "-m", worker, str(folder), str(KILL_STEP)])
    assert process.returncode == -signal.SIGKILL
    assert saved_step(folder) == SAVED_STEP
    assert [entry["step"] for entry in validations(folder)] == [3, 6, 9]
    return folder


@pytest.fixture
def unfinished(killed: Path, tmp_path: Path) -> Path:
    """A copy of the killed training."""
    return shutil.copytree(killed, tmp_path / "training")


def test_killed_training_resumes_with_identical_results(unfinished: Path, reference: Path) -> None:
    assert train_tiny(unfinished).is_complete
    assert_identical(unfinished, reference)


def test_resumed_training_removes_log_entries_after_its_state(unfinished: Path) -> None:
    # A truncated last line, as a kill leaves it.
    with (unfinished / metrics_log.METRICS_FILE).open("ab") as file:
        file.write(b'{"step": 12, "tas')
    train(recipe(), unfinished, should_stop=lambda: True)
    entries = metrics_log.read_log(unfinished)
    assert [entry["step"] for entry in entries] == [0, 3, 6, 6]
    assert entries[-1]["event"] == "resumed"


def test_interrupted_training_resumes_with_identical_results(
    tmp_path: Path, reference: Path
) -> None:
    received: list[int] = []

    def on_step(trainer: Trainer, result: StepResult) -> None:
        if trainer.progress.step == 4:
            os.kill(os.getpid(), signal.SIGINT)

    before = signal.signal(signal.SIGINT, lambda number, frame: received.append(number))
    try:
        train(recipe(), tmp_path, TrainingCallbacks(on_step=on_step), lambda: bool(received))
    finally:
        signal.signal(signal.SIGINT, before)
    # A batch that is already prepared is also trained on.
    assert saved_step(tmp_path) in (4, 5)
    assert train_tiny(tmp_path).is_complete
    assert_identical(tmp_path, reference)


def test_training_stopped_repeatedly_ends_with_identical_results(
    tmp_path: Path, reference: Path
) -> None:
    steps = [0]
    callbacks = TrainingCallbacks(lambda trainer, _: steps.append(trainer.progress.step))
    for last in (1, 5, 8, STEPS):
        # The batch after the one that is trained on is already prepared.
        result = train(recipe(), tmp_path, callbacks, lambda last=last: steps[-1] >= last - 1)
        assert result.step == last
    assert_identical(tmp_path, reference)


def test_training_is_saved_at_the_time_limit(tmp_path: Path) -> None:
    result = train(recipe(), tmp_path, minutes=0)
    assert (result.step, result.is_complete) == (1, False)
    assert saved_step(tmp_path) == 1


def test_completed_training_stays_unchanged(reference: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(reference, tmp_path / "training")
    result = train_tiny(folder)
    assert result.is_complete
    assert result.best == max(entry["harmonic_mean"] for entry in validations(folder))
    assert_identical(folder, reference)


PROCESSES: dict[str, Any] = {"data_processes": 2, "validate_every": 6, "save_every": 6}


@pytest.fixture(scope="module")
def parallel(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A completed training whose batches two processes prepare."""
    folder = tmp_path_factory.mktemp("parallel")
    train_tiny(folder, training=PROCESSES)
    return folder


def test_training_with_data_processes_resumes_with_identical_results(
    parallel: Path, tmp_path: Path
) -> None:
    # A stop leaves requested batches of both processes, which are still trained on.
    calls = iter(range(100))
    stopped = train(recipe(training=PROCESSES), tmp_path, should_stop=lambda: next(calls) > 0)
    assert 2 <= stopped.step < 6

    def kill(trainer: Trainer, _result: StepResult) -> None:
        if trainer.progress.step == 8:
            for process in multiprocessing.active_children():
                process.kill()

    with pytest.raises(
        NumbenchError, match=r"data process \d ended with exit code -9; run the same"
    ):
        train(recipe(training=PROCESSES), tmp_path, TrainingCallbacks(on_step=kill))
    assert saved_step(tmp_path) == stopped.step
    train_tiny(tmp_path, training=PROCESSES)
    assert_identical(tmp_path, parallel)


def test_data_processes_have_different_questions(parallel: Path) -> None:
    (saved,) = (parallel / "state").glob("step-*")
    for task in ("minmax", "multiplication"):
        tables = [read_table(saved / f"stock-0-train-{index}-{task}.arrow") for index in (0, 1)]
        first, second = (set(map(str, table["operands"].to_pylist())) for table in tables)
        assert len(first) > 100
        assert len(first & second) < 0.2 * len(first)


def read_table(path: Path) -> pa.Table:
    with pa.OSFile(str(path), "rb") as file:
        return pa.ipc.open_file(file).read_all()


def test_training_ends_when_two_validations_in_a_row_reach_its_target(tmp_path: Path) -> None:
    # Chance accuracy is far above the target.
    data = {"tasks": ["interval"], "curriculum": []}
    training = {"stop_exact": 0.05, "validation_tokens": 0, "validation_items": 64}
    result = train_tiny(tmp_path, data=data, training=training)
    exact = [entry["tasks"]["interval"]["exact"] for entry in validations(tmp_path)]
    reached = [score >= 0.05 for score in exact]
    assert reached[-2:] == [True, True]
    assert not any(a and b for a, b in pairwise(reached[:-1]))
    assert result.is_complete
    assert result.step == saved_step(tmp_path) == 3 * len(exact) < STEPS
    assert [entry["tasks"]["interval"]["items"] for entry in validations(tmp_path)] == [64] * len(
        exact
    )
    again = train_tiny(tmp_path, data=data, training=training)
    assert again == result
    assert len(validations(tmp_path)) == len(exact)


def test_log_counts_questions_and_tokens(tmp_path: Path) -> None:
    train_tiny(tmp_path, training={"questions": STEPS * 20, "batch_questions": 20})
    logged = [(entry["step"], entry["questions"]) for entry in validations(tmp_path)]
    assert logged == [(step, 20 * step) for step in (3, 6, 9, 12)]
    tokens = [entry["tokens"] for entry in validations(tmp_path)]
    assert all(later - one >= 6 * 60 for one, later in pairwise(tokens))


def test_checkpoint_is_from_the_best_validation(reference: Path) -> None:
    entries = validations(reference)
    best = max(entries, key=lambda entry: (float(entry["harmonic_mean"]), entry["step"]))
    config = json.loads((reference / "checkpoint" / "config.json").read_text())["training"]
    assert (config["step"], config["harmonic_mean"]) == (best["step"], best["harmonic_mean"])
    weights = load_file(reference / "checkpoint" / "model.safetensors")
    saved = load_file(reference / f"state/step-{STEPS:07d}/tensors.safetensors")
    assert weights
    for name, value in weights.items():
        assert torch.equal(value, saved[f"best.{name}"])


def test_other_tasks_choose_the_checkpoint_if_one_scores_0(tmp_path: Path) -> None:
    parts = {"model": {"encoding": "xval"}, "data": {"tasks": ["sorting", "addition"]}}
    train_tiny(tmp_path, **parts)
    entries = validations(tmp_path)
    scores = [[task["score"] for task in entry["tasks"].values()] for entry in entries]
    assert all(sorting == 0 for sorting, _ in scores)
    for entry, (_, addition) in zip(entries, scores, strict=True):
        # Logged scores are rounded to five decimals.
        bounds = (max(addition + error, 0.0) for error in (-5e-6, 5e-6))
        low, high = (2 / (1e6 + 1 / (bound + 1e-6)) for bound in bounds)
        assert low <= entry["harmonic_mean"] <= high
    best = max(entries, key=lambda entry: (entry["harmonic_mean"], entry["step"]))
    config = json.loads((tmp_path / "checkpoint" / "config.json").read_text())["training"]
    assert config["step"] == best["step"]


STATE = f"step-{SAVED_STEP:07d}"
FILES = [
    "latest",
    f"{STATE}/state.json",
    f"{STATE}/process-0.json",
    f"{STATE}/tensors.safetensors",
    f"{STATE}/stock-0-train-minmax.arrow",
    f"{STATE}/stock-0-leveled-multiplication.arrow",
]


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "missing":
        path.unlink()
    elif how == "half":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.write_bytes({"empty": b"", "noise": b"\xff\x00" * 500, "other": b"[1, 2]"}[how])


@pytest.fixture(scope="module")
def parts() -> TrainingParts:
    """The objects into which a state is loaded; a failed attempt may change them."""
    return TrainingParts(recipe())


@pytest.mark.parametrize(
    ("file", "how"),
    [
        (file, how)
        for file in FILES
        for how in ("missing", "half", "empty", "noise", "other")
        # Without `latest` there is no state, and the training starts from the beginning.
        if (file, how) != ("latest", "missing")
    ],
)
def test_damaged_state_is_reported_in_one_line(
    file: str, how: str, unfinished: Path, parts: TrainingParts
) -> None:
    damage(unfinished / "state" / file, how)
    with pytest.raises(BadInput) as error:
        state.restore(
            unfinished / "state",
            parts.trainer,
            parts.mixture,
            parts.all_loaders,
            parts.distributed,
        )
    message = str(error.value)
    assert str(unfinished / "state") in message
    assert "restore the folder" in message
    assert "\n" not in message
    assert "\x00" not in message


def test_state_without_some_weights_is_rejected(unfinished: Path) -> None:
    path = unfinished / "state" / STATE / "tensors.safetensors"
    tensors = load_file(path)
    del tensors["network.lm_head.weight"]
    save_file(tensors, path)
    with pytest.raises(BadInput, match=r"lm_head\.weight.*restore the folder"):
        train_tiny(unfinished)


def test_another_recipe_is_rejected_with_the_differing_fields(unfinished: Path) -> None:
    before = (unfinished / metrics_log.METRICS_FILE).read_bytes()
    with pytest.raises(BadInput, match=r"different: data\.digits, training\.seed\)") as error:
        train_tiny(unfinished, data={"digits": 4}, training={"seed": 9})
    assert "\n" not in str(error.value)
    assert (unfinished / metrics_log.METRICS_FILE).read_bytes() == before


def test_damaged_recipe_is_reported(unfinished: Path) -> None:
    (unfinished / "recipe.json").write_bytes(b"{")
    with pytest.raises(BadInput, match=r"recipe\.json"):
        train_tiny(unfinished)


def test_another_number_of_processes_is_rejected(unfinished: Path) -> None:
    path = unfinished / "state" / STATE / "state.json"
    path.write_text(path.read_text().replace('"processes":1', '"processes":2'))
    with pytest.raises(BadInput, match=r"saved by 2 processes, this training has 1; start"):
        train_tiny(unfinished)


def test_two_trainings_cannot_share_a_folder(tmp_path: Path) -> None:
    with (
        FileLock(tmp_path / ".lock"),
        pytest.raises(BadInput, match="another training uses this folder"),
    ):
        train_tiny(tmp_path)


def test_training_resumes_after_a_full_disk(
    tmp_path: Path, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.fsync, []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 10:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(NumbenchError, match="No space left on device"):
            train_tiny(tmp_path)
    assert train_tiny(tmp_path).is_complete
    assert_identical(tmp_path, reference)


def test_state_is_synced_before_it_becomes_the_latest(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, replace, synced, unsynced = os.fsync, os.replace, set(), []

    def record_fsync(handle: int) -> None:
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    def record_replace(source: str, target: Path) -> None:
        if target.name == state.LATEST:
            path = target.parent / Path(source).read_text()
            unsynced.append([p.name for p in path.iterdir() if p.stat().st_ino not in synced])
        replace(source, target)

    monkeypatch.setattr(os, "fsync", record_fsync)
    monkeypatch.setattr(os, "replace", record_replace)
    train(recipe(), tmp_path, should_stop=lambda: True)
    assert unsynced == [[]]


def test_failed_save_keeps_the_previous_state(
    unfinished: Path, reference: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def fail(tensors: dict[str, torch.Tensor], path: Path) -> None:
        path.write_bytes(b"half of it")
        raise SafetensorError("I/O error: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(state, "save_file", fail)
        with pytest.raises(NumbenchError, match="No space left on device; fix this and run"):
            train_tiny(unfinished)
    assert saved_step(unfinished) == SAVED_STEP
    assert train_tiny(unfinished).is_complete
    assert_identical(unfinished, reference)
