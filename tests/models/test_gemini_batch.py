"""Gemini's batch API: what is sent, and that no result is lost or given to another request."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest
from aiohttp import web

from bench.models import Message, open_batch, open_model
from bench.models.base import BatchRequest, BatchService, BatchStatus
from bench.models.failures import ProviderFault
from bench.records import Completion, Usage
from tests import servers
from tests.models.asking import KEY
from tests.models.batch_servers import GeminiJobs
from tests.servers import Asked, Reply, Script, serve

T = TypeVar("T")
IDS = ("a", "b", "c")


def at(script: Script, work: Callable[[BatchService], Awaitable[T]]) -> T:
    """What `work` makes of the batch API at a server that follows `script`."""

    async def once(url: str) -> T:
        service = open_batch("gemini-2.5-pro", "minimal", url)
        try:
            return await work(service)
        finally:
            await service.close()

    with serve(script) as server:
        return asyncio.run(once(server.url))


def requests(text: str = "What is it?") -> list[BatchRequest]:
    settings = open_model("gemini-2.5-pro", "minimal", "http://127.0.0.1").about.settings
    system = Message("system", "Answer in JSON.")
    return [BatchRequest(i, (system, Message("user", f"{i}: {text}")), settings) for i in IDS]


async def collect(service: BatchService, job: str) -> list[tuple[str, Completion]]:
    return [result async for result in service.results(job, IDS)]


def result(identity: str | None, text: str = "x", **more: Any) -> dict[str, Any]:
    """One result of a job; `identity` None where the server leaves it out."""
    candidate = {"content": {"role": "model", "parts": [{"text": text}]}, "finishReason": "STOP"}
    usage = {"promptTokenCount": 3, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}
    response = {"candidates": [candidate], "usageMetadata": usage, "modelVersion": "served"}
    named = {"metadata": {"key": identity}} if identity else {}
    return named | ({} if "error" in more else {"response": response}) | more


def results_of(results: list[dict[str, Any]] | None, **job: Any) -> dict[str, Completion]:
    """What comes back of a job that ended with these results; no id comes twice."""
    provider = GeminiJobs()

    async def work(service: BatchService) -> list[tuple[str, Completion]]:
        name = await service.submit(requests(), "key")
        provider.end(results, **job)
        return await collect(service, name)

    found = at(provider, work)
    assert len(found) == len(dict(found))
    return dict(found)


def texts(found: dict[str, Completion]) -> dict[str, str]:
    return {identity: completion.text for identity, completion in found.items()}


def test_a_job_holds_the_same_bodies_that_single_requests_have() -> None:
    provider = GeminiJobs()
    asked: list[Asked] = []

    async def script(request: Asked) -> Reply:
        asked.append(request)
        if request.path.endswith(":generateContent"):
            return servers.gemini()
        return await provider(request)

    async def work(service: BatchService) -> str:
        return await service.submit(requests(), "run-7")

    async def ask_one_by_one(url: str) -> None:
        opened = open_model("gemini-2.5-pro", "minimal", url)
        for request in requests():
            await opened.model.answer(request.messages, request.settings)
        await opened.model.close()

    assert at(script, work) == "batches/job0"
    [job] = asked
    assert job.path == "/v1beta/models/gemini-2.5-pro:batchGenerateContent"
    assert job.headers["x-goog-api-key"] == KEY
    assert job.body["batch"].keys() == {"displayName", "inputConfig"}
    assert job.body["batch"]["displayName"] == "run-7"
    sent = job.body["batch"]["inputConfig"]["requests"]["requests"]
    assert [request["metadata"] for request in sent] == [{"key": identity} for identity in IDS]
    with serve(script) as server:
        asyncio.run(ask_one_by_one(server.url))
    alone = [request.body for request in asked[1:]]
    # The SDK writes the role of the system in one of the two.
    for body in (*alone, *(request["request"] for request in sent)):
        body["systemInstruction"].pop("role", None)
    assert [request["request"] for request in sent] == alone


@pytest.mark.parametrize("text", ["What is it?", 'é½漢\n"quoted"\\', "😀" * 50])
def test_the_sizes_of_requests_bound_that_of_the_job(text: str) -> None:
    provider = GeminiJobs()

    async def work(service: BatchService) -> tuple[int, int]:
        many = [r._replace(id=f"{r.id}{n}") for n in range(40) for r in requests(text)]
        await service.submit(many, "key")
        return sum(service.size(request) for request in many), service.most_bytes

    bound, most = at(provider, work)
    [size] = provider.sizes
    assert size <= bound <= 2 * size
    assert most < 20_000_000


def test_results_in_any_order_belong_to_their_own_requests() -> None:
    found = results_of([result("c", "third"), result("a", "first"), result("b", "second")])
    assert texts(found) == {"a": "first", "b": "second", "c": "third"}
    assert found["a"].usage == Usage(
        input=3, visible=5, reasoning=7, generated=12, source="reported"
    )
    assert (found["a"].served_model, found["a"].finish_reason) == ("served", "stop")


def test_results_under_the_operations_response_are_found_too() -> None:
    inner = {"inlinedResponses": {"inlinedResponses": [result("b", "second")]}}
    assert texts(results_of(None, response=inner)) == {"b": "second"}


@pytest.mark.parametrize(
    ("results", "found"),
    [
        # As many as requests, and nothing says otherwise: in their order.
        ([(None, "1"), (None, "2"), (None, "3")], {"a": "1", "b": "2", "c": "3"}),
        ([(None, "1"), ("b", "2"), (None, "3")], {"a": "1", "b": "2", "c": "3"}),
        # A name that contradicts its position: only names count.
        ([(None, "1"), ("c", "2"), (None, "3")], {"c": "2"}),
        # Fewer or more than requests: nobody knows which are missing.
        ([(None, "1"), (None, "2")], {}),
        ([(None, "1"), ("b", "2")], {"b": "2"}),
        ([(None, "1"), (None, "2"), (None, "3"), (None, "4")], {}),
        ([("b", "2"), ("stranger", "9")], {"b": "2"}),
    ],
)
def test_a_result_without_a_name_is_told_by_its_position_only_where_that_is_sure(
    results: list[tuple[str | None, str]], found: dict[str, str]
) -> None:
    assert texts(results_of([result(name, text) for name, text in results])) == found


def test_failures_of_single_requests_are_values_of_their_kind() -> None:
    detail = {"@type": "type.googleapis.com/google.rpc.DebugInfo", "detail": "x"}
    errors = {
        "a": {"code": 3, "message": "the prompt is too long", "details": [detail]},
        "b": {"code": 8, "message": f"exhausted {KEY}"},
        "c": {"code": 1, "message": "cancelled"},
    }
    found = results_of([result(name, error=error) for name, error in errors.items()])
    kinds = {name: c.error.kind for name, c in found.items() if c.error}
    assert kinds == {"a": "item", "b": "rate_limit", "c": "transient"}
    assert KEY not in str(found)
    assert "[key]" in str(found)


def test_results_of_another_form_cost_no_other_result() -> None:
    odd: list[Any] = [{"metadata": {"key": "b"}, "response": {"candidates": 7}}, "x", None]
    found = results_of([result("a", "first", novelty=1), *odd])
    assert texts(found) == {"a": "first", "b": ""}
    error = found["b"].error
    assert error is not None
    assert error.kind == "transient"


def test_a_result_with_a_lone_surrogate_is_kept() -> None:
    assert texts(results_of([result("a", "4 \ud800")])) == {"a": "4 \ufffd"}


def test_why_a_job_failed_is_told_without_the_key_and_in_one_line() -> None:
    provider = GeminiJobs()

    async def work(service: BatchService) -> BatchStatus:
        name = await service.submit(requests(), "key")
        provider.end(None, "X\x1b[2J", error={"code": 3, "message": "x" * 290 + KEY})
        provider.jobs[0]["metadata"]["batchStats"] = {"requestCount": "9" * 5000}
        return await service.status(name)

    status = at(provider, work)
    assert status.error is not None
    assert KEY[:3] not in status.error.message
    assert (status.state, status.total) == (r"X\x1b[2J", None)


@pytest.mark.parametrize("start", [b"", b'{"name": ', b'{"error": '])
@pytest.mark.parametrize("status", [200, 400])
def test_a_deeply_nested_body_is_a_fault(start: bytes, status: int) -> None:
    async def script(asked: Asked) -> Reply:
        body = start + b"[" * 100_000
        return web.Response(body=body, status=status, content_type="application/json")

    for work in (
        lambda service: service.submit(requests(), "key"),
        lambda service: service.cancel("batches/x"),
        lambda service: service.status("batches/x"),
    ):
        with pytest.raises(ProviderFault):
            at(script, work)


def test_of_two_results_for_one_request_the_answer_counts() -> None:
    failed = result("a", error={"code": 13, "message": "internal"})
    found = results_of([failed, result("a", "first"), result("a", "second"), failed])
    assert texts(found) == {"a": "first"}
    assert found["a"].error is None


@pytest.mark.parametrize("state", ["FAILED", "CANCELLED", "EXPIRED"])
def test_a_job_that_ended_badly_still_gives_what_it_has(state: str) -> None:
    assert texts(results_of([result("a", "first")], state=state)) == {"a": "first"}
    assert results_of(None, state=state) == {}


def test_a_job_whose_id_was_lost_is_found_by_its_key() -> None:
    provider = GeminiJobs()

    async def work(service: BatchService) -> list[str | None]:
        assert await service.find("key-1") is None
        for number in (0, 1, 1, 2, 3, 4):
            await service.submit(requests(), f"key-{number}")
        return [await service.find(key) for key in ("key-0", "key-1", "key-4", "key-5", "key")]

    found = at(provider, work)
    assert found == ["batches/job0", "batches/job2", "batches/job5", None, None]


def test_a_list_of_jobs_that_never_ends_is_a_fault() -> None:
    async def script(asked: Asked) -> Reply:
        return web.json_response({"operations": [{"name": "batches/0"}], "nextPageToken": "t"})

    with pytest.raises(ProviderFault, match="the same jobs again"):
        at(script, lambda service: service.find("key"))


def test_where_a_job_stands() -> None:
    provider = GeminiJobs()

    async def work(service: BatchService) -> None:
        name = await service.submit(requests(), "key")
        assert await service.status(name) == BatchStatus(False, None, None, 3, "PENDING")
        job = provider.jobs[0]
        counts = {"requestCount": "3", "successfulRequestCount": "1", "failedRequestCount": "1"}
        job["metadata"] |= {"state": "BATCH_STATE_RUNNING", "batchStats": counts}
        assert await service.status(name) == BatchStatus(False, 1, 1, 3, "RUNNING")
        await service.cancel(name)
        assert await service.status(name) == BatchStatus(True, 1, 1, 3, "CANCELLED")
        for state in ("SUCCEEDED", "FAILED", "EXPIRED"):
            job["metadata"]["state"] = f"BATCH_STATE_{state}"
            assert (await service.status(name)).ended
        job["error"] = {"code": 3, "message": "no such model"}
        error = (await service.status(name)).error
        assert error is not None
        assert (error.kind, error.message) == ("run", "no such model")
        job["error"] = {"code": 14, "message": "unavailable"}
        error = (await service.status(name)).error
        assert error is not None
        assert error.kind == "transient"

    at(provider, work)


WORK: list[Callable[[BatchService], Awaitable[object]]] = [
    lambda service: service.submit(requests(), "key"),
    lambda service: service.find("key"),
    lambda service: service.status("batches/0"),
    lambda service: collect(service, "batches/0"),
    lambda service: service.cancel("batches/0"),
]


@pytest.mark.parametrize("work", WORK)
def test_a_fault_of_the_provider_is_told_once_and_without_the_key(
    work: Callable[[BatchService], Awaitable[object]],
) -> None:
    asked_paths: list[str] = []

    async def limited(asked: Asked) -> Reply:
        asked_paths.append(asked.path)
        return servers.error(429, f"slow down, {KEY}", headers={"Retry-After": "7"})

    async def unauthorised(asked: Asked) -> Reply:
        return servers.error(401, f"bad key {KEY}")

    async def gateway(asked: Asked) -> Reply:
        return web.Response(status=502, text="<html>bad gateway</html>", content_type="text/html")

    with pytest.raises(ProviderFault, match=r"HTTP 429: slow down, \[key\]") as caught:
        at(limited, work)
    assert (caught.value.failure.kind, caught.value.failure.retry_after) == ("rate_limit", 7.0)
    assert len(asked_paths) == 1
    with pytest.raises(ProviderFault, match=r"HTTP 401: bad key \[key\]") as caught:
        at(unauthorised, work)
    assert caught.value.failure.kind == "run"
    with pytest.raises(ProviderFault, match="HTTP 502") as caught:
        at(gateway, work)
    assert caught.value.failure.kind == "transient"


@pytest.mark.parametrize("work", WORK[:-1])
@pytest.mark.parametrize("script", [servers.torn, servers.garbage])
def test_a_response_that_nobody_can_read_may_pass(
    work: Callable[[BatchService], Awaitable[object]], script: Script
) -> None:
    with pytest.raises(ProviderFault) as caught:
        at(script, work)
    assert caught.value.failure.kind == "transient"


def test_a_job_without_a_name_was_not_started_for_sure() -> None:
    async def nothing(asked: Asked) -> Reply:
        return web.json_response({})

    with pytest.raises(ProviderFault, match="no name of the job"):
        at(nothing, WORK[0])
