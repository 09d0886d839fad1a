"""What each adapter makes of a request that brings no answer."""

from __future__ import annotations

import asyncio
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime

import pytest
from aiohttp import web

from bench.models import Api, open_model
from bench.records import Completion, Usage
from tests import servers
from tests.models.asking import LOCAL_CHAT, LOCAL_GEMINI, MESSAGES, ask, good
from tests.servers import Asked, Reply, Script, serve


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


def test_a_refused_request_keeps_what_it_cost() -> None:
    used = {"input_tokens": 4, "prompt_tokens": 4, "cost": 0.25}

    async def script(asked: Asked) -> Reply:
        body = {"error": {"message": "oops"}, "usage": used}
        return web.json_response(body | {"usageMetadata": {"promptTokenCount": 4}}, status=500)

    routes: list[tuple[str, Api, float | None]] = [
        (LOCAL_CHAT, "chat", 0.25),
        (LOCAL_CHAT, "responses", 0.25),
        (LOCAL_GEMINI, "chat", None),
    ]
    for model, api, cost in routes:
        completion, _ = ask(script, model, api=api)
        assert completion.error is not None
        assert (completion.error.kind, completion.error.message) == ("transient", "oops")
        assert (completion.usage, completion.cost) == (Usage(input=4, source="reported"), cost)


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
