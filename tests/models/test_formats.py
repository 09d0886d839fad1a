"""What the wire formats read from the bodies of answers, and what failures mean: tables."""

from __future__ import annotations

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.models import Message, RequestSettings
from numbench.models.failures import failure_from_reply, failure_in_answer, retry_after
from numbench.models.formats import FORMATS
from numbench.models.json_fields import decode_json
from numbench.records import Completion
from tests.models.adapter_calls import MESSAGES
from tests.support import servers

N = None
TOO_MANY = 2**53 + 1

VLLM = (
    "This model's maximum context length is 8192 tokens. However, you requested {} output tokens "
    "and your prompt contains at least {} input tokens, for a total of at least 9 tokens. Please "
    "reduce the length of the input prompt or the number of requested output tokens."
)
SGLANG = (
    "Requested token count exceeds the model's maximum context length of 8192 tokens. You "
    "requested a total of 9 tokens: {} tokens from the input messages and {} tokens for the "
    "completion. Please reduce the number of tokens in the input messages or the completion."
)

USAGE_NAMES = {
    "chat": ("usage", "prompt_tokens", "completion_tokens", "completion_tokens_details"),
    "responses": ("usage", "input_tokens", "output_tokens", "output_tokens_details"),
    "messages": ("usage", "input_tokens", "output_tokens", "output_tokens_details"),
    "gemini": ("usageMetadata", "promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount"),
}


def parse(wire: str, **fields: Any) -> Completion:
    """Return the completion in a body with an empty answer and these fields."""
    body: dict[str, Any] = {
        "chat": {"choices": [{"message": {}, "finish_reason": "stop"}]},
        "responses": {"output": [], "status": "completed"},
        "messages": {"content": [], "stop_reason": "end_turn"},
        "gemini": {"candidates": [{"finishReason": "STOP"}]},
    }[wire]
    return FORMATS[wire].parse(body | fields)


def counts(completion: Completion) -> tuple[int | None, ...]:
    usage = completion.usage
    known = [usage.input, usage.reasoning, usage.visible, usage.generated]
    assert usage.source == ("reported" if any(count is not None for count in known) else None)
    return tuple(known)


@pytest.mark.parametrize("wire", ["chat", "responses"])
@pytest.mark.parametrize(
    ("prompt", "completion", "reasoning", "total", "expected"),
    [
        (N, N, N, N, (N, N, N, N)),
        (10, 50, N, N, (10, N, N, 50)),
        (10, 50, 42, N, (10, 42, 8, 50)),
        (N, 5, 0, N, (N, 0, 5, 5)),
        (N, 5, 9, N, (N, 9, N, N)),
        # No prompt is empty.
        (0, 5, 5, N, (N, 5, 0, 5)),
        # The reasoning is part of the completion, as the format says.
        (10, 50, 42, 60, (10, 42, 8, 50)),
        (10, 50, N, 60, (10, N, N, 50)),
        # xAI counts it separately, be it more or less than the completion.
        (232, 14, 1312, 1558, (232, 1312, 14, 1326)),
        (10120, 1499, 300, 11919, (10120, 300, 1499, 1799)),
        # Gemini's OpenAI endpoint and some gateways leave it out.
        (66, 12, N, 1102, (66, 1024, 12, 1036)),
        (66, 12, 0, 1102, (66, 1024, 12, 1036)),
        (66, N, N, 1102, (66, N, N, 1036)),
        # OpenRouter counts it with another tokenizer than the one that it bills by.
        (66, 12, 15, 78, (66, N, N, 12)),
        # The total explains neither.
        (10, 50, 42, 70, (10, 42, N, 60)),
        (10, 50, 42, 20, (10, 42, 8, 50)),
        (10, 5, 9, 12, (10, 9, N, N)),
        # Some servers write numbers otherwise.
        ("10", 50.0, "42", N, (10, 42, 8, 50)),
        # No counts.
        (True, 5.5, "9x", N, (N, N, N, N)),
        (-1, TOO_MANY, N, N, (N, N, N, N)),
        (2**53, N, N, N, (2**53, N, N, N)),
    ],
)
def test_usage_has_one_meaning_and_a_total_is_believed(
    wire: str, prompt: Any, completion: Any, reasoning: Any, total: Any, expected: Any
) -> None:
    field, first, second, details = USAGE_NAMES[wire]
    usage = {first: prompt, second: completion, "total_tokens": total}
    usage[details] = None if reasoning is None else {"reasoning_tokens": reasoning}
    assert counts(parse(wire, **{field: usage})) == expected
    assert counts(parse(wire, **{field: None}, error="with what is billed")) == (N, N, N, N)
    assert counts(parse(wire, **{field: usage}, error={"message": "oops"})) == expected


