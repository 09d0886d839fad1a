"""The Chat Completions format: request bodies, and completions from the bodies of answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from numbench.models.base import Message, RequestSettings, answer_schema, merge_parameters
from numbench.models.failures import failure_in_answer, unreadable_failure
from numbench.models.json_fields import (
    IncompleteStream,
    UsageFields,
    finish_reason,
    join_texts,
    object_at,
    objects_at,
    text_at,
    text_fields,
    without_nulls,
)
from numbench.records import Completion, Failure

USAGE = UsageFields(
    ("usage.prompt_tokens",),
    "usage.completion_tokens",
    "usage.completion_tokens_details.reasoning_tokens",
    "usage.total_tokens",
)


def build_request(
    model: str, messages: Sequence[Message], settings: RequestSettings, token_limit: str
) -> dict[str, object]:
    """Return the body of a request. `token_limit`: the server's name of the limit on new tokens."""
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


def merge(events: Iterable[Mapping[str, object] | None]) -> Mapping[str, object]:
    """Return the body of a streamed answer.

    Raises IncompleteStream if there is no finish reason: some servers also send `[DONE]` after an
    answer that was cut off.
    """
    body: dict[str, object] = {}
    choice: dict[str, object] = {}
    parts: dict[str, list[object]] = {}
    end = "before the answer"
    for event in events:
        if event is None:
            end = "without a finish reason; if every one does, add --no-stream"
            continue
        body |= {key: value for key, value in event.items() if value and key != "choices"}
        first = next((c for c in objects_at(event, "choices") if not c.get("index")), {})
        choice |= {key: value for key, value in first.items() if value is not None}
        for key, value in object_at(first.get("delta") or first.get("message")).items():
            if isinstance(value, str) and key != "role":
                parts.setdefault(key, []).append(value)
            elif isinstance(value, list):
                parts.setdefault(key, []).extend(value)
    if body.get("error"):
        return body
    if choice.get("finish_reason") is None:
        raise IncompleteStream(end)
    message = {key: _joined(values) for key, values in parts.items()}
    return body | {"choices": [choice | {"message": message}]}


def read_answer(body: Mapping[str, object]) -> Completion | Failure:
    """Return the completion in the body of an answer, or why there is none."""
    choices = body.get("choices")
    choice = choices[0] if isinstance(choices, list) and choices else None
    if not isinstance(choice, dict):
        return unreadable_failure("the server sent no choices")
    if choice.get("error"):
        return failure_in_answer(choice["error"])
    message, refusal = object_at(choice, "message"), text_at(choice, "message.refusal")
    extra = text_fields(body, id="id", system_fingerprint="system_fingerprint")
    finish = finish_reason(choice.get("finish_reason"), extra)
    content = message.get("content")
    # Some servers send the text in parts.
    text = text_at(content) or join_texts(objects_at(content), "text")
    return Completion(
        text=text or refusal or "",
        reasoning_text=_reasoning_text(message),
        finish_reason="refusal" if refusal else finish,
        served_model=text_at(body, "model"),
        provider=text_at(body, "provider"),
        extra=extra,
    )


def _reasoning_text(message: Mapping[str, object]) -> str | None:
    if text := text_at(message, "reasoning") or text_at(message, "reasoning_content"):
        return text
    parts = objects_at(message, "reasoning_details")
    for part in objects_at(message, "content"):
        # Mistral's reasoning is a part of the content.
        parts += objects_at(part, "thinking")
    return join_texts(parts, "text", "summary") or None


def _joined(values: Sequence[object]) -> str | list[object]:
    """Return the text whose pieces are `values`, or a list with texts as parts if some are none."""
    texts = [value for value in values if isinstance(value, str)]
    if values and len(texts) == len(values):
        return "".join(texts)
    return [{"type": "text", "text": v} if isinstance(v, str) else v for v in values]
