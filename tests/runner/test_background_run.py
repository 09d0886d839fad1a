"""Runs in OpenAI's background mode: no answer is paid twice, whatever ends the run."""

from __future__ import annotations

import os
import signal
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import pytest

import numbench as nb
from numbench.errors import BadInput
from numbench.journal import background_jobs, iter_responses, read_jobs, read_run
from numbench.journal_merge import merge_runs
from numbench.records import possibly_billed_attempts
from numbench.runner import CostLimitReached, RunInterrupted
from numbench.runner.background import BackgroundLog
from tests import servers
from tests.models.background_server import BackgroundServer
from tests.runner.test_run import KEY, ROOT, _quick, dataset, go, questions, run_with, small_dataset
from tests.servers import ReceivedRequest, Reply, serve

__all__ = ["_quick", "dataset"]

BACKGROUND: dict[str, Any] = {
    "model": "gpt-5",
    "reasoning": "low",
    "api": "responses",
    "background": True,
}
CALL = (
    "import sys; from pathlib import Path; from numbench.runner import *\n"
    "url, data, out = sys.argv[1:]\n"
    "run(RunSpec('gpt-5', 'low', data, out=Path(out), base_url=url, api='responses', "
    "background=True), concurrency=4)\n"
)


def start(server: servers.Server, data: Path, out: Path) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [sys.executable, "-c", CALL, server.url, str(data), str(out)],
        cwd=ROOT,
        text=True,
        stderr=subprocess.PIPE,
        env=os.environ | {"OPENAI_API_KEY": KEY},
    )


def kill_with_four_answers_in_progress(
    provider: BackgroundServer, server: servers.Server, data: Path, out: Path
) -> None:
    """Run until eight items are answered and four are in progress, and kill the process."""
    provider.frozen_from = 9
    process = start(server, data, out)
    deadline = time.monotonic() + 300
    frozen = {f"resp-{number}" for number in range(9, 13)}
    while {job.id for job in background_jobs(out).values()} != frozen:
        assert process.poll() is None and time.monotonic() < deadline
        time.sleep(0.01)
    process.kill()
    process.communicate()
    provider.frozen_from = 10**9


def test_after_kill_9_answers_in_progress_are_collected_and_not_paid_twice(tmp_path: Path) -> None:
    provider, out = BackgroundServer(polls=1), tmp_path / "run"
    data = small_dataset(tmp_path / "data", 10)
    with serve(provider) as server:
        kill_with_four_answers_in_progress(provider, server, data, out)
        in_progress = {job.id for job in background_jobs(out).values()}
        planned = nb.plan(**BACKGROUND, dataset=data, out=out, base_url=server.url)
        report = go(server, data, out, **BACKGROUND)
    assert (planned.items_in_jobs, planned.requests) == (4, 8)
    assert (report.answered, report.in_progress, report.possibly_billed) == (12, 0, 0)
    # The provider's ledger: one response for each question, and each is in the journal.
    assert set(provider.started.values()) == {1} and provider.started.total() == 20
    responses = list(iter_responses(out))
    assert [response.error for response in responses] == [None] * 20
    assert {response.extra["id"] for response in responses} == set(provider.prompts)
    prompts = {item.id: item.prompt for items in questions(10).values() for item in items}
    for response in responses:
        assert provider.prompts[str(response.extra["id"])] == prompts[response.item_id]
        # How long an answer took of which only the end was seen is unknown.
        assert (response.latency is None) == (response.extra["id"] in in_progress)
    assert {job.state for job in read_jobs(out).values()} == {"collected"}
    assert read_run(out).info.settings["background"] is True


