"""The request bodies that models get: `golden_requests.jsonl`.

Every named model at every level, and models of all providers by their routes: at every level, with
numbers of reasoning tokens, and with options. After a change of the catalogue or of a format,
`python -m tests.models.golden_requests` writes the file again; review the difference before it is
committed.
"""

from __future__ import annotations

import asyncio
import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any, cast
from unittest.mock import patch

from numbench.models import Api, RequestSettings, Server, open_model
from numbench.models.catalogue import bundled_models, levels_of_model
from numbench.models.facts import bundled_tables
from numbench.models.http_client import HttpClient, Reply
from numbench.models.providers import find_provider
from tests.models.adapter_calls import MESSAGES

GOLDEN_FILE = Path(__file__).with_suffix(".jsonl")

ROUTES = (
    *("openai/gpt-5", "openai/gpt-5-mini", "openai/gpt-5.1", "openai/gpt-5.5"),
    *(
        "openai/gpt-6.2-astra",
        "openai/gpt-7",
        "openai/gpt-5.5-pro",
        "openai/gpt-5.6-luna",
        "openai/gpt-4.1",
        "openai/o4-mini",
    ),
    *("anthropic/claude-haiku-4-5", "anthropic/claude-opus-4-5-20251101"),
    *("anthropic/claude-sonnet-4-6", "anthropic/claude-opus-4-7", "anthropic/claude-opus-4-8"),
    *("anthropic/claude-sonnet-5", "anthropic/claude-haiku-5-5", "anthropic/claude-opus-9"),
    *("gemini/gemini-3-flash-preview", "gemini/gemini-3.1-pro-preview", "gemini/gemini-3.7-flash"),
    *("gemini/gemini-2.5-flash-lite", "gemini/gemini-flash-latest"),
    *("gemini/gemini-4-hydrogen", "gemini/gemini-3.5-flash-lite"),
    *("xai/grok-4.3", "xai/grok-4.7", "xai/grok-4.20", "xai/grok-4.20-multi-agent"),
    *("deepseek/deepseek-v4-pro", "deepseek/deepseek-flash", "moonshot/kimi-k2.6"),
    *("moonshot/kimi-k2.7-code", "moonshot/kimi-k3", "dashscope/qwen3.7-plus"),
    *("dashscope/qwen3-max", "dashscope/qwen3.8-flash", "mistral/mistral-large-latest"),
    *("mistral/mistral-medium-latest", "meta/muse-spark-1.1", "meta/muse-ember-1.0"),
    *("together_ai/moonshotai/Kimi-K3", "together_ai/deepseek-ai/DeepSeek-V4-Pro-0813"),
    *("together_ai/zai-org/GLM-5.2", "together_ai/meta-llama/Llama-3.3-70B-Instruct-Turbo"),
    *("groq/openai/gpt-oss-120b", "groq/qwen/qwen3.8-27b", "zai/glm-5.3", "zai/glm-5.2"),
    *("fireworks_ai/accounts/fireworks/models/kimi-k3p1-pro",),
    *("together_ai/openai/gpt-oss-120b", "openrouter/anthropic/claude-opus-4.8"),
    *("openrouter/anthropic/claude-opus-4.5", "openrouter/openai/gpt-5.5"),
    *("openrouter/x-ai/grok-4.3", "openrouter/google/gemini-2.5-pro"),
    *("openrouter/google/gemini-4-carbon", "openrouter/moonshotai/kimi-k3"),
)

BUDGETS = (
    *(("gemini-2.5-pro", "128-tokens"), ("gemini-2.5-flash", "0-tokens")),
    *(("gemini-2.5-flash", "4096-tokens"), ("gemini/gemini-2.5-flash-lite", "512-tokens")),
    *(("anthropic/claude-sonnet-4-5", "2048-tokens"), ("dashscope/qwen3.7-plus", "1-tokens")),
    *(("openrouter/anthropic/claude-opus-4.5", "1024-tokens"),),
    *(("openrouter/google/gemini-2.5-flash", "128-tokens"),),
)

OPTIONS: tuple[dict[str, Any], ...] = (
    {"max_tokens": 5000, "temperature": 0.7, "seed": 7, "answer_kind": "list"},
    {"structured": False, "params": {"top_p": 0.5, "reasoning": {"more": 1}}, "max_tokens": 70000},
    {"structured": True, "answer_kind": "letter"},
    {"structured": False, "tools": "calculator"},
)
"""Settings of requests, sent whole to one model of every provider."""


def configurations() -> Iterator[tuple[str, str | None, str, dict[str, Any]]]:
    """Yield every model, level, API format and settings of the file."""
    for model in bundled_models():
        for level in model.all_levels():
            for api in _apis(model.route):
                yield model.name, level, api, {}
    for route in ROUTES:
        for route_level in (None, *levels_of_model(route)):
            for api in _apis(route):
                yield route, route_level, api, {}
    for name, level in BUDGETS:
        yield name, level, "chat", {}
    providers = {route.partition("/")[0]: route for route in ROUTES}
    for route in providers.values():
        for api in _apis(route):
            for options in OPTIONS:
                yield route, None, api, options


def _apis(route: str) -> tuple[str, ...]:
    provider = find_provider(route.partition("/")[0])
    assert provider is not None
    return provider.apis


def sent_requests() -> list[dict[str, Any]]:
    """Return what a provider receives for each configuration: path, below its own URL, and body."""
    return asyncio.run(_sent_requests())


def read_golden_file() -> list[dict[str, Any]]:
    """Return the requests in the file."""
    return [json.loads(line) for line in GOLDEN_FILE.read_text(encoding="utf-8").splitlines()]


async def _sent_requests() -> list[dict[str, Any]]:
    requests = []
    for name, level, api, options in configurations():
        sent: list[tuple[str, bytes]] = []

        async def record(
            client: object, method: str, url: str, headers: object, body: bytes, seconds: float
        ) -> Reply:
            sent.append((url, body))  # noqa: B023
            return Reply(200, {}, b"{}")

        server = Server(api=cast(Api, api), stream=not options)
        opened = open_model(name, level, server, needs_key=False)
        settings = RequestSettings(**(vars(opened.description.settings) | options))
        with patch.object(HttpClient, "request", record):
            await opened.model.answer(MESSAGES, settings)
        ((url, body),) = sent
        rows = {row.name: row for row in bundled_tables().provider}
        path = url.partition("?")[0].removeprefix(rows[opened.description.provider.name].url)
        configuration = {"model": name, "level": level, "api": api}
        configuration |= {"options": options} if options else {}
        requests.append(configuration | {"path": path, "body": json.loads(body)})
    return requests


if __name__ == "__main__":
    lines = [json.dumps(request, sort_keys=True) for request in sent_requests()]
    GOLDEN_FILE.write_text("".join(f"{line}\n" for line in lines), encoding="utf-8")
    print(f"{GOLDEN_FILE}: {len(lines)} requests")
