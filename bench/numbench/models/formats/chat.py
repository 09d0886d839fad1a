"""The Chat Completions format: request bodies, and the contents of answers."""

from __future__ import annotations

import json
import re
from collections.abc import Iterable, Sequence
from typing import ClassVar

from numbench.models.base import Request, answer_schema
from numbench.models.formats.base import Answer, Format, merge_choices, tool_calls
from numbench.models.json_fields import (
    ENDINGS,
    USAGE_FIELDS,
    IncompleteStream,
    JsonObject,
    error_in,
    join_texts,
    object_at,
    objects_at,
    text_at,
    text_fields,
    text_or_repr,
    updated,
    value_at,
    without_nulls,
)
from numbench.records import Completion, ToolCall
from numbench.tasks.calculator import MAX_CALLS, declaration
from numbench.thinking_text import separate_thinking

_REPEATED = ("reasoning_content", "reasoning_details", "thinking_blocks")
"""What a reply has beside text and calls, and some servers want to see again."""

_JSON = json.JSONDecoder()
_AROUND_CALLS = re.compile(r"</?tool_call>|```(?:json)?")


class ChatFormat(Format):
    """OpenAI's Chat Completions, which most other servers implement."""

    path = "chat/completions"
    content = "choices"
    tool: ClassVar = {"type": "function", "function": declaration("parameters")}
    stream: ClassVar[JsonObject] = {**Format.stream, "stream_options": {"include_usage": True}}
    usage_fields = USAGE_FIELDS["chat"]

    def fields(self, model: str, request: Request, token_limit: str) -> dict[str, object]:
        """Return the body of a request."""
        messages, settings = request
        body: dict[str, object] = {
            "model": model,
            "messages": [*(each._asdict() for each in messages), *self.turns(settings)],
            "temperature": settings.temperature,
            token_limit: settings.max_tokens,
            "seed": settings.seed,
        }
        if settings.structured:
            schema = {"strict": True, "schema": answer_schema(settings.answer_kind)}
            named = {"name": "answer", **schema}
            body["response_format"] = {"type": "json_schema", "json_schema": named}
        return without_nulls(body) | settings.request

    def results(self, calls: Sequence[ToolCall]) -> list[dict[str, object]]:
        """Return a message for each call."""
        return [{"role": "tool", "tool_call_id": each.id, "content": each.result} for each in calls]

    def merge(self, events: Iterable[JsonObject]) -> JsonObject:
        """Return the body of a streamed answer."""
        body, firsts = merge_choices(events, "choices", "usage")
        choice: dict[str, object] = {}
        pieces: dict[str, dict[str, list[object]]] = {"message": {}, "delta": {}}
        for first in firsts:
            choice = updated(choice, {k: v for k, v in first.items() if k not in pieces})
            for kind, parts in pieces.items():
                for key, value in object_at(first, kind).items():
                    if isinstance(value, str | list) and value and key != "role":
                        texts = [value] if isinstance(value, str) else value
                        parts.setdefault(key, []).extend(texts)
        if not (error_in(body) or error_in(choice) or choice.get("finish_reason")):
            raise IncompleteStream
        # A whole message in the stream repeats the deltas, if there are any.
        parts = pieces["message"] | pieces["delta"]
        message: dict[str, object] = {key: _joined(values) for key, values in parts.items()}
        if calls := parts.get("tool_calls"):
            message["tool_calls"] = _merged_calls(map(object_at, calls))
        return body | {"choices": [choice | {"message": message}]}

    def answer(self, body: JsonObject) -> Answer | None:
        """Return what the body of an answer contains, None if it has no answer."""
        choices = body.get("choices")
        choice = choices[0] if isinstance(choices, list) and choices else None
        if not isinstance(choice, dict):
            return None
        message = object_at(choice, "message")
        content = message.get("content")
        # Some servers send the text in parts.
        text = text_at(content) or join_texts(objects_at(content), "text")
        sent = [c for c in objects_at(message, "tool_calls") if text_at(c, "function.name")]
        found = [] if sent else _calls_in_text(text)
        calls = [
            {**call, "id": call.get("id") or f"call_{number}"}
            for number, call in enumerate(sent or found)
        ]
        repeated = {name: message[name] for name in _REPEATED if message.get(name)}
        reply = {"role": "assistant", "content": None if found else content, "tool_calls": calls}
        return Answer(
            Completion(
                text=text,
                reasoning_text=_reasoning_text(message),
                served_model=text_at(body, "model"),
                provider=text_at(body, "provider"),
                extra=text_fields(body, id="id", system_fingerprint="system_fingerprint"),
                calls=tool_calls(calls, "id", "function.name", "function.arguments", bool(found)),
                reply=(reply | repeated,),
            ),
            ending=_ending(choice),
            refusal=text_at(choice, "message.refusal"),
            error=error_in(choice),
        )


def _calls_in_text(text: str) -> list[dict[str, object]]:
    """Return the calls of which a text consists: the server has not recognized them as such.

    They are objects with a name and arguments, perhaps in tags or a code block, as no answer is.
    """
    if '"name"' not in text:
        return []
    rest = _AROUND_CALLS.sub("", separate_thinking(text)[0]).strip()
    calls: list[dict[str, object]] = []
    while rest and len(calls) <= MAX_CALLS:
        try:
            call, end = _JSON.raw_decode(rest)
        except (ValueError, RecursionError):
            return []
        name, arguments = text_at(call, "name"), value_at(call, "arguments")
        if name is None or not isinstance(arguments, dict) or len(call) != 2:
            return []
        function = {"name": name, "arguments": json.dumps(arguments)}
        calls.append({"type": "function", "function": function})
        rest = rest[end:].strip()
    return calls


def _merged_calls(pieces: Iterable[JsonObject]) -> list[dict[str, object]]:
    """Return the calls whose pieces a stream contains, by their index.

    Some servers send whole calls, and for each of them the same index, or none; others give each
    piece of a call an id of its own. Only a call's first piece has an index or a name that is new.
    """
    calls: list[dict[str, object]] = []
    positions: dict[str, int] = {}
    for piece in pieces:
        index, id_ = text_or_repr(piece.get("index")), piece.get("id")
        position = positions.get(index, -1) if index else len(calls) - 1
        is_other = id_ not in (None, "", calls[position].get("id")) if calls else True
        is_whole = not (index or id_)
        if position < 0 or (text_at(piece, "function.name") and (is_other or is_whole)):
            position = positions[index] = len(calls)
            calls.append({"id": id_})
        known = calls[position]
        arguments = text_at(known, "function.arguments") or ""
        new = {k: v for k, v in piece.items() if k != "index"} | {"id": known["id"] or id_}
        calls[position] = updated(known, new)
        if arguments and (function := object_at(piece, "function")):
            whole = {"arguments": arguments + (text_at(function, "arguments") or "")}
            calls[position] = updated(calls[position], {"function": whole})
    return calls


def _ending(choice: JsonObject) -> object:
    """Return the finish reason, or that of the upstream server if a gateway calls it a stop.

    litellm does so with the failures of DeepSeek.
    """
    for path in ("native_finish_reason", "provider_specific_fields.native_finish_reason"):
        native = text_at(choice, path)
        if native and ENDINGS.get(native.lower()) in ("length", "failure"):
            return native
    return choice.get("finish_reason")


def _reasoning_text(message: JsonObject) -> str:
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
