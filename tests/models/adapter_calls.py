"""One request of an adapter to a scripted server, and the record of its completion."""

import asyncio
from collections.abc import Collection, Mapping
from typing import Any, cast

import pytest

from numbench.models import Api, Message, Server, open_model
from numbench.models.base import RequestSettings
from numbench.records import Completion
from tests.support.servers import ReceivedRequest, Script, serve

KEY = "sk-planted-0123456789"
MESSAGES = (Message("system", "Answer in JSON."), Message("user", "What is 1 + 1?"))
CHAT, RESPONSES = "openai/any", "openai/any responses"
GEMINI, ANTHROPIC = "gemini/any", "anthropic/any"
LITELLM = "litellm/openai/some"
HOSTED = (CHAT, RESPONSES, GEMINI, ANTHROPIC)
"""A model of each wire format, with the API format of OpenAI's protocol if it is not chat."""

EVERY_FORMAT = pytest.mark.parametrize("model", HOSTED)


def model_and_api(model: str) -> tuple[str, Api]:
    """Return the name and the API format in one of `HOSTED`."""
    name, _, api = model.partition(" ")
    return name, cast(Api, api or "chat")


def call_adapter(
    script: Script,
    model: str = CHAT,
    reasoning: str | None = None,
    *,
    stream: bool | None = None,
    path: str = "",
    **settings: Any,
) -> tuple[Completion, ReceivedRequest]:
    """Return the completion of `model` at a server that follows `script`, and its request."""
    name, api = model_and_api(model)

    async def once(url: str) -> Completion:
        opened = open_model(name, reasoning, Server(url + path, api, stream=stream))
        merged = RequestSettings(**(vars(opened.description.settings) | settings))
        completion = await opened.model.answer(MESSAGES, merged)
        await opened.model.close()
        return completion

    with serve(script) as server:
        completion = asyncio.run(once(server.url))
        # litellm also requests the capabilities of a model of Ollama.
        assert len(server.received) == 1 or "ollama" in model, "an adapter never retries a request"
        return completion, server.received[0]


def check(
    completion: Completion, expected: Mapping[str, Any], ignored: Collection[str] = ()
) -> None:
    """Compare a completion with the expected fields.

    These are its own, those of its failure, and of its usage as a list of input, reasoning,
    visible and generated. A message needs to contain the expected one only.
    """
    usage, error = completion.usage, completion.error
    fields = {name: getattr(completion, name) for name in completion.__struct_fields__}
    counts = [usage.input, usage.reasoning, usage.visible, usage.generated]
    assert usage.source == ("reported" if any(n is not None for n in counts) else None)
    fields |= {"usage": counts, "generated": usage.generated, "reply": [*completion.reply]}
    if error is not None:
        fields |= {name: getattr(error, name) for name in error.__struct_fields__}
    for name in expected.keys() - set(ignored):
        if name == "message":
            assert expected[name] in fields["message"]
        else:
            assert fields.get(name) == expected[name], name
    assert KEY not in str(completion)
