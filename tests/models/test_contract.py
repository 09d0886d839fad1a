"""What each wire format makes of replies: the same record whole, streamed and from a batch job."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator, Mapping
from types import MappingProxyType
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from numbench.models import Server, open_batch, open_model
from numbench.models.base import BatchRequest
from numbench.records import Completion
from tests.models.adapter_calls import KEY, MESSAGES
from tests.models.batch_servers import AnthropicJobs, GeminiJobs, OpenAIJobs, json_line, submitted
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, serve

CHAT, RESPONSES = "openai/any", "openai/any responses"
GEMINI, ANTHROPIC = "gemini/any", "anthropic/any"
EVERY = (CHAT, RESPONSES, GEMINI, ANTHROPIC)
TORN = b"torn"
TRUNCATED = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
HTML = b"<html><head><title>502 Bad Gateway</title></head></html>"


class Case(NamedTuple):
    """A reply and the record of it.

    models: routes, with the API format of OpenAI's protocol if it is Responses. body: of the reply:
    bytes, or an object, which streams send in pieces. expected: fields of the completion, of its
    usage as a tuple (input, reasoning, visible, generated), and of its failure. modes: the ways
    in which such a reply can arrive.
    """

    name: str
    models: tuple[str, ...]
    body: Any
    expected: dict[str, Any]
    status: int = 200
    headers: Mapping[str, str] = MappingProxyType({})
    modes: tuple[str, ...] = ("whole", "streamed", "batched")


def answer(reply: Reply) -> Any:
    """Return the body of a good reply."""
    assert isinstance(reply, web.Response) and isinstance(reply.body, bytes)
    return json.loads(reply.body)


def chat_usage(
    prompt: int, completion: int, reasoning: int | None, total: int | None, **more: Any
) -> dict[str, Any]:
    details = {} if reasoning is None else {"reasoning_tokens": reasoning}
    usage = {"prompt_tokens": prompt, "completion_tokens": completion}
    usage |= {"completion_tokens_details": details} if details else {}
    return usage | ({} if total is None else {"total_tokens": total}) | more


def answers() -> Iterator[Case]:
    """Yield answers and the usage in every provider's form."""
    plain = {"finish_reason": "stop", "error": None}
    usages: list[tuple[str, dict[str, Any], tuple[int | None, ...], float | None]] = [
        ("xai", chat_usage(7, 14, 90, 111, cost_in_usd_ticks=5 * 10**9), (7, 90, 14, 104), 0.5),
        ("byok", chat_usage(1, 2, None, 3, cost=0.1, is_byok=True), (1, None, None, 2), None),
    ]
    for name, usage, counts, cost in usages:
        yield Case(
            f"chat usage: {name}",
            (CHAT,),
            answer(servers.chat("4", usage=usage)),
            {**plain, "text": "4", "usage": counts, "cost": cost},
        )
    responses_usage = {"input_tokens": 9, "output_tokens": 30, "total_tokens": 39}
    responses_usage |= {"output_tokens_details": {"reasoning_tokens": 20}}
    yield Case(
        "responses with a summary",
        (RESPONSES,),
        answer(servers.responses("4", usage=responses_usage, thoughts=["two", "and two"])),
        {**plain, "text": "4", "reasoning_text": "two\n\nand two", "usage": (9, 20, 10, 30)},
    )
    for name, counts, usage in (
        ("thoughts", (7, 40, 5, 45), {"thoughtsTokenCount": 40}),
        ("thinking off", (7, 0, 5, 5), {"totalTokenCount": 12}),
        ("only a total", (7, 40, 5, 45), {"totalTokenCount": 52}),
    ):
        usage |= {"promptTokenCount": 7, "candidatesTokenCount": 5}
        yield Case(
            f"gemini usage: {name}",
            (GEMINI,),
            answer(servers.gemini("4", usage=usage, thought="hm")),
            {**plain, "text": "4", "reasoning_text": "hm", "usage": counts},
        )
    claude = {"input_tokens": 5, "cache_read_input_tokens": 2, "output_tokens": 45}
    claude |= {"output_tokens_details": {"thinking_tokens": 40}}
    yield Case(
        "claude with a cache",
        (ANTHROPIC,),
        answer(servers.anthropic("4", usage=claude, thought="hm")),
        {**plain, "text": "4", "reasoning_text": "hm", "usage": (7, 40, 5, 45)},
    )
    nothing = (None, None, None, None)
    for model, reply in (
        (CHAT, servers.chat("")),
        (RESPONSES, servers.responses("")),
        (GEMINI, servers.gemini("")),
        (ANTHROPIC, servers.anthropic("")),
    ):
        expected = {**plain, "text": "", "usage": nothing}
        yield Case("an empty answer", (model,), answer(reply), expected)
    yield Case(
        "thinking in the text, which is stored as it came",
        (CHAT,),
        answer(servers.chat("<think>two and two</think>4")),
        {**plain, "text": "<think>two and two</think>4", "reasoning_text": None},
    )
    yield Case(
        "tool calls only",
        (CHAT,),
        answer(
            servers.chat(finish="tool_calls", message={"content": None, "tool_calls": [{"id": 1}]})
        ),
        {"text": "", "finish_reason": "other", "error": None},
    )


