"""What litellm adds to a response, and what is left of it."""

from __future__ import annotations

import asyncio
import json
from typing import Any

import pytest
from aiohttp import web

from bench.models import open_model
from bench.models.litellm_usage import reported
from bench.records import Completion, Usage
from tests import servers
from tests.models.asking import KEY, MESSAGES, ask
from tests.servers import Asked, Reply, serve

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
    ],
)
def test_what_a_server_does_not_report_stays_unknown(
    reported: dict[str, Any] | None, usage: Usage
) -> None:
    async def script(asked: Asked) -> Reply:
        return servers.chat(usage=reported)

    assert ask(script, OPENAI)[0].usage == usage


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
def test_a_count_of_litellms_own_is_not_the_providers(counts: dict[str, int], usage: Usage) -> None:
    async def script(asked: Asked) -> Reply:
        message = {"role": "assistant", "content": "four is it"}
        return web.json_response({"model": "x", "message": message, "done": True} | counts)

    async def once(url: str) -> Completion:
        opened = open_model("litellm/ollama_chat/x", None, url)
        completion = await opened.model.answer(MESSAGES, opened.about.settings)
        await opened.model.close()
        return completion

    # Here litellm asks what the model can do as well.
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
def test_anthropics_thinking_is_counted_only_where_it_is_reported(
    monkeypatch: pytest.MonkeyPatch, details: dict[str, Any], usage: Usage
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    content = [
        {"type": "thinking", "thinking": "let me think about it", "signature": "x"},
        {"type": "text", "text": "4"},
    ]

    async def script(asked: Asked) -> Reply:
        body = {"id": "m", "type": "message", "role": "assistant", "model": "served"}
        body |= {"stop_reason": "end_turn"}
        numbers = {"input_tokens": 10, "output_tokens": 50} | details
        return web.json_response(body | {"content": content, "usage": numbers})

    completion, _ = ask(script, "litellm/anthropic/claude-x")
    assert (completion.text, completion.reasoning_text) == ("4", "let me think about it")
    assert completion.usage == usage


@pytest.mark.parametrize("asked_tokens", range(4, 10))
def test_a_figure_counts_only_under_a_name_of_its_meaning(
    monkeypatch: pytest.MonkeyPatch, asked_tokens: int
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    # litellm counts the thoughts itself: seven, which may happen to be the input's number as well.
    thought = "one two three four five six seven"
    content = [
        {"type": "thinking", "thinking": thought, "signature": "x"},
        {"type": "text", "text": "4"},
    ]
    numbers = {
        "input_tokens": asked_tokens,
        "output_tokens": 957,
        "cache_creation_input_tokens": 0,
        "cache_read_input_tokens": 0,
    }

    async def script(asked: Asked) -> Reply:
        body = {"id": "m", "type": "message", "role": "assistant", "model": "served"}
        return web.json_response(
            body | {"stop_reason": "end_turn", "content": content, "usage": numbers}
        )

    completion, _ = ask(script, "litellm/anthropic/claude-x")
    assert completion.usage == Usage(input=asked_tokens, generated=957, source="reported")


def test_anthropics_cache_is_part_of_the_input(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    cached = {"cache_creation_input_tokens": 100, "cache_read_input_tokens": 50}

    async def script(asked: Asked) -> Reply:
        body = {"id": "m", "type": "message", "role": "assistant", "model": "served"}
        body |= {"stop_reason": "end_turn"}
        content = [{"type": "text", "text": "4"}]
        numbers = {"input_tokens": 5, "output_tokens": 7} | cached
        return web.json_response(body | {"content": content, "usage": numbers})

    completion, _ = ask(script, "litellm/anthropic/claude-x")
    assert completion.usage == Usage(input=155, generated=7, source="reported")


def test_equal_numbers_elsewhere_do_not_bear_a_figure_out() -> None:
    litellms = {
        "prompt_tokens": 3,
        "completion_tokens": 9,
        "completion_tokens_details": {"reasoning_tokens": 4},
    }
    elsewhere = {"token_count": 3, "tokens": [9, 4], "choices": [{"usage": litellms}]}
    swapped = {"usage": {"input_tokens": 9, "output_tokens": 3, "reasoning_tokens": 5}}
    unknown = {
        "prompt_tokens": None,
        "completion_tokens": None,
        "completion_tokens_details": {"reasoning_tokens": None},
    }
    for original in (elsewhere, swapped, {}):
        assert reported(litellms, json.dumps(original)) == unknown
    assert reported(litellms, "no JSON") == unknown
    assert reported(litellms, json.dumps({"usage": litellms})) == litellms
    apart = {"usage": {"completion_tokens": 5, "reasoning_tokens": 4}}
    assert reported(litellms, json.dumps(apart))["completion_tokens"] == 9


@pytest.mark.parametrize(
    "error",
    [{"message": {"a": [1]}, "code": {"b": 1}}, {"message": None, "code": [[]]}, ["x"], "x"],
)
@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_error_of_any_form_is_a_failure(error: object, status: int) -> None:
    async def script(asked: Asked) -> Reply:
        return web.json_response({"error": error}, status=status)

    assert ask(script, OPENAI)[0].error is not None


def test_a_sum_of_what_geminis_server_reports_is_kept() -> None:
    async def script(asked: Asked) -> Reply:
        counts = {"promptTokenCount": 3, "candidatesTokenCount": 5, "thoughtsTokenCount": 7}
        return servers.gemini(usage=counts | {"totalTokenCount": 15})

    completion, _ = ask(script, "litellm/gemini/gemini-2.5-pro")
    expected = Usage(input=3, generated=12, reasoning=7, visible=5, source="reported")
    assert completion.usage == expected


def test_a_limit_that_is_used_up_is_told() -> None:
    async def script(asked: Asked) -> Reply:
        reply = servers.chat()
        reply.headers["x-ratelimit-remaining-requests"] = "0"
        reply.headers["x-ratelimit-reset-requests"] = "3s"
        return reply

    assert ask(script, OPENAI)[0].extra["hold_back"] == 3.0
