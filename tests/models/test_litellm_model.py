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

from numbench.models import open_model
from numbench.models.formats.answer_fields import parse_cost
from numbench.models.formats.chat import usage as parse_usage
from numbench.records import Completion, Usage
from tests import servers
from tests.models.adapter_calls import KEY, MESSAGES, call_adapter
from tests.servers import ReceivedRequest, Reply, serve

OPENAI = "litellm/openai/some"


@pytest.mark.parametrize(
    ("reported", "usage"),
    [
        (None, Usage()),
        ({"completion_tokens": 9}, Usage(generated=9, source="reported")),
        ({"prompt_tokens": 3}, Usage(input=3, source="reported")),
        (
            {"prompt_tokens": 3, "completion_tokens": 0},
            Usage(input=3, generated=0, source="reported"),
        ),
        (
            {
                "prompt_tokens": 3,
                "completion_tokens": 9,
                "completion_tokens_details": {"reasoning_tokens": 0},
            },
            Usage(input=3, generated=9, reasoning=0, visible=9, source="reported"),
        ),
        (
            {"prompt_tokens": 66, "completion_tokens": 12, "total_tokens": 1102},
            Usage(input=66, generated=1036, reasoning=1024, visible=12, source="reported"),
        ),
    ],
)
def test_counts_that_a_server_does_not_report_are_unknown(
    reported: dict[str, Any] | None, usage: Usage
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return servers.chat(usage=reported)

    assert call_adapter(script, OPENAI)[0].usage == usage


@pytest.mark.parametrize(
    ("counts", "usage"),
    [
        ({}, Usage()),
        (
            {"prompt_eval_count": 77, "eval_count": 55},
            Usage(input=77, generated=55, source="reported"),
        ),
    ],
)
def test_litellms_own_count_is_not_reported(counts: dict[str, int], usage: Usage) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        message = {"role": "assistant", "content": "four is it"}
        return web.json_response({"model": "x", "message": message, "done": True} | counts)

    async def once(url: str) -> Completion:
        opened = open_model("litellm/ollama_chat/x", None, url)
        completion = await opened.model.answer(MESSAGES, opened.description.settings)
        await opened.model.close()
        return completion

    # litellm also requests the capabilities of the model.
    with serve(script) as server:
        completion = asyncio.run(once(server.url))
    assert completion.text == "four is it"
    assert completion.usage == usage


@pytest.mark.parametrize(
    ("details", "usage"),
    [
        ({}, Usage(input=10, generated=50, source="reported")),
        (
            {"output_tokens_details": {"thinking_tokens": 30}},
            Usage(input=10, generated=50, reasoning=30, visible=20, source="reported"),
        ),
    ],
)
def test_anthropics_reasoning_tokens_are_unknown_unless_reported(
    monkeypatch: pytest.MonkeyPatch, details: dict[str, Any], usage: Usage
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    content = [
        {"type": "thinking", "thinking": "let me think about it", "signature": "x"},
        {"type": "text", "text": "4"},
    ]

    async def script(received: ReceivedRequest) -> Reply:
        body = {"id": "m", "type": "message", "role": "assistant", "model": "served"}
        body |= {"stop_reason": "end_turn"}
        numbers = {"input_tokens": 10, "output_tokens": 50} | details
        return web.json_response(body | {"content": content, "usage": numbers})

    completion, _ = call_adapter(script, "litellm/anthropic/claude-x")
    assert (completion.text, completion.reasoning_text) == ("4", "let me think about it")
    assert completion.usage == usage


@pytest.mark.parametrize("input_tokens", range(4, 10))
def test_a_count_is_confirmed_only_by_a_field_of_its_meaning(
    monkeypatch: pytest.MonkeyPatch, input_tokens: int
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    # litellm counts the reasoning itself: seven, which may equal the input's count.
    thought = "one two three four five six seven"
    content = [
        {"type": "thinking", "thinking": thought, "signature": "x"},
        {"type": "text", "text": "4"},
    ]
    numbers = {
        "input_tokens": input_tokens,
        "output_tokens": 957,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }

    async def script(received: ReceivedRequest) -> Reply:
        body = {"id": "m", "type": "message", "role": "assistant", "model": "served"}
        return web.json_response(
            body | {"stop_reason": "end_turn", "content": content, "usage": numbers}
        )

    completion, _ = call_adapter(script, "litellm/anthropic/claude-x")
    assert completion.usage == Usage(input=input_tokens, generated=957, source="reported")


def test_anthropics_cache_is_part_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    cached = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 50}

    async def script(received: ReceivedRequest) -> Reply:
        body = {"id": "m", "type": "message", "role": "assistant", "model": "served"}
        body |= {"stop_reason": "end_turn"}
        content = [{"type": "text", "text": "4"}]
        numbers = {"input_tokens": 5, "output_tokens": 7} | cached
        return web.json_response(body | {"content": content, "usage": numbers})

    completion, _ = call_adapter(script, "litellm/anthropic/claude-x")
    assert completion.usage == Usage(input=155, generated=7, source="reported")


def test_equal_numbers_in_other_fields_confirm_nothing() -> None:
    from numbench.models.litellm_model import reported_usage

    litellms = {
        "prompt_tokens": 3,
        "completion_tokens": 9,
        "completion_tokens_details": {"reasoning_tokens": 4},
        "total_tokens": 12,
    }
    elsewhere = {"token_count": 3, "tokens": [9, 4], "choices": [{"usage": litellms}]}
    swapped = {"usage": {"input_tokens": 9, "output_tokens": 3, "reasoning_tokens": 5}}
    unknown: dict[str, Any] = {"completion_tokens_details": {}}
    for original in (elsewhere, swapped, {}):
        assert reported_usage(litellms, json.dumps(original)) == unknown
    assert reported_usage(litellms, "no JSON") == unknown
    confirmed = reported_usage(litellms, json.dumps({"usage": litellms}))
    assert parse_usage({"usage": confirmed}) == parse_usage({"usage": litellms})
    byok = {"usage": {"cost": 0.01, "is_byok": True}}
    assert parse_cost({"usage": reported_usage(litellms, json.dumps(byok))}) is None
    apart = {"usage": {"completion_tokens": 5, "reasoning_tokens": 4}}
    assert reported_usage(litellms, json.dumps(apart))["completion_tokens"] == 9


@pytest.mark.parametrize(
    "error",
    [{"message": {"a": [1]}, "code": {"b": 1}}, {"message": None, "code": [[]]}, ["x"], "x"],
)
@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_error_of_any_form_is_a_failure(error: object, status: int) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return web.json_response({"error": error}, status=status)

    assert call_adapter(script, OPENAI)[0].error is not None


def test_a_sum_of_geminis_counts_is_kept() -> None:
    async def script(received: ReceivedRequest) -> Reply:
        counts = {"promptTokenCount": 3, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}
        return servers.gemini(usage=counts | {"totalTokenCount": 15})

    completion, _ = call_adapter(script, "litellm/gemini/gemini-2.5-pro")
    expected = Usage(input=3, generated=12, reasoning=7, visible=5, source="reported")
    assert completion.usage == expected


def test_importing_litellm_uses_no_network_and_prints_nothing() -> None:
    code = (
        "import socket\n"
        "def connect(*_):\n"
        "    raise AssertionError('a connection was opened')\n"
        "socket.socket.connect = connect\n"
        "socket.getaddrinfo = connect\n"
        "import numbench.models as models\n"
        "models.open_model('litellm/ollama_chat/x', None, 'http://127.0.0.1:1')\n"
        "import litellm\n"
        "assert litellm.model_cost\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_record_says_that_litellm_may_rewrite_requests() -> None:
    description = open_model(OPENAI, "low", "http://127.0.0.1:1").description
    assert description.identity["note"] == "litellm may rewrite messages and parameters"
    assert description.provider.sdk == "litellm"
