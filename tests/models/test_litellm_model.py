"""Models through litellm: only counts that the provider reported are kept."""

from __future__ import annotations

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from aiohttp import web

from numbench.models import Server, open_model
from numbench.models.litellm_model import reported_usage
from numbench.records import Completion
from tests.models.adapter_calls import KEY, MESSAGES, call_adapter
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, serve

CHAT = "litellm/openai/some"
OLLAMA = "litellm/ollama_chat/x"
CLAUDE = "litellm/anthropic/claude-x"
# litellm counts the reasoning itself: seven, which may equal the input's count.
THOUGHT = "one two three four five six seven"


def reply_with(model: str, counts: dict[str, Any] | None) -> Reply:
    """Return an answer in the format of a provider behind litellm, with these counts."""
    if model == OLLAMA:
        message = {"role": "assistant", "content": "4"}
        return web.json_response({"model": "x", "message": message, "done": True} | (counts or {}))
    if model == CLAUDE:
        return servers.anthropic("4", usage=counts, thought=THOUGHT)
    return (
        servers.gemini("4", usage=counts) if "gemini" in model else servers.chat("4", usage=counts)
    )


@pytest.mark.parametrize(
    ("model", "counts", "usage"),
    [
        (CHAT, None, (None, None, None, None)),
        (CHAT, {"prompt_tokens": 3, "completion_tokens": 0}, (3, None, None, None)),
        (
            CHAT,
            {"completion_tokens": 9, "completion_tokens_details": {"reasoning_tokens": 0}},
            (None, 0, 9, 9),
        ),
        (
            CHAT,
            {"prompt_tokens": 66, "completion_tokens": 12, "total_tokens": 1102},
            (66, 1024, 12, 1036),
        ),
        (OLLAMA, {}, (None, None, None, None)),
        (OLLAMA, {"prompt_eval_count": 77, "eval_count": 55}, (77, None, None, 55)),
        (
            CLAUDE,
            {
                "input_tokens": 10,
                "output_tokens": 50,
                "output_tokens_details": {"thinking_tokens": 30},
            },
            (10, 30, 20, 50),
        ),
        (
            CLAUDE,
            {
                "input_tokens": 5,
                "cache_creation_input_tokens": 100,
                "cache_read_input_tokens": 50,
                "output_tokens": 7,
            },
            (155, None, None, 7),
        ),
        (
            "litellm/gemini/gemini-2.5-pro",
            {
                "promptTokenCount": 3,
                "candidatesTokenCount": 5,
                "thoughtsTokenCount": 7,
                "totalTokenCount": 15,
            },
            (3, 7, 5, 12),
        ),
    ],
)
def test_only_counts_that_a_server_reports_are_known(
    model: str,
    counts: dict[str, Any] | None,
    usage: tuple[int | None, ...],
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)

    async def script(received: ReceivedRequest) -> Reply:
        return reply_with(model, counts)

    async def once(url: str) -> Completion:
        opened = open_model(model, None, Server(url))
        completion = await opened.model.answer(MESSAGES, opened.description.settings)
        await opened.model.close()
        return completion

    # litellm also requests the capabilities of a model of Ollama.
    with serve(script) as server:
        completion = asyncio.run(once(server.url))
    known = completion.usage
    assert (known.input, known.reasoning, known.visible, known.generated) == usage
    assert known.source == ("reported" if any(n is not None for n in usage) else None)
    assert completion.text == "4"
    assert completion.reasoning_text == (THOUGHT if model == CLAUDE else None)


@pytest.mark.parametrize(
    ("original", "counts", "cost"),
    [
        ({"output": [], "usage": {"input_tokens": 3, "output_tokens": 9}}, (3, 9), None),
        ({"output": {}, "usage": {"inputTokens": 3, "outputTokens": 9}}, (3, 9), None),
        (
            {"message": {}, "usage": {"tokens": {"input_tokens": 3, "output_tokens": 9}}},
            (3, 9),
            None,
        ),
        ({"choices": [], "usage": {"cost": 0.5}}, (None, None), 0.5),
        ({"choices": [], "usage": {"cost": 0.01, "is_byok": True}}, (None, None), None),
        ({"token_count": 3, "tokens": [9, 4], "choices": [{"usage": {}}]}, (None, None), None),
        ("no JSON", (None, None), None),
    ],
)
def test_counts_are_read_in_the_form_of_each_provider(
    original: object, counts: tuple[int | None, ...], cost: float | None
) -> None:
    usage, dollars = reported_usage(original if isinstance(original, str) else json.dumps(original))
    assert ((usage.input, usage.generated), dollars) == (counts, cost)


@pytest.mark.parametrize(
    "error",
    [{"message": {"a": [1]}, "code": {"b": 1}}, {"message": None, "code": [[]]}, ["x"], "x"],
)
@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_error_of_any_form_is_a_failure(error: object, status: int) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return web.json_response({"error": error}, status=status)

    assert call_adapter(script, CHAT)[0].error is not None


def test_importing_litellm_uses_no_network_and_prints_nothing() -> None:
    code = (
        "import socket\n"
        "def connect(*_):\n"
        "    raise AssertionError('a connection was opened')\n"
        "socket.socket.connect = connect\n"
        "socket.getaddrinfo = connect\n"
        "import numbench.models as models\n"
        "models.open_model('litellm/ollama_chat/x', None, models.Server('http://127.0.0.1:1'))\n"
        "import litellm\n"
        "assert litellm.model_cost\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_record_says_that_litellm_may_rewrite_requests() -> None:
    description = open_model(CHAT, "low", Server("http://127.0.0.1:1")).description
    assert description.identity["note"] == "litellm may rewrite messages and parameters"
    assert description.provider.sdk == "litellm"


def test_a_request_that_was_never_sent_is_not_billed() -> None:
    async def once() -> Completion:
        opened = open_model(CHAT, None, Server("http://127.0.0.1:9"))
        completion = await opened.model.answer(MESSAGES, opened.description.settings)
        await opened.model.close()
        return completion

    error = asyncio.run(once()).error
    assert error is not None and not error.possibly_billed
    assert error.message.startswith("connection failed: ")
