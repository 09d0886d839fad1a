"""What each adapter makes of all that a server may do."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from aiohttp import web

from bench.errors import BadInput
from bench.models import open_model
from bench.records import Completion, Usage
from tests import servers
from tests.models.asking import KEY, LOCAL_CHAT, LOCAL_GEMINI, MESSAGES, ask, good
from tests.servers import Asked, Reply, Script, serve


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (None, Usage()),
        (
            {"prompt_tokens": 10, "completion_tokens": 50},
            Usage(input=10, generated=50, source="reported"),
        ),
        (
            {
                "prompt_tokens": 10,
                "completion_tokens": 50,
                "completion_tokens_details": {"reasoning_tokens": 42},
            },
            Usage(input=10, generated=50, reasoning=42, visible=8, source="reported"),
        ),
        (
            {"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 0}},
            Usage(generated=5, reasoning=0, visible=5, source="reported"),
        ),
        (
            {"completion_tokens": 5, "completion_tokens_details": {"reasoning_tokens": 9}},
            Usage(reasoning=9, source="reported"),
        ),
        (
            {"completion_tokens": 5, "completion_tokens_details": None, "prompt_tokens": None},
            Usage(generated=5, source="reported"),
        ),
        (
            {"prompt_tokens": True, "completion_tokens": 5.0},
            Usage(),
        ),
        (
            {"prompt_tokens": -1, "completion_tokens": 2**53 + 1},
            Usage(),
        ),
        (
            {"prompt_tokens": 2**53},
            Usage(input=2**53, source="reported"),
        ),
    ],
)
def test_chat_usage_includes_reasoning_and_the_unknown_stays_unknown(
    reported: dict[str, Any] | None, usage: Usage
) -> None:
    async def script(asked: Asked) -> Reply:
        return servers.chat(usage=reported)

    assert ask(script)[0].usage == usage


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (None, Usage()),
        (
            {"promptTokenCount": 7, "candidatesTokenCount": 5, "thoughtsTokenCount": 40},
            Usage(input=7, visible=5, reasoning=40, generated=45, source="reported"),
        ),
        (
            {"promptTokenCount": 7, "candidatesTokenCount": 5, "totalTokenCount": 12},
            Usage(input=7, visible=5, generated=5, source="reported"),
        ),
        (
            {"promptTokenCount": 7, "thoughtsTokenCount": 40, "totalTokenCount": 47},
            Usage(input=7, reasoning=40, generated=40, source="reported"),
        ),
        (
            {"promptTokenCount": 7, "candidatesTokenCount": 5},
            Usage(input=7, visible=5, source="reported"),
        ),
        (
            {"promptTokenCount": 1, "totalTokenCount": 3, "toolUsePromptTokenCount": 9},
            Usage(input=1, source="reported"),
        ),
        (
            {"promptTokenCount": 9, "candidatesTokenCount": 5, "totalTokenCount": 10},
            Usage(input=9, visible=5, source="reported"),
        ),
        (
            {"promptTokenCount": True, "candidatesTokenCount": 5.0, "thoughtsTokenCount": 2**54},
            Usage(),
        ),
    ],
)
def test_gemini_usage_adds_thoughts_to_candidates(
    reported: dict[str, Any] | None, usage: Usage
) -> None:
    async def script(asked: Asked) -> Reply:
        return servers.gemini(usage=reported)

    assert ask(script, LOCAL_GEMINI)[0].usage == usage


@pytest.mark.parametrize(
    ("details", "cost"),
    [({"upstream_inference_cost": 0.2}, 0.21), ({"upstream_inference_cost": None}, None)],
)
def test_the_fee_on_the_users_own_key_is_not_the_cost(
    details: dict[str, Any], cost: float | None
) -> None:
    usage = {"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.01, "is_byok": True}

    async def script(asked: Asked) -> Reply:
        return servers.chat(usage=usage | {"cost_details": details})

    completion, _ = ask(script)
    assert completion.cost == (cost and pytest.approx(cost))


@pytest.mark.parametrize(
    "cost", ["true", "-0.5", "NaN", "Infinity", '"1"', f"1{'0' * 400}", "null"]
)
@pytest.mark.parametrize("more", ["", ', "is_byok": true'])
def test_a_cost_that_is_no_sum_of_money_is_unknown(cost: str, more: str) -> None:
    details = '"cost_details": {"upstream_inference_cost": 0.5}'
    for charged, upstream in ((cost, details), ("0.5", details.replace("0.5", cost))):
        if not more and charged == "0.5":
            continue
        body = f'{{"choices": [{{}}], "usage": {{"cost": {charged}, {upstream}{more}}}}}'

        async def script(asked: Asked, body: str = body) -> Reply:
            return web.Response(text=body, content_type="application/json")

        completion, _ = ask(script)
        assert (completion.error, completion.cost) == (None, None)


@pytest.mark.parametrize(
    ("code", "message", "kind", "status"),
    [
        (401, "no key", "run", 401),
        (402, "no credits", "run", 402),
        (403, "not yours", "run", 403),
        (403, "your input was flagged", "item", 403),
        (404, "no such model", "run", 404),
        ("404", "no such model", "run", 404),
        (429, "slow", "rate_limit", 429),
        ("rate_limit_exceeded", "slow", "rate_limit", 429),
        (429, "exceeded your current quota", "run", 429),
        (500, "oops", "transient", 500),
        (529, "overloaded", "transient", 529),
        (400, "unsupported parameter", "run", 400),
        (422, "context_length_exceeded", "item", 422),
        (413, "too large", "item", 413),
        (None, "oops", "transient", None),
        ("server_error", "oops", "transient", None),
        (99999, "oops", "transient", None),
        (True, "oops", "transient", None),
    ],
)
@pytest.mark.parametrize("inside", [False, True])
def test_the_code_of_an_error_in_a_good_response_counts_as_a_status(
    code: object, message: str, kind: str, status: int | None, inside: bool
) -> None:
    error = {"error": {"message": message, "code": code}}
    usage = {"prompt_tokens": 4, "completion_tokens": 6, "cost": 0.25}

    async def script(asked: Asked) -> Reply:
        body = {"choices": [error | {"message": {}}]} if inside else error
        return web.json_response(body | {"usage": usage})

    completion, _ = ask(script)
    assert completion.error is not None
    said = (completion.error.kind, completion.error.status, completion.error.message)
    assert said == (kind, status, message)
    assert completion.usage == Usage(input=4, generated=6, source="reported")
    assert completion.cost == 0.25


def test_openrouter_passes_on_how_long_its_provider_asks_to_wait() -> None:
    headers = {"Retry-After": "7"}
    error = {"message": "slow", "code": 429, "metadata": {"headers": headers}}

    async def script(asked: Asked) -> Reply:
        return web.json_response({"error": error})

    failure = ask(script)[0].error
    assert failure is not None
    assert failure.retry_after == 7.0


def test_geminis_failures_keep_what_was_used_as_well() -> None:
    used = {"usageMetadata": {"promptTokenCount": 4}}

    async def none(asked: Asked) -> Reply:
        return web.json_response(used)

    async def error(asked: Asked) -> Reply:
        return web.json_response(used | {"error": {"code": 401, "message": "no"}})

    for script, kind in ((none, "transient"), (error, "run")):
        completion, _ = ask(script, LOCAL_GEMINI)
        assert completion.error is not None
        assert completion.error.kind == kind
        assert completion.usage == Usage(input=4, source="reported")


def test_openrouter_reports_cost_provider_and_reasoning() -> None:
    async def script(asked: Asked) -> Reply:
        return servers.chat(
            usage={"prompt_tokens": 1, "completion_tokens": 2, "cost": 0.25},
            message={"reasoning": "because"},
            provider="Fireworks",
        )

    completion, _ = ask(script, "gpt-oss-120b", "low")
    assert completion.cost == 0.25
    assert completion.provider == "Fireworks"
    assert completion.reasoning_text == "because"
    assert completion.served_model == "served"
    assert completion.extra == {"id": "chat-1"}


@pytest.mark.parametrize(
    "message",
    [
        {"reasoning_content": "because"},
        {"reasoning_details": [{"text": "be"}, {"summary": "cause"}]},
    ],
)
def test_reasoning_text_is_found_under_each_servers_name(message: dict[str, Any]) -> None:
    async def script(asked: Asked) -> Reply:
        return servers.chat(message=message)

    assert ask(script)[0].reasoning_text == "because"


def test_gemini_thoughts_are_kept_apart_from_the_answer() -> None:
    async def script(asked: Asked) -> Reply:
        return servers.gemini("4", thought="two and two")

    completion, _ = ask(script, LOCAL_GEMINI)
    assert (completion.text, completion.reasoning_text) == ("4", "two and two")
    assert completion.finish_reason == "stop"


@pytest.mark.parametrize(
    ("finish", "reason"),
    [("stop", "stop"), ("length", "length"), ("content_filter", "refusal"), ("tool", "other")],
)
def test_chat_finish_reasons(finish: str, reason: str) -> None:
    async def script(asked: Asked) -> Reply:
        return servers.chat(finish=finish)

    assert ask(script)[0].finish_reason == reason


def test_refusals_are_told_apart() -> None:
    async def refusing(asked: Asked) -> Reply:
        return servers.chat("", message={"content": None, "refusal": "I will not"})

    async def blocked(asked: Asked) -> Reply:
        return web.json_response({"promptFeedback": {"blockReason": "SAFETY"}})

    async def safety(asked: Asked) -> Reply:
        return servers.gemini(finish="SAFETY")

    completion, _ = ask(refusing)
    assert (completion.text, completion.finish_reason) == ("I will not", "refusal")
    completion, _ = ask(blocked, LOCAL_GEMINI)
    assert completion.error is not None
    assert (completion.error.kind, completion.finish_reason) == ("item", "refusal")
    assert ask(safety, LOCAL_GEMINI)[0].finish_reason == "refusal"


@pytest.mark.parametrize("model", [LOCAL_CHAT, LOCAL_GEMINI])
@pytest.mark.parametrize(
    ("status", "message", "kind"),
    [
        (429, "slow down", "rate_limit"),
        (500, "oops", "transient"),
        (503, "overloaded", "transient"),
        (408, "timeout", "transient"),
        (409, "conflict", "transient"),
        (401, "bad key", "run"),
        (403, "no access to this model", "run"),
        (404, "no such model", "run"),
        (402, "no credits", "run"),
        (400, "unsupported parameter: temperature", "run"),
        (400, "system prompt is not supported by this model", "run"),
        (400, "safety_identifier is no known parameter", "run"),
        (400, "max_tokens is too large: 65536. The maximum context length is 8 tokens", "run"),
        (400, "max_tokens: 65536 > 8192, the maximum number of output tokens", "run"),
        (400, "Invalid prompt: it was flagged", "item"),
        (400, "prompt is too long: 9 tokens > 8 maximum", "item"),
        (400, "Input tokens exceed the configured limit of 272000 tokens", "item"),
        (400, "The input token count (9) exceeds the maximum number of tokens allowed", "item"),
        (400, "input length and `max_tokens` exceed context limit: 9 + 8 > 10", "item"),
        (400, "rejected by the safety system", "item"),
        (400, "maximum context length is 8 tokens", "item"),
        (400, "content_filter", "item"),
        (403, "your input was flagged by moderation", "item"),
        (413, "too large", "item"),
        (429, "You exceeded your current quota, check your billing", "run"),
    ],
)
def test_each_status_is_a_failure_of_its_kind(
    model: str, status: int, message: str, kind: str
) -> None:
    async def script(asked: Asked) -> Reply:
        return servers.error(status, message)

    completion, _ = ask(script, model)
    assert completion.error is not None
    assert completion.error.kind == kind
    assert completion.error.status == status
    assert message in completion.error.message


@pytest.mark.parametrize("model", [LOCAL_CHAT, LOCAL_GEMINI])
def test_retry_after_is_read_as_seconds_and_as_date(model: str) -> None:
    async def seconds(asked: Asked) -> Reply:
        return servers.error(429, headers={"Retry-After": "7"})

    async def date(asked: Asked) -> Reply:
        then = format_datetime(datetime.now(UTC) + timedelta(seconds=100), usegmt=True)
        return servers.error(429, headers={"Retry-After": then})

    async def nonsense(asked: Asked) -> Reply:
        return servers.error(429, headers={"Retry-After": "soon"})

    waits = []
    for script in (seconds, date, nonsense):
        error = ask(script, model)[0].error
        assert error is not None
        waits.append(error.retry_after)
    assert waits[0] == 7.0
    assert waits[1] == pytest.approx(99, abs=2)
    assert waits[2] is None


def test_gemini_names_its_delay_in_the_body() -> None:
    async def script(asked: Asked) -> Reply:
        return servers.error(429, details=[{"@type": "RetryInfo", "retryDelay": "17s"}])

    error = ask(script, LOCAL_GEMINI)[0].error
    assert error is not None
    assert error.retry_after == 17.0


async def _nothing(asked: Asked) -> Reply:
    return web.json_response({})


async def _number(asked: Asked) -> Reply:
    return web.json_response(3)


async def _html(asked: Asked) -> Reply:
    return web.Response(text="<html>bad gateway</html>", content_type="text/html")


async def _error_in_a_good_response(asked: Asked) -> Reply:
    return web.json_response({"error": {"message": "upstream died", "code": 502}})


@pytest.mark.parametrize("model", [LOCAL_CHAT, LOCAL_GEMINI])
@pytest.mark.parametrize(
    "script",
    [
        servers.torn,
        servers.garbage,
        _nothing,
        _number,
        _html,
        _error_in_a_good_response,
    ],
)
def test_whatever_else_a_server_does_is_transient(model: str, script: Script) -> None:
    completion, _ = ask(script, model)
    assert completion.error is not None
    assert completion.error.kind == "transient"
    assert completion.text == ""


@pytest.mark.parametrize("model", [LOCAL_CHAT, LOCAL_GEMINI])
def test_a_request_ends_at_its_time_limit(model: str) -> None:
    async def slow(asked: Asked) -> Reply:
        await asyncio.sleep(servers.FOR_EVER)
        return servers.chat()

    completion, _ = ask(slow, model, timeout=0.2)
    assert completion.error is not None
    assert (completion.error.kind, completion.error.message) == (
        "transient",
        "no answer within 0.2 s",
    )


@pytest.mark.parametrize("model", [LOCAL_CHAT, LOCAL_GEMINI])
def test_a_server_that_is_not_there_is_transient(model: str) -> None:
    with serve(good) as server:
        url = server.url

    async def once() -> Completion:
        opened = open_model(model, None, url)
        completion = await opened.model.answer(MESSAGES, opened.about.settings)
        await opened.model.close()
        return completion

    error = asyncio.run(once()).error
    assert error is not None
    assert error.kind == "transient"
    assert error.message.startswith("connection failed")


@pytest.mark.parametrize("model", [LOCAL_CHAT, LOCAL_GEMINI])
def test_a_key_that_a_server_echoes_is_masked_everywhere(model: str) -> None:
    async def refuse(asked: Asked) -> Reply:
        return servers.error(401, f"bad key {KEY}")

    async def echo(asked: Asked) -> Reply:
        text = f"your key is {KEY}"
        return servers.gemini(text) if model == LOCAL_GEMINI else servers.chat(text, id=KEY)

    for script in (refuse, echo):
        completion, _ = ask(script, model)
        assert KEY not in str(completion)
        assert "[key]" in str(completion)


def test_a_short_placeholder_key_does_not_mutilate_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("OPENAI_API_KEY", "1")
    assert ask(good)[0].text == '{"answer": 1}'
    monkeypatch.delenv("OPENAI_API_KEY")

    async def says_none(asked: Asked) -> Reply:
        return servers.chat("none")

    assert ask(says_none)[0].text == "none"


def test_litellm_reaches_a_server_and_acts_on_its_failures() -> None:
    replies = {
        "ok": servers.chat(
            usage={
                "prompt_tokens": 3,
                "completion_tokens": 9,
                "total_tokens": 12,
                "completion_tokens_details": {"reasoning_tokens": 4},
            }
        ),
    }

    async def fine(asked: Asked) -> Reply:
        return replies["ok"]

    async def limited(asked: Asked) -> Reply:
        return servers.error(429, "slow", headers={"Retry-After": "3"})

    async def unauthorised(asked: Asked) -> Reply:
        return servers.error(401, f"bad key {KEY}")

    model = "litellm/openai/some"
    completion, asked = ask(fine, model, "low")
    assert completion.text == '{"answer": 1}'
    assert completion.usage == Usage(
        input=3, generated=9, reasoning=4, visible=5, source="reported"
    )
    assert completion.cost is None
    assert asked.body["reasoning_effort"] == "low"
    error = ask(limited, model)[0].error
    assert error is not None
    assert (error.kind, error.retry_after) == ("rate_limit", 3.0)
    error = ask(unauthorised, model)[0].error
    assert error is not None
    assert error.kind == "run"
    assert KEY not in error.message


def test_litellm_names_a_missing_key_and_an_unknown_provider() -> None:
    with pytest.raises(BadInput, match="ANTHROPIC_API_KEY"):
        open_model("litellm/anthropic/claude-x")
    with pytest.raises(BadInput, match="litellm/PROVIDER/NAME"):
        open_model("litellm/nobody")
