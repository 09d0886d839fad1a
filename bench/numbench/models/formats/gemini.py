"""Google's generateContent format: request bodies, and completions from the bodies of answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping, Sequence
from urllib.parse import quote

from numbench.models.base import (
    Message,
    RequestSettings,
    answer_schema,
    merge_parameters,
    system_prompt,
)
from numbench.models.failures import unreadable_failure
from numbench.models.json_fields import (
    IncompleteStream,
    finish_reason,
    join_texts,
    object_at,
    objects_at,
    reported_usage,
    text_at,
    text_fields,
    tokens_at,
    without_nulls,
)
from numbench.records import Completion, Failure, Usage

API_VERSION = "v1beta"
KEY_HEADER = "x-goog-api-key"


def url(base_url: str, name: str, streams: bool) -> str:
    """Return the URL of requests; the part of Google's API that it names is added."""
    model = name if "/" in name else f"models/{name}"
    method = "streamGenerateContent?alt=sse" if streams else "generateContent"
    return f"{base_url}/{API_VERSION}/{quote(model, safe='/')}:{method}"


def build_request(
    model: str, messages: Sequence[Message], settings: RequestSettings, token_limit: str
) -> dict[str, object]:
    """Return the body of a request, which does not name the model.

    The parameters of a reasoning level are those of `thinkingConfig` in snake case; its texts are
    constants of Google's, such as LOW.
    """
    thinking = {
        _camel_case(name): value.upper() if isinstance(value, str) else value
        for name, value in settings.request.items()
    }
    config: dict[str, object] = {
        "temperature": settings.temperature,
        token_limit: settings.max_tokens,
        "seed": settings.seed,
        "thinkingConfig": thinking or None,
    }
    if settings.structured:
        config["responseMimeType"] = "application/json"
        config["responseJsonSchema"] = answer_schema(settings.answer_kind)
    body: dict[str, object] = {
        "contents": [
            {
                "role": "model" if message.role == "assistant" else "user",
                "parts": [{"text": message.content}],
            }
            for message in messages
            if message.role != "system"
        ]
    }
    if system := system_prompt(messages):
        body["systemInstruction"] = {"role": "user", "parts": [{"text": system}]}
    if config := without_nulls(config):
        body["generationConfig"] = config
    return merge_parameters(body, settings.params)


def merge(events: Iterable[Mapping[str, object] | None]) -> Mapping[str, object]:
    """Return the body of a streamed answer. Raises IncompleteStream if its end is missing."""
    body: dict[str, object] = {}
    candidate: dict[str, object] = {}
    parts: list[Mapping[str, object]] = []
    usage: dict[str, object] = {}
    for chunk in filter(None, events):
        body |= {key: value for key, value in chunk.items() if value}
        usage |= object_at(chunk, "usageMetadata")
        first = next((c for c in objects_at(chunk, "candidates") if not c.get("index")), {})
        candidate |= first
        parts += objects_at(first, "content.parts")
    is_blocked = text_at(body, "promptFeedback.blockReason")
    if not body.get("error") and not is_blocked and candidate.get("finishReason") is None:
        raise IncompleteStream
    body["usageMetadata"] = usage
    if candidate:
        body["candidates"] = [candidate | {"content": {"parts": parts}}]
    return body


def read_answer(body: Mapping[str, object]) -> Completion | Failure:
    """Return the completion in the body of an answer, or why there is none."""
    candidate = next(iter(objects_at(body, "candidates")), None)
    if candidate is None:
        if reason := text_at(body, "promptFeedback.blockReason"):
            error = Failure(kind="item", message=f"prompt blocked: {reason}")
            return Completion(finish_reason="refusal", error=error)
        return unreadable_failure("the server sent no candidates")
    extra = text_fields(body, id="responseId")
    parts = objects_at(candidate, "content.parts")
    return Completion(
        text=join_texts((part for part in parts if not part.get("thought")), "text"),
        reasoning_text=join_texts((p for p in parts if p.get("thought")), "text") or None,
        finish_reason=finish_reason(candidate.get("finishReason"), extra),
        served_model=text_at(body, "modelVersion"),
        provider="google",
        extra=extra,
    )


def usage(body: Mapping[str, object]) -> Usage:
    """Return the usage. Gemini counts the answer and the reasoning separately, and omits zeros.

    With the total, one of the two follows from the other.
    """
    names = ("promptTokenCount", "totalTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
    numbers = object_at(body, "usageMetadata")
    input_tokens, total, visible, reasoning = (tokens_at(numbers, name) for name in names)
    generated = None
    if visible is not None and reasoning is not None:
        generated = tokens_at(visible + reasoning)
    elif input_tokens is not None and total is not None:
        tool_tokens = tokens_at(numbers, "toolUsePromptTokenCount") or 0
        generated = tokens_at(total - input_tokens - tool_tokens)
    if generated is not None and generated < max(visible or 0, reasoning or 0):
        generated = None
    if generated is not None and reasoning is None and visible is not None:
        reasoning = generated - visible
    if generated is not None and visible is None and reasoning is not None:
        visible = generated - reasoning
    return reported_usage(input_tokens, reasoning, visible, generated)


def _camel_case(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
