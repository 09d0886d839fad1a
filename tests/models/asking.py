"""One question to an adapter at a scripted server."""

from __future__ import annotations

import asyncio
from typing import Any

from bench.models import Api, Message, open_model
from bench.models.base import Settings
from bench.records import Completion
from tests import servers
from tests.servers import Asked, Reply, Script, serve

KEY = "sk-planted-0123456789"
MESSAGES = (Message("system", "Answer in JSON."), Message("user", "What is 1 + 1?"))
LOCAL_CHAT = "openai/any"
LOCAL_GEMINI = "gemini/any"


def ask(
    script: Script,
    model: str = LOCAL_CHAT,
    reasoning: str | None = None,
    *,
    api: Api = "chat",
    **settings: Any,
) -> tuple[Completion, Asked]:
    """One answer of `model` at a server that follows `script`, and what it was asked."""

    async def once(url: str) -> Completion:
        opened = open_model(model, reasoning, url, api)
        shaped = Settings(**(vars(opened.about.settings) | settings))
        completion = await opened.model.answer(MESSAGES, shaped)
        await opened.model.close()
        return completion

    with serve(script) as server:
        completion = asyncio.run(once(server.url))
        assert len(server.asked) == 1, "an adapter never repeats a request by itself"
        return completion, server.asked[0]


async def good(asked: Asked) -> Reply:
    if "input" in asked.body:
        return servers.responses()
    return servers.gemini() if "contents" in asked.body else servers.chat()
