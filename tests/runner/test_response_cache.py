"""Answers that runs share through the response cache."""

from __future__ import annotations

import dataclasses
import os
import sqlite3
import subprocess
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from numbench.errors import BadInput, NumbenchError
from numbench.journal import iter_responses, read_run
from numbench.records import ItemSample, is_cached, possibly_billed_attempts
from numbench.reporting.coverage import coverage_warnings
from numbench.reporting.entries import measure
from numbench.runner import CostLimitReached, RunSpec, TimeLimitReached
from numbench.runner.response_cache import _request_key, cache_path
from numbench.runner.spec import resolve
from numbench.scoring import score_run
from tests import servers
from tests.runner.batch_provider import Provider
from tests.runner.test_run import KEY, ROOT, _quick, dataset, go, good, run_with, small_dataset
from tests.servers import ReceivedRequest, Reply, serve

__all__ = ["_quick", "dataset"]

PAID: dict[str, Any] = {"model": "openrouter/some", "cache": True}
"""A provider that reports costs."""


@pytest.fixture(autouse=True)
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Iterator[Path]:
    path = tmp_path / "caches" / "answers.sqlite"
    monkeypatch.setenv("NUMBENCH_CACHE", str(path))
    yield path


def test_equal_requests_are_answered_from_the_cache_at_no_cost(
    dataset: Path, tmp_path: Path, cache: Path
) -> None:
    with serve(good) as server:
        first = go(server, dataset, tmp_path / "first", **PAID, limit=3)
        assert (first.answered, first.cached) == (6, 0)
        second = go(server, dataset, tmp_path / "second", **PAID, max_cost=2.0)
        # 6 of 10 from the cache; the limit is for the other four, at $0.50 each.
        assert (second.answered, second.skipped, second.cached, second.cost) == (4, 6, 6, 2.0)
        assert len(server.received) == 10
        assert go(server, dataset, tmp_path / "second", **PAID, max_cost=2.0).skipped == 10
        with pytest.raises(CostLimitReached, match=r"\$2.0000 spent"):
            go(
                server,
                dataset,
                tmp_path / "second",
                **PAID,
                max_cost=2.0,
                samples=2,
                temperature=0.0,
            )
    measured, cached = (read_run(tmp_path / name).responses for name in ("first", "second"))
    hits = {k: response for k, response in cached.items() if is_cached(response)}
    assert hits.keys() == measured.keys()
    for key, response in hits.items():
        original = measured[key]
        assert (response.cost, response.latency, response.attempts) == (None, None, 0)
        assert response.extra["cost_source"] == "cache"
        assert response.extra["cached_at"] == original.at
        same = {"cost": original.cost, "latency": original.latency, "attempts": 1}
        assert replace(response, at=original.at, extra=original.extra, **same) == original
    warnings = coverage_warnings(measure([score_run(tmp_path / "second")]))
    assert "answers from the response cache, without cost and latency (6: MinMax 3" in "".join(
        warning.text for warning in warnings
    )


@pytest.mark.parametrize(
    "changes",
    [
        {"seed": 5},
        {"temperature": 0.5},
        {"max_tokens": 77},
        {"few_shot": 1},
        {"model": "openrouter/other"},
        {"cache": False},
    ],
)
def test_another_request_is_not_answered_from_the_cache(
    dataset: Path, tmp_path: Path, changes: dict[str, Any]
) -> None:
    with serve(good) as server:
        go(server, dataset, tmp_path / "first", **PAID)
        assert go(server, dataset, tmp_path / "second", **(PAID | changes)).answered == 10
    with serve(good) as other:
        assert go(other, dataset, tmp_path / "third", **PAID).answered == 10


def test_each_sample_has_its_own_answer_and_the_first_one_stays(
    dataset: Path, tmp_path: Path
) -> None:
    """Also without a seed: the second sample is not the first one again."""

    async def counted(received: ReceivedRequest) -> Reply:
        text = "" if len(server.received) == 1 else f'{{"answer": {len(server.received)}}}'
        return servers.chat(text)

    sampled: dict[str, Any] = PAID | {"samples": 2, "temperature": 1.0}
    with serve(counted) as server:
        go(server, dataset, tmp_path / "first", **sampled)
        # A retried answer is not the one that other runs get.
        assert go(server, dataset, tmp_path / "first", **sampled, retry=["empty"]).answered == 1
        assert go(server, dataset, tmp_path / "second", **sampled).cached == 20
        # It was empty; the retry asks the provider.
        assert go(server, dataset, tmp_path / "second", **sampled, retry=["empty"]).answered == 1
        assert len(server.received) == 22
    first, second = (list(iter_responses(tmp_path / name)) for name in ("first", "second"))
    texts = [{r.request_id: r.text for r in reversed(run)} for run in (first, second)]
    assert texts[0] == texts[1]
    assert len(set(texts[0].values())) == 20


