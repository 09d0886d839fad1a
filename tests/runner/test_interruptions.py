"""Commands that are killed, interrupted, without disk space, or started twice."""

import asyncio
import resource
import signal
import threading
from collections import Counter
from pathlib import Path
from types import SimpleNamespace

import pytest

from numbench.errors import NumbenchError
from numbench.journal.run_folder import find_runs, iter_responses, read_run
from numbench.runner.active_run import CostLimitReached
from numbench.runner.retrying import DEFAULT_POLICY
from tests.runner.batch_provider import Provider
from tests.support import servers
from tests.support.command_line import CONCURRENCY, CommandLine, arguments_for, start
from tests.support.runs import KEY, ROOT, go, good, small_dataset
from tests.support.servers import ReceivedRequest, Reply, serve

pytestmark = pytest.mark.slow


COMMANDS = {
    "run": "run --model openai/some --dataset {data} --samples 2 --temperature 1",
    "suite": "run --model openai/some,openrouter/some --dataset {data}",
    "batch": "run --model openai/some --dataset {data} --batch",
    "horizon": "horizon --model openai/some --tasks copy,long_max --max-items 30 --max-size 32",
    "memory test": "memory-test --model openai/some --tasks addition --limit 15",
}
CODES = {"SIGKILL": -signal.SIGKILL, "SIGINT": 130, "full disk": 1, "second process": 0}


def limit_file_size() -> None:
    resource.setrlimit(resource.RLIMIT_FSIZE, (4_000, 4_000))


@pytest.mark.parametrize("fault", CODES)
@pytest.mark.parametrize("kind", COMMANDS)
def test_the_same_command_resumes_and_repeats_nothing_that_was_answered(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, kind: str, fault: str
) -> None:
    """What the server billed is in the journal: as an answer, or as possibly billed."""
    out, provider = tmp_path / "out", Provider()
    command = COMMANDS[kind].format(data=small_dataset(tmp_path / "data", 10))
    is_reached, is_released = threading.Event(), threading.Event()
    if fault == "full disk":
        is_released.set()

    async def script(received: ReceivedRequest) -> Reply:
        is_polled = received.path.startswith("/batches/")
        if is_polled if kind == "batch" else len(server.received) > 10:
            is_reached.set()
            while not is_released.is_set():
                await asyncio.sleep(0.02)
        return await provider(received) if kind == "batch" else servers.chat()

    def billed() -> int:
        return provider.received.total() if kind == "batch" else len(server.received)

    with serve(script) as server:
        limit = limit_file_size if fault == "full disk" else None
        first = start(server, command, out, preexec_fn=limit)
        if fault == "second process":
            assert is_reached.wait(100)
            second = start(server, command, out)
            assert "another process is writing" in second.communicate(timeout=100)[1]
            assert second.returncode in (1, 2)
        elif fault != "full disk":
            assert is_reached.wait(100)
            first.send_signal(getattr(signal, fault))
        if fault == "SIGKILL":
            first.communicate(timeout=100)
        is_released.set()
        _, errors = first.communicate(timeout=100)
        assert first.returncode == CODES[fault], errors
        assert "Traceback" not in errors
        monkeypatch.setitem(vars(DEFAULT_POLICY), "poll_interval", 0.05)
        environment = {"OPENAI_API_KEY": KEY, "OPENROUTER_API_KEY": KEY}
        CommandLine(ROOT, None)(*arguments_for(server, command, out), environment=environment)
    folders = find_runs([out])
    responses = [(folder, each) for folder in folders for each in iter_responses(folder)]
    answers = Counter((folder, each.request_id) for folder, each in responses if not each.error)
    lost = sum(each.possibly_billed_attempts for _, each in responses)
    assert set(answers.values()) == {1}
    assert len(answers) <= billed() <= len(answers) + lost
    assert lost <= (CONCURRENCY * len(folders) if fault in ("SIGKILL", "full disk") else 0)
    files = [path for path in tmp_path.rglob("*") if path.is_file()]
    assert not [path for path in files if KEY.encode() in path.read_bytes()]


def test_what_a_kill_leaves_in_flight_counts_against_the_limit_of_the_next_call(
    tmp_path: Path,
) -> None:
    """Every answer costs $0.5; four are in flight when the process dies."""
    data, out = small_dataset(tmp_path / "data", 10), tmp_path / "run"
    in_flight, is_killed, model = threading.Event(), False, "openrouter/some"

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) >= 12:
            in_flight.set()
        if len(server.received) > 8 and not is_killed:
            await asyncio.sleep(servers.FOR_EVER)
        return await good(received)

    with serve(script) as server:
        process = start(server, f"run --model {model} --dataset {data}", out)
        assert in_flight.wait(100)
        process.kill()
        process.communicate()
        is_killed = True
        assert len(read_run(out).responses) == 8
        with pytest.raises(CostLimitReached) as caught:
            go(server, data, out, model=model, max_cost=7.0, concurrency=1)
        assert len(server.received) == 12 + 2
    assert (caught.value.report.answered, caught.value.report.possibly_billed_attempts) == (2, 4)
    assert "$5.0000 spent, " in str(caught.value)
    assert "up to $2.0000 more may be billed" in str(caught.value)
    assert not list(out.glob(".sent*"))


def test_nothing_is_sent_without_space_for_the_answers_in_flight(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk has space for four answers, and from the third answer on for none."""
    out, is_full, room = tmp_path / "run", True, 3

    def usage(folder: Path) -> SimpleNamespace:
        responses = out / "responses.jsonl"
        lines = responses.read_bytes().count(b"\n") if responses.exists() else 0
        return SimpleNamespace(free=0 if is_full and lines >= room else 4 << 16)

    monkeypatch.setattr("numbench.journal.writer.shutil.disk_usage", usage)
    with serve(good) as server:
        with pytest.raises(NumbenchError, match="No space left on device: make room; ") as caught:
            go(server, dataset, out, concurrency=4)
        assert "answered now" in str(caught.value) and "the same command continues" in str(
            caught.value
        )
        stored = len(read_run(out).responses)
        assert 3 <= stored == len(server.received) < 10
        with pytest.raises(NumbenchError, match="No space left on device"):
            go(server, dataset, out, concurrency=4)
        assert stored == len(server.received)
        is_full = False
        assert go(server, dataset, out, concurrency=4).skipped == stored
        assert set(server.counts.values()) == {1}
        # After the last answer there is none to make room for.
        out, is_full, room = tmp_path / "other", True, 10
        assert go(server, dataset, out, concurrency=4).answered == 10
