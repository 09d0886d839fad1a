"""Whether a request body is valid by the types of the provider's SDK.

The SDKs, which take seconds to import, are imported where they are used.
"""

from functools import cache
from typing import Any

from pydantic import TypeAdapter

from numbench.models.catalogue import find_named_model

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
        from google.genai import types

        types.GenerationConfig.model_validate(body.get("generationConfig", {}))
        for content in (*body["contents"], body["systemInstruction"]):
            types.Content.model_validate(content)
        for tool in body.get("tools", ()):
            types.Tool.model_validate(tool)
        return
    base: Any
    params: Any
    named = find_named_model(request["model"])
    provider = (named.route if named else request["model"]).partition("/")[0]
    if provider == "anthropic":
        from anthropic.types import message_create_params

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
        from openai.types.responses import ResponseInputItemParam, response_create_params

        base = response_create_params.ResponseCreateParamsBase
        params = response_create_params.ResponseCreateParamsStreaming
        if "stream" not in body:
            params = response_create_params.ResponseCreateParamsNonStreaming
        adapter_of(list[ResponseInputItemParam]).validate_python(body["input"])
    else:
        from openai.types.chat import ChatCompletionMessageParam, completion_create_params

        base = completion_create_params.CompletionCreateParamsBase
        params = completion_create_params.CompletionCreateParamsStreaming
        if "stream" not in body:
            params = completion_create_params.CompletionCreateParamsNonStreaming
        # The SDK's type is an Iterable, whose elements pydantic does not check.
        adapter_of(list[ChatCompletionMessageParam]).validate_python(body["messages"])
    allowed = EXTENSIONS.get(provider, set()) | {"stream"}
    assert unknown_fields(base, body) <= allowed
    adapter_of(params).validate_python(body)
