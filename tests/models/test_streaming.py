"""Streamed answers: the same completion as without a stream, and nothing lost in between."""

from __future__ import annotations

import asyncio
import gzip
import resource
import socket
from typing import Any

import pytest
from aiohttp import web
from hypothesis import given
from hypothesis import strategies as st
from msgspec.structs import replace

from numbench.errors import BadInput
from numbench.models import (
    Api,
    Message,
    RequestSettings,
    aiohttp_transport,
    hosted_providers,
    open_model,
)
from numbench.models.aiohttp_transport import MAX_RESPONSE_BYTES
from numbench.models.anthropic_messages import parse_completion as parse_message
from numbench.models.event_streams import (
    merge_chat_events,
    merge_gemini_events,
    merge_message_events,
)
from numbench.models.gemini_api import parse_completion as parse_gemini
from numbench.models.hosted_providers import should_stream
from numbench.models.json_fields import InvalidJson
from numbench.models.openai_chat import parse_completion as parse_chat
from numbench.models.providers import ModelTarget
from numbench.records import Completion
from tests import servers
from tests.models.adapter_calls import ANTHROPIC_MODEL, CHAT_MODEL, GEMINI_MODEL, call_adapter
from tests.servers import ReceivedRequest, Reply, serve

CHAT_USAGE = {
    "prompt_tokens": 9,
    "completion_tokens": 30,
    "completion_tokens_details": {"reasoning_tokens": 20},
    "cost": 0.25,
}
RESPONSES_USAGE = {
    "input_tokens": 9,
    "output_tokens": 30,
    "output_tokens_details": {"reasoning_tokens": 20},
}
GEMINI_USAGE = {"promptTokenCount": 9, "candidatesTokenCount": 10, "thoughtsTokenCount": 20}
ROUTES: list[tuple[str, Api]] = [
    (CHAT_MODEL, "chat"),
    (CHAT_MODEL, "responses"),
    (GEMINI_MODEL, "chat"),
    (ANTHROPIC_MODEL, "chat"),
]
EVERY_ROUTE = pytest.mark.parametrize(("model", "api"), ROUTES)


ANTHROPIC_USAGE = {
    "input_tokens": 4,
    "cache_creation_input_tokens": 3,
    "cache_read_input_tokens": 2,
    "output_tokens": 30,
    "output_tokens_details": {"thinking_tokens": 20},
}


def answer(received: ReceivedRequest, kind: str = "plain") -> Reply:
    """Return an answer in the format of the request."""
    if servers.api_of(received) == "anthropic":
        stop = {"cut": "max_tokens", "refused": "refusal"}.get(kind, "end_turn")
        details = {"stop_details": {"type": "refusal", "category": "bio"}}
        more = details if kind == "refused" else {}
        return servers.anthropic(usage=ANTHROPIC_USAGE, stop=stop, thought="hm, 1", **more)
    if "contents" in received.body:
        finish = {"cut": "MAX_TOKENS", "refused": "SAFETY"}.get(kind, "STOP")
        return servers.gemini(usage=GEMINI_USAGE, finish=finish, thought="hm, 1")
    if "input" in received.body:
        incomplete = {"status": "incomplete", "incomplete_details": {"reason": "max_output_tokens"}}
        more = incomplete if kind == "cut" else {}
        return servers.responses(usage=RESPONSES_USAGE, thoughts=["hm", "1"], **more)
    message: dict[str, Any] = {"reasoning": "hm, 1"}
    if kind == "refused":
        message |= {"content": None, "refusal": "no"}
    if kind == "details":
        details = [{"type": "reasoning.text", "text": "hm"}, {"summary": "1"}]
        message = {"reasoning_details": details}
    finish = {"cut": "length"}.get(kind, "stop")
    return servers.chat(
        usage=CHAT_USAGE, message=message, finish=finish, provider="p", system_fingerprint="f"
    )


def comparable(completion: Completion) -> Completion:
    return replace(completion, latency=None)


@EVERY_ROUTE
@pytest.mark.parametrize("kind", ["plain", "cut", "refused", "details"])
def test_a_streamed_answer_is_the_same_as_a_whole_one(model: str, api: Api, kind: str) -> None:
    async def streamed(received: ReceivedRequest) -> Reply:
        assert servers.is_streamed(received)
        return await servers.send_events(received, servers.events(answer(received, kind)))

    async def whole(received: ReceivedRequest) -> Reply:
        return answer(received, kind)

    results = [comparable(call_adapter(script, model, api=api)[0]) for script in (streamed, whole)]
    assert results[0] == results[1]
    assert results[0].error is None
    assert results[0].usage.generated == 30
    assert results[0].reasoning_text is not None


