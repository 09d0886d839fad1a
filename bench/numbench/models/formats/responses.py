"""OpenAI's Responses format: request bodies, and completions from the bodies of answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from numbench.models.base import Message, RequestSettings, answer_schema, merge_parameters
from numbench.models.failures import unreadable_failure
from numbench.models.formats.answer_fields import (
    UsageFields,
    finish_reason,
    text_fields,
)
from numbench.models.json_fields import (
    IncompleteStream,
    object_at,
    objects_at,
    text_at,
    text_or_repr,
    value_at,
)
from numbench.records import Completion, Failure

USAGE = UsageFields(
    ("usage.input_tokens",),
    "usage.output_tokens",
    "usage.output_tokens_details.reasoning_tokens",
    "usage.total_tokens",
)


def build_request(
    model: str, messages: Sequence[Message], settings: RequestSettings, token_limit: str
) -> dict[str, object]:
    """Return the body of a request. The format has no seed, so that none is sent.

    The parameters of a reasoning level, which are those of Chat Completions, are translated:
    `reasoning_effort` becomes `reasoning`. `token_limit` is that of Chat Completions too.
    """
    body: dict[str, object] = {
        "model": model,
        "input": [message._asdict() for message in messages],
        "store": False,
    }
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.max_tokens is not None:
        body["max_output_tokens"] = settings.max_tokens
    if settings.structured:
        schema = answer_schema(settings.answer_kind)
        body["text"] = {
            "format": {"type": "json_schema", "name": "answer", "strict": True, "schema": schema}
        }
    request = dict(settings.request)
    if effort := request.pop("reasoning_effort", None):
        body["reasoning"] = {"effort": effort}
    return merge_parameters(body | request, settings.params)


def merge(events: Iterable[Mapping[str, object] | None]) -> Mapping[str, object]:
    """Return the body of a streamed answer, which its last event contains.

    Some proxies leave the output of that event empty: what it lacks is taken from the events
    before. Raises IncompleteStream if the stream ends before the answer does.
    """
    items: list[Mapping[str, object]] = []
    pieces: dict[tuple[str, str], list[str]] = {}
    for event in filter(None, events):
        kind = text_or_repr(event.get("type"))
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            response = object_at(event, "response")
            streamed = (items, [_item(name, texts) for (name, _), texts in pieces.items()])
            return {**response, "output": _complete_output(response.get("output"), streamed)}
        if kind == "error" or event.get("error"):
            return {"error": event.get("error") or event}
        if kind == "response.output_item.done":
            items.append(object_at(event, "item"))
        elif kind in _DELTAS and (delta := text_at(event, "delta")):
            part = event.get("summary_index", event.get("content_index"))
            pieces.setdefault((kind, f"{event.get('output_index')} {part}"), []).append(delta)
    raise IncompleteStream


_DELTAS = {
    "response.output_text.delta": ("message", "content", "output_text", "text"),
    "response.refusal.delta": ("message", "content", "refusal", "refusal"),
    "response.reasoning_summary_text.delta": ("reasoning", "summary", "summary_text", "text"),
    "response.reasoning_text.delta": ("reasoning", "content", "reasoning_text", "text"),
}
"""Where the text of a kind of delta belongs: type and field of the item, those of the part."""


def _item(kind: str, texts: Sequence[str]) -> Mapping[str, object]:
    """Return the item of the output that the texts of one kind of delta make up."""
    item, field, part, text = _DELTAS[kind]
    return {"type": item, field: [{"type": part, text: "".join(texts)}]}


def _complete_output(output: object, streamed: Iterable[list[Mapping[str, object]]]) -> object:
    """Return the output of the last event, with the kinds of items that it lacks."""
    if output is not None and not isinstance(output, list):
        return output
    items = objects_at(output)
    for added in streamed:
        filled = [item for item in items if item.get("content") or item.get("summary")]
        kinds = [item.get("type") for item in filled]
        items += [item for item in added if item.get("type") not in kinds]
    return items if items or output is not None else None


def read_answer(body: Mapping[str, object]) -> Completion | Failure:
    """Return the completion in the body of an answer, or why there is none."""
    status = body.get("status")
    if not isinstance(body.get("output"), list):
        return unreadable_failure("the server sent no output")
    if status not in ("completed", "incomplete", None):
        return unreadable_failure(f"the response is {text_or_repr(status)}")
    items = objects_at(body, "output")
    refusal = "".join(_texts(items, "message", "content", "refusal"))
    extra = text_fields(body, id="id")
    reason = value_at(body, "incomplete_details.reason") if status == "incomplete" else None
    finish = finish_reason(reason or status, extra)
    # Some models reveal the reasoning itself.
    reasoning = _texts(items, "reasoning", "summary", "text") or _texts(
        items, "reasoning", "content", "text"
    )
    return Completion(
        text="".join(_texts(items, "message", "content", "text")) or refusal,
        reasoning_text="\n\n".join(reasoning) or None,
        finish_reason="refusal" if refusal else finish,
        served_model=text_at(body, "model"),
        extra=extra,
    )


def _texts(items: Iterable[Mapping[str, object]], kind: str, field: str, name: str) -> list[str]:
    """Return the texts in the parts of the items of a kind."""
    lists = (objects_at(item, field) for item in items if item.get("type") == kind)
    return [text for parts in lists for part in parts if (text := text_at(part, name))]
