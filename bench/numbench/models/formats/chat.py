"""The Chat Completions format: request bodies, and the contents of answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from typing import ClassVar

from numbench.models.base import Message, RequestSettings, answer_schema, merge_parameters
from numbench.models.formats.base import Answer, Format
from numbench.models.json_fields import (
    IncompleteStream,
    UsageFields,
    join_texts,
    object_at,
    objects_at,
    text_at,
    text_fields,
    updated,
    without_nulls,
)
from numbench.models.reply_words import ENDINGS


class ChatFormat(Format):
    """OpenAI's Chat Completions, which most other servers implement."""

    content = "choices"
    stream: ClassVar[Mapping[str, object]] = {
        "stream": True,
        "stream_options": {"include_usage": True},
    }
    usage_fields = UsageFields(
        ("usage.prompt_tokens",),
        "usage.completion_tokens",
        # SGLang's is at the top.
        ("usage.completion_tokens_details.reasoning_tokens", "usage.reasoning_tokens"),
        "usage.total_tokens",
        ("usage.prompt_tokens_details.cached_tokens", "usage.cached_tokens"),
    )

    def url(self, base_url: str, name: str, streams: bool) -> str:
        """Return the URL of requests."""
        return f"{base_url}/chat/completions"

    def body(
        self, model: str, messages: Sequence[Message], settings: RequestSettings, token_limit: str
    ) -> dict[str, object]:
        """Return the body of a request."""
        body: dict[str, object] = {
            "model": model,
            "messages": [message._asdict() for message in messages],
            "temperature": settings.temperature,
            token_limit: settings.max_tokens,
            "seed": settings.seed,
        }
        if settings.structured:
            schema = answer_schema(settings.answer_kind)
            body["response_format"] = {
                "type": "json_schema",
                "json_schema": {"name": "answer", "strict": True, "schema": schema},
            }
        return merge_parameters(without_nulls(body) | settings.request, settings.params)

    def merge(self, events: Iterable[Mapping[str, object] | None]) -> Mapping[str, object]:
        """Return the body of a streamed answer."""
        body: dict[str, object] = {}
        choice: dict[str, object] = {}
        pieces: dict[str, dict[str, list[object]]] = {"message": {}, "delta": {}}
        for event in filter(None, events):
            first = next((c for c in objects_at(event, "choices") if not c.get("index")), {})
            body = updated(body, {k: v for k, v in event.items() if k != "choices"})
            choice = updated(choice, {k: v for k, v in first.items() if k not in pieces})
            for kind, parts in pieces.items():
                for key, value in object_at(first, kind).items():
                    if isinstance(value, str | list) and value and key != "role":
                        parts.setdefault(key, []).extend(
                            [value] if isinstance(value, str) else value
                        )
            if event.get("error") or first.get("error"):
                body["usage"] = event.get("usage")
                break
        else:
            if not choice.get("finish_reason"):
                raise IncompleteStream
        # A whole message in the stream repeats the deltas, if there are any.
        parts = pieces["message"] | pieces["delta"]
        message = {key: _joined(values) for key, values in parts.items()}
        return body | {"choices": [choice | {"message": message}]}

    def answer(self, body: Mapping[str, object]) -> Answer | None:
        """Return what the body of an answer contains, None if it has no answer."""
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return None
        content = object_at(choice, "message").get("content")
        return Answer(
            # Some servers send the text in parts.
            text=text_at(content) or join_texts(objects_at(content), "text"),
            reasoning=_reasoning_text(object_at(choice, "message")),
            ending=_ending(choice),
            refusal=text_at(choice, "message.refusal"),
            error=choice.get("error"),
            served_model=text_at(body, "model"),
            provider=text_at(body, "provider"),
            extra=text_fields(body, id="id", system_fingerprint="system_fingerprint"),
        )


def _ending(choice: Mapping[str, object]) -> object:
    """Return the finish reason, or that of the upstream server if a gateway calls it a stop.

    litellm does so with the failures of DeepSeek.
    """
    for path in ("native_finish_reason", "provider_specific_fields.native_finish_reason"):
        native = text_at(choice, path)
        if native and ENDINGS.get(native.lower()) in ("length", "failure"):
            return native
    return choice.get("finish_reason")


def _reasoning_text(message: Mapping[str, object]) -> str:
    if text := text_at(message, "reasoning") or text_at(message, "reasoning_content"):
        return text
    parts = objects_at(message, "reasoning_details")
    for part in objects_at(message, "content"):
        # Mistral's reasoning is a part of the content.
        parts += objects_at(part, "thinking")
    return join_texts(parts, "text", "summary")


def _joined(values: Sequence[object]) -> str | list[object]:
    """Return the text whose pieces are `values`, or a list with texts as parts if some are none."""
    texts = [value for value in values if isinstance(value, str)]
    if len(texts) == len(values):
        return "".join(texts)
    return [{"type": "text", "text": v} if isinstance(v, str) else v for v in values]