TEXTS = st.text(max_size=30)


@given(text=TEXTS, thought=TEXTS, size=st.integers(1, 7))
def test_any_text_cut_anywhere_is_put_together_again(text: str, thought: str, size: int) -> None:
    def cuts(whole: str) -> list[str]:
        return [whole[at : at + size] for at in range(0, len(whole), size)]

    for reply, merge, parse in (
        (servers.chat(text, message={"reasoning": thought}), merge_chat_events, parse_chat),
        (servers.gemini(text, thought=thought), merge_gemini_events, parse_gemini),
        (servers.anthropic(text, thought=thought), merge_message_events, parse_message),
    ):
        completion = parse(merge(b"".join(servers.events(reply, cuts))))
        assert (completion.text, completion.reasoning_text or "") == (text, thought)
        assert (completion.finish_reason, completion.served_model) == ("stop", "served")


@EVERY_ROUTE
@pytest.mark.parametrize("way", ["closed", "torn", "without an answer"])
def test_a_stream_that_ends_early_is_a_lost_answer(model: str, api: Api, way: str) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        events = servers.events(answer(received))
        cut = 1 if way == "without an answer" else max(1, len(events) - 3)
        reply = await servers.send_events(received, events[:cut] if api == "chat" else events[:1])
        if way == "torn":
            assert received.request.transport is not None
            received.request.transport.abort()
        return reply

    completion, _ = call_adapter(script, model, api=api)
    assert completion.text == ""
    assert completion.error is not None
    assert (completion.error.kind, completion.error.possibly_billed) == ("transient", True)
    assert "connection failed" in completion.error.message


@EVERY_ROUTE
def test_an_error_within_a_stream_is_the_failure(model: str, api: Api) -> None:
    fields = {"type": "rate_limit_error", "code": 429, "message": "slow down"}
    error = {"type": "error", "error": fields}

    async def script(received: ReceivedRequest) -> Reply:
        events = servers.events(answer(received))[:1]
        return await servers.send_events(received, [*events, servers._event(error)])

    completion, _ = call_adapter(script, model, api=api)
    assert completion.error is not None
    assert (completion.error.kind, completion.error.message) == ("rate_limit", "slow down")


def several(
    url: str, model: str, api: Api, count: int, stream: bool | None = None
) -> list[Completion]:
    """Return the completions of consecutive requests of one adapter."""

    async def call() -> list[Completion]:
        opened = open_model(model, None, url, api, stream=stream)
        messages = [Message("user", str(n)) for n in range(count)]
        done = [await opened.model.answer([m], RequestSettings(timeout=60)) for m in messages]
        await opened.model.close()
        return done

    return asyncio.run(call())


@EVERY_ROUTE
@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_server_that_refuses_to_stream_answers_without(model: str, api: Api, status: int) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if servers.is_streamed(received):
            return servers.error(status, "Your organization must be verified to stream this model")
        return answer(received)

    with serve(script) as server:
        completions = several(server.url, model, api, 3)
        assert [servers.is_streamed(each) for each in server.received] == [True] + 3 * [False]
    assert [each.error for each in completions] == 3 * [None]
    assert {each.usage.generated for each in completions} == {30}


def test_a_server_without_geminis_path_of_streams_answers_without() -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return web.Response(status=404) if servers.is_streamed(received) else answer(received)

    with serve(script) as server:
        completions = several(server.url, GEMINI_MODEL, "chat", 1)
    assert completions[0].error is None


@pytest.mark.parametrize("model", [CHAT_MODEL, ANTHROPIC_MODEL])
def test_after_a_stream_without_usage_answers_are_not_streamed(model: str) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if servers.is_streamed(received):
            return await servers.send_events(received, servers.events(servers.plain(received)))
        return answer(received)

    with serve(script) as server:
        completions = several(server.url, model, "chat", 2)
    assert [each.text for each in completions] == 2 * ['{"answer": 1}']
    assert [each.usage.generated for each in completions] == [None, 30]


