"""Runs against a scripted server: what is sent, stored, retried and resumed."""

from __future__ import annotations

import asyncio
import importlib
from pathlib import Path
from typing import Any
from unittest import mock

import pytest

from numbench.dataset.store import write_dataset
from numbench.errors import BadInput, NumbenchError
from numbench.journal import read_run
from numbench.records import Item
from numbench.runner import RunReport, run
from numbench.runner.progress import RunProgress, ScoreCallback
from numbench.runner.scheduling import RetryPolicy
from numbench.runner.spec import RunSpec
from numbench.tasks.items import make_item
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, serve

RUN_MODULE = importlib.import_module("numbench.runner.execution")
"""The module; as an attribute of its package, `run` is the function."""

KEY = "sk-planted-0123456789"
ROOT = Path(__file__).parents[2]
MODEL = "openai/some"
QUICK: dict[str, Any] = {
    "backoff": 0.01,
    "max_backoff": 0.05,
    "outage_timeout": 0.0,
    "poll_interval": 0.01,
    "max_poll_interval": 0.02,
    "job_lookup_timeout": 0.3,
}
"""A retry policy for tests: short waits, and no outage if several items fail."""


def questions(count: int) -> dict[str, list[Item]]:
    return {
        "addition": [make_item("addition", "+", (str(n), "1"), {}) for n in range(1, count + 1)],
        "minmax": [
            make_item("minmax", "minimum", (str(n), "500.5"), {}) for n in range(1, count + 1)
        ],
    }


@pytest.fixture
def dataset(tmp_path: Path) -> Path:
    return small_dataset(tmp_path / "data", 5)


def small_dataset(folder: Path, count: int) -> Path:
    write_dataset(
        folder,
        questions(count),
        name="small",
        generator="test",
        seed=None,
        split="test",
        settings={},
    )
    return folder


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("OPENAI", "OPENROUTER", "GEMINI", "ANTHROPIC"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)
    use_policy(monkeypatch)


def use_policy(monkeypatch: pytest.MonkeyPatch, **changes: Any) -> None:
    """Make runs quick, with these changes to their retry policy."""
    policy = QUICK | changes
    monkeypatch.setattr(RUN_MODULE, "RetryPolicy", lambda **given: RetryPolicy(**(policy | given)))


def go(server: servers.Server, dataset: Path, out: Path, **changes: Any) -> RunReport:
    arguments: dict[str, Any] = {"model": MODEL, "dataset": dataset, "out": out}
    return run_with(**(arguments | {"base_url": server.url} | changes))


def run_with(
    max_attempts: int | None = None,
    judge: ScoreCallback | None = None,
    kind: type[RunSpec] = RunSpec,
    **options: Any,
) -> RunReport:
    """`run` without progress."""
    spec = kind(**({"on_progress": lambda now: None} | options))
    if max_attempts is None:
        return run(spec, judge)
    policy, changed = RUN_MODULE.RetryPolicy, {"max_attempts": max_attempts}
    with mock.patch.object(RUN_MODULE, "RetryPolicy", lambda **more: policy(**(more | changed))):
        return run(spec, judge)


async def good(received: ReceivedRequest) -> Reply:
    usage = {
        "prompt_tokens": 10,
        "completion_tokens": 4,
        "completion_tokens_details": {"reasoning_tokens": 1},
        "cost": 0.5,
    }
    return servers.chat(usage=usage)


