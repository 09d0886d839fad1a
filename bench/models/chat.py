"""The Chat Completions format: the request's body, and the Completion behind a response's."""

from __future__ import annotations

import math
from collections.abc import Mapping, Sequence

from bench.models.base import Message, Settings, answer_schema
from bench.models.bodies import worded
from bench.models.failures import failed, from_status, transient
from bench.models.rate_headers import retry_after
from bench.records import Completion, Failure, FinishReason, Usage

_MOST_TOKENS = 2**53
"""More than that is no count of tokens, and not every reader of JSON keeps it exactly."""

_STATUS_OF = {"rate_limit_exceeded": 429, "invalid_prompt": 400}
"""HTTP's word for what some servers report by name under a good status."""

_FINISH: dict[str, FinishReason] = {
    "stop": "stop",
    "length": "length",
    "content_filter": "refusal",
}


def request_body(
    model: str, messages: Sequence[Message], settings: Settings, token_limit: str
) -> dict[str, object]:
    """The body of a request. `token_limit` is the server's name for the limit on tokens."""
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
    return body | settings.request


def completion(body: object) -> Completion:
    """The completion in a response's decoded body, or the failure that it reports.

    A failure keeps usage and cost: what was generated is paid for.
    """
    if not isinstance(body, dict):
        return failed(transient(f"the server sent no JSON object: {worded(body)}"))
    numbers = mapping(body.get("usage"))
    spent = usage(numbers), cost(numbers)
    if body.get("error"):
        return failed(reported(body["error"]), *spent)
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return failed(transient("the server sent no choices"), *spent)
    choice = choices[0]
    if choice.get("error"):
        return failed(reported(choice["error"]), *spent)
    message = mapping(choice.get("message"))
    refusal = string(message.get("refusal"))
    text = _content(message.get("content"))
    return Completion(
        text=text or refusal or "",
        reasoning_text=_reasoning(message),
        finish_reason="refusal" if refusal else _finish(choice.get("finish_reason")),
        usage=spent[0],
        cost=spent[1],
        served_model=string(body.get("model")),
        provider=string(body.get("provider")),
        extra={key: body[key] for key in ("id", "system_fingerprint") if string(body.get(key))},
    )


def usage(numbers: Mapping[str, object]) -> Usage:
    """Usage of the Chat format, where completion tokens include those of the reasoning."""
    details = mapping(numbers.get("completion_tokens_details"))
    return tally(
        asked=count(numbers.get("prompt_tokens")),
        generated=count(numbers.get("completion_tokens")),
        reasoning=count(details.get("reasoning_tokens")),
    )


def tally(*, asked: int | None, generated: int | None, reasoning: int | None) -> Usage:
    """Usage as a provider reports it whose `generated` tokens include those of the reasoning."""
    visible = None
    if generated is not None and reasoning is not None:
        if reasoning > generated:
            # A server that counts them apart, against the format: the sum is anybody's guess.
            generated = None
        else:
            visible = generated - reasoning
    known = any(value is not None for value in (asked, generated, reasoning))
    return Usage(
        input=asked,
        reasoning=reasoning,
        visible=visible,
        generated=generated,
        source="reported" if known else None,
    )


def cost(numbers: Mapping[str, object]) -> float | None:
    """US dollars that the usage reports.

    Where the user's own key pays the model's provider, OpenRouter's `cost` is its fee alone and
    the provider's share stands apart: without it the cost is not known.
    """
    charged = _amount(numbers.get("cost"))
    if numbers.get("is_byok") is not True:
        return charged
    upstream = _amount(mapping(numbers.get("cost_details")).get("upstream_inference_cost"))
    return None if charged is None or upstream is None else _amount(charged + upstream)


def _amount(value: object) -> float | None:
    """`value` if it is a sum of money."""
    if not isinstance(value, int | float) or isinstance(value, bool):
        return None
    try:
        amount = float(value)
    except OverflowError:
        return None
    return amount if 0 <= amount < math.inf else None


def mapping(value: object) -> Mapping[str, object]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def string(value: object) -> str | None:
    """`value` if it is a text that is not empty."""
    return value if isinstance(value, str) and value else None


def count(value: object) -> int | None:
    """`value` if it is a number of tokens."""
    return value if type(value) is int and 0 <= value <= _MOST_TOKENS else None


def error_text(body: object) -> tuple[str, str]:
    """Code and message of an error's body, as far as it has them."""
    if not isinstance(body, dict):
        return "", worded(body) if body else ""
    error = body["error"] if isinstance(body.get("error"), dict) else body
    metadata = mapping(error.get("metadata"))
    message = " ".join(worded(part) for part in (error.get("message"), metadata.get("raw")) if part)
    words = (error.get("code"), error.get("type"), error.get("param"))
    return " ".join(worded(word) for word in words if word), message


def reported(error: object) -> Failure:
    """The failure that a body reports under a good HTTP status: its code counts as one.

    Without a code the same question may be answered yet, unless the text blames it.
    """
    code, message = error_text(error)
    shown = message or code or "the server reported an error"
    status = _inner_status(mapping(error).get("code"))
    failure = from_status(status or 400, shown, code=code, retry_after=wait_passed_on(error))
    return failure if status or failure.kind == "item" else transient(shown)


def wait_passed_on(error: object, headers: Mapping[str, object] | None = None) -> float | None:
    """Seconds to wait, by a response's headers.

    OpenRouter repeats those of the provider behind it in the body of the error.
    """
    passed_on = mapping(mapping(mapping(error).get("metadata")).get("headers"))
    return retry_after({**passed_on, **(headers or {})})


def _inner_status(code: object) -> int | None:
    """The HTTP status of an error that names one."""
    if isinstance(code, str):
        status = int(code) if len(code) == 3 and code.isdecimal() else _STATUS_OF.get(code, 0)
    else:
        status = code if type(code) is int else 0
    return status if 400 <= status < 600 else None


def _finish(reason: object) -> FinishReason | None:
    return None if reason is None else _FINISH.get(worded(reason), "other")


def _reasoning(message: Mapping[str, object]) -> str | None:
    for key in ("reasoning", "reasoning_content"):
        if text := string(message.get(key)):
            return text
    details = message.get("reasoning_details")
    if not isinstance(details, list):
        return None
    parts = [mapping(part) for part in details]
    return (
        "".join(string(part.get("text")) or string(part.get("summary")) or "" for part in parts)
        or None
    )


def _content(content: object) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(string(mapping(part).get("text")) or "" for part in content)
    return string(content) or ""
