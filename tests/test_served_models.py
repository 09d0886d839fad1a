"""Warnings about a model, provider or system that changes within a run."""

from __future__ import annotations

from pathlib import Path

import pytest

from numbench.records import Completion, Failure
from numbench.served_models import drift_warnings
from tests import servers
from tests.runner.test_run import MODEL, _quick, dataset, go
from tests.servers import ReceivedRequest, Reply, serve
from tests.test_cli import numbench

pytestmark = pytest.mark.slow

__all__ = ["_quick", "dataset"]


def test_each_of_model_provider_and_fingerprint_is_compared() -> None:
    same = Completion(served_model="a", provider="p", extra={"system_fingerprint": "f"})
    assert drift_warnings([same, same, Completion(), Completion(served_model="a")]) == []
    other = Completion(served_model="b", provider="q", extra={"system_fingerprint": "g"})
    assert drift_warnings([same, same, other]) == [
        "the answers come from 2 models: a (2), b (1)",
        "the answers come from 2 providers: p (2), q (1)",
        "the answers come from 2 system fingerprints: f (2), g (1)",
    ]


def test_failed_requests_do_not_count_and_long_lists_are_cut() -> None:
    failure = Failure(kind="item", message="x")
    assert drift_warnings([Completion(served_model="a", error=failure), Completion()]) == []
    many = [Completion(served_model=str(n)) for n in range(9)]
    assert drift_warnings(many)[0].endswith("4 (1), and 4 more")


def test_a_model_that_changes_between_calls_is_a_warning_of_run_and_report(
    dataset: Path, tmp_path: Path
) -> None:
    model = "gpt-x-1"

    async def script(received: ReceivedRequest) -> Reply:
        return servers.chat(model=model)

    warning = "the answers come from 2 models: gpt-x-1 (5), gpt-x-2 (5)"
    with serve(script) as server:
        assert go(server, dataset, tmp_path / "run", tasks=["addition"]).warnings == ()
        model = "gpt-x-2"
        command = ("run", "--model", MODEL, "--base-url", server.url)
        done = numbench(*command, "--dataset", "data", "--out", "run", cwd=tmp_path)
    assert done.returncode == 0
    assert f"warning: run: {warning}" in done.stderr
    shown = numbench("report", "run", "--out", "page", cwd=tmp_path)
    assert warning in " ".join(shown.stdout.split())
    assert warning in (tmp_path / "page" / "report.json").read_text()