def test_a_run_stores_every_answer_and_is_not_repeated(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        report = go(server, dataset, out)
        assert (report.answered, report.completed, report.skipped, report.errors) == (10, 10, 0, 0)
        assert (report.input_tokens, report.generated_tokens, report.cost) == (100, 40, 5.0)
        assert set(server.counts.values()) == {1}
        again = go(server, dataset, out)
        assert (again.completed, again.skipped) == (0, 10)
        assert len(server.received) == 10
    recorded = read_run(out)
    assert set(recorded.responses) == {i.id for items in questions(5).values() for i in items}
    response = next(iter(recorded.responses.values()))
    assert response.text == '{"answer": 1}'
    assert response.attempts == 1
    assert response.latency is not None
    assert response.latency > 0
    assert response.at is not None
    info = recorded.info
    assert (info.model, info.reasoning, info.tasks) == (MODEL, "default", ("minmax", "addition"))
    assert {"numbench", "python"} == info.versions.keys()
    assert info.settings["base_url"] == server.url
    assert info.settings["temperature"] == 0.0
    assert "timeout" not in info.settings


def test_limit_and_tasks_select_items_in_turn(dataset: Path, tmp_path: Path) -> None:
    with serve(good) as server:
        go(server, dataset, tmp_path / "run", limit=2, concurrency=1)
        assert ["minimum" in received.prompt for received in server.received] == [True, False] * 2
        go(server, dataset, tmp_path / "run", tasks=["addition"], limit=2)
        assert len(server.received) == 4
        report = go(server, dataset, tmp_path / "run", limit=3)
        assert (report.completed, report.skipped) == (2, 4)
    assert read_run(tmp_path / "run").info.limit == 3


def test_a_lasting_failure_is_recorded_and_retried_by_the_next_call(
    dataset: Path, tmp_path: Path
) -> None:
    broken = True

    async def script(received: ReceivedRequest) -> Reply:
        return servers.error(500) if broken and "minimum" in received.prompt else servers.chat()

    # One at a time: several that fail with no answer in between would be an outage.
    with serve(script) as server:
        report = go(server, dataset, tmp_path / "run", max_attempts=3, concurrency=1)
        assert (report.answered, report.errors, report.retries) == (5, 5, 10)
        errors = [r.error for r in read_run(tmp_path / "run").responses.values() if r.error]
        assert [error.kind for error in errors] == ["transient"] * 5
        broken = False
        report = go(server, dataset, tmp_path / "run")
        assert (report.answered, report.skipped, report.errors) == (5, 5, 0)
    assert not [r for r in read_run(tmp_path / "run").responses.values() if r.error]


@pytest.mark.parametrize("model", [MODEL, "gemini/some"])
def test_a_bad_key_ends_the_run_before_other_requests_are_sent(
    tmp_path: Path, model: str
) -> None:
    dataset = small_dataset(tmp_path / "data", 100)

    async def script(received: ReceivedRequest) -> Reply:
        return servers.error(401, f"Incorrect API key provided: {KEY}")

    with serve(script) as server:
        with pytest.raises(NumbenchError, match="HTTP 401: Incorrect") as caught:
            go(server, dataset, tmp_path / "run", model=model, concurrency=8)
        assert sum(server.counts[prompt] for prompt in server.counts if prompt) <= 8
    assert KEY not in str(caught.value)
    assert "\n" not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_answers_that_arrive_while_a_run_fails_are_stored(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path / "data", 5)

    async def script(received: ReceivedRequest) -> Reply:
        if "minimum" in received.prompt:
            return servers.error(402, "no credits")
        await asyncio.sleep(0.2)
        return servers.chat()

    with serve(script) as server, pytest.raises(NumbenchError, match="no credits"):
        go(server, dataset, tmp_path / "run", concurrency=2)
    assert len(read_run(tmp_path / "run").responses) == 1


def test_a_resumed_run_shows_the_progress_of_earlier_calls(dataset: Path, tmp_path: Path) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return servers.error(401) if len(server.received) == 5 else await good(received)

    seen: list[RunProgress] = []
    with serve(script) as server:
        with pytest.raises(NumbenchError):
            go(server, dataset, tmp_path / "run", concurrency=1)
        go(server, dataset, tmp_path / "run", on_progress=seen.append, judge=lambda *_: True)
    first, last = seen[0], seen[-1]
    assert (first.done, first.total, first.previously_done) == (4, 10, 4)
    assert (first.overall.correct, first.overall.generated_tokens, first.overall.cost) == (
        4,
        16,
        2.0,
    )
    assert (last.done, last.total, last.previously_done) == (10, 10, 4)
    assert (last.overall.correct, last.overall.generated_tokens, last.overall.cost) == (10, 40, 5.0)


def test_without_a_callback_progress_is_shown_on_stderr(
    dataset: Path, tmp_path: Path, capsys: pytest.CaptureFixture[str]
) -> None:
    with serve(good) as server:
        go(server, dataset, tmp_path / "run", on_progress=None)
    output = capsys.readouterr()
    assert output.out == ""
    assert "10/10 done" in output.err
    assert "$5.0000" in output.err


def test_a_key_in_the_path_of_a_url_is_not_stored_and_the_run_is_resumed(
    dataset: Path, tmp_path: Path
) -> None:
    secret, out = "0123456789abcdef0123456789abcdef", tmp_path / "run"

    async def script(received: ReceivedRequest) -> Reply:
        if "1 + 1" in received.prompt:
            return servers.error(400, f"content_filter at {received.path}")
        return servers.chat(f"path {received.path}")

    with serve(script) as server:
        url = f"{server.url}/{secret}/v1"
        assert go(server, dataset, out, base_url=url).answered == 9
        assert {each.path for each in server.received} == {f"/{secret}/v1/chat/completions"}
        assert secret.encode() not in b"".join(
            file.read_bytes() for file in out.rglob("*") if file.is_file()
        )
        # Older versions wrote the URL as it is.
        stored = (out / "run.json").read_text()
        masked = str(read_run(out).info.settings["base_url"])
        (out / "run.json").write_text(stored.replace(masked, url))
        assert go(server, dataset, out, base_url=url).skipped == 10
        assert (out / "run.json").read_text() == stored
        with pytest.raises(BadInput, match=r"settings\.base_url") as caught:
            go(server, dataset, out, base_url=f"{server.url}/{secret[1:]}/v1")
        assert secret[1:] not in str(caught.value)


def test_streaming_is_recorded_and_may_change_within_a_run(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        recorded = []
        for limit, stream in ((1, None), (2, False), (3, False), (4, True)):
            go(server, dataset, out, limit=limit, stream=stream)
            recorded.append(read_run(out).info.settings.get("stream"))
        assert recorded == [None, "mixed", "mixed", "mixed"]
        assert [servers.is_streamed(r) for r in server.received] == 6 * [False] + 2 * [True]
        for stream in (True, False):
            go(server, dataset, tmp_path / str(stream), stream=stream)
            go(server, dataset, tmp_path / str(stream), stream=stream)
            assert read_run(tmp_path / str(stream)).info.settings["stream"] is stream
