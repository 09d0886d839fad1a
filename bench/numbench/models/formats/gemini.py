"""Google's generateContent format: request bodies, and the contents of answers."""

from __future__ import annotations

import re
from collections.abc import Iterable, Sequence
from functools import reduce
from typing import ClassVar
from urllib.parse import quote

from numbench.models.base import Request, answer_schema, system_prompt
from numbench.models.formats.base import Answer, Format, merge_choices, tool_calls
from numbench.models.json_fields import (
    IncompleteStream,
    JsonObject,
    error_in,
    join_texts,
    object_at,
    objects_at,
    reported_usage,
    text_at,
    text_fields,
    tokens_at,
    updated,
    without_nulls,
)
from numbench.records import Completion, ToolCall, Usage
from numbench.tasks.calculator import declaration

API_VERSION = "v1beta"
_ROLES = {"user": "user", "assistant": "model"}


class GeminiFormat(Format):
    """Google's generateContent."""

    content = "candidates"
    tool: ClassVar = {"functionDeclarations": [declaration("parametersJsonSchema")]}
    stream: ClassVar[JsonObject] = {}

    def root(self, base_url: str) -> str:
        """Return the URL of the API."""
        return f"{base_url}/{API_VERSION}"

    def url(self, base_url: str, name: str, streams: bool) -> str:
        """Return the URL of requests; the part of Google's API that it names is added."""
        method = "streamGenerateContent?alt=sse" if streams else "generateContent"
        return f"{self.root(base_url)}/{method_path(name, method)}"

    def headers(self, key: str, body: JsonObject) -> dict[str, str]:
        """Return the header with the key."""
        return {"x-goog-api-key": key}

    def fields(self, model: str, request: Request, token_limit: str) -> dict[str, object]:
        """Return the body of a request, which does not name the model.

        The parameters of a reasoning level are those of `thinkingConfig` in snake case; its texts
        are constants of Google's, such as LOW.
        """
        messages, settings = request
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
        contents = [
            {"role": _ROLES[message.role], "parts": [{"text": message.content}]}
            for message in messages
            if message.role != "system"
        ]
        body: dict[str, object] = {"contents": [*contents, *self.turns(settings)]}
        if system := system_prompt(messages):
            body["systemInstruction"] = {"role": "user", "parts": [{"text": system}]}
        if config := without_nulls(config):
            body["generationConfig"] = config
        return body

    def sampling(self, options: dict[str, object]) -> dict[str, object]:
        """Return the part of a body with options of the sampling, which have an object there."""
        config = {_camel_case(name): value for name, value in options.items()}
        return {"generationConfig": config} if config else {}

    def results(self, calls: Sequence[ToolCall]) -> list[dict[str, object]]:
        """Return one message with the results of all calls."""
        parts = [
            {"name": call.name, "response": {"result": call.result}}
            | ({"id": call.id} if call.id else {})
            for call in calls
        ]
        return [{"role": "user", "parts": [{"functionResponse": part} for part in parts]}]

    def merge(self, events: Iterable[JsonObject]) -> JsonObject:
        """Return the body of a streamed answer."""
        body, firsts = merge_choices(events, "candidates", "usageMetadata")
        candidate = reduce(updated, firsts, dict[str, object]())
        if not (error_in(body) or candidate.get("finishReason") or _block_reason(body)):
            raise IncompleteStream
        parts = [part for first in firsts for part in objects_at(first, "content.parts")]
        if candidate:
            body["candidates"] = [candidate | {"content": {"parts": parts}}]
        return body

    def answer(self, body: JsonObject) -> Answer | None:
        """Return what the body of an answer contains, None if it has no answer."""
        candidate = next(iter(objects_at(body, "candidates")), None)
        if candidate is None:
            return Answer(blocked=_block_reason(body)) if _block_reason(body) else None
        parts = objects_at(candidate, "content.parts")
        calls = [object_at(part, "functionCall") for part in parts if part.get("functionCall")]
        return Answer(
            Completion(
                text=join_texts((part for part in parts if not part.get("thought")), "text"),
                reasoning_text=join_texts((part for part in parts if part.get("thought")), "text"),
                served_model=text_at(body, "modelVersion"),
                provider="google",
                extra=text_fields(body, id="responseId"),
                calls=tool_calls(calls, "id", "name", "args"),
                reply=({"role": "model", "parts": parts},),
            ),
            ending=candidate.get("finishReason"),
        )

    def usage(self, body: JsonObject) -> Usage:
        """Return the usage. Gemini counts answer and reasoning separately, and omits zeros.

        With the total, one of the two follows from the other. Some servers count the reasoning as
        part of the answer, too; the total says so.
        """
        counts = object_at(body, "usageMetadata")
        names = ("totalTokenCount", "candidatesTokenCount", "thoughtsTokenCount")
        input_tokens = tokens_at(counts, "promptTokenCount") or None
        total, visible, reasoning = (tokens_at(counts, name) for name in names)
        generated = None
        if input_tokens is not None and total is not None:
            tool_tokens = tokens_at(counts, "toolUsePromptTokenCount") or 0
            generated = tokens_at(total - input_tokens - tool_tokens)
        if visible is not None and reasoning is not None:
            if visible == generated:
                visible = tokens_at(visible - reasoning)
            else:
                generated = tokens_at(visible + reasoning)
        if generated is not None and generated < max(visible or 0, reasoning or 0):
            generated = None
        if generated is not None and reasoning is None and visible is not None:
            reasoning = generated - visible
        if generated is not None and visible is None and reasoning is not None:
            visible = generated - reasoning
        return reported_usage(
            input=input_tokens, reasoning=reasoning, visible=visible, generated=generated
        )


def _block_reason(body: JsonObject) -> str | None:
    return text_at(body, "promptFeedback.blockReason")


def method_path(name: str, method: str) -> str:
    """Return the path of a method of a model, below the root of the API."""
    return f"{quote(name if '/' in name else f'models/{name}', safe='/')}:{method}"


def _camel_case(name: str) -> str:
    return re.sub(r"_([a-z])", lambda match: match[1].upper(), name)
