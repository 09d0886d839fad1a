"""Replies of servers: the same record whole, streamed and from a batch job (`cases/replies`)."""

import asyncio
from itertools import product
from typing import Any

from aiohttp import web

from numbench.models import Server, open_batch, open_model
from numbench.models.base import BatchRequest
from numbench.records import Completion
from tests.models.adapter_calls import ANTHROPIC, MESSAGES, call_adapter, check, model_and_api
from tests.models.batch_servers import AnthropicJobs, GeminiJobs, OpenAIJobs, json_line, submitted
from tests.support import servers
from tests.support.case_tables import each_case
from tests.support.servers import ReceivedRequest, Reply, serve

WAYS = ("whole", "streamed", "batched")
"""The ways in which a reply may arrive, unless a case has others."""


def live_completion(case: Any, model: str, is_streamed: bool) -> Completion:
    """Return the completion of one request to a server that replies as the case says."""
    status, headers = case.get("status", 200), case.get("headers")

    async def script(received: ReceivedRequest) -> Reply:
        assert servers.is_streamed(received) == is_streamed
        if "torn" in case:
            return await servers.torn(received)
        if "raw" in case:
            return web.Response(text=case["raw"], status=status, headers=headers)
        reply = web.json_response(case["body"], status=status, headers=headers)
        if status != 200 or not is_streamed:
            return reply
        return await servers.send_events(received, servers.events(reply))

    return call_adapter(script, model, stream=is_streamed)[0]


def batched_completion(case: Any, model: str) -> Completion:
    """Return the result of a request in a job that ended as the case says."""
    name, api = model_and_api(model)
    provider, body, status = name.partition("/")[0], case["body"], case.get("status", 200)
    jobs: Any = {"gemini": GeminiJobs, "anthropic": AnthropicJobs}.get(provider, OpenAIJobs)()

    def end() -> None:
        if isinstance(jobs, AnthropicJobs):
            ok = {"type": "succeeded", "message": body}
            result = ok if status == 200 else {"type": "errored", "error": body}
            jobs.end("msgbatch_0", [{"custom_id": "key-0", "result": result}])
        elif isinstance(jobs, GeminiJobs):
            jobs.end([{"metadata": {"key": "a"}, "response": body}])
        else:
            response = {"status_code": status, "body": body}
            jobs.end(json_line({"custom_id": "a", "response": response, "error": None}))

    async def once(url: str) -> Completion:
        service = open_batch(name, None, Server(url, api))
        settings = open_model(name, None, Server(url)).description.settings
        job = await service.submit([BatchRequest("a", MESSAGES, settings)], "key")
        end()
        results = dict([each async for each in service.results(submitted(job))])
        await service.close()
        return results["a"]

    with serve(jobs) as server:
        return asyncio.run(once(server.url))


@each_case(__file__, "replies")
def test_a_reply_gives_the_expected_record(case: Any) -> None:
    for model, way in product(case["models"], case.get("modes", WAYS)):
        if way == "batched":
            # Results have no headers, and errors of Anthropic's no status: nothing is billed.
            unknown = ("retry_after", "possibly_billed", "status")
            ignored = unknown if model == ANTHROPIC else unknown[:1]
            check(batched_completion(case, model), case["record"], ignored)
        else:
            check(live_completion(case, model, way == "streamed"), case["record"])