def test_answers_in_progress_count_against_a_cost_limit_and_are_collected_first(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Every answer costs $0.50."""
    monkeypatch.chdir(tmp_path)
    (tmp_path / "numbench-catalogue.toml").write_text(
        '[[price]]\nroute = "openai/gpt-5"\ninput = 0\noutput = 10\n'
    )
    provider, out = BackgroundServer(polls=1), tmp_path / "run"
    data = small_dataset(tmp_path / "data", 10)
    with serve(provider) as server:
        kill_with_four_answers_in_progress(provider, server, data, out)
        with pytest.raises(CostLimitReached) as caught:
            go(server, data, out, **BACKGROUND, max_cost=6.5, concurrency=8)
    # 8 answers of the killed call, 4 collected ones, and at most one more.
    assert 4 <= caught.value.report.answered <= 5
    assert provider.started.total() <= 13


def test_a_second_interrupt_leaves_answers_for_the_next_call(dataset: Path, tmp_path: Path) -> None:
    provider, out = BackgroundServer(polls=1, frozen_from=4), tmp_path / "run"
    signals = iter((signal.SIGINT, signal.SIGINT))

    async def script(received: ReceivedRequest) -> Reply:
        reply = await provider(received)
        is_poll_of_last = received.path.endswith("resp-4") and provider.polled["resp-4"] > 1
        if is_poll_of_last and (number := next(signals, None)):
            os.kill(os.getpid(), number)
        return reply

    with serve(script) as server:
        with pytest.raises(RunInterrupted) as caught:
            go(server, dataset, out, **BACKGROUND, concurrency=1)
        report = caught.value.report
        assert (report.answered, report.in_progress, report.possibly_billed) == (3, 1, 0)
        assert sum(map(possibly_billed_attempts, iter_responses(out))) == 0
        arguments = BACKGROUND | {"base_url": server.url, "dataset": dataset, "out": out}
        with pytest.raises(BadInput, match="without --batch to collect them"):
            run_with(**arguments | {"background": False}, batch=True)
        with pytest.raises(BadInput, match="still in progress at the provider"):
            merge_runs([out], tmp_path / "merged")
        provider.frozen_from = 10**9
        # Without --background too.
        assert run_with(**arguments | {"background": False}).answered == 7
    assert provider.started.total() == 4
    assert read_run(out).info.settings["background"] == "mixed"
    merge_runs([out], tmp_path / "merged")


def test_an_answer_that_was_stored_before_its_job_was_closed_is_not_requested_again(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    provider, out = BackgroundServer(polls=1), tmp_path / "run"
    with serve(provider) as server:
        with monkeypatch.context() as patch:
            patch.setattr(BackgroundLog, "close", lambda self, request: None)
            assert go(server, dataset, out, **BACKGROUND).answered == 10
        assert len(background_jobs(out)) == 10
        assert go(server, dataset, out, **BACKGROUND).skipped == 10
    assert (len(background_jobs(out)), provider.started.total()) == (0, 10)


def test_a_response_that_fails_is_requested_again(dataset: Path, tmp_path: Path) -> None:
    provider = BackgroundServer(polls=1)

    async def script(received: ReceivedRequest) -> Reply:
        if received.path == "/responses/resp-1":
            error = {"code": "server_error", "message": "it broke"}
            return servers.responses(status="failed", error=error, output=[])
        return await provider(received)

    with serve(script) as server:
        report = go(server, dataset, tmp_path / "run", **BACKGROUND)
    assert (report.answered, report.retries, report.in_progress) == (10, 1, 0)
    assert provider.started.total() == 11
    responses = list(iter_responses(tmp_path / "run"))
    assert sum(map(possibly_billed_attempts, responses)) == 1


def test_the_mode_is_an_option_that_the_batch_api_and_parameters_do_not_replace(
    dataset: Path, tmp_path: Path
) -> None:
    arguments = BACKGROUND | {"dataset": dataset, "out": tmp_path / "run"}
    with pytest.raises(BadInput, match="omit it, or --batch"):
        nb.plan(**arguments, batch=True)
    with pytest.raises(BadInput, match="--param background: use --background"):
        nb.plan(**arguments | {"background": False, "params": {"background": True}})
    planned = nb.plan(**arguments)
    assert planned.request is not None
    assert (planned.request["background"], planned.request["store"]) == (True, True)
    direct = nb.plan(**arguments | {"background": False})
    assert direct.request is not None and direct.request["store"] is False
