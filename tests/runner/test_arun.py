"""`arun`, and `run` in a thread whose event loop is already running, as in a notebook."""

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
from numbench.journal.run_folder import read_run
from numbench.runner.active_run import ActiveRun, RunInterrupted
from numbench.runner.execution import arun, run
from numbench.runner.progress import RunReport
from numbench.runner.spec import RunSpec
from tests.support import servers
from tests.support.runs import MODEL, good
from tests.support.servers import ReceivedRequest, Reply, serve


async def in_a_running_loop(spec: RunSpec) -> RunReport:
    return run(spec)


EVERY = pytest.mark.parametrize("call", [arun, in_a_running_loop])
Call = Callable[[RunSpec], Coroutine[Any, Any, RunReport]]


def spec_of(dataset: Path, out: Path, url: str | None, **changes: Any) -> RunSpec:
    model = MODEL if url else "baseline/float64"
    options = {"dataset": dataset, "out": out, "base_url": url, "on_progress": lambda now: None}
    return RunSpec(model, **(options | changes))


@EVERY
def test_a_run_within_an_event_loop_stores_resumes_and_fails(
    dataset: Path, tmp_path: Path, call: Call
) -> None:
    with serve(good) as server:
        spec = spec_of(dataset, tmp_path / "run", server.url)
        first = asyncio.run(call(replace(spec, limit=2)))
        second = asyncio.run(call(spec))
        assert len(server.received) == 10
    assert (first.answered, second.answered, second.skipped) == (4, 6, 4)
    with (
        serve(lambda _: servers.error(401, "no such key")) as server,
        pytest.raises(NumbenchError, match="no such key"),
    ):
        asyncio.run(call(spec_of(dataset, tmp_path / "refused", server.url)))


def test_several_runs_can_be_awaited_together(dataset: Path, tmp_path: Path) -> None:
    async def main() -> list[RunReport]:
        specs = [spec_of(dataset, tmp_path / name, None) for name in ("one", "other")]
        return await asyncio.gather(*map(arun, specs))

    assert [report.answered for report in asyncio.run(main())] == [10, 10]


@EVERY
@pytest.mark.parametrize("interrupts", [1, 2])
def test_an_interrupt_ends_a_run_within_an_event_loop(
    dataset: Path, tmp_path: Path, call: Call, interrupts: int, monkeypatch: pytest.MonkeyPatch
) -> None:
    noticed, interrupt_run = threading.Event(), ActiveRun.interrupt

    def notice(scheduler: ActiveRun) -> None:
        interrupt_run(scheduler)
        noticed.set()

    async def interrupt(received: ReceivedRequest) -> Reply:
        if len(server.received) == 4:
            os.kill(os.getpid(), signal.SIGINT)
            while not noticed.is_set():
                await asyncio.sleep(0.01)
            if interrupts == 2:
                os.kill(os.getpid(), signal.SIGINT)
                await asyncio.sleep(servers.FOR_EVER)
        return await good(received)

    monkeypatch.setattr(ActiveRun, "interrupt", notice)

    before = signal.getsignal(signal.SIGINT)
    with serve(interrupt) as server, pytest.raises(RunInterrupted) as caught:
        asyncio.run(call(spec_of(dataset, tmp_path / "run", server.url, concurrency=1)))
    report = caught.value.report
    assert (report.answered, report.possibly_billed_attempts) == (5 - interrupts, interrupts - 1)
    responses = read_run(tmp_path / "run").responses.values()
    assert sum(response.error is None for response in responses) == report.answered
    assert signal.getsignal(signal.SIGINT) is before


def test_a_cancelled_task_ends_its_run_and_unlocks_the_folder(
    dataset: Path, tmp_path: Path
) -> None:
    requested = threading.Event()

    async def never(received: ReceivedRequest) -> Reply:
        if not requested.is_set():
            requested.set()
            await asyncio.sleep(servers.FOR_EVER)
        return await good(received)

    async def main(spec: RunSpec) -> None:
        task = asyncio.create_task(arun(spec))
        await asyncio.to_thread(requested.wait, 100)
        task.cancel()
        with pytest.raises(asyncio.CancelledError):
            await task

    with serve(never) as server:
        spec = spec_of(dataset, tmp_path / "run", server.url, concurrency=1)
        asyncio.run(main(spec))
        # The request in flight may have been billed.
        (response,) = read_run(tmp_path / "run").responses.values()
        assert response.possibly_billed_attempts == 1
        assert run(spec).answered == 10