@pytest.mark.parametrize("reasoning", [N, 0, 40])
@pytest.mark.parametrize("more", [0, 40])
def test_cached_input_that_only_the_total_includes_is_no_generated_token(
    reasoning: int | None, more: int
) -> None:
    """`more`: reasoning that the total includes beside the completion."""
    if more > (reasoning or 0):
        return
    for details in ({"prompt_tokens_details": {"cached_tokens": 2000}}, {"cached_tokens": 2000}):
        usage = {"prompt_tokens": 50, "completion_tokens": 300, "total_tokens": 2350 + more}
        completion = parse("chat", usage=usage | details | {"reasoning_tokens": reasoning})
        assert (completion.usage.input, completion.usage.generated) == (2050, 300 + more)


def test_no_tokens_for_a_text_are_unknown_tokens() -> None:
    choice = {"message": {"content": "4"}, "finish_reason": "stop"}
    zeros = {"prompt_tokens": 9, "completion_tokens": 0, "total_tokens": 9}
    assert counts(parse("chat", choices=[choice], usage=zeros)) == (9, N, N, N)


@pytest.mark.parametrize(
    ("usage", "expected"),
    [
        ({}, (N, N, N, N)),
        ({"input_tokens": 10, "output_tokens": 50}, (10, N, N, 50)),
        ({"input_tokens": 10, "cache_creation_input_tokens": 4, "thinking": 42}, (14, 42, N, N)),
        ({"input_tokens": 0, "cache_read_input_tokens": 9, "output_tokens": 5}, (9, N, N, 5)),
        ({"input_tokens": 1, "output_tokens": 50, "thinking": 42}, (1, 42, 8, 50)),
        ({"cache_read_input_tokens": 9, "output_tokens": 5, "thinking": 0}, (N, 0, 5, 5)),
        ({"input_tokens": 5, "cache_read_input_tokens": -1, "output_tokens": "5x"}, (N, N, N, N)),
        ({"input_tokens": True, "output_tokens": 5.5}, (N, N, N, N)),
        ({"input_tokens": 0, "cache_read_input_tokens": 0, "output_tokens": 5}, (N, N, N, 5)),
    ],
)
def test_usage_of_claude_includes_thinking_and_caches(usage: Any, expected: Any) -> None:
    details = {"thinking_tokens": usage.pop("thinking", None)}
    reported = usage | {"output_tokens_details": details, "cache_read_input_tokens": None} | usage
    assert counts(parse("messages", usage=reported)) == expected


@pytest.mark.parametrize(
    ("prompt", "answer", "thoughts", "total", "tools", "expected"),
    [
        (N, N, N, N, N, (N, N, N, N)),
        (7, 5, 40, N, N, (7, 40, 5, 45)),
        (7, 5, N, 12, N, (7, 0, 5, 5)),
        (7, 5, N, 52, N, (7, 40, 5, 45)),
        (7, N, 40, 47, N, (7, 40, 0, 40)),
        (7, 5, N, N, N, (7, N, 5, N)),
        (1, N, N, 3, 9, (1, N, N, N)),
        (1, 5, N, 9, 2, (1, 1, 5, 6)),
        (9, 5, N, 10, N, (9, N, 5, N)),
        (True, 5.5, 2**54, N, N, (N, N, N, N)),
        (0, 5, 40, N, N, (N, 40, 5, 45)),
    ],
)
def test_usage_of_gemini_is_the_sum_of_answer_and_reasoning(
    prompt: Any, answer: Any, thoughts: Any, total: Any, tools: Any, expected: Any
) -> None:
    names = ("promptTokenCount", "candidatesTokenCount", "thoughtsTokenCount", "totalTokenCount")
    usage = dict(zip(names, (prompt, answer, thoughts, total), strict=True))
    usage["toolUsePromptTokenCount"] = tools
    assert counts(parse("gemini", usageMetadata=usage)) == expected


