"""Trainings that were killed, interrupted or damaged, and go on or say why not."""

from __future__ import annotations

import errno
import json
import os
import shutil
import signal
import subprocess
import sys
from pathlib import Path
from typing import Any

import pytest
import torch
from filelock import FileLock
from safetensors import SafetensorError
from safetensors.torch import load_file, save_file

from bench.bittoken.training import log, state
from bench.bittoken.training.run import Outcome, Watch, train
from bench.errors import BadInput, NumbenchError
from tests.bittoken.training.tiny import recipe

STEPS = 24


def trained(folder: Path, **changes: dict[str, Any]) -> Outcome:
    torch.set_num_threads(1)
    return train(recipe(**changes), folder, Watch())


def ended_in_the_middle(folder: Path, end: str, at: int) -> int:
    child = [sys.executable, "-m", "tests.bittoken.training.child", str(folder), end, str(at)]
    return subprocess.run(child, timeout=120).returncode


def saved_step(folder: Path) -> int:
    return int((folder / "state" / "latest").read_text().removeprefix("step-"))


def lines(folder: Path) -> list[dict[str, Any]]:
    """What was measured, but for the time it took."""
    return [
        {name: value for name, value in line.items() if name != "seconds"}
        for line in log.measures(log.read(folder))
    ]


def all_that_is_kept(folder: Path) -> dict[str, Any]:
    place = folder / "state" / (folder / "state" / "latest").read_text()
    plain = json.loads((place / "state.json").read_text())
    del plain["progress"]["seconds"]
    return {
        "plain": plain,
        "own": json.loads((place / "process-0.json").read_text()),
        "stocks": {path.name: path.read_bytes() for path in place.glob("*.arrow")},
    }


def same(folder: Path, whole: Path) -> None:
    """Bit for bit: weights, moments, best weights, stocks, curricula, checkpoint and log."""
    assert saved_step(folder) == saved_step(whole) == STEPS
    assert all_that_is_kept(folder) == all_that_is_kept(whole)
    last = f"state/step-{STEPS:07d}/tensors.safetensors"
    for path in (last, "checkpoint/model.safetensors"):
        mine, theirs = load_file(folder / path), load_file(whole / path)
        assert mine.keys() == theirs.keys()
        assert all(torch.equal(mine[name], theirs[name]) for name in mine)
    assert lines(folder) == lines(whole)