def endings() -> Iterator[Case]:
    """Yield answers that end otherwise than by the model's own decision."""
    for model, reply, reason in (
        (CHAT, servers.chat("4", finish="length"), "length"),
        (RESPONSES, servers.responses("4", **TRUNCATED), "length"),
        (GEMINI, servers.gemini("4", finish="MAX_TOKENS"), "length"),
        (ANTHROPIC, servers.anthropic("4", stop="refusal"), "refusal"),
    ):
        expected = {"text": "4", "finish_reason": reason, "error": None}
        yield Case(reason, (model,), answer(reply), expected)
    for model, reply, reason in (
        (CHAT, servers.chat("4", finish="insufficient_system_resource"), "insufficient"),
        (RESPONSES, servers.responses("4", status="failed"), "failed"),
        (GEMINI, servers.gemini("4", finish="OTHER"), "OTHER"),
        (ANTHROPIC, servers.anthropic("4", stop="something_new"), "something_new"),
    ):
        expected = {"text": "", "kind": "transient", "possibly_billed": True, "message": reason}
        yield Case(f"ended by {reason}", (model,), answer(reply), expected)
    yield Case(
        "a refusal",
        (CHAT,),
        answer(servers.chat("", message={"content": None, "refusal": "I will not"})),
        {"text": "I will not", "finish_reason": "refusal", "error": None},
    )
    yield Case(
        "a blocked prompt",
        (GEMINI,),
        {"promptFeedback": {"blockReason": "SAFETY"}, "usageMetadata": {"promptTokenCount": 3}},
        {"finish_reason": "refusal", "kind": "item", "usage": (3, None, None, None)},
        modes=("whole", "batched"),
    )


