"""OpenAI's Responses format: request bodies, and completions from response bodies."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence

from numbench.models.base import Message, RequestSettings, answer_schema, merge_parameters
from numbench.models.json_fields import (
    dict_or_empty,
    dicts_of,
    text_or_none,
    text_or_repr,
    token_count,
)
from numbench.models.openai_chat import build_usage, failure_from_body, parse_cost
from numbench.models.provider_errors import failed_completion, unreadable_failure
from numbench.records import Completion, Failure, FinishReason, Usage

_INCOMPLETE_REASONS: dict[str, FinishReason] = {
    "max_output_tokens": "length",
    "content_filter": "refusal",
}


def build_request(
    model: str, messages: Sequence[Message], settings: RequestSettings
) -> dict[str, object]:
    """Return the body of a request. The format has no seed, so that none is sent.

    The parameters of a reasoning level, which are those of Chat Completions, are translated:
    `reasoning_effort` becomes `reasoning`, with a summary of the reasoning.
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
    return merge_parameters(body | request, settings.params)


NOT_SENT = "reasoning.summary"
"""What is left out if the server refuses it; the responses record it (`not_sent`)."""


def summary_failure(message: str) -> Failure:
    """Return the failure of a run whose own summary is refused: it is not left out silently."""
    return Failure(
        kind="run",
        status=400,
        message=f"{message} (--param {NOT_SENT}: omit it, or verify the organization)",
    )


def has_own_summary(settings: RequestSettings) -> bool:
    """Return whether the user gave the parameter of the summary."""
    return "summary" in dict_or_empty(settings.params.get("reasoning"))


def refuses_summary(error: Mapping[str, object]) -> bool:
    """Return whether an error refuses the summary only: OpenAI verifies organizations for it."""
    return error.get("param") == NOT_SENT


def without_summary(body: Mapping[str, object]) -> dict[str, object]:
    """Return the body of a request that asks for no summary of the reasoning."""
    reasoning = dict(dict_or_empty(body.get("reasoning")))
    reasoning.pop("summary", None)
    return {**body, "reasoning": reasoning}


def left_out(body: Mapping[str, object], response: object) -> str:
    """Return which parameter of a request its response says was not sent, empty if none.

    For responses that another process has asked for.
    """
    echo = dict_or_empty(response).get("reasoning")
    asks = "summary" in dict_or_empty(body.get("reasoning"))
    return NOT_SENT if asks and echo and not dict_or_empty(echo).get("summary") else ""


def parse_completion(body: object) -> Completion:
    """Return the completion in a decoded response body, or the failure that it reports.

    A failure has usage and cost: what was generated is billed.
    """
    response = dict_or_empty(body)
    numbers = dict_or_empty(response.get("usage"))
    usage, cost = parse_usage(numbers), parse_cost(numbers)
    if failure := failure_from_body(body):
        return failed_completion(failure, usage, cost)
    if not isinstance(response.get("output"), list):
        return failed_completion(unreadable_failure("the server sent no output"), usage, cost)
    status = response.get("status")
    if status not in ("completed", "incomplete", None):
        return failed_completion(
            unreadable_failure(f"the response is {text_or_repr(status)}"), usage, cost
        )
    items = dicts_of(response["output"])
    message_parts = list(_parts(items, "message", "content"))
    refusal = _text(message_parts, "refusal", "refusal")
    identity = text_or_none(response.get("id"))
    return Completion(
        text=_text(message_parts, "output_text", "text") or refusal,
        reasoning_text=_reasoning_text(items),
        finish_reason="refusal" if refusal else _finish_reason(response),
        usage=usage,
        cost=cost,
        served_model=text_or_none(response.get("model")),
        extra={"id": identity} if identity else {},
    )


def parse_usage(numbers: Mapping[str, object]) -> Usage:
    """Return the usage in the Responses format, whose output tokens include the reasoning."""
    details = dict_or_empty(numbers.get("output_tokens_details"))
    return build_usage(
        input_tokens=token_count(numbers.get("input_tokens")),
        output=token_count(numbers.get("output_tokens")),
        reasoning=token_count(details.get("reasoning_tokens")),
        total=token_count(numbers.get("total_tokens")),
    )


def _finish_reason(response: Mapping[str, object]) -> FinishReason | None:
    if response.get("status") == "incomplete":
        reason = dict_or_empty(response.get("incomplete_details")).get("reason")
        return _INCOMPLETE_REASONS.get(text_or_repr(reason), "other")
    return "stop" if response.get("status") else None


def _reasoning_text(items: Sequence[Mapping[str, object]]) -> str | None:
    """Return the summaries of the reasoning, or its content from models that reveal it."""
    for key in ("summary", "content"):
        parts = (text_or_none(part.get("text")) for part in _parts(items, "reasoning", key))
        if text := "\n\n".join(part for part in parts if part):
            return text
    return None


def _text(parts: Iterable[Mapping[str, object]], kind: str, key: str) -> str:
    return "".join(text_or_none(part.get(key)) or "" for part in parts if part.get("type") == kind)


def _parts(
    items: Iterable[Mapping[str, object]], kind: str, key: str
) -> Iterable[Mapping[str, object]]:
    for item in items:
        if item.get("type") == kind:
            yield from dicts_of(item.get(key))
