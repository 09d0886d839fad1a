"""The queue of trainings: killed, interrupted, gone on with; and what it refuses to overwrite."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest

from experiments.queue import main
from tests.experiments.tiny import declare, finish, queue, until


def said_by(
    capsys: pytest.CaptureFixture[str], declared: Path, *arguments: str
) -> tuple[int, list[str], str]:
    """Exit code, lines of stdout and stderr of the queue, run in this process."""
    places = ("--out", str(declared.parent / "kept"), "--scratch", str(declared.parent / "scratch"))
    code = main(["--declared", str(declared), *places, *arguments])
    captured = capsys.readouterr()
    return code, captured.out.split(), captured.err


def log(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


@pytest.fixture(scope="module")
def done(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The declaration of two runs that were killed, interrupted, and are done."""
    declared = declare(tmp_path_factory.mktemp("queue"), tokens=64 * 1024)
    killed = queue(declared)
    until(declared, "multi-bittoken-s1", "step 2 of")
    killed.kill()
    killed.wait()
    interrupted = queue(declared)
    until(declared, "multi-bittoken-s1", "goes on after step")
    interrupted.send_signal(signal.SIGINT)
    code, said = finish(interrupted)
    assert code == 130, said
    assert "the same command goes on" in said
    code, said = finish(queue(declared, "--workers", "2"))
    assert code == 0, said
    assert "2 of 2 done now" in said
    return declared


def test_whatever_interrupts_the_queue_the_same_command_goes_on(done: Path) -> None:
    for name in ("multi-bittoken-s1", "multi-digit-s1"):
        lines = log(done.parent / "kept" / name)
        steps = [line["step"] for line in lines if "tasks" in line]
        assert steps == list(range(8, 65, 8))
    events = [line.get("event") for line in log(done.parent / "kept" / "multi-bittoken-s1")]
    assert events.count("started") == 1
    assert events.count("resumed") >= 1


def test_a_run_that_is_done_has_all_that_the_tables_need(done: Path) -> None:
    kept = done.parent / "kept" / "multi-digit-s1"
    scores = json.loads((kept / "scores.json").read_text())
    lines = log(kept)
    assert scores["recipe"] == json.loads((kept / "recipe.json").read_text())
    assert scores["recipe"]["name"] == scores["run"] == "multi-digit-s1"
    assert scores["parameters"] == lines[0]["parameters"]
    assert scores["tokens"] == lines[-1]["tokens"]
    assert scores["seconds"] == lines[-1]["seconds"]
    assert scores["device"] == lines[0]["device"]
    assert scores["threads"] == 1
    manifest = json.loads((done.parent / "data" / "manifest.json").read_text())
    assert scores["dataset"] == {"name": "data", "sha256": manifest["sha256"]}
    measured = [line for line in lines if "tasks" in line]
    best = max(measured, key=lambda line: (line["harmonic_mean"], line["step"]))
    assert scores["best_step"] == best["step"]


def test_its_scores_are_those_of_the_report(done: Path, tmp_path: Path) -> None:
    from bench.report import report

    (answers,) = (done.parent / "scratch" / "multi-digit-s1").glob("answers-*")
    report([answers], out=tmp_path)
    (run,) = json.loads((tmp_path / "report.json").read_text())["runs"]
    scores = json.loads((done.parent / "kept" / "multi-digit-s1" / "scores.json").read_text())
    minmax, addition = scores["tasks"]["minmax"], scores["tasks"]["addition"]
    assert minmax["items"] == addition["items"] == 4
    assert minmax["log_smape"] is None
    assert minmax["exact_match"] == run["tasks"]["minmax"]["log_smape"]
    assert addition["exact_match"] == run["tasks"]["addition"]["exact_match"]
    assert addition["log_smape"] == run["tasks"]["addition"]["log_smape"]


def test_what_is_done_is_not_done_again(done: Path, capsys: pytest.CaptureFixture[str]) -> None:
    before = {path: path.read_bytes() for path in (done.parent / "kept").rglob("*.json*")}
    assert said_by(capsys, done, "--list") == (0, [], "")
    code, _, said = said_by(capsys, done)
    assert (code, said) == (0, "0 of 0 done now\n")
    assert {path: path.read_bytes() for path in before} == before


