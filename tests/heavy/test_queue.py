"""The queue with real trainings: killed, interrupted and resumed."""

from __future__ import annotations

import json
import signal
from pathlib import Path
from typing import Any

import pytest
from filelock import FileLock

from numbench.reporting import report
from tests.experiments.tiny import declare, finish, generate_data, start_queue, wait_for_log

pytestmark = pytest.mark.heavy


def read_log(folder: Path) -> list[dict[str, Any]]:
    return [json.loads(line) for line in (folder / "metrics.jsonl").read_text().splitlines()]


def test_queue_resumes_after_a_kill_and_an_interrupt(tmp_path: Path) -> None:
    declaration = declare(tmp_path, generate_data(tmp_path / "data"), tokens=64 * 256)
    killed = start_queue(declaration)
    wait_for_log(declaration, "multi-bittoken-s1", "step 2 of")
    killed.kill()
    killed.wait()
    interrupted = start_queue(declaration)
    wait_for_log(declaration, "multi-bittoken-s1", "resumed after step")
    interrupted.send_signal(signal.SIGINT)
    code, message = finish(interrupted)
    assert code == 130, message
    assert "the same command resumes" in message
    code, message = finish(start_queue(declaration, "--workers", "2"))
    assert code == 0, message
    assert "completed 2 of 2 runs" in message
    for name in ("multi-bittoken-s1", "multi-digit-s1"):
        entries = read_log(tmp_path / "stored" / name)
        assert [entry["step"] for entry in entries if "tasks" in entry] == list(range(4, 65, 4))
    check_scores_are_those_of_the_report(tmp_path)
    events = [entry.get("event") for entry in read_log(tmp_path / "stored" / "multi-bittoken-s1")]
    assert events.count("started") == 1
    assert events.count("resumed") >= 1


def check_scores_are_those_of_the_report(folder: Path) -> None:
    (answers,) = (folder / "scratch" / "multi-digit-s1").glob("answers-*")
    report([answers], out=folder / "report")
    (run,) = json.loads((folder / "report" / "report.json").read_text())["runs"]
    scores = json.loads((folder / "stored" / "multi-digit-s1" / "scores.json").read_text())
    minmax, addition = scores["tasks"]["minmax"], scores["tasks"]["addition"]
    assert minmax["exact_match"] == run["tasks"]["minmax"]["log_smape"]
    assert addition["exact_match"] == run["tasks"]["addition"]["exact_match"]
    assert addition["log_smape"] == run["tasks"]["addition"]["log_smape"]


def test_killed_queue_leaves_no_process(tmp_path: Path) -> None:
    declaration = declare(tmp_path, generate_data(tmp_path / "data"), tokens=4_000_000)
    process = start_queue(declaration)
    wait_for_log(declaration, "multi-bittoken-s1", "step 2 of")
    process.kill()
    process.wait()
    # The training locks its folder for as long as it runs.
    with FileLock(tmp_path / "scratch" / "multi-bittoken-s1" / ".lock", timeout=600):
        assert (tmp_path / "scratch" / "multi-bittoken-s1" / "state" / "latest").is_file()


def test_failed_run_is_reported_and_the_others_continue(tmp_path: Path) -> None:
    declaration = declare(tmp_path, generate_data(tmp_path / "data"), tokens=4096)
    (tmp_path / "scratch").mkdir()
    (tmp_path / "scratch" / "multi-bittoken-s1").write_text("a file, not a folder")
    code, message = finish(start_queue(declaration))
    assert code == 1
    assert "failed: multi-bittoken-s1" in message
    assert (tmp_path / "stored" / "multi-digit-s1" / "scores.json").is_file()
    assert not (tmp_path / "stored" / "multi-bittoken-s1").exists()
