"""The first request of each task: what is sent is what is recorded, and identifies the run."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from numbench.errors import BadInput
from numbench.journal import REQUESTS, read_run
from numbench.runner.recorded_requests import read_requests
from tests.runner.test_run import _quick, dataset, go, good, questions
from tests.servers import serve

pytestmark = pytest.mark.slow

__all__ = ["_quick", "dataset"]


def test_one_request_per_task_is_recorded_as_it_was_sent(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out, tasks=["addition"])
        assert [each.task for each in read_requests(out)] == ["addition"]
        go(server, dataset, out, seed=None)
        sent = [each.body for each in server.received]
    recorded = read_requests(out)
    assert [each.task for each in recorded] == ["addition", "minmax"]
    assert {each.item_id for each in recorded} == {items[0].id for items in questions(5).values()}
    assert all(each.body in sent for each in recorded)
    assert read_run(out).info.requests == {each.task: each.sha256 for each in recorded}


def test_older_runs_without_recorded_requests_are_resumed(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out, tasks=["addition"])
        info = json.loads((out / "run.json").read_text())
        del info["requests"]
        (out / "run.json").write_text(json.dumps(info))
        (out / REQUESTS).unlink()
        assert go(server, dataset, out).answered == 5
    assert set(read_run(out).info.requests) == {"addition", "minmax"}


def test_neither_streaming_nor_seeds_of_samples_change_the_shape(
    dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options: dict[str, Any] = {"seed": 3, "temperature": 0.5}
    with serve(good) as server:
        go(server, dataset, out, **options)
        assert go(server, dataset, out, **options, samples=2, stream=False).answered == 10
        assert {each.body["seed"] for each in server.received} == {3, 4}


def test_a_lost_file_of_requests_does_not_lift_the_check(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out)
        info = json.loads((out / "run.json").read_text())
        info["requests"]["addition"] = "0" * 64
        (out / "run.json").write_text(json.dumps(info))
        (out / REQUESTS).unlink()
        with pytest.raises(BadInput, match=r"requests \(see requests.jsonl\) for addition"):
            go(server, dataset, out)


def test_secrets_in_parameters_are_masked(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "planted-secret-0123456789")
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out, params={"gateway": {"token": "planted-secret-0123456789"}})
        assert server.received[0].body["gateway"]["token"] == "planted-secret-0123456789"
    assert "planted-secret" not in (out / REQUESTS).read_text()
    assert read_requests(out)[0].body["gateway"] == {"token": "[key]"}