def test_the_first_answer_stays_and_one_after_a_failure_is_not_kept(
    dataset: Path, tmp_path: Path
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) == 1:
            return servers.error(400, "content filter")
        return servers.chat(f'{{"answer": {len(server.received)}}}')

    with serve(script) as server:
        go(server, dataset, tmp_path / "first", **PAID, concurrency=1)
        retried = go(server, dataset, tmp_path / "first", **PAID, retry=["error"])
        assert retried.answered == 1
        # Another run with other answers adds them later.
        go(server, dataset, tmp_path / "other", **(PAID | {"cache": False}))
        go(server, dataset, tmp_path / "other", **PAID)
        last = go(server, dataset, tmp_path / "third", **PAID)
        assert (last.cached, last.answered) == (10, 0)
    first, other, third = (
        read_run(tmp_path / name).responses for name in ("first", "other", "third")
    )
    (failed,) = [r.item_id for r in iter_responses(tmp_path / "first") if r.error]
    for key, response in third.items():
        assert response.text == (other if key == failed else first)[key].text


def test_failures_are_not_cached_and_an_interrupted_run_leaves_its_answers(
    dataset: Path, tmp_path: Path
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) > 4:
            return servers.error(401, "bad key")
        return (
            servers.error(400, "content filter")
            if len(server.received) == 1
            else await good(received)
        )

    with serve(script) as server:
        with pytest.raises(NumbenchError, match="bad key"):
            go(server, dataset, tmp_path / "first", **PAID, concurrency=1)
        with pytest.raises(NumbenchError, match="bad key"):
            go(server, dataset, tmp_path / "second", **PAID, concurrency=1)
    assert sum(is_cached(r) for r in iter_responses(tmp_path / "second")) == 3


def test_wrong_uses_and_a_broken_cache_are_one_line(
    dataset: Path, tmp_path: Path, cache: Path
) -> None:
    with pytest.raises(BadInput, match=r"baseline/float32 runs in this process: omit --cache"):
        run_with(model="baseline/float32", dataset=dataset, out=tmp_path / "a", cache=True)
    cache.parent.mkdir(exist_ok=True)
    cache.write_bytes(b"not a database" * 100)
    with serve(good) as server, pytest.raises(BadInput) as caught:
        go(server, dataset, tmp_path / "b", **PAID)
    assert str(caught.value) == (
        f"{cache}: file is not a database; set NUMBENCH_CACHE to another file, or omit --cache"
    )
    assert not server.received


def test_the_location_follows_the_environment(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    monkeypatch.delenv("NUMBENCH_CACHE")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path))
    assert cache_path() == tmp_path / "numbench" / "answers.sqlite"


CALL = (
    "import sys; from pathlib import Path; from numbench.runner import *\n"
    "url, data, out = sys.argv[1:]\n"
    "run(RunSpec('openai/some', dataset=data, out=Path(out), base_url=url), cache=True)\n"
)


def test_several_processes_share_a_cache(tmp_path: Path, cache: Path) -> None:
    """Three runs at once write the same answers, and one is killed; a fourth finds them all."""
    data = small_dataset(tmp_path / "data", 50)

    def start(name: str) -> subprocess.Popen[bytes]:
        return subprocess.Popen(
            [sys.executable, "-c", CALL, server.url, str(data), str(tmp_path / name)],
            cwd=ROOT,
            stderr=subprocess.DEVNULL,
            env=os.environ | {"OPENAI_API_KEY": KEY},
        )

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) == 90:
            processes[0].kill()
        return await good(received)

    processes: list[subprocess.Popen[bytes]] = []
    with serve(script) as server:
        processes += [start(name) for name in "abc"]
        codes = [process.wait(300) for process in processes]
        assert codes[1:] == [0, 0]
        before = len(server.received)
        assert start("d").wait(300) == 0
        assert len(server.received) == before
    with sqlite3.connect(cache) as database:
        assert database.execute("SELECT count(*) FROM answers").fetchone() == (100,)


