"""Runs that are killed or interrupted."""

from __future__ import annotations

import asyncio
import os
import signal
import subprocess
import sys
import threading
from pathlib import Path

import pytest

from numbench.journal import iter_responses, read_run
from numbench.records import possibly_billed_attempts
from numbench.runner import RunInterrupted
from tests import servers
from tests.runner.test_run import KEY, ROOT, go, questions, small_dataset
from tests.servers import ReceivedRequest, Reply, serve


@pytest.fixture(autouse=True)
def _key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)


CALL = (
    "import sys; from pathlib import Path; from numbench.runner import *\n"
    "url, data, out = sys.argv[1:]\n"
    "run(RunSpec('openai/some', dataset=data, out=Path(out), base_url=url), concurrency=4)\n"
)


def start(server: servers.Server, dataset: Path, out: Path, *wrapper: str) -> subprocess.Popen[str]:
    return subprocess.Popen(
        [*wrapper, sys.executable, "-c", CALL, server.url, str(dataset), str(out)],
        cwd=ROOT,
        text=True,
        stdout=subprocess.PIPE,
        stderr=subprocess.PIPE,
        env=os.environ | {"OPENAI_API_KEY": KEY},
    )


def test_after_kill_9_a_resumed_run_repeats_no_answered_item(
    tmp_path: Path,
) -> None:
    dataset, out = small_dataset(tmp_path / "data", 100), tmp_path / "run"
    prompts = {item.id: item.prompt for items in questions(100).values() for item in items}
    served: dict[str, int] = {}
    settled: dict[str, int] = {}
    enough = threading.Event()

    async def script(received: ReceivedRequest) -> Reply:
        await asyncio.sleep(0.02)
        served[received.prompt] = served.get(received.prompt, 0) + 1
        if len(served) % 40 == 0:
            enough.set()
        return servers.chat()

    with serve(script) as server:
        for _ in range(2):
            process = start(server, dataset, out)
            assert enough.wait(100)
            process.kill()
            process.communicate()
            enough.clear()
            journalled = [prompts[item_id] for item_id in read_run(out).responses]
            settled |= {prompt: server.counts[prompt] for prompt in journalled}
            # Only answers in flight when the process died are not on disk.
            assert len(settled) >= len(served) - 4 * 2
        assert 0 < len(settled) < 200
        process = start(server, dataset, out)
        process.communicate(timeout=100)
        assert process.returncode == 0
        assert {prompt: server.counts[prompt] for prompt in settled} == settled
    assert len(read_run(out).responses) == 200
    lines = (out / "responses.jsonl").read_bytes().splitlines()
    assert len(lines) == 200
    # Each of the two kills wastes at most the four requests in flight.
    assert sum(served.values()) <= 200 + 2 * 4


@pytest.mark.parametrize("number", [signal.SIGINT, signal.SIGTERM])
def test_an_interrupt_waits_for_requests_in_flight_and_stores_them(
    tmp_path: Path, number: signal.Signals
) -> None:
    dataset, out = small_dataset(tmp_path / "data", 100), tmp_path / "run"

    eight_requests = threading.Event()

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) == 8:
            eight_requests.set()
        await asyncio.sleep(0.5)
        return servers.chat()

    with serve(script) as server:
        process = start(server, dataset, out)
        assert eight_requests.wait(100)
        process.send_signal(number)
        _, output = process.communicate(timeout=100)
        assert "RunInterrupted" in output
        assert process.returncode != 0
        assert len(server.received) == 8
    assert len(read_run(out).responses) == 8


def test_nohup_protects_a_whole_run_from_a_closed_terminal(tmp_path: Path) -> None:
    dataset, out = small_dataset(tmp_path / "data", 10), tmp_path / "run"
    hung_up = threading.Event()

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) == 8:
            process.send_signal(signal.SIGHUP)
            hung_up.set()
        return servers.chat()

    with serve(script) as server:
        process = start(server, dataset, out, "sh", "-c", 'trap "" HUP; exec "$@"', "nohup")
        process.communicate(timeout=100)
    assert hung_up.is_set()
    assert process.returncode == 0
    assert len(read_run(out).responses) == 20


def test_a_second_interrupt_ends_the_run_at_once(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dataset, out = small_dataset(tmp_path / "data", 10), tmp_path / "run"

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) == 4:
            os.kill(os.getpid(), signal.SIGINT)
            await asyncio.sleep(0.2)
            os.kill(os.getpid(), signal.SIGINT)
        if len(server.received) >= 4:
            await asyncio.sleep(servers.FOR_EVER)
        return servers.chat()

    before = signal.getsignal(signal.SIGINT)
    with serve(script) as server, pytest.raises(RunInterrupted) as caught:
        go(server, dataset, out, concurrency=1)
    assert caught.value.report.interrupted
    assert caught.value.report.answered == 3
    assert (caught.value.report.errors, caught.value.report.possibly_billed) == (0, 1)
    responses = list(iter_responses(out))
    assert [possibly_billed_attempts(response) for response in responses] == [0, 0, 0, 1]
    assert signal.getsignal(signal.SIGINT) is before


def test_an_interrupt_ends_the_wait_for_a_retry(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path / "data", 1)

    async def script(received: ReceivedRequest) -> Reply:
        threading.Timer(0.3, os.kill, (os.getpid(), signal.SIGTERM)).start()
        return servers.error(429, headers={"Retry-After": "600"})

    with serve(script) as server, pytest.raises(RunInterrupted):
        go(server, dataset, tmp_path / "run", concurrency=1)
    assert read_run(tmp_path / "run").responses == {}


def test_the_api_key_is_neither_written_nor_printed(tmp_path: Path) -> None:
    dataset, out = small_dataset(tmp_path / "data", 5), tmp_path / "run"

    async def script(received: ReceivedRequest) -> Reply:
        header = received.headers["authorization"]
        if "minimum" in received.prompt:
            return servers.error(400, f"content_filter {header}")
        if received.number == 0:
            return servers.error(500, header)
        return servers.chat(header, message={"reasoning": header}, model=header)

    async def refuse(received: ReceivedRequest) -> Reply:
        return servers.error(401, received.headers["authorization"])

    written = b""
    for reply in (script, refuse):
        with serve(reply) as server:
            process = start(server, dataset, out / reply.__name__)
            output = "".join(process.communicate(timeout=100))
        assert KEY not in output
    for path in out.rglob("*"):
        if path.is_file():
            written += path.read_bytes()
    assert b"[key]" in written
    assert KEY.encode() not in written
