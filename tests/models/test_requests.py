"""Which parameters requests have by route and level; `test_golden_requests` has whole bodies."""

from __future__ import annotations

import pytest

from numbench.models.catalogue import (
    describe_hosted,
)
from tests.models.adapter_calls import call_adapter, valid_reply


@pytest.mark.parametrize(
    ("name", "temperature"),
    [
        ("claude-3.5-sonnet-20241022", 0.0),
        ("claude-3.7-sonnet:thinking", 0.0),
        ("claude-opus-4", 0.0),
        ("claude-sonnet-4-20250514", 0.0),
        ("claude-haiku-4.5", 0.0),
        ("claude-opus-4.6", 0.0),
        ("claude-opus-4.6-fast", 0.0),
        ("claude-opus-4.7", None),
        ("claude-opus-4.8", None),
        ("claude-sonnet-5", None),
        ("claude-opus-5.5:beta", None),
        ("claude-opus-latest", None),
    ],
)
def test_newer_claude_models_of_openrouter_get_no_temperature(
    name: str, temperature: float | None
) -> None:
    """With a parameter that a model rejects, OpenRouter finds no provider for a request."""
    for level in (None, "high"):
        _, received = call_adapter(valid_reply, f"openrouter/anthropic/{name}", level)
        assert received.body.get("temperature") == temperature
        assert received.body["provider"] == {"require_parameters": True}


@pytest.mark.parametrize(
    "model",
    [
        "litellm/anthropic/claude-x",
        "litellm/claude-x",
        "litellm/bedrock/us.anthropic.claude-x",
        "litellm/vertex_ai/claude-x",
    ],
)
def test_claude_gets_a_temperature_only_without_reasoning(model: str) -> None:
    def temperature(level: str | None) -> float | None:
        return describe_hosted(model, level).settings.temperature

    assert (temperature(None), temperature("none")) == (0.0, 0.0)
    assert (temperature("minimal"), temperature("low"), temperature("high")) == (None, None, None)
    assert describe_hosted("litellm/mistral/any", "low").settings.temperature == 0.0


@pytest.mark.parametrize(
    ("route", "structured"),
    [
        ("openai/gpt-4o", True),
        ("litellm/openai/gpt-4o", True),
        ("openai/gpt-3.5-turbo", False),
        ("openai/unknown", False),
        ("openrouter/openai/gpt-4o", False),
        ("deepseek/deepseek-flash", False),
        ("dashscope/qwen3.8-max", False),
    ],
)
def test_models_that_take_a_schema_get_one_by_default(route: str, structured: bool) -> None:
    assert describe_hosted(route, None).settings.structured is structured