def test_what_attempts_cost_stays_with_the_run_that_paid_for_them(
    dataset: Path, tmp_path: Path
) -> None:
    """Otherwise a lost answer of one run would count against the limits of all others."""

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) == 1:
            return servers.error(502, "bad gateway")
        return await good(received)

    with serve(script) as server:
        assert go(server, dataset, tmp_path / "first", **PAID).possibly_billed == 1
        assert go(server, dataset, tmp_path / "second", **PAID).cached == 10
        assert len(server.received) == 11
    first, second = (list(iter_responses(tmp_path / name)) for name in ("first", "second"))
    assert sum(map(possibly_billed_attempts, first)) == 1
    assert sum(map(possibly_billed_attempts, second)) == 0


def test_the_values_of_headers_and_the_body_as_sent_belong_to_the_request(
    dataset: Path, tmp_path: Path
) -> None:
    with serve(good) as server:
        for name, value in (("first", "a"), ("second", "b")):
            arguments = PAID | {"headers": {"X-Version": value}}
            assert go(server, dataset, tmp_path / name, **arguments).answered == 10
        again = go(server, dataset, tmp_path / "third", **arguments)
        assert (again.answered, again.cached) == (0, 10)
    spec = RunSpec("openrouter/some", dataset=dataset)
    resolved = resolve(spec, spec.describe())
    (item, *_) = resolved.items_by_task["addition"]
    keys = {
        _request_key(
            dataclasses.replace(resolved, info=replace(resolved.info, requests={"addition": sha})),
            ItemSample(item),
        )
        for sha in ("one", "other")
    }
    assert len(keys) == 2


def test_answers_that_a_batch_job_will_bring_are_not_taken_from_the_cache(
    dataset: Path, tmp_path: Path
) -> None:
    """They are billed, and must not be discarded when they arrive."""
    provider = Provider(polls=10**9)
    arguments: dict[str, Any] = {"model": "openai/some", "cache": True}

    async def either(received: ReceivedRequest) -> Reply:
        is_chat = received.path == "/chat/completions"
        return await (good if is_chat else provider)(received)

    with serve(either) as server:
        while not provider.seen:
            with pytest.raises(TimeLimitReached):
                go(server, dataset, tmp_path / "a", **arguments, batch=True, time_limit=0.3)
        assert go(server, dataset, tmp_path / "b", **arguments).answered == 10
        provider.polls = provider.seen["batch-0"] + 1
        report = go(server, dataset, tmp_path / "a", **arguments, batch=True)
        assert (report.answered, report.cached) == (10, 0)
        # The answers of a job are in the cache without their job.
        assert go(server, dataset, tmp_path / "c", **arguments).cached == 10
    assert all("batch_job" in response.extra for response in iter_responses(tmp_path / "a"))
    assert len(provider.jobs) == 1


def test_a_batch_job_has_only_the_requests_that_the_cache_lacks(
    dataset: Path, tmp_path: Path
) -> None:
    provider = Provider()
    arguments: dict[str, Any] = {"model": "openai/some", "cache": True}

    async def either(received: ReceivedRequest) -> Reply:
        is_chat = received.path == "/chat/completions"
        return await (good if is_chat else provider)(received)

    with serve(either) as server:
        assert go(server, dataset, tmp_path / "a", **arguments, limit=2).answered == 4
        report = go(server, dataset, tmp_path / "b", **arguments, batch=True)
        assert (report.answered, report.cached) == (6, 4)
        assert len(provider.requests("batch-0")) == 6
        assert go(server, dataset, tmp_path / "c", **arguments).cached == 10


def test_a_request_that_has_failed_for_a_while_is_looked_up(dataset: Path, tmp_path: Path) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return servers.error(503) if is_down else await good(received)

    is_down = False
    with serve(script) as server:
        assert go(server, dataset, tmp_path / "first", **PAID).answered == 10
        is_down = True
        with pytest.raises(NumbenchError, match="in a row failed"):
            go(server, dataset, tmp_path / "second", **(PAID | {"cache": False}))
        before = len(server.received)
        assert go(server, dataset, tmp_path / "second", **PAID).cached == 10
        assert len(server.received) == before


def test_answers_that_a_killed_call_has_left_are_in_the_cache_from_the_start_of_the_next(
    dataset: Path, tmp_path: Path, cache: Path
) -> None:
    """So that they are not lost for it if the next call is killed too."""
    kept: list[int] = []

    async def script(received: ReceivedRequest) -> Reply:
        if cache.exists():
            with sqlite3.connect(cache) as database:
                kept.extend(database.execute("SELECT count(*) FROM answers").fetchone())
        return await good(received)

    with serve(script) as server:
        # A call without a cache leaves what a killed one would.
        go(server, dataset, tmp_path / "run", **(PAID | {"cache": False}), limit=2)
        go(server, dataset, tmp_path / "run", **PAID, concurrency=1)
    assert kept == [4] * 6