@pytest.mark.parametrize("more", ["", ', "is_byok": true'])
@pytest.mark.parametrize(
    "cost", ["true", "-0.5", "NaN", "Infinity", '"1"', f"1{'0' * 400}", "null"]
)
def test_a_malformed_cost_is_unknown(cost: str, more: str) -> None:
    details = '"cost_details": {"upstream_inference_cost": %s}'
    pairs = [(cost, "0.5"), ("0.5", cost)] if more else [(cost, "0.5")]
    for charged, upstream in pairs:
        usage = decode_json(f'{{"cost": {charged}, {details % upstream}{more}}}'.encode())
        completion = parse("chat", usage=usage)
        assert (completion.error, completion.cost) == (None, None)
    fee = {"cost": 0.01, "is_byok": True, "cost_details": {"upstream_inference_cost": 0.2}}
    assert parse("chat", usage=fee).cost == pytest.approx(0.21)


def ended(wire: str, word: Any, text: str = "4") -> Completion:
    """Return the completion of an answer with a text and this finish reason."""
    reasons = ("max_output_tokens", "content_filter", "a new one")
    incomplete = {"status": "incomplete", "incomplete_details": {"reason": word}}
    status = incomplete if word in reasons else {"status": word}
    message = {"type": "message", "content": [{"text": text}]}
    fields: dict[str, dict[str, Any]] = {
        "chat": {"choices": [{"finish_reason": word, "message": {"content": text}}]},
        "responses": {"output": [message], **status},
        "messages": {"content": [{"type": "text", "text": text}], "stop_reason": word},
        "gemini": {"candidates": [{"content": {"parts": [{"text": text}]}, "finishReason": word}]},
    }
    return FORMATS[wire].parse(fields[wire])


@pytest.mark.parametrize(
    ("finish", "wire", "words"),
    [
        ("stop", "chat", "stop eos eos_token COMPLETE"),
        ("stop", "responses", "completed"),
        ("stop", "messages", "end_turn stop_sequence"),
        ("stop", "gemini", "STOP"),
        ("length", "chat", "length model_length model_context_window_exceeded repetition"),
        ("length", "responses", "max_output_tokens"),
        ("length", "messages", "max_tokens model_context_window_exceeded"),
        ("length", "gemini", "MAX_TOKENS CONTINUATION"),
        ("refusal", "chat", "content_filter sensitive"),
        ("refusal", "responses", "content_filter"),
        ("refusal", "messages", "refusal"),
        ("refusal", "gemini", "SAFETY RECITATION ESCALATION LANGUAGE MODEL_ARMOR"),
        ("other", "chat", "tool_calls function_call"),
        ("other", "messages", "tool_use pause_turn"),
        ("other", "gemini", "MALFORMED_FUNCTION_CALL"),
    ],
)
def test_a_good_ending_has_one_of_four_reasons(finish: str, wire: str, words: str) -> None:
    for word in words.split():
        completion = ended(wire, word)
        assert (completion.finish_reason, completion.text, completion.error) == (finish, "4", N)
        raw = word if finish == "other" else N
        assert completion.extra.get("finish_reason") == raw


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize(
    "word",
    [
        *("error", "abort", "insufficient_system_resource", "network_error", "OTHER"),
        *("MALFORMED_RESPONSE", "failed", "in_progress", "", "null", "a new one", False, 0, {}),
    ],
)
def test_an_answer_without_a_known_good_ending_is_not_the_models(wire: str, word: Any) -> None:
    error = ended(wire, word).error
    assert error is not None and str(word) in error.message
    assert (error.kind, error.possibly_billed, error.status) == ("transient", True, N)


def test_a_disabled_account_ends_the_run() -> None:
    error = ended("gemini", "PUP_LIMITED_DISABLED").error
    assert error is not None and error.kind == "run"


@pytest.mark.parametrize("wire", FORMATS)
def test_a_whole_reply_without_a_finish_reason_needs_a_text(wire: str) -> None:
    completion = ended(wire, N)
    assert (completion.text, completion.finish_reason, completion.error) == ("4", N, N)
    error = ended(wire, N, text="").error
    assert error is not None and error.message == "the server sent no text and no finish reason"


@pytest.mark.parametrize(
    ("native", "finish"), [("MAX_TOKENS", "length"), ("insufficient_system_resource", N)]
)
def test_the_finish_reason_of_an_upstream_server_is_believed(
    native: str, finish: str | None
) -> None:
    for field in (
        {"native_finish_reason": native},
        {"provider_specific_fields": {"native_finish_reason": native}},
    ):
        choice = {"finish_reason": "stop", "message": {"content": "4"}} | field
        completion = parse("chat", choices=[choice])
        assert (completion.finish_reason, completion.error is N) == (finish, finish is not N)