@pytest.fixture(scope="module")
def whole(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training that nothing interrupted."""
    folder = tmp_path_factory.mktemp("whole")
    outcome = trained(folder)
    assert (outcome.step, outcome.ended) == (STEPS, True)
    assert [line["step"] for line in lines(folder)] == [5, 10, 15, 20, 24]
    return folder


@pytest.fixture(scope="module")
def killed(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """A training killed in step 17; the last state is that of step 10."""
    folder = tmp_path_factory.mktemp("killed") / "training"
    assert ended_in_the_middle(folder, "kill", 17) == -signal.SIGKILL
    assert saved_step(folder) == 10
    assert [line["step"] for line in lines(folder)] == [5, 10, 15]
    return folder


@pytest.fixture
def broken_off(killed: Path, tmp_path: Path) -> Path:
    """A copy of it."""
    return shutil.copytree(killed, tmp_path / "training")


def test_a_killed_training_ends_like_one_that_was_not(broken_off: Path, whole: Path) -> None:
    assert trained(broken_off).ended
    same(broken_off, whole)


def test_a_resumed_training_forgets_the_log_beyond_its_state(broken_off: Path) -> None:
    # One more line, cut off in the middle, as a kill leaves it.
    with (broken_off / log.FILE).open("ab") as file:
        file.write(b'{"step": 20, "tas')
    train(recipe(), broken_off, Watch(), stop=lambda: True)
    found = log.read(broken_off)
    assert [line["step"] for line in found] == [0, 5, 10, 10]
    assert found[-1]["event"] == "resumed"


def test_an_interrupted_training_ends_like_one_that_was_not(tmp_path: Path, whole: Path) -> None:
    folder = tmp_path / "training"
    assert ended_in_the_middle(folder, "interrupt", 7) == 0
    # What was made ready is also trained on.
    assert saved_step(folder) in (7, 8)
    assert trained(folder).ended
    same(folder, whole)


def test_a_training_stopped_again_and_again_ends_all_the_same(tmp_path: Path, whole: Path) -> None:
    runs = 0
    while not train(recipe(), tmp_path, Watch(), stop=lambda: True).ended:
        runs += 1
        assert runs <= STEPS
    same(tmp_path, whole)


def test_a_training_out_of_time_is_saved_for_later(tmp_path: Path) -> None:
    outcome = train(recipe(), tmp_path, Watch(), minutes=0)
    assert (outcome.step, outcome.ended) == (1, False)
    assert saved_step(tmp_path) == 1


def test_a_training_that_has_ended_stays_as_it_is(whole: Path, tmp_path: Path) -> None:
    folder = shutil.copytree(whole, tmp_path / "training")
    outcome = trained(folder)
    assert outcome.ended
    assert outcome.best == max(line["harmonic_mean"] for line in lines(folder))
    same(folder, whole)


def test_the_checkpoint_is_that_of_the_best_validation(whole: Path) -> None:
    best = max(lines(whole), key=lambda line: (float(line["harmonic_mean"]), line["step"]))
    told = json.loads((whole / "checkpoint" / "config.json").read_text())["training"]
    assert (told["step"], told["harmonic_mean"]) == (best["step"], best["harmonic_mean"])
    kept = load_file(whole / "checkpoint" / "model.safetensors")
    saved = load_file(whole / f"state/step-{STEPS:07d}/tensors.safetensors")
    assert kept
    for name, value in kept.items():
        assert torch.equal(value, saved[f"best.{name}"])


def test_where_one_task_stays_at_0_the_others_choose_the_checkpoint(tmp_path: Path) -> None:
    parts = {"model": {"encoding": "xval"}, "data": {"tasks": ["sorting", "addition"]}}
    trained(tmp_path, **parts)
    measured = [line for line in lines(tmp_path) if "tasks" in line]
    scores = [[found["score"] for found in line["tasks"].values()] for line in measured]
    assert all(score[0] == 0 for score in scores)
    for line, (_, addition) in zip(measured, scores, strict=True):
        # The log has scores to five decimals.
        ends = (max(addition + end, 0.0) for end in (-5e-6, 5e-6))
        low, high = (2 / (1e6 + 1 / (end + 1e-6)) for end in ends)
        assert low <= line["harmonic_mean"] <= high
    best = max(measured, key=lambda line: (line["harmonic_mean"], line["step"]))
    told = json.loads((tmp_path / "checkpoint" / "config.json").read_text())["training"]
    assert told["step"] == best["step"]


FILES = [
    "latest",
    "step-0000010/state.json",
    "step-0000010/process-0.json",
    "step-0000010/tensors.safetensors",
    "step-0000010/stock-0-train-minmax.arrow",
    "step-0000010/stock-0-leveled-multiplication.arrow",
]


def damage(path: Path, how: str) -> None:
    content = path.read_bytes()
    if how == "gone":
        path.unlink()
    elif how == "half":
        path.write_bytes(content[: len(content) // 2])
    else:
        path.write_bytes({"empty": b"", "noise": b"\xff\x00" * 500, "other": b"[1, 2]"}[how])


@pytest.mark.parametrize(
    ("file", "how"),
    [
        (file, how)
        for file in FILES
        for how in ("gone", "half", "empty", "noise", "other")
        # Without `latest` there is no state: the training starts anew.
        if (file, how) != ("latest", "gone")
    ],
)
def test_a_damaged_state_is_named_in_one_line(file: str, how: str, broken_off: Path) -> None:
    damage(broken_off / "state" / file, how)
    with pytest.raises(BadInput) as error:
        trained(broken_off)
    message = str(error.value)
    assert str(broken_off / "state") in message
    assert "restore the folder" in message
    assert "\n" not in message
    assert "\x00" not in message


def test_a_state_without_some_weights_is_damaged(broken_off: Path) -> None:
    path = broken_off / "state" / "step-0000010" / "tensors.safetensors"
    tensors = load_file(path)
    del tensors["network.lm_head.weight"]
    save_file(tensors, path)
    with pytest.raises(BadInput, match=r"lm_head\.weight.*restore the folder"):
        trained(broken_off)


def test_another_recipe_is_refused_with_the_fields_that_differ(broken_off: Path) -> None:
    before = (broken_off / log.FILE).read_bytes()
    with pytest.raises(BadInput, match=r"differ in data\.digits, training\.seed\)") as error:
        trained(broken_off, data={"digits": 4}, training={"seed": 9})
    assert "\n" not in str(error.value)
    assert (broken_off / log.FILE).read_bytes() == before


def test_a_damaged_recipe_is_named(broken_off: Path) -> None:
    (broken_off / "recipe.json").write_bytes(b"{")
    with pytest.raises(BadInput, match=r"recipe\.json"):
        trained(broken_off)


def test_another_number_of_processes_is_refused(broken_off: Path) -> None:
    path = broken_off / "state" / "step-0000010" / "state.json"
    path.write_text(path.read_text().replace('"processes":1', '"processes":2'))
    with pytest.raises(BadInput, match=r"saved by 2 processes, this training has 1: start as"):
        trained(broken_off)


def test_two_trainings_do_not_share_a_folder(tmp_path: Path) -> None:
    with (
        FileLock(tmp_path / ".lock"),
        pytest.raises(BadInput, match="another training runs there"),
    ):
        trained(tmp_path)


def test_a_full_disk_is_told_and_the_training_goes_on_later(
    tmp_path: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    real, calls = os.fsync, []

    def full(handle: int) -> None:
        calls.append(handle)
        if len(calls) == 12:
            raise OSError(errno.ENOSPC, "No space left on device")
        real(handle)

    with monkeypatch.context() as patch:
        patch.setattr(os, "fsync", full)
        with pytest.raises(NumbenchError, match="No space left on device"):
            trained(tmp_path)
    assert trained(tmp_path).ended
    same(tmp_path, whole)


def test_all_of_a_state_is_on_the_disk_before_it_is_named(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    fsync, replace, synced, unsynced = os.fsync, os.replace, set(), []

    def syncing(handle: int) -> None:
        synced.add(os.fstat(handle).st_ino)
        fsync(handle)

    def naming(source: str, target: Path) -> None:
        if target.name == state.LATEST:
            place = target.parent / Path(source).read_text()
            unsynced.append([p.name for p in place.iterdir() if p.stat().st_ino not in synced])
        replace(source, target)

    monkeypatch.setattr(os, "fsync", syncing)
    monkeypatch.setattr(os, "replace", naming)
    trained(tmp_path)
    assert unsynced == [[]] * len(unsynced) != []


def test_a_state_that_the_disk_refuses_leaves_the_one_before(
    broken_off: Path, whole: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    def refused(tensors: dict[str, torch.Tensor], path: Path) -> None:
        path.write_bytes(b"half of it")
        raise SafetensorError("I/O error: No space left on device")

    with monkeypatch.context() as patch:
        patch.setattr(state, "save_file", refused)
        with pytest.raises(NumbenchError, match="No space left on device; once that is mended"):
            trained(broken_off)
    assert saved_step(broken_off) == 10
    assert trained(broken_off).ended
    same(broken_off, whole)
