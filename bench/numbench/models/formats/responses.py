"""OpenAI's Responses format: request bodies, and the contents of answers."""

from __future__ import annotations

from collections.abc import Iterable, Sequence
from typing import ClassVar

from numbench.models.base import Request, answer_schema
from numbench.models.formats.base import Answer, Format, tool_calls
from numbench.models.json_fields import (
    USAGE_FIELDS,
    IncompleteStream,
    JsonObject,
    error_in,
    object_at,
    objects_at,
    text_at,
    text_fields,
    text_or_repr,
    tokens_at,
    value_at,
    without_nulls,
)
from numbench.records import Completion, ToolCall
from numbench.tasks.calculator import declaration

_LAST_EVENTS = tuple(f"response.{status}" for status in ("completed", "incomplete", "failed"))

_PARTS = {
    "output_text": ("message", "content", "text"),
    "refusal": ("message", "content", "refusal"),
    "reasoning_text": ("reasoning", "content", "text"),
    "summary_text": ("reasoning", "summary", "text"),
}
"""The type of item, and the fields in it and in the part, of each type of part."""

_Pieces = dict[tuple[int, str, int], list[str]]
"""Pieces of texts by the positions of item and part, and the type of part."""


class ResponsesFormat(Format):
    """OpenAI's Responses. The format has no seed, so that none is sent."""

    path = "responses"
    content = "output"
    tool: ClassVar = {"type": "function", "strict": True, **declaration("parameters")}
    usage_fields = USAGE_FIELDS["responses"]

    def fields(self, model: str, request: Request, token_limit: str) -> dict[str, object]:
        """Return the body of a request.

        The parameters of a reasoning level, which are those of Chat Completions, are translated:
        `reasoning_effort` becomes `reasoning`. `token_limit` is that of Chat Completions too.
        """
        messages, settings = request
        body: dict[str, object] = {
            "model": model,
            "input": [*(each._asdict() for each in messages), *self.turns(settings)],
            "store": False,
            "temperature": settings.temperature,
            "max_output_tokens": settings.max_tokens,
        }
        if settings.structured:
            schema = {"strict": True, "schema": answer_schema(settings.answer_kind)}
            body["text"] = {"format": {"type": "json_schema", "name": "answer", **schema}}
        level = dict(settings.request)
        if effort := level.pop("reasoning_effort", None):
            body["reasoning"] = {"effort": effort}
            if settings.tools is not None:
                # Without it the reasoning before a call is lost, because nothing is stored.
                body["include"] = ["reasoning.encrypted_content"]
        return without_nulls(body) | level

    def results(self, calls: Sequence[ToolCall]) -> list[dict[str, object]]:
        """Return an item for each call."""
        kind = "function_call_output"
        return [{"type": kind, "call_id": each.id, "output": each.result} for each in calls]

    def merge(self, events: Iterable[JsonObject]) -> JsonObject:
        """Return the body of a streamed answer, which its last event contains.

        What that event leaves out, as some servers do, is in the events before: in whole items, or
        in parts of texts.
        """
        added, done = list[dict[str, object]](), list[JsonObject]()
        pieces: _Pieces = {}
        for event in events:
            kind = text_or_repr(event.get("type"))
            response = object_at(event, "response")
            output = objects_at(response, "output")
            if kind in _LAST_EVENTS:
                status = {"status": response.get("status") or kind.removeprefix("response.")}
                items = _most_complete((output, done, _rebuilt(pieces), added))
                return {**response, **status, "output": items}
            if kind == "error" or error_in(event):
                error = error_in(event) or event
                items = _most_complete((done, _rebuilt(pieces), added))
                return {"error": error, "output": items}
            if kind.startswith("response.output_item."):
                (done if kind.endswith(".done") else added).append({**object_at(event, "item")})
            elif kind == "response.function_call_arguments.done":
                for item in (each for each in added if each.get("id") == event.get("item_id")):
                    item["arguments"] = event.get("arguments")
            else:
                _add_piece(kind, event, pieces)
        raise IncompleteStream

    def answer(self, body: JsonObject) -> Answer | None:
        """Return what the body of an answer contains, None if it has no answer."""
        if not isinstance(body.get("output"), list):
            return None
        items, status = objects_at(body, "output"), body.get("status")
        reason = value_at(body, "incomplete_details.reason") if status == "incomplete" else None
        # Some models reveal the reasoning itself.
        reasoning = _texts(items, "summary_text") or _texts(items, "reasoning_text")
        calls = (item for item in items if item.get("type") == "function_call")
        return Answer(
            Completion(
                text="".join(_texts(items, "output_text")),
                reasoning_text="\n\n".join(reasoning),
                served_model=text_at(body, "model"),
                extra=text_fields(body, id="id"),
                calls=tool_calls(calls, "call_id", "name", "arguments"),
                # Reasoning that is not encrypted is not stored either, so it cannot be repeated.
                reply=tuple(
                    dict(item)
                    for item in items
                    if item.get("type") != "reasoning" or item.get("encrypted_content")
                ),
            ),
            ending=reason or status,
            refusal="".join(_texts(items, "refusal")),
            has_begun=bool(items),
        )


def _add_piece(kind: str, event: JsonObject, pieces: _Pieces) -> None:
    """Add the text in an event of a part: a piece of it, or the whole in its last event."""
    part = object_at(event, "part")
    name, _, end = kind.removeprefix("response.").rpartition(".")
    name = text_at(part, "type") or name.replace("reasoning_summary", "summary")
    if name not in _PARTS:
        return
    field = _PARTS[name][2]
    text = text_at(event, "delta") or text_at(event, field) or text_at(part, field)
    position = tokens_at(event, "content_index") or tokens_at(event, "summary_index") or 0
    key = tokens_at(event, "output_index") or 0, name, position
    if text and end == "delta":
        pieces.setdefault(key, []).append(text)
    elif text:
        pieces[key] = [text]


def _rebuilt(pieces: _Pieces) -> list[JsonObject]:
    """Return items with one part each: the texts whose pieces are known, in order."""
    parts = ((_PARTS[name], "".join(texts)) for (_, name, _), texts in sorted(pieces.items()))
    return [{"type": kind, field: [{name: text}]} for (kind, field, name), text in parts]


def _most_complete(sources: Sequence[Sequence[JsonObject]]) -> list[JsonObject]:
    """Return the items of an answer: of each type those of the first source that has their text.

    If one source has all of these, they are in its order, with its items of other types.
    """
    best: dict[str, list[JsonObject]] = {}
    for kind in ("reasoning", "message", "function_call"):
        names = [name for name, part in _PARTS.items() if part[0] == kind]
        of_kind = [_of_type(items, kind) for items in sources]
        with_text = (items for items in of_kind if any(_texts(items, name) for name in names))
        best[kind] = next(with_text, next(filter(None, of_kind), []))
    for items in sources:
        if items and all(_of_type(items, kind) == best[kind] for kind in best):
            return list(items)
    return [item for items in best.values() for item in items]


def _of_type(items: Iterable[JsonObject], kind: str) -> list[JsonObject]:
    return [item for item in items if item.get("type") == kind]


def _texts(items: Iterable[JsonObject], name: str) -> list[str]:
    """Return the texts of all parts of a type."""
    kind, field, text_field = _PARTS[name]
    lists = (objects_at(item, field) for item in _of_type(items, kind))
    return [text for parts in lists for part in parts if (text := text_at(part, text_field))]