@pytest.mark.parametrize(
    ("message", "details", "is_answer"),
    [
        ({"content": ""}, {"completion_tokens": 4}, True),
        ({"content": ""}, {"completion_tokens": 7}, False),
        ({"content": ""}, {"completion_tokens": 7, "reasoning_tokens": 7}, True),
        ({"content": ""}, {"completion_tokens": 90, "reasoning_tokens": 7}, False),
        ({"content": "", "reasoning_content": "so"}, {"completion_tokens": 7}, True),
        ({"content": None, "refusal": "no"}, {"completion_tokens": 7}, True),
    ],
)
def test_an_empty_text_of_visible_tokens_is_no_answer(
    message: dict[str, Any], details: dict[str, int], is_answer: bool
) -> None:
    choice = {"finish_reason": "stop", "message": message}
    completion = parse("chat", choices=[choice], usage={"prompt_tokens": 9} | details)
    assert (completion.error is None) == is_answer
    assert completion.usage.generated == details["completion_tokens"]
    truncated = parse("chat", choices=[choice | {"finish_reason": "length"}], usage=details)
    assert truncated.error is None


@pytest.mark.parametrize(
    ("usage", "limit", "finish"),
    [
        ({"output_tokens": 16}, 16, "length"),
        ({"output_tokens": 15}, 16, "stop"),
        ({"output_tokens": 16}, N, "stop"),
        # Where only visible tokens count.
        ({"output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 34}}, 16, "length"),
        ({"output_tokens": 50, "output_tokens_details": {"reasoning_tokens": 40}}, 16, "stop"),
    ],
)
def test_an_answer_that_is_complete_at_its_limit_is_truncated(
    usage: dict[str, Any], limit: int | None, finish: str
) -> None:
    body = {"output": [{"type": "message", "content": [{"text": "4"}]}], "status": "completed"}
    completion = FORMATS["responses"].parse(body | {"usage": usage}, limit)
    assert completion.finish_reason == finish
    repeated = body | {"usage": usage, "max_output_tokens": limit}
    assert FORMATS["responses"].parse(repeated).finish_reason == finish


def item(kind: str, **fields: Any) -> dict[str, Any]:
    return {"type": kind, **fields}


@pytest.mark.parametrize(
    ("wire", "fields", "text", "reasoning"),
    [
        *(
            ("chat", {"choices": [{"message": message}]}, text, reasoning)
            for message, text, reasoning in (
                ({"content": "4", "reasoning_content": "so"}, "4", "so"),
                (
                    {"content": "4", "reasoning_details": [{"text": "s"}, {"summary": "o"}]},
                    "4",
                    "so",
                ),
                ({"content": [{"thinking": [{"text": "so"}]}, {"text": "4"}]}, "4", "so"),
                ({"content": [{"text": "4"}, {"text": "2"}, None, 3]}, "42", None),
                ({"refusal": "I will not"}, "I will not", None),
            )
        ),
        *(
            ("responses", {"output": output}, text, reasoning)
            for output, text, reasoning in (
                ([N], "", N),
                ([3, {}, item("message"), item("message", content=["x", N])], "", N),
                ([item("message", content=[{"text": "4"}, {"text": "2"}])], "42", N),
                ([item("reasoning", summary=[{"text": "a"}, {"text": "b"}])], "", "a\n\nb"),
                ([item("reasoning", summary=[], content=[{"text": "so"}])], "", "so"),
            )
        ),
        (
            "messages",
            {
                "content": [
                    item("thinking", thinking="one"),
                    item("redacted_thinking", data="c2VjcmV0"),
                    item("thinking", thinking=""),
                    item("thinking", thinking="two"),
                    item("text", text="4"),
                    item("text", text="2"),
                ]
            },
            "42",
            "one\n\ntwo",
        ),
        (
            "gemini",
            {
                "candidates": [
                    {"content": {"parts": [{"text": "so", "thought": True}, {"text": "4"}]}}
                ]
            },
            "4",
            "so",
        ),
    ],
)
def test_the_parts_of_an_answer_are_joined(
    wire: str, fields: dict[str, Any], text: str, reasoning: str | None
) -> None:
    completion = parse(wire, **fields)
    assert (completion.text, completion.reasoning_text) == (text, reasoning)
    assert completion.error is None


def test_what_is_known_of_an_answer_of_claude_is_kept() -> None:
    completion = parse(
        "messages",
        content=[item("redacted_thinking")],
        id="msg-1",
        model="served",
        stop_details={"category": "frontier_llm"},
    )
    assert (completion.served_model, completion.provider) == ("served", "anthropic")
    assert completion.extra == {
        "id": "msg-1",
        "refusal_category": "frontier_llm",
        "redacted_thinking": 1,
    }


@pytest.mark.parametrize(
    ("wire", "body", "message"),
    [
        *((wire, 3, "no JSON object") for wire in FORMATS),
        ("chat", {}, "no choices"),
        ("chat", {"choices": [N]}, "no choices"),
        ("responses", {"output": 3}, "no output"),
        ("messages", {"content": "4"}, "no content"),
        ("gemini", {}, "no candidates"),
    ],
)
def test_a_body_without_an_answer_may_be_billed(wire: str, body: Any, message: str) -> None:
    error = FORMATS[wire].parse(body).error
    assert error is not None and message in error.message
    assert (error.kind, error.possibly_billed) == ("transient", True)


@pytest.mark.parametrize(
    ("code", "message", "kind", "status"),
    [
        (401, "no key", "run", 401),
        (403, "your input was flagged", "item", 403),
        ("404", "no such model", "run", 404),
        ("rate_limit_exceeded", "slow", "rate_limit", 429),
        ("invalid_prompt", "not allowed", "item", 400),
        ("bio_policy", "not allowed", "item", 400),
        ("data_residency_mismatch", "elsewhere", "run", 400),
        (500, "oops", "transient", 500),
        (529, "overloaded", "transient", 529),
        (422, "context_length_exceeded", "item", 422),
        (N, "oops", "transient", N),
        (N, "insufficient balance", "run", 400),
        ("server_error", "oops", "transient", N),
        (99999, "oops", "transient", N),
        (True, "oops", "transient", N),
    ],
)
def test_the_code_of_an_error_in_a_successful_response_counts_as_a_status(
    code: object, message: str, kind: str, status: int | None
) -> None:
    fields = {"error": {"message": message, "code": code}}
    for error in (
        parse("chat", **fields).error,
        parse("chat", choices=[fields | {"message": {}}]).error,
        parse("responses", **fields).error,
        parse("gemini", **fields).error,
        FORMATS["chat"].parse([fields]).error,
        FORMATS["chat"].parse({"object": "error"} | fields["error"]).error,
    ):
        assert error is not None
        assert (error.kind, error.status, error.message) == (kind, status, message)


@pytest.mark.parametrize(
    ("body", "message"),
    [
        ({"error": {"message": "why"}}, "why"),
        ({"error": "why", "code": "exhausted"}, "why"),
        ({"error": "invalid", "message": "why"}, "invalid why"),
        ({"error": ["why", "else"]}, "why else"),
        ({"error": {"error": {"message": "why"}}}, "why"),
        ([{"error": {"code": 400, "message": "why"}}], "why"),
        ({"object": "error", "message": "why", "type": "BadRequestError"}, "why"),
        ({"detail": "why"}, "why"),
        ({"detail": {"error": {"message": "why"}}}, "why"),
        (
            {"detail": [{"type": "missing", "loc": ["body", "model"], "msg": "why"}]},
            "body.model: why",
        ),
        ({"success": False, "errors": [{"code": 10000, "message": "why"}]}, "why"),
        ({"base_resp": {"status_code": 1004, "status_msg": "why"}}, "why"),
        ({"error_code": 17, "error_msg": "why"}, "why"),
        ({"Response": {"Error": {"Code": "AuthFailure", "Message": "why"}}}, "why"),
        ({"ResponseMetadata": {"Error": {"Code": "x", "Message": "why"}}}, "why"),
        ({"__type": "ValidationException", "message": "why"}, "why"),
        ({"fault": {"faultstring": "why", "detail": {"errorcode": "x"}}}, "why"),
        ({"title": "Bad", "detail": "why", "status": 400}, "Bad why"),
        ({"error": {"message": "upstream", "metadata": {"raw": "why"}}}, "upstream why"),
        ({"unknown": {"shape": 1}}, '{"unknown":{"shape":1}}'),
        ("why", "why"),
        ([], "HTTP 400"),
    ],
)
def test_a_message_is_shown_whatever_the_shape_of_an_error(body: Any, message: str) -> None:
    failure = failure_from_reply(400, {}, json.dumps(body).encode())
    assert (failure.kind, failure.message) == ("run", message)
    if isinstance(body, dict) and "unknown" not in body:
        # In a stream and in a successful response too.
        assert parse("chat", choices=[], **body).error.message == message  # type: ignore[union-attr]


@pytest.mark.parametrize(
    ("page", "name"),
    [
        (b"<!doctype html><html><head><title>Sign in</title></head></html>", "Sign in"),
        (b"\xef\xbb\xbf\n<!-- x --><HTML><body><h1>404  Not Found</h1></body>", "404 Not Found"),
        (b'<?xml version="1.0"?>\n<html><title>\nOops</title>', "Oops"),
    ],
)
def test_a_web_page_says_so(page: bytes, name: str) -> None:
    failure = failure_from_reply(404, {}, page)
    assert failure.message == f"the server sent a web page ({name!r}); check --base-url"
    assert failure.kind == "run"
    temporary = failure_from_reply(503, {}, page)
    assert (temporary.kind, temporary.message) == (
        "transient",
        f"the server sent a web page ({name!r})",
    )


def rejected(
    status: int, message: str, headers: dict[str, str] | None = None, **fields: Any
) -> Any:
    """Return the failure of a reply with an error object."""
    body = json.dumps({"error": {"message": message, **fields}}).encode()
    return failure_from_reply(status, headers or {}, body)


@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (429, "slow down", "rate_limit"),
        (429, "You exceeded your current quota, check your billing", "rate_limit"),
        *((status, "oops", "transient") for status in (408, 409, 423, 424, 425, 499)),
        *((status, "oops", "transient") for status in (500, 503, 529, 599, 99)),
        *((status, "no", "run") for status in (401, 402, 403, 404)),
        (400, "unsupported parameter: temperature", "run"),
        (400, "system prompt is not supported by this model", "run"),
        (400, "safety_identifier is no known parameter", "run"),
        (400, "max_tokens is too large: 65536. The maximum context length is 8 tokens", "run"),
        (400, "max_tokens: 65536 > 8192, the maximum number of output tokens", "run"),
        (400, "`max_tokens` must be greater than `thinking.budget_tokens`", "run"),
        (400, "Your credit balance is too low to access the API", "run"),
        # No credit in other words, whatever the status.
        (429, "Your team has either used all available credits or reached its limit", "run"),
        (429, "Your team has reached its monthly spending limit", "run"),
        (429, "Insufficient balance or no resource package. Please recharge.", "run"),
        (500, "insufficient account balance", "run"),
        (400, "Budget has been exceeded! Current cost: 2.0, Max budget: 1.0", "run"),
        (403, "用户额度不足", "run"),
        # vLLM, SGLang and others: is it the prompt, or the limit of every request?
        (400, VLLM.format(32768, 61), "run"),
        (400, VLLM.format(32512, 257), "run"),
        (400, VLLM.format(4096, 12289), "item"),
        (400, VLLM.format(0, 8193), "item"),
        (500, VLLM.format(4096, 12289), "item"),
        (400, SGLANG.format(61, 200000), "run"),
        (500, "Internal server error: " + SGLANG.format(61, 200000), "run"),
        (400, SGLANG.format(8100, 2000), "item"),
        (400, "The input (9 tokens) is longer than the model's context length (8 tokens).", "item"),
        (
            400,
            "You passed 9 input tokens and requested 2 output tokens. However, the model's "
            "context length is only 8 tokens",
            "item",
        ),
        (400, "max_tokens=9cannot be greater than max_model_len=8. Please request fewer", "run"),
        (400, "max_tokens must be at least 1, got -46771", "item"),
        (400, "However, you requested 9 tokens (1 in the messages, 8 in the completion)", "run"),
        (400, "Range of max_tokens should be [1, 8192]", "run"),
        (400, "Range of input length should be [1, 8192]", "item"),
        (400, "request (9 tokens) exceeds the available context size (8 tokens)", "item"),
        (400, "This model's maximum prompt length is 8 but the request contains 9 tokens", "item"),
        (400, "Please reduce the length of the messages or completion", "item"),
        (403, "Content violates usage guidelines. Failed check: SAFETY_CHECK_TYPE_BIO", "item"),
        (504, "the request took too long: context deadline exceeded", "transient"),
        (400, '"thinking.type.disabled" is not supported for this model', "run"),
        (400, "Invalid prompt: it was flagged", "item"),
        (400, "prompt is too long: 9 tokens > 8 maximum", "item"),
        (400, "Input tokens exceed the configured limit of 272000 tokens", "item"),
        (400, "The input token count (9) exceeds the maximum number of tokens allowed", "item"),
        (400, "input length and `max_tokens` exceed context limit: 9 + 8 > 10", "item"),
        (400, "Output blocked by content filtering policy", "item"),
        (400, "rejected by the safety system", "item"),
        (400, "maximum context length is 8 tokens", "item"),
        (400, "content_filter", "item"),
        (403, "your input was flagged by moderation", "item"),
        (413, "too large", "item"),
    ],
)
def test_each_status_and_wording_has_its_kind_of_failure(
    status: int, message: str, kind: str
) -> None:
    failure = rejected(status, message)
    assert (failure.kind, failure.message) == (kind, message)
    is_processed = status not in (409, 423, 425, 503, 529)
    assert failure.possibly_billed == (kind == "transient" and is_processed)


