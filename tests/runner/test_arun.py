"""`arun`, and `run` in a thread whose event loop is already running, as in a notebook."""

from __future__ import annotations

import asyncio
import os
import signal
import threading
from collections.abc import Callable, Coroutine
from dataclasses import replace
from pathlib import Path
from typing import Any

import pytest

from numbench.errors import NumbenchError
from numbench.journal import read_run
from numbench.records import possibly_billed_attempts
from numbench.runner import RunInterrupted, RunReport, RunSpec, arun, run
from numbench.runner.progress import RunProgress
from tests import servers
from tests.runner.test_run import MODEL, _quick, dataset, good
from tests.servers import ReceivedRequest, Reply, serve

__all__ = ["_quick", "dataset"]

Call = Callable[[RunSpec], Coroutine[Any, Any, RunReport]]
IGNORE: Callable[[RunProgress], None] = lambda progress: None  # noqa: E731


async def awaited(spec: RunSpec) -> RunReport:
    return await arun(replace(spec, on_progress=IGNORE))


async def in_a_running_loop(spec: RunSpec) -> RunReport:
    return run(replace(spec, on_progress=IGNORE))


@pytest.mark.parametrize("call", [awaited, in_a_running_loop])
def test_a_run_within_an_event_loop_stores_and_resumes(
    dataset: Path, tmp_path: Path, call: Call
) -> None:
    with serve(good) as server:
        spec = RunSpec(MODEL, dataset=dataset, out=tmp_path / "run", base_url=server.url)
        first = asyncio.run(call(replace(spec, limit=2)))
        second = asyncio.run(call(spec))
        assert len(server.received) == 10
    assert (first.answered, second.answered, second.skipped) == (4, 6, 4)
    assert len(read_run(tmp_path / "run").responses) == 10


@pytest.mark.parametrize("call", [awaited, in_a_running_loop])
def test_a_failed_run_raises_within_an_event_loop(
    dataset: Path, tmp_path: Path, call: Call
) -> None:
    async def refuse(received: ReceivedRequest) -> Reply:
        return servers.error(401, "no such key")

    with serve(refuse) as server:
        spec = RunSpec(MODEL, dataset=dataset, out=tmp_path / "run", base_url=server.url)
        with pytest.raises(NumbenchError, match="no such key"):
            asyncio.run(call(spec))


@pytest.mark.parametrize("call", [awaited, in_a_running_loop])
def test_an_interrupt_ends_a_run_within_an_event_loop(
    dataset: Path, tmp_path: Path, call: Call
) -> None:
    async def interrupt(received: ReceivedRequest) -> Reply:
        if len(server.received) == 4:
            os.kill(os.getpid(), signal.SIGINT)
        return await good(received)

    before = signal.getsignal(signal.SIGINT)
    with serve(interrupt) as server:
        spec = RunSpec(MODEL, dataset=dataset, out=tmp_path / "run", base_url=server.url)
        with pytest.raises(RunInterrupted) as caught:
            asyncio.run(_one_at_a_time(call, spec))
    assert 3 <= caught.value.report.answered < 10
    assert len(read_run(tmp_path / "run").responses) == caught.value.report.answered
    assert signal.getsignal(signal.SIGINT) is before


async def _one_at_a_time(call: Call, spec: RunSpec) -> RunReport:
    if call is awaited:
        return await arun(replace(spec, concurrency=1, on_progress=IGNORE))
    return run(replace(spec, concurrency=1, on_progress=IGNORE))


def test_a_second_interrupt_ends_a_run_in_a_thread_at_once(dataset: Path, tmp_path: Path) -> None:
    async def never(received: ReceivedRequest) -> Reply:
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(0.2)
        os.kill(os.getpid(), signal.SIGINT)
        await asyncio.sleep(servers.FOR_EVER)
        return servers.chat()

    with serve(never) as server:
        spec = RunSpec(MODEL, dataset=dataset, out=tmp_path / "run", base_url=server.url)
        with pytest.raises(RunInterrupted) as caught:
            asyncio.run(_one_at_a_time(in_a_running_loop, spec))
    assert caught.value.report.completed == 0


def test_a_cancelled_task_ends_its_run_and_unlocks_the_folder(
    dataset: Path, tmp_path: Path
) -> None:
    requested = threading.Event()

    async def never(received: ReceivedRequest) -> Reply:
        requested.set()
        await asyncio.sleep(servers.FOR_EVER)
        return servers.chat()

    async def main(spec: RunSpec) -> None:
        task = asyncio.create_task(awaited(spec))
        await asyncio.to_thread(requested.wait, 100)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with serve(never) as server:
        spec = RunSpec(MODEL, dataset=dataset, out=tmp_path / "run", base_url=server.url)
        asyncio.run(main(spec))
    # The requests in flight may have been billed.
    responses = read_run(tmp_path / "run").responses.values()
    assert responses and {possibly_billed_attempts(each) for each in responses} == {1}
    with serve(good) as server:
        recorded = tmp_path / "run" / "run.json"
        recorded.write_text(recorded.read_text().replace(str(spec.base_url), server.url))
        again = run(replace(spec, base_url=server.url, on_progress=IGNORE))
    assert again.answered == 10


def test_a_run_in_another_thread_installs_no_signal_handlers(dataset: Path, tmp_path: Path) -> None:
    reports: list[RunReport] = []
    spec = RunSpec("baseline/float64", dataset=dataset, out=tmp_path / "run", on_progress=IGNORE)
    thread = threading.Thread(target=lambda: reports.append(run(spec)))
    thread.start()
    thread.join()
    assert [report.answered for report in reports] == [10]
