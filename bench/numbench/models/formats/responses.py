"""OpenAI's Responses format: request bodies, and completions from the bodies of answers."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from numbench.models.base import Message, RequestSettings, answer_schema, merge_parameters
from numbench.models.failures import unreadable_failure
from numbench.models.json_fields import (
    IncompleteStream,
    UsageFields,
    finish_reason,
    object_at,
    objects_at,
    text_at,
    text_fields,
    text_or_repr,
    value_at,
    without_nulls,
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
        "temperature": settings.temperature,
        "max_output_tokens": settings.max_tokens,
    }
    if settings.structured:
        schema = answer_schema(settings.answer_kind)
        body["text"] = {
            "format": {"type": "json_schema", "name": "answer", "strict": True, "schema": schema}
        }
    request = dict(settings.request)
    if effort := request.pop("reasoning_effort", None):
        body["reasoning"] = {"effort": effort}
    return merge_parameters(without_nulls(body) | request, settings.params)


def merge(events: Iterable[Mapping[str, object] | None]) -> Mapping[str, object]:
    """Return the body of a streamed answer, which its last event contains.

    Some proxies leave the output of that event empty: then it is that of the events before.
    Raises IncompleteStream if the stream ends before the answer does.
    """
    items: list[object] = []
    for event in filter(None, events):
        kind = text_or_repr(event.get("type"))
        if kind in ("response.completed", "response.incomplete", "response.failed"):
            response = object_at(event, "response")
            is_empty = items and not response.get("output")
            return {**response, "output": items} if is_empty else response
        if kind == "error" or event.get("error"):
            return {"error": event.get("error") or event}
        if kind == "response.output_item.done":
            items.append(event.get("item"))
    raise IncompleteStream


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