@pytest.mark.parametrize(
    ("code", "headers", "kind"),
    [
        ("insufficient_quota", {}, "run"),
        ("insufficient_quota", {"Retry-After": "20"}, "rate_limit"),
        ("billing_not_active", {}, "run"),
        ("credit_balance_exhausted", {}, "run"),
        ("project_spend_limit_exceeded", {}, "run"),
        ("organization_usage_limit_exceeded", {}, "run"),
        ("linked_organization_billing_unavailable", {}, "run"),
        ("1113", {}, "run"),
        ("enforced_spend_limit_reached", {}, "run"),
        ("enforced_spend_limit_reached", {"retry-after": "3"}, "rate_limit"),
        ("ramp_limit_exceeded", {}, "rate_limit"),
        ("rate_limit_exceeded", {}, "rate_limit"),
        (N, {}, "rate_limit"),
    ],
)
def test_a_spent_account_is_known_by_its_code(
    code: str | None, headers: dict[str, str], kind: str
) -> None:
    message = "Rate limit reached. Upgrade at https://console.groq.com/settings/billing"
    for fields in ({"code": code}, {"details": {"error_code": code}}):
        failure = rejected(429, message, headers, type="t", **fields)
        assert (failure.kind, failure.message) == (kind, message)


@pytest.mark.parametrize(
    ("quotas", "delay", "kind"),
    [
        (("TokensPerMinute",), "26s", "rate_limit"),
        (("TokensPerMinute",), N, "rate_limit"),
        (("RequestsPerDay",), "26s", "run"),
        (("TokensPerMinute", "RequestsPerDay"), "26s", "run"),
        ((), N, "rate_limit"),
    ],
)
def test_quotas_of_google_are_told_apart_by_their_period(
    quotas: tuple[str, ...], delay: str | None, kind: str
) -> None:
    violations = [{"quotaId": f"Generate{quota}PerProjectPerModel"} for quota in quotas]
    details: list[dict[str, Any]] = [{"violations": violations}]
    details += [{"retryDelay": delay}] if delay else []
    failure = rejected(429, "You exceeded your current quota", details=details)
    assert (failure.kind, failure.retry_after) == (kind, 26.0 if delay else None)


