"""One request of an adapter to a scripted server."""

from __future__ import annotations

import asyncio
from typing import Any

from numbench.models import Api, Message, Server, open_model
from numbench.models.base import RequestSettings
from numbench.records import Completion
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, Script, serve

KEY = "sk-planted-0123456789"
MESSAGES = (Message("system", "Answer in JSON."), Message("user", "What is 1 + 1?"))
CHAT_MODEL = "openai/any"
GEMINI_MODEL = "gemini/any"
ANTHROPIC_MODEL = "anthropic/any"


def call_adapter(
    script: Script,
    model: str = CHAT_MODEL,
    reasoning: str | None = None,
    *,
    api: Api = "chat",
    stream: bool | None = None,
    **settings: Any,
) -> tuple[Completion, ReceivedRequest]:
    """Return the completion of `model` at a server that follows `script`, and its request."""

    async def once(url: str) -> Completion:
        opened = open_model(model, reasoning, Server(url, api, stream=stream))
        merged = RequestSettings(**(vars(opened.description.settings) | settings))
        completion = await opened.model.answer(MESSAGES, merged)
        await opened.model.close()
        return completion

    with serve(script) as server:
        completion = asyncio.run(once(server.url))
        assert len(server.received) == 1, "an adapter never retries a request"
        return completion, server.received[0]


async def valid_reply(received: ReceivedRequest) -> Reply:
    """Answer a request in its own format."""
    return servers.plain(received)
