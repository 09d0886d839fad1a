"""The Chat Completions format: request bodies, and completions from response bodies."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from numbench.models.base import Message, RequestSettings, answer_schema, merge_parameters
from numbench.models.json_fields import (
    dict_or_empty,
    dicts_of,
    dollar_amount,
    text_or_none,
    text_or_repr,
    token_count,
)
from numbench.models.provider_errors import (
    failed_completion,
    failure_from_status,
    unreadable_failure,
)
from numbench.models.rate_limit_headers import retry_after
from numbench.records import Completion, Failure, FinishReason, Usage

_STATUS_BY_CODE = {"rate_limit_exceeded": 429, "insufficient_quota": 429, "invalid_prompt": 400}
"""HTTP statuses of error codes that some servers report in a successful response."""

_TICKS_PER_DOLLAR = 10**10

_FINISH_REASONS: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
}


def build_request(
    model: str, messages: Sequence[Message], settings: RequestSettings, token_limit: str
) -> dict[str, object]:
    """Return the body of a request. `token_limit`: the server's name of the limit on new tokens."""
    body: dict[str, object] = {
        "model": model,
        "messages": [message._asdict() for message in messages],
    }
    if settings.temperature is not None:
        body["temperature"] = settings.temperature
    if settings.max_tokens is not None:
        body[token_limit] = settings.max_tokens
    if settings.seed is not None:
        body["seed"] = settings.seed
    if settings.structured:
        schema = answer_schema(settings.answer_kind)
        body["response_format"] = {
            "type": "json_schema",
            "json_schema": {"name": "answer", "strict": True, "schema": schema},
        }
    return merge_parameters(body | settings.request, settings.params)


def parse_completion(body: object) -> Completion:
    """Return the completion in a decoded response body, or the failure that it reports.

    A failure has usage and cost: what was generated is billed.
    """
    numbers = dict_or_empty(dict_or_empty(body).get("usage"))
    usage, cost = parse_usage(numbers), parse_cost(numbers)
    if failure := failure_from_body(body):
        return failed_completion(failure, usage, cost)
    response = dict_or_empty(body)
    choices = response.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return failed_completion(unreadable_failure("the server sent no choices"), usage, cost)
    choice = choices[0]
    if choice.get("error"):
        return failed_completion(failure_from_error_body(choice["error"]), usage, cost)
    message = dict_or_empty(choice.get("message"))
    refusal = text_or_none(message.get("refusal"))
    text = _message_text(message.get("content"))
    return Completion(
        text=text or refusal or "",
        reasoning_text=_reasoning_text(message),
        finish_reason="refusal" if refusal else _finish_reason(choice.get("finish_reason")),
        usage=usage,
        cost=cost,
        served_model=text_or_none(response.get("model")),
        provider=text_or_none(response.get("provider")),
        extra={
            key: value
            for key in ("id", "system_fingerprint")
            if (value := text_or_none(response.get(key)))
        },
    )


def failure_from_body(body: object) -> Failure | None:
    """Return the failure of a body that is not an object or reports an error, else None."""
    if not isinstance(body, dict):
        return unreadable_failure(f"the server sent no JSON object: {text_or_repr(body)}")
    return failure_from_error_body(body["error"]) if body.get("error") else None


def parse_usage(numbers: Mapping[str, object]) -> Usage:
    """Return the usage in the Chat format, whose completion tokens include the reasoning."""
    details = dict_or_empty(numbers.get("completion_tokens_details"))
    return build_usage(
        input_tokens=token_count(numbers.get("prompt_tokens")),
        output=token_count(numbers.get("completion_tokens")),
        reasoning=token_count(details.get("reasoning_tokens")),
        total=token_count(numbers.get("total_tokens")),
    )