@pytest.mark.parametrize(
    ("status", "error", "kind"),
    [
        (400, "invalid_request_error", "run"),
        (401, "authentication_error", "run"),
        (402, "billing_error", "run"),
        (404, "not_found_error", "run"),
        (409, "conflict_error", "transient"),
        (413, "request_too_large", "item"),
        (429, "rate_limit_error", "rate_limit"),
        (500, "api_error", "transient"),
        (504, "timeout_error", "transient"),
        (529, "overloaded_error", "transient"),
    ],
)
def test_an_error_of_claude_is_the_same_in_a_response_a_stream_and_a_job(
    status: int, error: str, kind: str
) -> None:
    body = servers.anthropic_error_body(error, "why")
    response = failure_from_reply(status, {}, json.dumps(body).encode())
    streamed = FORMATS["messages"].decode(servers.named_event(body))
    for failure in (response, FORMATS["messages"].parse(streamed).error):
        assert failure is not None
        assert (failure.kind, failure.status, failure.message) == (kind, status, "why")
        # Nothing was generated; only a failure within the server may have been billed.
        assert failure.possibly_billed == (status in (500, 504))
    assert failure_in_answer({"type": error, "message": "why"}).kind == kind


RESET, LEFT = "x-ratelimit-reset-{}".format, "x-ratelimit-remaining-{}".format


