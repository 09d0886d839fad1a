"""Replies of servers: the same record whole, streamed and from a batch job (`cases/replies`)."""

import asyncio
from itertools import product
from typing import Any

import pytest
from aiohttp import web
from pydantic import ValidationError

from numbench.models import Server, open_batch, open_model
from numbench.models.base import BatchRequest
from numbench.models.formats.messages import API_VERSION
from numbench.records import Completion
from tests.models.adapter_calls import ANTHROPIC, MESSAGES, call_adapter, check, model_and_api
from tests.models.batch_servers import AnthropicJobs, GeminiJobs, OpenAIJobs, json_line, submitted
from tests.models.golden_requests import read_golden_file, sent_requests
from tests.support import servers
from tests.support.case_tables import each_case, each_row
from tests.support.sdk_requests import validate
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


def test_requests_are_those_of_the_reviewed_file() -> None:
    golden, sent = read_golden_file(), sent_requests()
    changed = [new for old, new in zip(golden, sent, strict=True) if old != new]
    assert not changed, "review, then: python -m tests.models.golden_requests"


@pytest.mark.slow
def test_requests_validate_against_the_types_of_the_sdks() -> None:
    from anthropic import _constants

    assert _constants.ANTHROPIC_API_VERSION == API_VERSION
    for request in read_golden_file():
        # The fields of `--param` are the user's, whatever the type says.
        if not request.get("options", {}).get("params"):
            validate(request)


@pytest.mark.slow
@each_row(__file__, "rejected_requests")
def test_the_types_reject_a_wrong_request(model: str, changes: dict[str, Any]) -> None:
    request = next(each for each in read_golden_file() if each["model"] == model)
    with pytest.raises((ValidationError, AssertionError)):
        validate(request | {"body": request["body"] | changes})
