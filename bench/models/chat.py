"""The Chat Completions format: the request's body, and the Completion behind a response's."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

from bench.models.base import Message, Settings, answer_schema
from bench.models.failures import failed, from_status, transient
from bench.records import Completion, Failure, FinishReason, Usage

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
    """The completion in a response's decoded body, or the failure that it reports."""
    if not isinstance(body, dict):
        return failed(transient(f"the server sent no JSON object: {body!r}"))
    if body.get("error"):
        return failed(reported(body["error"]))
    choices = body.get("choices")
    if not isinstance(choices, list) or not choices or not isinstance(choices[0], dict):
        return failed(transient("the server sent no choices"))
    choice = choices[0]
    if choice.get("error"):
        return failed(reported(choice["error"]))
    message = mapping(choice.get("message"))
    refusal = string(message.get("refusal"))
    text = _content(message.get("content"))
    numbers = mapping(body.get("usage"))
    return Completion(
        text=text or refusal or "",
        reasoning_text=_reasoning(message),
        finish_reason="refusal" if refusal else _finish(choice.get("finish_reason")),
        usage=usage(numbers),
        cost=cost(numbers),
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
    return None if charged is None or upstream is None else charged + upstream


def _amount(value: object) -> float | None:
    return float(value) if isinstance(value, int | float) else None


def mapping(value: object) -> Mapping[str, object]:
    """`value` if it is a JSON object, else an empty one."""
    return value if isinstance(value, dict) else {}


def string(value: object) -> str | None:
    """`value` if it is a text that is not empty."""
    return value if isinstance(value, str) and value else None


def count(value: object) -> int | None:
    """`value` if it is a number of tokens."""
    return value if type(value) is int and value >= 0 else None


def error_text(body: object) -> tuple[str, str]:
    """Code and message of an error's body, as far as it has them."""
    if not isinstance(body, dict):
        return "", str(body or "")
    error = body["error"] if isinstance(body.get("error"), dict) else body
    metadata = mapping(error.get("metadata"))
    message = " ".join(str(part) for part in (error.get("message"), metadata.get("raw")) if part)
    words = (error.get("code"), error.get("type"), error.get("param"))
    return " ".join(str(word) for word in words if word), message


def reported(error: object) -> Failure:
    """The failure that a body reports under a good HTTP status."""
    code, message = error_text(error)
    shown = message or code or "the server reported an error"
    failure = from_status(400, shown, code=code)
    if failure.kind == "item":
        return failure
    if mapping(error).get("code") in (429, "429", "rate_limit_exceeded"):
        return Failure(kind="rate_limit", message=failure.message, status=429)
    return transient(shown)


def _finish(reason: object) -> FinishReason | None:
    return None if reason is None else _FINISH.get(str(reason), "other")


def _reasoning(message: Mapping[str, object]) -> str | None:
    for key in ("reasoning", "reasoning_content"):
        if text := string(message.get(key)):
            return text
    details = message.get("reasoning_details")
    if not isinstance(details, list):
        return None
    parts = [mapping(part) for part in details]
    return "".join(str(part.get("text") or part.get("summary") or "") for part in parts) or None


def _content(content: object) -> str:
    """The text of a message, which some servers send in parts."""
    if isinstance(content, list):
        return "".join(string(mapping(part).get("text")) or "" for part in content)
    return string(content) or ""