def failures() -> Iterator[Case]:
    """Yield failures in the wording of the providers."""
    limited = {"kind": "rate_limit", "possibly_billed": False, "status": 429}
    spent = {"kind": "run", "possibly_billed": False}
    tpm = (
        "Rate limit reached for gpt-5 in organization org-1 on tokens per min (TPM): Limit 30000, "
        "Used 29500, Requested 900. Please try again in 780ms."
    )
    quota = "You exceeded your current quota, please check your plan and billing details."

    def openai_error(message: str, **more: Any) -> dict[str, Any]:
        return {"error": {"message": message, "type": "t", "param": None} | more}

    two = (CHAT, RESPONSES)
    live = ("whole", "streamed")
    per_minute = {"@type": "QuotaFailure", "violations": [{"quotaId": "TokensPerMinutePerModel"}]}
    per_day = {"@type": "QuotaFailure", "violations": [{"quotaId": "RequestsPerDayPerModel"}]}
    delay = {"@type": "RetryInfo", "retryDelay": "26s"}

    def google(*details: dict[str, Any]) -> dict[str, Any]:
        status = {"code": 429, "message": quota, "status": "RESOURCE_EXHAUSTED"}
        return {"error": status | {"details": list(details)}}

    def claude(kind: str, message: str = "scripted") -> dict[str, Any]:
        return servers.anthropic_error_body(kind, message)

    chat, gemini, anthropic = (CHAT,), (GEMINI,), (ANTHROPIC,)
    dashscope, item = ("dashscope/qwen3.8-max",), {"kind": "item"}
    refused = {"kind": "transient", "possibly_billed": False}
    lost = {"kind": "transient", "possibly_billed": True}
    daily = {**spent, "message": "the daily quota is used up"}
    limit = "rate_limit_exceeded"
    no_quota = openai_error(quota, code="insufficient_quota")
    free = openai_error("Rate limit exceeded: free-models-per-day", code=429)
    day = "Rate limit reached on requests per day (RPD): Limit 200, Used 200"
    over = openai_error("Limit 8000. Upgrade at /settings/billing", code=limit)
    upstream = {"raw": "rate-limited upstream", "headers": {"retry-after": "9"}}
    passed_on = openai_error("Provider returned error", code=429, metadata=upstream)
    overloaded = openai_error("The model is overloaded")
    too_long = openai_error("maximum context length is 8192", code="context_length_exceeded")
    policy = "Invalid prompt: it violates our usage policy"
    invalid = openai_error(policy, code="invalid_prompt")
    bad_key = {"error": {"message": "no", "details": [{"reason": "API_KEY_INVALID"}]}}
    cut_stream = b'data: {"choices": [{"delta": {"content": "4"}}], "candidates": [{}]}\n\n'
    reset = {"x-ratelimit-remaining-tokens": "0", "x-ratelimit-reset-tokens": "1m2s"}
    billed = {"usage": chat_usage(3, 5, None, None, cost=0.5)}
    paid = {"kind": "transient", "usage": (3, None, None, 5), "cost": 0.5}

    def waits(seconds: float) -> dict[str, Any]:
        return {**limited, "retry_after": seconds}

    for name, models, status, body, expected in (
        ("openai tpm", two, 429, openai_error(tpm, code=limit), limited),
        ("openai spent", two, 429, no_quota, spent),
        ("openrouter per day", chat, 429, free, daily),
        ("xai", chat, 429, {"code": "exhausted", "error": "Too many"}, limited),
        ("mistral", chat, 429, {"object": "error", "message": "Slow"}, limited),
        ("claude", anthropic, 429, claude("rate_limit_error"), limited),
        (
            "claude overloaded",
            anthropic,
            529,
            claude("overloaded_error"),
            {**refused, "status": 529},
        ),
        ("claude spent", anthropic, 402, claude("billing_error"), spent),
        ("openrouter spent", chat, 402, openai_error("No credits"), spent),
        ("a rejected prompt", two, 400, invalid, item),
        ("usage in an error", chat, 500, openai_error("oh no") | billed, paid),
    ):
        yield Case(name, models, body, expected, status)
    for name, models, status, body, expected in (
        ("dashscope tpm", dashscope, 429, no_quota, limited),
        ("gemini per minute", gemini, 429, google(per_minute, delay), waits(26.0)),
        ("gemini per day", gemini, 429, google(per_day, delay), daily),
        ("overloaded", EVERY, 503, overloaded, {**refused, "status": 503}),
        ("an error of the server", EVERY, 500, openai_error("oh no"), {**lost, "message": "oh no"}),
        ("a page of a gateway", EVERY, 502, HTML, {**lost, "status": 502}),
        (
            "a page instead of an answer",
            EVERY,
            200,
            HTML,
            {**spent, "message": "a web page ('502 Bad Gateway'); check --base-url"},
        ),
        ("a body that is cut off", EVERY, 200, b'{"choices": [{"mess', lost),
        ("a reset in mid-body", EVERY, 200, TORN, {**lost, "message": "connection failed"}),
        ("a stream that is cut off", EVERY, 200, cut_stream, {**lost, "message": "stream ended"}),
        ("a bad key", EVERY, 401, openai_error(f"wrong {KEY}"), {**spent, "status": 401}),
        ("a bad key at google", gemini, 400, bad_key, {**spent, "status": 401}),
        ("an unknown model", EVERY, 404, openai_error("no"), {**spent, "status": 404}),
        ("a prompt that is too long", EVERY, 400, too_long, item),
    ):
        yield Case(name, models, body, expected, status, modes=live)
    for name, headers, status, body, expected in (
        ("reset header", reset, 429, openai_error(tpm), waits(62.0)),
        ("groq", {"Retry-After": "7"}, 429, over, waits(7.0)),
        ("openai per day", {"Retry-After": "43200"}, 429, openai_error(day), daily),
        ("a limit per day that rolls", {"Retry-After": "432"}, 429, openai_error(day), waits(432)),
    ):
        yield Case(name, chat, body, expected, status, headers, live)
    elsewhere = {"Location": "http://127.0.0.1:9/"}
    redirected = {**spent, "message": "redirects"}
    yield Case("a redirect", EVERY, b"", redirected, 302, elsewhere, live)
    expected = {**waits(9.0), "message": "rate-limited upstream"}
    yield Case("openrouter upstream", chat, passed_on, expected, modes=("whole",))


