"""The fields of an answer in one meaning, whatever a server calls, counts apart or leaves out."""

from __future__ import annotations

from typing import NamedTuple

from numbench.models.json_fields import (
    dollars_at,
    object_at,
    text_at,
    text_or_repr,
    tokens_at,
    value_at,
)
from numbench.records import FinishReason, Scalar, Usage

_TICKS_PER_DOLLAR = 10**10

FINISH_REASON = "finish_reason"
"""The field of `extra` with a reason that the records have no word for."""

_WORDS: dict[FinishReason, str] = {
    # Chat Completions, Responses, Anthropic, Google
    "stop": "stop completed end_turn stop_sequence STOP",
    "length": "length max_output_tokens max_tokens model_context_window_exceeded MAX_TOKENS",
    "refusal": "content_filter refusal SAFETY RECITATION BLOCKLIST PROHIBITED_CONTENT SPII",
}
_FINISH_REASONS = {word: reason for reason, words in _WORDS.items() for word in words.split()}


def finish_reason(reason: object, extra: dict[str, Scalar]) -> FinishReason | None:
    """Return why an answer ended in a word of the records; `extra` keeps one without equivalent.

    Such a reason is the server's, not the model's: `error`, `abort`, Google's `OTHER`.
    """
    if reason is None:
        return None
    word = text_or_repr(reason)
    if word not in _FINISH_REASONS:
        extra[FINISH_REASON] = word
    return _FINISH_REASONS.get(word, "other")


def text_fields(body: object, **paths: str) -> dict[str, Scalar]:
    """Return the texts of a body that `extra` keeps, by their names there."""
    return {name: text for name, path in paths.items() if (text := text_at(body, path))}


class UsageFields(NamedTuple):
    """The paths of the counts in a response, for `output` that includes the reasoning.

    inputs: their sum is the input; all but the first may be missing.
    """

    inputs: tuple[str, ...]
    output: str
    reasoning: str = ""
    total: str = ""


def parse_usage(body: object, fields: UsageFields) -> Usage:
    """Return the usage in a response.

    If the total is larger than input and output, the server counts the reasoning separately, as
    xAI does, or not at all, and the total is right.
    """
    counts = [tokens_at(body, path) for path in fields.inputs if value_at(body, path)]
    known = [count for count in counts if count is not None]
    is_complete = value_at(body, fields.inputs[0]) is not None and len(known) == len(counts)
    input_tokens = tokens_at(sum(known)) if is_complete else None
    output, reasoning = tokens_at(body, fields.output), tokens_at(body, fields.reasoning)
    total = tokens_at(body, fields.total)
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
    visible = None
    if is_split and generated is not None and reasoning is not None:
        visible = generated - reasoning
    return reported_usage(input_tokens, reasoning, visible, generated)


def reported_usage(
    input_tokens: int | None, reasoning: int | None, visible: int | None, generated: int | None
) -> Usage:
    """Return the usage that a server reports, without a source if it reports nothing."""
    counts = (input_tokens, reasoning, visible, generated)
    is_known = any(count is not None for count in counts)
    return Usage(
        input=input_tokens,
        reasoning=reasoning,
        visible=visible,
        generated=generated,
        source="reported" if is_known else None,
    )


def parse_cost(body: object) -> float | None:
    """Return the US dollars that the usage reports. xAI's are a number of ticks.

    If the user's own key pays the model's provider (BYOK), OpenRouter's `cost` is its fee only and
    the provider's share is a separate field: without that the cost is unknown.
    """
    usage = object_at(body, "usage")
    cost, ticks = dollars_at(usage, "cost"), dollars_at(usage, "cost_in_usd_ticks")
    if cost is None and ticks is not None:
        return ticks / _TICKS_PER_DOLLAR
    if usage.get("is_byok") is not True:
        return cost
    upstream = dollars_at(usage, "cost_details.upstream_inference_cost")
    return None if cost is None or upstream is None else dollars_at(cost + upstream)