@pytest.mark.parametrize(
    ("headers", "seconds"),
    [
        ({}, N),
        ({"Retry-After": "7"}, 7.0),
        ({"retry-after": " 2.5 "}, 2.5),
        ({"retry-after": "0"}, 0.0),
        ({"retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "7", "retry-after-ms": "1500", RESET("requests"): "9s"}, 7.0),
        ({"retry-after": "soon", "retry-after-ms": "1500"}, 1.5),
        ({"retry-after": "-1", RESET("tokens"): "20ms"}, 0.02),
        ({RESET("requests"): "6m0s"}, 360.0),
        ({RESET("tokens"): "1h2m"}, 3720.0),
        ({RESET("tokens"): "2m59.56s"}, 179.56),
        ({RESET("tokens"): "12"}, 12.0),
        # Limits that are or may be exhausted count; of several, the longest.
        (
            {
                LEFT("requests"): "0",
                RESET("requests"): "3s",
                LEFT("tokens"): "5",
                RESET("tokens"): "9s",
            },
            3,
        ),
        (
            {
                LEFT("requests"): "0",
                RESET("requests"): "3s",
                LEFT("tokens"): "0",
                RESET("tokens"): "9s",
            },
            9,
        ),
        ({RESET("requests"): "3s", RESET("tokens"): "60s"}, 60.0),
        ({LEFT("requests"): "4", RESET("requests"): "3s"}, N),
    ],
)
def test_the_waiting_time_of_headers(headers: dict[str, str], seconds: float | None) -> None:
    assert retry_after(headers) == (seconds if not seconds else pytest.approx(seconds))


def test_points_in_time_become_waiting_times() -> None:
    then = datetime.now(UTC) + timedelta(seconds=10_000)
    milliseconds = str(int(1000 * (time.time() + 10_000)))
    for moment in (
        {"retry-after": format_datetime(then, usegmt=True)},
        {"anthropic-ratelimit-requests-reset": then.isoformat()},
        {"anthropic-ratelimit-input-tokens-reset": f"{then:%Y-%m-%dT%H:%M:%SZ}"},
        {"X-RateLimit-Reset": milliseconds},
        {"X-RateLimit-Reset": milliseconds, "X-RateLimit-Remaining": "0"},
    ):
        assert retry_after(moment) == pytest.approx(10_000, abs=120), moment
        # OpenRouter repeats the headers of the provider behind it.
        upstream = rejected(429, "slow", metadata={"headers": moment})
        assert upstream.retry_after == pytest.approx(10_000, abs=120)
    assert retry_after({"X-RateLimit-Reset": milliseconds, "X-RateLimit-Remaining": "9"}) is None


@pytest.mark.parametrize(
    "value",
    [
        *("", "soon", "-3", "nan", "inf", "1e999", "-inf", "1s-", "s", "1 hour", "٣s"),
        "Mon, 01 Jan 2001 00:00:00 GMT",
        "Mon, 01 Jan 99999 00:00:00 GMT",
        "Mon, 99 Jan 2001 00:00:00 +9999",
        "0001-01-01T00:00:00+23:00",
        "9" * 400 + "s",
    ],
)
def test_a_malformed_header_counts_as_absent(value: str) -> None:
    names = ("retry-after", "retry-after-ms", "x-ratelimit-reset", RESET("requests"))
    for name in (*names, "anthropic-ratelimit-tokens-reset"):
        assert retry_after({name: value}) is None


@given(
    st.dictionaries(
        st.sampled_from(["retry-after", "x-ratelimit-reset", "retry-after-ms"]), st.text()
    )
)
def test_no_header_raises(headers: dict[str, str]) -> None:
    wait = retry_after(headers)
    assert wait is None or 0 <= wait < float("inf")


def test_claude_gets_examples_as_turns_and_system_prompts_joined() -> None:
    turns = [Message("user", "1"), Message("assistant", "2"), Message("user", "3")]
    messages = (Message("system", "a"), *turns[:2], Message("system", "b"), turns[2])
    build = FORMATS["messages"].body
    body = build("c", messages, RequestSettings(max_tokens=7), "max_tokens")
    assert (body["system"], body["max_tokens"]) == ("a\n\nb", 7)
    assert body["messages"] == [turn._asdict() for turn in turns]
    assert "system" not in build("c", turns, RequestSettings(), "max_tokens")


@pytest.mark.parametrize(
    ("settings", "version"),
    [
        (RequestSettings(), "2026-10-21"),
        (RequestSettings(temperature=0.5), "2023-06-01"),
        (RequestSettings(params={"top_p": 0.9}), "2023-06-01"),
        (RequestSettings(request={"top_k": 5}), "2023-06-01"),
        (RequestSettings(params={"metadata": {"user_id": "a"}}), "2026-10-21"),
    ],
)
def test_a_request_with_a_parameter_of_sampling_names_the_last_version_that_has_them(
    settings: RequestSettings, version: str
) -> None:
    body = FORMATS["messages"].body("c", MESSAGES, settings, "max_tokens")
    assert FORMATS["messages"].headers("k", body) == {
        "x-api-key": "k",
        "anthropic-version": version,
    }
