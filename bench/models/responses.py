"""OpenAI's Responses format: the request's body, and the Completion behind a response's."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from bench.models.base import Message, Settings, answer_schema
from bench.models.bodies import worded
from bench.models.chat import cost, count, mapping, reported, string, tally
from bench.models.failures import failed, transient
from bench.records import Completion, FinishReason, Usage

_CUT_SHORT: dict[str, FinishReason] = {"max_output_tokens": "length", "content_filter": "refusal"}


def request_body(model: str, messages: Sequence[Message], settings: Settings) -> dict[str, object]:
    """The body of a request. The format has no seed, so that none is sent.

    A level of the catalogue, which speaks Chat, is translated: `reasoning_effort` becomes
    `reasoning`, with a summary of the thoughts.
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
        body["reasoning"] = {"effort": effort, "summary": "auto"}
    return body | request


def completion(body: object) -> Completion:
    """The completion in a response's decoded body, or the failure that it reports.

    A response that failed keeps its usage: what was generated is paid for.
    """
    if not isinstance(body, dict):
        return failed(transient(f"the server sent no JSON object: {worded(body)}"))
    numbers = mapping(body.get("usage"))
    spent = usage(numbers), cost(numbers)
    if body.get("error"):
        return failed(reported(body["error"]), *spent)
    output, status = body.get("output"), body.get("status")
    if not isinstance(output, list):
        return failed(transient("the server sent no output"), *spent)
    if status not in ("completed", "incomplete", None):
        return failed(transient(f"the response is {worded(status)}"), *spent)
    items = [mapping(item) for item in output]
    spoken = list(_parts(items, "message", "content"))
    refusal = _text(spoken, "refusal", "refusal")
    return Completion(
        text=_text(spoken, "output_text", "text") or refusal,
        reasoning_text=_thoughts(items),
        finish_reason="refusal" if refusal else _finish(body),
        usage=spent[0],
        cost=spent[1],
        served_model=string(body.get("model")),
        extra={"id": body["id"]} if string(body.get("id")) else {},
    )


def usage(numbers: Mapping[str, object]) -> Usage:
    """Usage of the Responses format, where output tokens include those of the reasoning."""
    details = mapping(numbers.get("output_tokens_details"))
    return tally(
        asked=count(numbers.get("input_tokens")),
        generated=count(numbers.get("output_tokens")),
        reasoning=count(details.get("reasoning_tokens")),
    )


def _finish(body: Mapping[str, object]) -> FinishReason | None:
    if body.get("status") == "incomplete":
        reason = mapping(body.get("incomplete_details")).get("reason")
        return _CUT_SHORT.get(worded(reason), "other")
    return "stop" if body.get("status") else None


def _thoughts(items: Sequence[Mapping[str, object]]) -> str | None:
    """The summaries of OpenAI's own models, or the thoughts themselves of those that show them."""
    for key in ("summary", "content"):
        parts = (string(part.get("text")) for part in _parts(items, "reasoning", key))
        if text := "\n\n".join(part for part in parts if part):
            return text
    return None


def _text(parts: Iterable[Mapping[str, object]], kind: str, key: str) -> str:
    return "".join(string(part.get(key)) or "" for part in parts if part.get("type") == kind)


def _parts(
    items: Iterable[Mapping[str, object]], kind: str, key: str
) -> Iterable[Mapping[str, object]]:
    for item in items:
        parts = item.get(key)
        if item.get("type") == kind and isinstance(parts, list):
            yield from map(mapping, parts)
