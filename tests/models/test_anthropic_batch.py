"""Anthropic's batch API: requests, and matching of results to their requests."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, TypeVar

import pytest
from aiohttp import web

from numbench.models import open_model
from numbench.models.base import BatchRequest, BatchService, BatchStatus
from numbench.models.provider_errors import ProviderError
from numbench.records import Completion, Usage
from tests import servers
from tests.models import batch_calls
from tests.models.adapter_calls import KEY
from tests.models.batch_calls import batch_requests, collect
from tests.models.batch_servers import AnthropicJobs, json_line, planned
from tests.servers import ReceivedRequest, Reply, Script, serve

T = TypeVar("T")
MODEL = "anthropic/claude-opus-5"


def run_at(
    script: Script, work: Callable[[BatchService], Awaitable[T]], level: str | None = "low"
) -> T:
    return batch_calls.run_at(script, work, MODEL, level)


def requests(count: int = 3, **settings: Any) -> list[BatchRequest]:
    return batch_requests(MODEL, "low", **settings)[:count]


def succeeded(position: int, text: str = "x", key: str = "key", **more: Any) -> dict[str, Any]:
    """Return a result with an answer to the request at `position` of a job."""
    message = {
        "id": "msg-1",
        "type": "message",
        "role": "assistant",
        "model": "served",
        "content": [{"type": "text", "text": text}],
        "stop_reason": "end_turn",
        "usage": {
            "input_tokens": 3,
            "output_tokens": 12,
            "output_tokens_details": {"thinking_tokens": 7},
        },
    }
    result = {"type": "succeeded", "message": message | more}
    return {"custom_id": f"{key}-{position}", "result": result}


def ended(position: int, kind: str, **fields: Any) -> dict[str, Any]:
    """Return a result without an answer."""
    return {"custom_id": f"key-{position}", "result": {"type": kind} | fields}


def results_of(results: bytes | list[dict[str, Any]]) -> dict[str, Completion]:
    """Return the results of a job that ended with these; no id comes twice."""
    provider = AnthropicJobs()

    async def work(service: BatchService) -> list[tuple[str, Completion]]:
        name = await service.submit(requests(), "key")
        provider.end(name, results)
        return await collect(service, name)

    completions = run_at(provider, work)
    assert len(completions) == len(dict(completions))
    return dict(completions)


def texts(completions: dict[str, Completion]) -> dict[str, str]:
    return {identity: completion.text for identity, completion in completions.items()}


def test_a_job_has_the_bodies_of_single_requests() -> None:
    provider = AnthropicJobs()
    single: list[dict[str, Any]] = []

    async def script(received: ReceivedRequest) -> Reply:
        assert received.headers["x-api-key"] == KEY
        if received.path == "/v1/messages":
            # Only single requests are streamed.
            single.append({k: v for k, v in received.body.items() if k != "stream"})
            return servers.anthropic()
        return await provider(received)

    async def work(service: BatchService) -> None:
        size = sum(service.size(request) for request in requests())
        assert await service.submit(requests(), "key") == "msgbatch_0"
        assert provider.sizes[0] <= size + len('{"requests":[]}')

    async def send_single_requests(url: str) -> None:
        opened = open_model(MODEL, "low", url)
        for request in requests():
            await opened.model.answer(request.messages, request.settings)
        await opened.model.close()

    run_at(script, work)
    with serve(script) as server:
        asyncio.run(send_single_requests(server.url))
    submitted_requests = provider.submitted["msgbatch_0"]
    assert [request["params"] for request in submitted_requests] == single
    assert [request["custom_id"] for request in submitted_requests] == ["key-0", "key-1", "key-2"]
    assert provider.versions == ["2026-10-21"]


def test_a_job_with_a_temperature_names_the_version_that_has_one() -> None:
    provider = AnthropicJobs()
    run_at(provider, lambda service: service.submit(requests(temperature=0.0), "key"))
    assert provider.versions == ["2023-06-01"]
    assert provider.submitted["msgbatch_0"][0]["params"]["temperature"] == 0.0


def test_custom_ids_are_valid_and_differ_between_jobs() -> None:
    """Anthropic allows 64 letters, digits, - and _; keys are the 32 digits of a UUID."""
    provider = AnthropicJobs()
    run_at(provider, lambda service: service.submit(requests(), "f" * 32))
    for entry in provider.submitted["msgbatch_0"]:
        assert len(entry["custom_id"]) + len("99999") <= 64
        assert entry["custom_id"].startswith("f" * 32)


def test_results_in_any_order_belong_to_their_own_requests() -> None:
    results = results_of([succeeded(2, "third"), succeeded(0, "first"), succeeded(1, "second")])
    assert texts(results) == {"a": "first", "b": "second", "c": "third"}
    assert results["a"].usage == Usage(
        input=3, generated=12, reasoning=7, visible=5, source="reported"
    )


def test_results_of_another_job_are_nobodys() -> None:
    assert results_of([succeeded(0, key="other"), succeeded(9), {"custom_id": 3}]) == {}


def test_failures_of_single_requests_are_completions_with_their_kind() -> None:
    def error(kind: str, message: str) -> dict[str, Any]:
        return {"error": servers.anthropic_error_body(kind, message)}

    results = results_of(
        [
            ended(0, "errored", **error("invalid_request_error", "prompt is too long")),
            ended(1, "expired"),
            ended(2, "canceled"),
        ]
    )
    failures = {identity: completion.error for identity, completion in results.items()}
    kinds = {i: (e.kind, e.possibly_billed, e.message) for i, e in failures.items() if e}
    assert kinds == {
        "a": ("item", False, "prompt is too long"),
        "b": ("transient", False, "the request expired before it was processed"),
        "c": ("transient", False, "the request was canceled"),
    }
    results = results_of(
        [
            ended(0, "errored", **error("api_error", f"oops {KEY}")),
            ended(1, "errored", error="x"),
            ended(2, "a new one"),
        ]
    )
    assert {r.error.kind for r in results.values() if r.error} == {"transient"}
    assert not any(r.error.possibly_billed for r in results.values() if r.error)
    assert len(results) == 3
    assert KEY not in str(results)


def test_unreadable_lines_affect_no_other_line() -> None:
    junk = b'{"custom_id": "key-1", "resu\n\n[]\n7\n\xff\xfe\n' + b"[" * 100_000 + b"\n{}\n"
    odd = json_line(ended(1, "succeeded", message="text")) + json_line(succeeded(2, content=7))
    results = results_of(junk + json_line(succeeded(0, "4 \ud800")) + odd)
    assert texts(results) == {"a": "4 \ufffd", "b": "", "c": ""}
    assert [e.kind for i in "bc" if (e := results[i].error)] == ["transient", "transient"]


def test_of_two_results_for_one_request_the_answer_takes_precedence() -> None:
    twice = [
        ended(0, "expired"),
        succeeded(0, "first"),
        succeeded(0, "second"),
        ended(0, "expired"),
    ]
    assert texts(results_of(twice)) == {"a": "first"}


def test_the_status_of_a_job_in_each_state() -> None:
    provider = AnthropicJobs()

    async def work(service: BatchService) -> None:
        name = await service.submit(requests(), "key")
        # Anthropic counts only when a job has ended.
        assert await service.status(name) == BatchStatus(False, None, None, 3, "in_progress")
        await service.cancel(name)
        assert await service.status(name) == BatchStatus(False, None, None, 3, "canceling")
        provider.end(name, [], succeeded=1, canceled=1, expired=1)
        assert await service.status(name) == BatchStatus(True, 1, 2, 3, "ended")
        provider.jobs[0] |= {"processing_status": "\x1b[2J", "request_counts": {"x": -1}}
        assert await service.status(name) == BatchStatus(False, None, None, None, r"\x1b[2J")

    run_at(provider, work)


def test_a_job_that_has_ended_is_found_by_its_key() -> None:
    provider = AnthropicJobs()

    async def work(service: BatchService) -> list[str | None]:
        for number in range(5):
            name = await service.submit(requests(), f"key-{number}")
            provider.end(name, [succeeded(0, key=f"key-{number}")])
        return [await service.find(planned(f"key-{n}")) for n in (0, 4, 5)]

    assert run_at(provider, work) == ["msgbatch_0", "msgbatch_4", None]


def test_the_only_unfinished_job_of_its_size_is_the_one() -> None:
    provider = AnthropicJobs()

    async def work(service: BatchService) -> None:
        name = await service.submit(requests(), "another")
        provider.end(name, [succeeded(0, key="another")])
        await service.submit(requests(2), "smaller")
        assert await service.find(planned("key")) is None
        mine = await service.submit(requests(), "key")
        assert await service.find(planned("key")) == mine
        provider.end(mine, [succeeded(0)])
        assert await service.find(planned("key")) == mine

    run_at(provider, work)


def test_several_unfinished_jobs_of_the_same_size_end_the_run() -> None:
    provider = AnthropicJobs()

    async def work(service: BatchService) -> None:
        first = await service.submit(requests(), "key")
        await service.submit(requests(), "other")
        with pytest.raises(
            ProviderError, match="msgbatch_1, msgbatch_0; run the same command"
        ) as e:
            await service.find(planned("key"))
        assert e.value.failure.kind == "run"
        # Once it has ended it shows its key.
        provider.end(first, [succeeded(0)])
        assert await service.find(planned("key")) == first

    run_at(provider, work)


def test_jobs_from_before_the_plan_are_not_looked_at() -> None:
    provider = AnthropicJobs()
    now = datetime.now(UTC)

    async def work(service: BatchService) -> list[str | None]:
        await service.submit(requests(), "key")
        times = (now + timedelta(hours=3), now, now - timedelta(days=2))
        return [await service.find(planned("key", at.isoformat())) for at in times]

    assert run_at(provider, work) == [None, "msgbatch_0", "msgbatch_0"]


def test_results_that_are_no_file_of_results_are_a_transient_failure() -> None:
    """The job would count as collected, and all its requests would be sent and paid again."""
    provider = AnthropicJobs()

    async def script(received: ReceivedRequest) -> Reply:
        if received.path.endswith("/results"):
            return web.Response(text="<html>wait\na moment</html>")
        return await provider(received)

    async def work(service: BatchService) -> None:
        name = await service.submit(requests(), "key")
        with pytest.raises(ProviderError, match="the server sent no results") as caught:
            await collect(service, name)
        assert caught.value.failure.kind == "transient"

    run_at(script, work)


def test_a_results_url_elsewhere_gets_no_key() -> None:
    provider = AnthropicJobs()

    async def work(service: BatchService) -> list[tuple[str, Completion]]:
        name = await service.submit(requests(), "key")
        provider.end(name, [succeeded(0)])
        assert "elsewhere" in provider.jobs[0]["results_url"]
        return await collect(service, name)

    assert len(run_at(provider, work)) == 1
