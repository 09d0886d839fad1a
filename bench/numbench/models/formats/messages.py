"""Anthropic's Messages format: request bodies, and completions from the bodies of answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

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
    UsageFields,
    finish_reason,
    object_at,
    objects_at,
    text_at,
    text_fields,
    without_nulls,
)
from numbench.records import Completion, Failure

API_VERSION = "2026-10-21"
SAMPLING_API_VERSION = "2023-06-01"
"""The last version with parameters of sampling, which only models up to 4.6 accept."""

_SAMPLING_PARAMETERS = frozenset({"temperature", "top_p", "top_k"})

_INPUTS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")
USAGE = UsageFields(
    tuple(f"usage.{name}" for name in _INPUTS),
    "usage.output_tokens",
    "usage.output_tokens_details.thinking_tokens",
)
_TEXT_FIELDS = ("text", "thinking")


def api_root(base_url: str) -> str:
    """Return the URL of the API. `base_url` may end in `/v1`, like those of OpenAI's API."""
    return f"{base_url.rstrip('/').removesuffix('/v1')}/v1"


def headers(key: str, body: Mapping[str, object]) -> dict[str, str]:
    """Return the headers with the key and the version that has all parameters of a request."""
    samples = not _SAMPLING_PARAMETERS.isdisjoint(body)
    version = SAMPLING_API_VERSION if samples else API_VERSION
    return {"x-api-key": key, "anthropic-version": version}


def build_request(
    model: str, messages: Sequence[Message], settings: RequestSettings, token_limit: str
) -> dict[str, object]:
    """Return the body of a request. The API has no seed, so that none is sent.

    It requires a token limit (`token_limit`), which the catalogue has for every model.
    """
    body: dict[str, object] = {
        "model": model,
        token_limit: settings.max_tokens,
        "messages": [message._asdict() for message in messages if message.role != "system"],
        "system": system_prompt(messages) or None,
        "temperature": settings.temperature,
    }
    body = without_nulls(body) | settings.request
    if settings.structured:
        schema = {"type": "json_schema", "schema": answer_schema(settings.answer_kind)}
        body["output_config"] = {**object_at(body, "output_config"), "format": schema}
    return merge_parameters(body, settings.params)


def merge(events: Iterable[Mapping[str, object] | None]) -> Mapping[str, object]:
    """Return the body of a streamed answer.

    An error in it is the field `error`; `is_started` says whether the answer had begun.
    Raises IncompleteStream if the stream ends before the answer does.
    """
    body: dict[str, object] = {}
    blocks: dict[int, dict[str, object]] = {}
    pieces: dict[tuple[int, str], list[str]] = {}
    usage: dict[str, object] = {}
    is_complete = False
    for event in filter(None, events):
        match event:
            case {"type": "message_start", "message": dict(message)}:
                body |= message
                usage |= object_at(message, "usage")
            case {"type": "content_block_start", "index": int(index), "content_block": dict(block)}:
                blocks[index] = block
            case {"type": "content_block_delta", "index": int(index), "delta": dict(delta)}:
                blocks.setdefault(index, {})
                for field in _TEXT_FIELDS:
                    if isinstance(piece := delta.get(field), str):
                        pieces.setdefault((index, field), []).append(piece)
            case {"type": "message_delta"}:
                body |= without_nulls(object_at(event, "delta"))
                usage |= without_nulls(object_at(event, "usage"))
            case {"type": "message_stop"}:
                is_complete = True
            case {"error": error} if error:
                return {"error": error, "is_started": bool(body)}
    if not (body and is_complete):
        raise IncompleteStream
    for (index, field), texts in pieces.items():
        start = blocks[index].get(field)
        blocks[index][field] = (start if isinstance(start, str) else "") + "".join(texts)
    return body | {"content": [blocks[index] for index in sorted(blocks)], "usage": usage}


def read_answer(body: Mapping[str, object]) -> Completion | Failure:
    """Return the completion in the body of an answer, or why there is none."""
    if not isinstance(body.get("content"), list):
        return unreadable_failure("the server sent no content")
    blocks = objects_at(body, "content")
    extra = text_fields(body, id="id", refusal_category="stop_details.category")
    if redacted := sum(block.get("type") == "redacted_thinking" for block in blocks):
        extra["redacted_thinking"] = redacted
    return Completion(
        text="".join(_texts(blocks, "text")),
        reasoning_text="\n\n".join(_texts(blocks, "thinking")) or None,
        finish_reason=finish_reason(body.get("stop_reason"), extra),
        served_model=text_at(body, "model"),
        provider="anthropic",
        extra=extra,
    )


def _texts(blocks: Sequence[Mapping[str, object]], kind: str) -> list[str]:
    texts = (text_at(block, kind) for block in blocks if block.get("type") == kind)
    return list(filter(None, texts))
