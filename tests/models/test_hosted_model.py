"""Requests of hosted models that the tables of formats and replies do not have."""

from __future__ import annotations

import asyncio
from typing import Any

import pytest

from numbench.errors import BadInput
from numbench.models import Api, RequestSettings, Server, describe_model, open_model
from numbench.records import Completion, Usage
from tests.models.adapter_calls import (
    ANTHROPIC_MODEL,
    KEY,
    MESSAGES,
    call_adapter,
    valid_reply,
)
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, serve

LITELLM = "litellm/openai/some"


async def answer_at(url: str, model: str, settings: RequestSettings | None = None) -> Completion:
    opened = open_model(model, None, Server(url))
    completion = await opened.model.answer(MESSAGES, settings or opened.description.settings)
    await opened.model.close()
    return completion


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_the_base_url_of_claude_may_end_in_v1(suffix: str) -> None:
    with serve(valid_reply) as server:
        asyncio.run(answer_at(server.url + suffix, ANTHROPIC_MODEL))
        assert [received.path for received in server.received] == ["/v1/messages"]


def test_malformed_events_of_claude_change_nothing_else() -> None:
    odd: list[dict[str, Any]] = [
        {"type": "content_block_start", "index": "x", "content_block": {"type": "text"}},
        {"type": "content_block_start", "index": 1, "content_block": []},
        {"type": "content_block_delta", "index": 0, "delta": {"text": 3, "thinking": None}},
        {"type": "content_block_delta", "index": 7, "delta": {"type": "new_delta"}},
        {"type": "a_new_event", "value": [1]},
        {"type": "message_delta", "delta": None, "usage": 3},
    ]

    async def script(received: ReceivedRequest) -> Reply:
        usage = {"input_tokens": 3, "output_tokens": 9}
        events = servers.events(servers.anthropic("4", usage=usage))
        extra = [servers.named_event(event) for event in odd]
        return await servers.send_events(received, [*events[:4], *extra, *events[4:]])

    completion, _ = call_adapter(script, ANTHROPIC_MODEL, stream=True)
    assert (completion.text, completion.error) == ("4", None)
    assert completion.usage == Usage(input=3, generated=9, source="reported")


def test_a_provider_without_the_responses_api_is_rejected() -> None:
    for name in ("gpt-oss-120b", "gemini-2.5-pro", "litellm/openai/gpt-5"):
        for function in (open_model, describe_model):
            level = None if name.startswith("litellm") else "maximal"
            with pytest.raises(BadInput, match="has chat only: omit --api"):
                function(name, level, Server(api="responses"))
    unknown: Any = "completions"
    with pytest.raises(BadInput, match="openai has chat or responses only: omit --api"):
        open_model("gpt-5", "low", Server(None, unknown))


@pytest.mark.parametrize(("api", "more"), [("chat", {}), ("responses", {"api": "responses"})])
def test_the_api_format_is_part_of_the_identity_unless_it_is_chat(
    api: Api, more: dict[str, str]
) -> None:
    description = open_model("gpt-5", "low", Server("http://127.0.0.1", api)).description
    assert description.identity == {"route": "openai/gpt-5", "base_url": "http://127.0.0.1"} | more


def test_litellm_classifies_failures(monkeypatch: pytest.MonkeyPatch) -> None:
    async def limited(received: ReceivedRequest) -> Reply:
        return servers.error(429, "slow", headers={"Retry-After": "3"})

    async def unauthorised(received: ReceivedRequest) -> Reply:
        return servers.error(401, f"bad key {KEY}")

    completion, received = call_adapter(limited, LITELLM, "low")
    error = completion.error
    assert error is not None and received.body["reasoning_effort"] == "low"
    assert (error.kind, error.retry_after) == ("rate_limit", 3.0)
    error = call_adapter(unauthorised, LITELLM)[0].error
    assert error is not None
    assert error.kind == "run" and KEY not in error.message
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    for name, message in (("anthropic/claude-x", "ANTHROPIC_API_KEY"), ("nobody", "PROVIDER/NAME")):
        with pytest.raises(BadInput, match=message):
            open_model(f"litellm/{name}")
