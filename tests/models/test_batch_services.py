"""What the batch APIs of all providers have in common: failures of the calls themselves."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any

import pytest
from aiohttp import web

from numbench.models import Server, open_batch
from numbench.models.batch_client import BatchService
from numbench.models.failures import ProviderError
from tests.models import batch_calls
from tests.models.adapter_calls import KEY
from tests.models.batch_calls import batch_requests, run_at
from tests.models.batch_servers import planned
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, Script, serve

MODELS = [("gpt-5", "low"), ("gemini-2.5-pro", "minimal"), ("anthropic/claude-opus-5-5", "low")]
EVERY = pytest.mark.parametrize(("model", "level"), MODELS)


async def submit(service: BatchService, model: str, level: str) -> object:
    return await service.submit(batch_requests(model, level), "key")


async def find(service: BatchService, *model: str) -> object:
    return await service.find(planned("key"))


async def status(service: BatchService, *model: str) -> object:
    return await service.status("batches/0")


async def collect(service: BatchService, *model: str) -> object:
    return await batch_calls.collect(service, "batches/0")


Work = Callable[..., Awaitable[Any]]
CALLS = (submit, find, status, collect)


@EVERY
@pytest.mark.parametrize("work", CALLS)
def test_an_error_of_the_provider_is_raised_without_retry_and_without_the_key(
    work: Work, model: str, level: str
) -> None:
    paths: list[str] = []

    async def limited(received: ReceivedRequest) -> Reply:
        paths.append(received.path)
        return servers.error(429, f"slow down, {KEY}", headers={"Retry-After": "7"})

    async def unauthorised(received: ReceivedRequest) -> Reply:
        return servers.error(401, f"bad key {KEY}")

    async def gateway(received: ReceivedRequest) -> Reply:
        return web.Response(status=502, text="<html>bad gateway</html>", content_type="text/html")

    def call(service: BatchService) -> Awaitable[object]:
        return work(service, model, level)

    with pytest.raises(ProviderError, match=r"HTTP 429: slow down, \[key\]") as caught:
        run_at(limited, call, model, level)
    assert (caught.value.failure.kind, caught.value.failure.retry_after) == ("rate_limit", 7.0)
    assert len(paths) == 1
    with pytest.raises(ProviderError, match=r"HTTP 401: bad key \[key\]") as caught:
        run_at(unauthorised, call, model, level)
    assert caught.value.failure.kind == "run"
    with pytest.raises(ProviderError, match="HTTP 502") as caught:
        run_at(gateway, call, model, level)
    assert caught.value.failure.kind == "transient"


@EVERY
@pytest.mark.parametrize("work", CALLS[:-1])
@pytest.mark.parametrize("script", [servers.torn, servers.garbage])
def test_an_unreadable_response_is_a_transient_failure(
    work: Work, script: Script, model: str, level: str
) -> None:
    with pytest.raises(ProviderError) as caught:
        run_at(script, lambda service: work(service, model, level), model, level)
    assert caught.value.failure.kind == "transient"


@EVERY
@pytest.mark.parametrize("start", [b"", b'{"name": ', b'{"error": '])
@pytest.mark.parametrize("code", [200, 400])
def test_a_deeply_nested_body_raises_a_provider_error(
    start: bytes, code: int, model: str, level: str
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        body = start + b"[" * 100_000
        return web.Response(body=body, status=code, content_type="application/json")

    for work in (submit, status):
        with pytest.raises(ProviderError):
            run_at(script, lambda service, work=work: work(service, model, level), model, level)


@EVERY
def test_a_list_of_jobs_that_repeats_itself_raises_a_provider_error(model: str, level: str) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        job = {"id": "0", "name": "batches/0"}
        page = {"data": [job], "has_more": True, "operations": [job], "nextPageToken": "t"}
        return web.json_response(page)

    with pytest.raises(ProviderError, match="the same jobs again"):
        run_at(script, find, model, level)


@EVERY
def test_a_job_without_a_name_raises_a_provider_error(model: str, level: str) -> None:
    async def nothing(received: ReceivedRequest) -> Reply:
        return web.json_response({})

    with pytest.raises(ProviderError, match="the server sent no id of a job"):
        run_at(nothing, lambda service: submit(service, model, level), model, level)


@pytest.mark.parametrize(
    ("model", "level", "header"),
    [
        ("gpt-5", "low", "authorization"),
        ("gemini-2.5-pro", "minimal", "X-Goog-Api-Key"),
        ("anthropic/claude-opus-5-5", "low", "X-Api-Key"),
    ],
)
def test_a_header_of_the_user_replaces_the_key(model: str, level: str, header: str) -> None:
    seen: list[list[str]] = []

    async def script(received: ReceivedRequest) -> Reply:
        seen.append(received.request.headers.getall(header))
        return web.json_response({"id": "file", "name": "batches/0"})

    async def once(url: str) -> None:
        service = open_batch(model, level, Server(url, headers={header: "own-header-0123456789"}))
        await submit(service, model, level)
        await service.status("batches/0")
        await service.close()

    with serve(script) as server:
        asyncio.run(once(server.url))
    assert len(seen) >= 2 and seen == len(seen) * [["own-header-0123456789"]]