CASES = [*answers(), *endings(), *failures()]


def record(completion: Completion) -> dict[str, Any]:
    """Return the fields of a completion that cases expect."""
    usage, error = completion.usage, completion.error
    fields: dict[str, Any] = {"raw_finish_reason": completion.extra.get("finish_reason")}
    fields |= {name: getattr(completion, name) for name in completion.__struct_fields__}
    fields["usage"] = (usage.input, usage.reasoning, usage.visible, usage.generated)
    if error is not None:
        fields |= {name: getattr(error, name) for name in error.__struct_fields__}
    return fields


def live_completion(case: Case, model: str, mode: str) -> Completion:
    """Return the completion of one request to a server that replies as the case says."""
    name, _, api = model.partition(" ")

    async def script(received: ReceivedRequest) -> Reply:
        assert servers.is_streamed(received) == (mode == "streamed")
        if case.body is TORN:
            return await servers.torn(received)
        if isinstance(case.body, bytes):
            return web.Response(body=case.body, status=case.status, headers=case.headers)
        reply = web.json_response(case.body, status=case.status, headers=case.headers)
        if case.status != 200 or mode == "whole":
            return reply
        return await servers.send_events(received, servers.events(reply))

    async def once(url: str) -> Completion:
        stream = mode == "streamed"
        opened = open_model(name, None, Server(url, api or "chat", stream=stream))  # type: ignore[arg-type]
        settings = opened.description.settings
        completion = await opened.model.answer(MESSAGES, settings)
        await opened.model.close()
        return completion

    with serve(script) as server:
        return asyncio.run(once(server.url))


def batched_completion(case: Case, model: str) -> Completion:
    """Return the result of a request in a job that ended as the case says."""
    name, _, api = model.partition(" ")
    jobs: Any = {"gemini": GeminiJobs, "anthropic": AnthropicJobs}.get(
        name.partition("/")[0], OpenAIJobs
    )()

    def end() -> None:
        if isinstance(jobs, AnthropicJobs):
            ok = {"type": "succeeded", "message": case.body}
            result = ok if case.status == 200 else {"type": "errored", "error": case.body}
            jobs.end("msgbatch_0", [{"custom_id": "key-0", "result": result}])
        elif isinstance(jobs, GeminiJobs):
            jobs.end([{"metadata": {"key": "a"}, "response": case.body}])
        else:
            response = {"status_code": case.status, "body": case.body}
            jobs.end(json_line({"custom_id": "a", "response": response, "error": None}))

    async def once(url: str) -> Completion:
        service = open_batch(name, None, Server(url, api or "chat"))  # type: ignore[arg-type]
        settings = open_model(name, None, Server(url)).description.settings
        job = await service.submit([BatchRequest("a", MESSAGES, settings)], "key")
        end()
        results = dict([each async for each in service.results(submitted(job))])
        await service.close()
        return results["a"]

    with serve(jobs) as server:
        return asyncio.run(once(server.url))


@pytest.mark.parametrize(
    ("case", "model", "mode"),
    [
        pytest.param(case, model, mode, id=f"{case.name}-{model}-{mode}")
        for case in CASES
        for model in case.models
        for mode in case.modes
    ],
)
def test_a_reply_gives_the_expected_record(case: Case, model: str, mode: str) -> None:
    is_batch = mode == "batched"
    completion = batched_completion(case, model) if is_batch else live_completion(case, model, mode)
    result = record(completion)
    # Results of jobs have no headers, and errors of Anthropic's jobs no status: nothing is billed.
    unknown = ("retry_after", "possibly_billed", "status") if is_batch else ()
    for name in case.expected.keys() - set(unknown[: None if model == ANTHROPIC else 1]):
        if name == "message":
            assert case.expected[name] in result["message"]
        else:
            assert result.get(name) == case.expected[name], name
    assert KEY not in str(completion)
