"""How long a run goes on: time limits, outages, items that never come."""

from __future__ import annotations

import asyncio
import signal
import threading
from pathlib import Path

import pytest

from bench.errors import NumbenchError
from bench.journal import read_run
from bench.runner import Interrupted, TimeReached
from bench.runner import running as runner
from bench.runner.drive import Pace
from tests import servers
from tests.servers import Asked, Reply, serve
from tests.test_runner import _quick, dataset, go, good, small_dataset

__all__ = ["_quick", "dataset"]


def test_at_the_time_limit_nothing_new_is_asked_and_what_is_under_way_is_kept(
    dataset: Path, tmp_path: Path
) -> None:
    async def slow(asked: Asked) -> Reply:
        await asyncio.sleep(0.3)
        return servers.chat()

    with serve(slow) as server:
        with pytest.raises(TimeReached, match="stopped at --time-limit: 2 answered now, 8 still"):
            go(server, dataset, tmp_path / "run", concurrency=2, time_limit=0.1)
        assert (len(server.asked), len(read_run(tmp_path / "run").responses)) == (2, 2)
        assert go(server, dataset, tmp_path / "run", time_limit=60).answered == 8


def test_a_retry_is_not_waited_for_beyond_the_time_limit(dataset: Path, tmp_path: Path) -> None:
    async def busy(asked: Asked) -> Reply:
        return servers.error(429, headers={"Retry-After": "3600"})

    with serve(busy) as server, pytest.raises(TimeReached, match="10 still open"):
        go(server, dataset, tmp_path / "run", time_limit=0.2)
    assert read_run(tmp_path / "run").responses == {}


def test_an_interrupt_shortens_the_wait_behind_the_time_limit(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(runner, "Pace", lambda **changes: Pace(grace=0.05, **changes))

    async def never(asked: Asked) -> Reply:
        await asyncio.sleep(servers.FOR_EVER)
        return servers.chat()

    with serve(never) as server:
        threading.Timer(0.6, lambda: signal.raise_signal(signal.SIGINT)).start()
        with pytest.raises(Interrupted):
            go(server, dataset, tmp_path / "run", time_limit=0.2)


def test_an_outage_is_waited_for_and_costs_no_item(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = {"backoff": 0.01, "longest_backoff": 0.02, "outage": 60.0}
    monkeypatch.setattr(runner, "Pace", lambda **changes: Pace(**(quick | changes)))
    asked_in_all = 0

    async def script(asked: Asked) -> Reply:
        nonlocal asked_in_all
        asked_in_all += 1
        return servers.error(503) if 5 <= asked_in_all < 100 else await good(asked)

    with serve(script) as server:
        report = go(server, dataset, tmp_path / "run", concurrency=4)
    assert (report.answered, report.errors) == (10, 0)


def test_an_outage_that_lasts_ends_the_run(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    quick = {"backoff": 0.01, "longest_backoff": 0.02, "outage": 0.5}
    monkeypatch.setattr(runner, "Pace", lambda **changes: Pace(**(quick | changes)))
    data = small_dataset(tmp_path / "more", 30)

    async def script(asked: Asked) -> Reply:
        return await good(asked) if len(server.asked) < 5 else servers.error(503)

    with serve(script) as server, pytest.raises(NumbenchError, match="brought no answer"):
        go(server, data, tmp_path / "run", concurrency=4)


def test_one_item_that_always_fails_is_given_up_after_its_attempts(
    dataset: Path, tmp_path: Path
) -> None:
    async def script(asked: Asked) -> Reply:
        return servers.error(503) if "5 + 1" in asked.prompt else await good(asked)

    with serve(script) as server:
        report = go(server, dataset, tmp_path / "run", max_attempts=4)
        assert (report.answered, report.errors, report.final) == (9, 1, 0)
        assert report.last_error == "scripted"
        assert max(server.counts.values()) == 4
