"""Requests, and the scripted server, agree with the types of the `anthropic` SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_type_hints

import pytest
from aiohttp import web
from pydantic import TypeAdapter

from numbench.models import Message, describe_model, open_batch
from numbench.models.base import BatchRequest
from numbench.models.batch_services import AnthropicBatchService
from numbench.models.formats.messages import API_VERSION
from tests import servers
from tests.models.adapter_calls import MESSAGES
from tests.models.batch_servers import AnthropicJobs

pytest.importorskip("anthropic", minversion="2.0")
from anthropic import _constants
from anthropic.types import (
    Message as SdkMessage,
)
from anthropic.types import (
    RawMessageStreamEvent,
)
from anthropic.types.message_create_params import (
    MessageCreateParamsNonStreaming,
)
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import BatchCreateParams
from anthropic.types.shared import ErrorResponse

pytestmark = pytest.mark.slow

USAGE = {
    "input_tokens": 4,
    "cache_read_input_tokens": 2,
    "output_tokens": 30,
    "output_tokens_details": {"thinking_tokens": 20},
}
FEW_SHOT = (*MESSAGES, Message("assistant", "2"), Message("user", "3"))


def conforms(body: Mapping[str, Any], of: Any) -> None:
    """Raise unless `body` has fields of the TypedDict `of` only, with values of their types."""
    unknown = body.keys() - get_type_hints(of).keys()
    assert not unknown, f"{of.__name__} has no {unknown}"
    checked = TypeAdapter(of).validate_python(dict(body), strict=True)
    # Fields of the type Iterable are checked when they are read.
    list(checked.get("messages", ()))
    list(checked.get("requests", ()))


def test_the_version_is_that_of_the_sdk() -> None:
    assert _constants.ANTHROPIC_API_VERSION == API_VERSION


def test_a_batch_job_conforms() -> None:
    service = open_batch("anthropic/claude-opus-5")
    assert isinstance(service, AnthropicBatchService)
    request = BatchRequest("a", FEW_SHOT, describe_model("anthropic/claude-opus-5", "max").settings)
    entry = {"custom_id": "key-0", "params": service._request_body(request)}
    conforms({"requests": [entry]}, BatchCreateParams)
    conforms(entry["params"], MessageCreateParamsNonStreaming)  # type: ignore[arg-type]


def content(reply: servers.Reply) -> Any:
    """Return the decoded body of a scripted response."""
    assert isinstance(reply, web.Response) and isinstance(reply.body, bytes)
    return json.loads(reply.body)


def test_the_scripted_server_speaks_the_api() -> None:
    reply = servers.anthropic(usage=USAGE, thought="hm", stop="refusal")
    SdkMessage.model_validate(content(reply), strict=True)
    kinds = TypeAdapter(RawMessageStreamEvent)
    for event in servers.events(reply):
        body = json.loads(event.split(b"data: ")[1])
        if body["type"] != "ping":
            kinds.validate_python(body, strict=True)
    ErrorResponse.model_validate(servers.anthropic_error_body("overloaded_error"), strict=True)
    jobs = AnthropicJobs()
    MessageBatch.model_validate_json(json.dumps(jobs._start([{}])))
    jobs.end("msgbatch_0", [], succeeded=1)
    MessageBatch.model_validate_json(json.dumps(jobs.jobs[0]))
    message = {"type": "succeeded", "message": content(reply)}
    error = {"type": "errored", "error": servers.anthropic_error_body("api_error")}
    for result in (message, error, {"type": "expired"}, {"type": "canceled"}):
        line = {"custom_id": "a", "result": result}
        MessageBatchIndividualResponse.model_validate(line, strict=True)
