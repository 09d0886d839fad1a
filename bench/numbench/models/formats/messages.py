"""Anthropic's Messages format: request bodies, and the contents of answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from numbench.models.base import Request, answer_schema, system_prompt
from numbench.models.formats.base import Answer, Format, tool_calls
from numbench.models.json_fields import (
    USAGE_FIELDS,
    IncompleteStream,
    JsonObject,
    decoded,
    error_in,
    object_at,
    objects_at,
    text_at,
    text_fields,
    updated,
    value_at,
    without_nulls,
)
from numbench.records import Completion, ToolCall
from numbench.tasks.calculator import declaration

API_VERSION = "2026-10-21"
SAMPLING_API_VERSION = "2023-06-01"
"""The last version with parameters of sampling, which only models up to 4.6 accept."""

_SAMPLING_PARAMETERS = frozenset({"temperature", "top_p", "top_k"})

_BLOCKS = {"signature": "thinking", "partial_json": "tool_use"}
_PIECES = ("text", "thinking", "signature", "partial_json")


class MessagesFormat(Format):
    """Anthropic's Messages. The API has no seed, so that none is sent."""

    path = "messages"
    content = "content"
    tool: ClassVar = declaration("input_schema")
    usage_fields = USAGE_FIELDS["messages"]

    def root(self, base_url: str) -> str:
        """Return the URL of the API. `base_url` may end in `/v1`, like those of OpenAI's API."""
        return f"{base_url.rstrip('/').removesuffix('/v1')}/v1"

    def headers(self, key: str, body: JsonObject) -> dict[str, str]:
        """Return the headers with the key and the version that has all parameters of a request."""
        samples = not _SAMPLING_PARAMETERS.isdisjoint(body)
        version = SAMPLING_API_VERSION if samples else API_VERSION
        return {"x-api-key": key, "anthropic-version": version}

    def fields(self, model: str, request: Request, token_limit: str) -> dict[str, object]:
        """Return the body of a request. It requires a token limit, which the catalogue has."""
        messages, settings = request
        asked = [message._asdict() for message in messages if message.role != "system"]
        body: dict[str, object] = {
            "model": model,
            token_limit: settings.max_tokens,
            "messages": [*asked, *self.turns(settings)],
            "system": system_prompt(messages) or None,
            "temperature": settings.temperature,
        }
        body = without_nulls(body) | settings.request
        if settings.structured:
            schema = {"type": "json_schema", "schema": answer_schema(settings.answer_kind)}
            body["output_config"] = {**object_at(body, "output_config"), "format": schema}
        return body

    def results(self, calls: Sequence[ToolCall]) -> list[dict[str, object]]:
        """Return one message with the results of all calls."""
        blocks = [
            {"type": "tool_result", "tool_use_id": call.id, "content": call.result}
            | ({"is_error": True} if call.failed else {})
            for call in calls
        ]
        return [{"role": "user", "content": blocks}]

    def merge(self, events: Iterable[JsonObject]) -> JsonObject:
        """Return the body of a streamed answer."""
        body: dict[str, object] = {}
        blocks: dict[int, dict[str, object]] = {}
        pieces: dict[tuple[int, str], list[str]] = {}
        for event in events:
            match event:
                case {"error": error} if error_in(event):
                    if not body.get("stop_reason"):
                        body |= {"error": error, "usage": None}
                    break
                case {"type": "message_start", "message": dict(message)}:
                    # The output counted at the start is not what was generated.
                    counts = dict(object_at(message, "usage"))
                    counts.pop("output_tokens", None)
                    body = updated(body, message | {"usage": counts})
                case {"type": "content_block_start", "index": int(i), "content_block": dict(block)}:
                    blocks[i] = block
                case {"type": "content_block_delta", "index": int(i), "delta": dict(delta)}:
                    if value_at(body, "usage.output_tokens") is not None:
                        # What was counted before is not all.
                        body["usage"] = {**object_at(body, "usage"), "output_tokens": None}
                    blocks.setdefault(i, {})
                    for field in _PIECES:
                        if isinstance(piece := delta.get(field), str):
                            pieces.setdefault((i, field), []).append(piece)
                case {"type": "message_delta"}:
                    body = updated(body, object_at(event, "delta"))
                    body = updated(body, {"usage": object_at(event, "usage")})
        if not (error_in(body) or body.get("stop_reason")):
            raise IncompleteStream
        for (index, field), texts in pieces.items():
            start = blocks[index].get(field)
            kind = {"type": blocks[index].get("type") or _BLOCKS.get(field, field)}
            text = (start if isinstance(start, str) else "") + "".join(texts)
            blocks[index] |= kind | {field: text}
            if field == "partial_json":
                del blocks[index][field]
                if text:
                    # The server takes an object only, and gets an empty one for malformed JSON.
                    blocks[index]["input"] = object_at(decoded(text.encode()))
        content = [blocks[index] for index in sorted(blocks)]
        return body | ({"content": content} if content else {})

    def answer(self, body: JsonObject) -> Answer | None:
        """Return what the body of an answer contains, None if it has no answer."""
        if not isinstance(body.get("content"), list):
            return None
        blocks = objects_at(body, "content")
        extra = text_fields(body, id="id", refusal_category="stop_details.category")
        if redacted := sum(block.get("type") == "redacted_thinking" for block in blocks):
            extra["redacted_thinking"] = redacted
        calls = (block for block in blocks if block.get("type") == "tool_use")
        return Answer(
            Completion(
                text="".join(_texts(blocks, "text")),
                reasoning_text="\n\n".join(_texts(blocks, "thinking")),
                served_model=text_at(body, "model"),
                provider="anthropic",
                extra=extra,
                calls=tool_calls(calls, "id", "name", "input"),
                reply=({"role": "assistant", "content": blocks},),
            ),
            ending=body.get("stop_reason"),
            # A message starts with its first token.
            has_begun=True,
        )


def _texts(blocks: Sequence[JsonObject], kind: str) -> list[str]:
    texts = (text_at(block, kind) for block in blocks if block.get("type") == kind)
    return list(filter(None, texts))
