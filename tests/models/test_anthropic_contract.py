"""Requests, and the scripted server, agree with the types of the `anthropic` SDK."""

from __future__ import annotations

import json
from collections.abc import Mapping
from typing import Any, get_type_hints

import pytest
from aiohttp import web
from pydantic import TypeAdapter

from numbench.models import Message, RequestSettings, describe_model
from numbench.models.anthropic_api import version_header
from numbench.models.anthropic_batch import AnthropicBatchService
from numbench.models.anthropic_messages import API_VERSION, build_request
from numbench.models.base import BatchRequest
from numbench.models.claude_models import claude_properties
from tests import servers
from tests.models.adapter_calls import MESSAGES
from tests.models.batch_servers import AnthropicJobs
from tests.models.test_anthropic_messages import LEVELS
from tests.models.test_streaming import ANTHROPIC_USAGE

pytest.importorskip("anthropic", minversion="2.0")
from anthropic import _constants
from anthropic.types import (
    JSONOutputFormatParam,
    OutputConfigParam,
    RawMessageStreamEvent,
    ThinkingConfigParam,
)
from anthropic.types import (
    Message as SdkMessage,
)
from anthropic.types.message_create_params import (
    MessageCreateParamsNonStreaming,
    MessageCreateParamsStreaming,
)
from anthropic.types.messages import MessageBatch, MessageBatchIndividualResponse
from anthropic.types.messages.batch_create_params import BatchCreateParams
from anthropic.types.shared import ErrorResponse

pytestmark = pytest.mark.slow

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


@pytest.mark.parametrize("model", LEVELS)
def test_the_requests_of_every_level_conform(model: str) -> None:
    for level in (None, *(claude_properties(model).levels or ())):
        settings = describe_model(f"anthropic/{model}", level).settings
        body = build_request(model, FEW_SHOT, settings)
        if "temperature" in body:
            # The version that such requests name has it, and the SDK's types are for the next one.
            assert version_header(settings) == {"anthropic-version": "2023-06-01"}
            del body["temperature"]
        conforms(body, MessageCreateParamsNonStreaming)
        conforms({**body, "stream": True}, MessageCreateParamsStreaming)
        config = body.get("output_config", {})
        assert isinstance(config, dict)
        conforms(config, OutputConfigParam)
        if "format" in config:
            conforms(config["format"], JSONOutputFormatParam)
        if thinking := body.get("thinking"):
            TypeAdapter(ThinkingConfigParam).validate_python(thinking, strict=True)


@pytest.mark.parametrize("kind", ["number", "letter", "list"])
def test_the_schema_of_each_kind_of_answer_conforms(kind: Any) -> None:
    settings = RequestSettings(structured=True, answer_kind=kind)
    conforms(build_request("claude-opus-5", MESSAGES, settings), MessageCreateParamsNonStreaming)


def test_a_batch_job_conforms() -> None:
    service = AnthropicBatchService("claude-opus-5", key="k", base_url=None)
    request = BatchRequest("a", FEW_SHOT, describe_model("anthropic/claude-opus-5", "max").settings)
    entry = service._entry(request, "key-0")
    conforms({"requests": [entry]}, BatchCreateParams)
    conforms(entry["params"], MessageCreateParamsNonStreaming)  # type: ignore[arg-type]


def content(reply: servers.Reply) -> Any:
    """Return the decoded body of a scripted response."""
    assert isinstance(reply, web.Response) and isinstance(reply.body, bytes)
    return json.loads(reply.body)


def test_the_scripted_server_speaks_the_api() -> None:
    reply = servers.anthropic(usage=ANTHROPIC_USAGE, thought="hm", stop="refusal")
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