def test_a_changed_declaration_is_told_and_overwrites_nothing_without_again(
    done: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    before = {path: path.read_bytes() for path in (done.parent / "kept").rglob("*.json*")}
    recipe = done.parent / "tiny.toml"
    unchanged = recipe.read_text()
    recipe.write_text(unchanged.replace("tokens = 65536", "tokens = 16384"))
    try:
        code, _, said = said_by(capsys, done)
        assert code == 2
        assert (
            "multi-digit-s1: declared otherwise than measured, in training.tokens; "
            "--again trains it anew"
        ) in said
        assert {path: path.read_bytes() for path in before} == before
        again = queue(done, "--again", "--only", "*digit*")
        code, said = finish(again)
        assert code == 0, said
        assert "1 of 1 done now" in said
        scores = json.loads((done.parent / "kept/multi-digit-s1/scores.json").read_text())
        assert scores["recipe"]["training"]["tokens"] == 16384
        other = done.parent / "kept/multi-bittoken-s1/scores.json"
        assert other.read_bytes() == before[other]
    finally:
        recipe.write_text(unchanged)
        for path, content in before.items():
            path.write_bytes(content)


def test_a_run_that_fails_is_named_and_the_others_go_on(tmp_path: Path) -> None:
    declared = declare(tmp_path, tokens=8192)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "multi-bittoken-s1").write_text("in the way")
    code, said = finish(queue(declared))
    assert code == 1
    assert "failed: multi-bittoken-s1" in said
    assert (tmp_path / "kept" / "multi-digit-s1" / "scores.json").is_file()
    assert not (tmp_path / "kept" / "multi-bittoken-s1").exists()


def test_no_process_outlives_a_queue_that_is_killed(tmp_path: Path) -> None:
    from filelock import FileLock

    declared = declare(tmp_path, tokens=4_000_000)
    process = queue(declared)
    until(declared, "multi-bittoken-s1", "step 2 of")
    process.kill()
    process.wait()
    # The training holds its folder as long as it lives.
    with FileLock(tmp_path / "scratch" / "multi-bittoken-s1" / ".lock", timeout=100):
        assert (tmp_path / "scratch" / "multi-bittoken-s1" / "state" / "latest").is_file()


def test_time_that_is_up_is_no_failure(tmp_path: Path) -> None:
    code, said = finish(queue(declare(tmp_path, tokens=4_000_000), "--minutes", "0.01"))
    assert code == 0, said
    assert "time is up; the same command goes on" in said
    assert "0 of 2 done now" in said


def test_a_second_queue_in_the_same_place_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    from filelock import FileLock

    declared = declare(tmp_path, tokens=8192)
    (tmp_path / "scratch").mkdir()
    with FileLock(tmp_path / "scratch" / ".queue"):
        code, _, said = said_by(capsys, declared)
        listed = said_by(capsys, declared, "--list")
    assert code == 2
    assert "another queue works there" in said
    assert listed == (0, ["multi-bittoken-s1", "multi-digit-s1"], "")


def test_a_name_that_no_run_has_is_refused(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = declare(tmp_path, tokens=8192)
    code, _, said = said_by(capsys, declared, "--only", "mutli-*")
    assert (code, said.count("\n")) == (2, 1)
    assert "no run has such a name" in said


def test_a_place_that_is_no_folder_is_told_in_one_line(
    tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = declare(tmp_path, tokens=8192)
    (tmp_path / "scratch").write_text("in the way")
    code, _, said = said_by(capsys, declared)
    assert (code, said.count("\n")) == (1, 1)
    assert str(tmp_path / "scratch") in said


@pytest.mark.parametrize(
    ("old", "new", "words"),
    [
        ('"digit"', '"bittoken"', "two runs are named 'multi-bittoken-s1'"),
        ("{encoding}", "{encodings}", "each has no 'encodings'"),
        ('"tiny"', '"huge"', "no recipe"),
        ('set = ["', 'set = ["data.digits=5", "', "is trained on at most 5 digits"),
        ('set = ["', 'set = [\'data.tasks=["mean"]\', "', "dataset data lacks mean"),
        ("dataset", "data_set", "data_set"),
        ('"tiny"', '"tïny"', "can't decode"),
    ],
)
def test_a_comparison_that_cannot_be_is_refused(
    old: str, new: str, words: str, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    declared = declare(tmp_path, tokens=8192)
    # Saved in some editor's own encoding: what is no ASCII is no UTF-8.
    declared.write_text(declared.read_text().replace(old, new), encoding="latin-1")
    code, out, said = said_by(capsys, declared)
    assert (code, out) == (2, [])
    assert words in said