def build_usage(
    *,
    input_tokens: int | None,
    output: int | None,
    reasoning: int | None,
    total: int | None = None,
) -> Usage:
    """Return the usage for the counts that a server reports.

    output: includes the reasoning, unless the total is larger than input and output: then the
    server counts the reasoning separately, as xAI does, or not at all, and the total is right.
    """
    generated, is_split = output, True
    rest = None if total is None or input_tokens is None else total - input_tokens
    if rest is not None and rest > (output or 0):
        if output is not None:
            reasoning = reasoning or rest - output
            is_split = rest == output + reasoning
        generated = rest
    if generated is not None and reasoning is not None and reasoning > generated:
        if rest == generated:
            # The reasoning is counted by another tokenizer than what is billed.
            reasoning = None
        else:
            generated = None
    is_known = any(value is not None for value in (input_tokens, generated, reasoning))
    visible = None
    if is_split and generated is not None and reasoning is not None:
        visible = generated - reasoning
    return Usage(
        input=input_tokens,
        reasoning=reasoning,
        visible=visible,
        generated=generated,
        source="reported" if is_known else None,
    )


def parse_cost(numbers: Mapping[str, object]) -> float | None:
    """Return the US dollars that the usage reports. xAI's are a number of ticks.

    If the user's own key pays the model's provider (BYOK), OpenRouter's `cost` is its fee only and
    the provider's share is a separate field: without that the cost is unknown.
    """
    cost = dollar_amount(numbers.get("cost"))
    ticks = dollar_amount(numbers.get("cost_in_usd_ticks"))
    if cost is None and ticks is not None:
        return ticks / _TICKS_PER_DOLLAR
    if numbers.get("is_byok") is not True:
        return cost
    details = dict_or_empty(numbers.get("cost_details"))
    upstream = dollar_amount(details.get("upstream_inference_cost"))
    return None if cost is None or upstream is None else dollar_amount(cost + upstream)


def error_code_and_message(body: object) -> tuple[str, str]:
    """Return the code and the message in the body of an error, empty if it has none."""
    if not isinstance(body, dict):
        return "", text_or_repr(body) if body else ""
    error = body["error"] if isinstance(body.get("error"), dict) else body
    metadata = dict_or_empty(error.get("metadata"))
    message = " ".join(
        text_or_repr(part) for part in (error.get("message"), metadata.get("raw")) if part
    )
    words = (error.get("code"), error.get("type"), error.get("param"))
    return " ".join(text_or_repr(word) for word in words if word), message


def failure_from_error_body(error: object) -> Failure:
    """Return the failure for an error in a successful response; its code counts as the status.

    Without a code the failure is transient, unless the message says that the prompt is rejected.
    """
    code, message = error_code_and_message(error)
    text = message or code or "the server reported an error"
    status = _http_status_of_code(dict_or_empty(error).get("code"))
    failure = failure_from_status(
        status or 400, text, code=code, retry_after=upstream_retry_after(error)
    )
    return failure if status or failure.kind == "item" else unreadable_failure(text)


def upstream_retry_after(
    error: object, headers: Mapping[str, object] | None = None
) -> float | None:
    """Return the seconds to wait according to a response's headers.

    OpenRouter repeats the headers of the provider behind it in the body of the error.
    """
    upstream = dict_or_empty(dict_or_empty(dict_or_empty(error).get("metadata")).get("headers"))
    return retry_after({**upstream, **(headers or {})})


def _http_status_of_code(code: object) -> int | None:
    """Return the HTTP status that an error code is or stands for."""
    if isinstance(code, str):
        status = int(code) if len(code) == 3 and code.isdecimal() else _STATUS_BY_CODE.get(code, 0)
    else:
        status = code if type(code) is int else 0
    return status if 400 <= status < 600 else None


def _finish_reason(reason: object) -> FinishReason | None:
    return None if reason is None else _FINISH_REASONS.get(text_or_repr(reason), "other")


def _reasoning_text(message: Mapping[str, object]) -> str | None:
    for key in ("reasoning", "reasoning_content"):
        if text := text_or_none(message.get(key)):
            return text
    parts = dicts_of(message.get("reasoning_details"))
    for part in dicts_of(message.get("content")):
        # Mistral's reasoning is a part of the content.
        parts += dicts_of(part.get("thinking"))
    texts = (text_or_none(part.get("text")) or text_or_none(part.get("summary")) for part in parts)
    return "".join(text or "" for text in texts) or None


def _message_text(content: object) -> str:
    """Return the text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(text_or_none(part.get("text")) or "" for part in dicts_of(content))
    return text_or_none(content) or ""
