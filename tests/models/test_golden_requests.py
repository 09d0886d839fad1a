"""Every request of the catalogue: as in the reviewed file, and valid in the providers' SDKs."""

from __future__ import annotations

from functools import cache
from typing import Any

import pytest
from anthropic import _constants
from anthropic.types import message_create_params
from google.genai import types
from openai.types.chat import ChatCompletionMessageParam, completion_create_params
from openai.types.responses import ResponseInputItemParam, response_create_params
from pydantic import TypeAdapter, ValidationError

from numbench.models.catalogue import find_named_model
from numbench.models.formats.messages import API_VERSION
from tests.models.golden_requests import read_golden_file, sent_requests

EXTENSIONS = {
    "openrouter": {"reasoning", "provider", "usage"},
    "deepseek": {"thinking"},
    "zai": {"thinking"},
    "moonshot": {"thinking"},
    "dashscope": {"enable_thinking", "thinking_budget"},
    "together_ai": {"reasoning"},
    "groq": {"reasoning_format"},
}
"""Fields that providers of OpenAI's format add to it."""


def test_requests_are_those_of_the_reviewed_file() -> None:
    golden, sent = read_golden_file(), sent_requests()
    changed = [new for old, new in zip(golden, sent, strict=True) if old != new]
    assert not changed, "review, then: python -m tests.models.golden_requests"


@cache
def adapter_of(params: Any) -> TypeAdapter[Any]:
    """Return the adapter of a type, which takes long to make."""
    return TypeAdapter(params)


def unknown_fields(params: object, body: dict[str, Any]) -> set[str]:
    """Return the fields of a body that a TypedDict of OpenAI's SDK does not have."""
    return set(body) - set(getattr(params, "__annotations__", {}))


def validate(request: dict[str, Any]) -> None:
    """Raise ValidationError, or AssertionError, if an SDK would not send this body."""
    body = request["body"]
    if "contents" in body:
        types.GenerationConfig.model_validate(body.get("generationConfig", {}))
        for content in (*body["contents"], body["systemInstruction"]):
            types.Content.model_validate(content)
        for tool in body.get("tools", ()):
            types.Tool.model_validate(tool)
        return
    params: Any
    named = find_named_model(request["model"])
    provider = (named.route if named else request["model"]).partition("/")[0]
    if provider == "anthropic":
        # The last version with a temperature is named by the requests that have one.
        body = {name: value for name, value in body.items() if name != "temperature"}
        is_streamed = "stream" in body
        claude: Any = (
            message_create_params.MessageCreateParamsStreaming
            if is_streamed
            else message_create_params.MessageCreateParamsNonStreaming
        )
        assert unknown_fields(claude, body) <= {"stream"}
        adapter_of(claude).validate_python(body)
        return
    if request["api"] == "responses":
        base = response_create_params.ResponseCreateParamsBase
        params = response_create_params.ResponseCreateParamsStreaming
        if "stream" not in body:
            params = response_create_params.ResponseCreateParamsNonStreaming
        adapter_of(list[ResponseInputItemParam]).validate_python(body["input"])
    else:
        base = completion_create_params.CompletionCreateParamsBase
        params = completion_create_params.CompletionCreateParamsStreaming
        if "stream" not in body:
            params = completion_create_params.CompletionCreateParamsNonStreaming
        # The SDK's type is an Iterable, whose elements pydantic does not check.
        adapter_of(list[ChatCompletionMessageParam]).validate_python(body["messages"])
    allowed = EXTENSIONS.get(provider, set()) | {"stream"}
    assert unknown_fields(base, body) <= allowed
    adapter_of(params).validate_python(body)


@pytest.mark.slow
def test_requests_validate_against_the_types_of_the_sdks() -> None:
    assert _constants.ANTHROPIC_API_VERSION == API_VERSION
    for request in read_golden_file():
        # The fields of `--param` are the user's, whatever the type says.
        if not request.get("options", {}).get("params"):
            validate(request)


@pytest.mark.parametrize(
    ("model", "changes"),
    [
        ("gpt-6-luna", {"reasoning_effort": "ultra"}),
        ("gpt-6-luna", {"thinking": {"type": "enabled"}}),
        ("gpt-6-luna", {"messages": "What is 1 + 1?"}),
        ("claude-opus-5-5", {"thinking": {"type": "sometimes"}}),
        ("claude-opus-5-5", {"reasoning_effort": "low"}),
        ("gemini-3.8-flash", {"generationConfig": {"thinkingEffort": "low"}}),
        ("gemini-3.8-flash", {"generationConfig": {"seed": "one"}}),
    ],
)
def test_the_types_reject_a_wrong_request(model: str, changes: dict[str, Any]) -> None:
    request = next(each for each in read_golden_file() if each["model"] == model)
    with pytest.raises((ValidationError, AssertionError)):
        validate(request | {"body": request["body"] | changes})
