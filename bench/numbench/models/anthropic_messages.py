"""Anthropic's Messages format: request bodies, and completions from response bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import msgspec

from numbench.models.base import Message, RequestSettings, answer_schema, merge_parameters
from numbench.models.claude_models import max_output_tokens
from numbench.models.json_fields import (
    dict_or_empty,
    dicts_of,
    text_or_none,
    text_or_repr,
    token_count,
)
from numbench.models.openai_chat import (
    build_usage,
    error_code_and_message,
    failure_from_error_body,
)
from numbench.models.provider_errors import (
    failed_completion,
    failure_from_status,
    unreadable_failure,
)
from numbench.records import Completion, Failure, FinishReason, Scalar, Usage

API_VERSION = "2026-10-21"
SAMPLING_API_VERSION = "2023-06-01"
"""The last version with parameters of sampling, which only models up to 4.6 accept."""

_SAMPLING_PARAMETERS = ("temperature", "top_p", "top_k")

_FINISH_REASONS: dict[str, FinishReason] = {
    "end_turn": "stop",
    "stop_sequence": "stop",
    "max_tokens": "length",
    "model_context_window_exceeded": "length",
    "refusal": "refusal",
}
_STATUS_BY_TYPE = {
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""The HTTP status of each type of error, for errors in streams and in the results of batches."""

_INPUT_FIELDS = ("input_tokens", "cache_creation_input_tokens", "cache_read_input_tokens")


def api_version(settings: RequestSettings) -> str:
    """Return the version of the API that has all parameters of a request."""
    given = settings.request.keys() | settings.params.keys()
    samples = settings.temperature is not None or not given.isdisjoint(_SAMPLING_PARAMETERS)
    return SAMPLING_API_VERSION if samples else API_VERSION


def build_request(
    model: str, messages: Sequence[Message], settings: RequestSettings
) -> dict[str, object]:
    """Return the body of a request. The API has no seed, so that none is sent.

    It requires a token limit: without one in the settings that of the model is sent.
    """
    body: dict[str, object] = {
        "model": model,
        "max_tokens": settings.max_tokens or max_output_tokens(model),
        "messages": [message._asdict() for message in messages if message.role != "system"],
    }
    if system := "\n\n".join(m.content for m in messages if m.role == "system"):
        body["system"] = system
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    body |= settings.request
    if settings.structured:
        schema = {"type": "json_schema", "schema": answer_schema(settings.answer_kind)}
        body["output_config"] = {**dict_or_empty(body.get("output_config")), "format": schema}
    return merge_parameters(body, settings.params)


def token_limit_error(body: Mapping[str, object]) -> str | None:
    """Return why the token limit of a request is too small for its thinking budget, if it is."""
    budget, limit = dict_or_empty(body.get("thinking")).get("budget_tokens"), body["max_tokens"]
    if not isinstance(budget, int) or not isinstance(limit, int) or limit > budget:
        return None
    return (
        f"the token limit of {limit:,} includes the thinking budget of {budget:,} and must exceed "
        "it: raise --max-tokens, or choose a lower level"
    )


def parse_completion(body: object) -> Completion:
    """Return the completion in a decoded response body, or the failure that it reports.

    `event_streams.merge_message_events` explains the form of an error in a stream.
    """
    if not isinstance(body, dict):
        failure = unreadable_failure(f"the server sent no JSON object: {text_or_repr(body)}")
        return failed_completion(failure)
    if body.get("error"):
        return failed_completion(_failure_in_stream(body))
    usage = parse_usage(dict_or_empty(body.get("usage")))
    if not isinstance(body.get("content"), list):
        return failed_completion(unreadable_failure("the server sent no content"), usage)
    blocks = dicts_of(body["content"])
    reason = body.get("stop_reason")
    return Completion(
        text="".join(_texts(blocks, "text", "text")),
        reasoning_text="\n\n".join(_texts(blocks, "thinking", "thinking")) or None,
        finish_reason=None
        if reason is None
        else _FINISH_REASONS.get(text_or_repr(reason), "other"),
        usage=usage,
        served_model=text_or_none(body.get("model")),
        provider="anthropic",
        extra=_extra(body, blocks),
    )


def parse_usage(numbers: Mapping[str, object]) -> Usage:
    """Return the usage. The output includes the thinking, and the input what a cache holds."""
    details = dict_or_empty(numbers.get("output_tokens_details"))
    counts = [token_count(numbers.get(name)) for name in _INPUT_FIELDS if numbers.get(name)]
    known = [count for count in counts if count is not None]
    is_complete = numbers.get("input_tokens") is not None and len(known) == len(counts)
    return build_usage(
        input_tokens=token_count(sum(known)) if is_complete else None,
        output=token_count(numbers.get("output_tokens")),
        reasoning=token_count(details.get("thinking_tokens")),
    )


def failure_from_error(error: object) -> Failure:
    """Return the failure for an error object without a status, whose type stands for one.

    Other servers with this API have other types; then the code of the error counts.
    """
    status = _STATUS_BY_TYPE.get(text_or_repr(dict_or_empty(error).get("type")))
    if status is None:
        return failure_from_error_body(error)
    code, message = error_code_and_message(error)
    return failure_from_status(status, message or code, code=_codes(error, code))


def failure_from_body(status: int, body: object, retry_after: float | None) -> Failure:
    """Return the failure for an unsuccessful response with a decoded `body`."""
    code, message = error_code_and_message(body)
    error = dict_or_empty(body).get("error")
    return failure_from_status(status, message, code=_codes(error, code), retry_after=retry_after)


def _failure_in_stream(body: Mapping[str, object]) -> Failure:
    """Return the failure for an error in a successful response.

    What was generated before an answer broke off may be billed.
    """
    failure = failure_from_error(body["error"])
    if not body.get("is_started") or failure.kind not in ("transient", "rate_limit"):
        return failure
    return msgspec.structs.replace(failure, status=None, possibly_billed=True)


def _codes(error: object, code: str) -> str:
    """Return `code` and the more specific one of `error`, if there is any."""
    details = dict_or_empty(dict_or_empty(error).get("details"))
    return f"{code} {text_or_repr(details.get('error_code'))}"


def _extra(body: Mapping[str, object], blocks: Sequence[Mapping[str, object]]) -> dict[str, Scalar]:
    extra: dict[str, Scalar] = {}
    if identity := text_or_none(body.get("id")):
        extra["id"] = identity
    if category := text_or_none(dict_or_empty(body.get("stop_details")).get("category")):
        extra["refusal_category"] = category
    if redacted := sum(block.get("type") == "redacted_thinking" for block in blocks):
        extra["redacted_thinking"] = redacted
    return extra


def _texts(blocks: Sequence[Mapping[str, object]], kind: str, key: str) -> list[str]:
    texts = (text_or_none(block.get(key)) for block in blocks if block.get("type") == kind)
    return [text for text in texts if text]