@pytest.mark.parametrize(("stream", "expected"), [(None, False), (False, False), (True, True)])
@EVERY_ROUTE
def test_other_servers_stream_only_on_request(
    model: str, api: Api, stream: bool | None, expected: bool, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(hosted_providers, "STREAMS_FROM_OTHER_SERVERS", False)

    async def script(received: ReceivedRequest) -> Reply:
        return answer(received)

    with serve(script) as server:
        completions = several(server.url, model, api, 1, stream)
        assert [servers.is_streamed(each) for each in server.received] == [expected]
    assert completions[0].usage.generated == 30


@pytest.mark.parametrize(("stream", "expected"), [(None, True), (False, False), (True, True)])
def test_providers_stream_unless_that_is_turned_off(stream: bool | None, expected: bool) -> None:
    target = ModelTarget("openai/any", "any", "key", stream=stream)
    assert should_stream(target) is expected


@pytest.mark.parametrize("model", ["litellm/openai/any", "baseline/float64"])
def test_models_that_do_not_stream_say_so(model: str) -> None:
    with pytest.raises(BadInput, match=f"{model}.*--stream"):
        open_model(model, stream=True)
    asyncio.run(open_model(model, stream=False).model.close())


def test_after_an_error_within_a_stream_answers_are_still_streamed() -> None:
    async def script(received: ReceivedRequest) -> Reply:
        assert servers.is_streamed(received)
        if received.prompt == "0":
            return await servers.send_events(received, [servers._event({"error": {"code": 502}})])
        return await servers.send_events(received, servers.events(answer(received)))

    with serve(script) as server:
        completions = several(server.url, CHAT_MODEL, "chat", 2)
    assert [each.error is None for each in completions] == [False, True]


@EVERY_ROUTE
def test_an_error_of_an_upstream_server_is_no_refusal_to_stream(model: str, api: Api) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return servers.error(400, "Upstream error: content_filter")

    completion, received = call_adapter(script, model, api=api)
    assert completion.error is not None and servers.is_streamed(received)


def test_a_text_that_is_streamed_both_in_parts_and_as_text_is_whole() -> None:
    contents = [[{"type": "thinking", "thinking": []}, {"type": "text", "text": "4"}], "2"]
    chunks = [{"choices": [{"index": 0, "delta": {"content": each}}]} for each in contents]
    end = {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]}
    content = b"".join(servers._event(chunk) for chunk in (*chunks, end))
    assert parse_chat(merge_chat_events(content)).text == "42"


def test_a_broken_event_is_no_answer() -> None:
    for content in (b"data: {", b"data: 3\n\n", b"event: ping\n\n"):
        with pytest.raises(InvalidJson):
            merge_chat_events(content)


@EVERY_ROUTE
def test_connections_are_kept_alive_by_the_operating_system(
    monkeypatch: pytest.MonkeyPatch, model: str, api: Api
) -> None:
    options: list[tuple[int, int]] = []
    create = aiohttp_transport._create_socket

    def recorded(address: Any) -> socket.socket:
        created = create(address)
        is_on = created.getsockopt(socket.SOL_SOCKET, socket.SO_KEEPALIVE)
        options.append((is_on, created.getsockopt(socket.IPPROTO_TCP, socket.TCP_KEEPIDLE)))
        return created

    async def script(received: ReceivedRequest) -> Reply:
        return answer(received)

    monkeypatch.setattr(aiohttp_transport, "_create_socket", recorded)
    call_adapter(script, model, api=api)
    assert options == [(1, 60)]


@pytest.mark.parametrize("model", [CHAT_MODEL, GEMINI_MODEL, ANTHROPIC_MODEL])
def test_a_response_that_grows_without_end_takes_little_memory(model: str) -> None:
    """2 GiB of blanks in 2 MB of gzip."""
    bomb = gzip.compress(b" " * 2**28) * 8

    async def script(received: ReceivedRequest) -> Reply:
        headers = {"Content-Encoding": "gzip", "Content-Type": "application/json"}
        return web.Response(body=bomb, headers=headers)

    before = resource.getrusage(resource.RUSAGE_SELF).ru_maxrss
    completion, _ = call_adapter(script, model, timeout=100.0)
    used = (resource.getrusage(resource.RUSAGE_SELF).ru_maxrss - before) * 1024
    assert completion.error is not None
    assert "the response is larger than 64 MiB" in completion.error.message
    assert used < 5 * MAX_RESPONSE_BYTES
