"""Calls of batch services at scripted servers, and the requests of their jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

from numbench.models import Api, Message, Server, open_batch, open_model
from numbench.models.base import BatchRequest
from numbench.models.batch_client import BatchService
from numbench.records import Completion
from tests.models.batch_servers import IDS, submitted
from tests.support.servers import Script, serve

T = TypeVar("T")


def run_at(
    script: Script,
    work: Callable[[BatchService], Awaitable[T]],
    model: str,
    level: str | None,
    api: Api = "chat",
) -> T:
    """Return the result of `work` with the batch API of a server that follows `script`."""

    async def once(url: str) -> T:
        service = open_batch(model, level, Server(url, api))
        try:
            return await work(service)
        finally:
            await service.close()

    with serve(script) as server:
        return asyncio.run(once(server.url))


def batch_requests(
    model: str, level: str, question: str = "What is {}?", **settings: Any
) -> list[BatchRequest]:
    """Return a request for each id of `IDS`, with the settings of the model."""
    base = open_model(model, level, Server("http://127.0.0.1")).description.settings
    merged = type(base)(**(vars(base) | settings))
    system = Message("system", "Answer in JSON.")
    return [BatchRequest(i, (system, Message("user", question.format(i))), merged) for i in IDS]


async def collect(service: BatchService, job: str) -> list[tuple[str, Completion]]:
    """Return the results of a job."""
    return [result async for result in service.results(submitted(job))]
