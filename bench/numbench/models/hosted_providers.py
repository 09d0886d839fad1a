"""The built-in providers with a server: OpenAI, OpenRouter, Gemini, Anthropic, others via LiteLLM.

Their SDKs are imported when a model is opened.
"""

from __future__ import annotations

from collections.abc import Sequence
from typing import TYPE_CHECKING

from numbench.errors import BadInput
from numbench.models.base import BatchService, Model, RequestSettings
from numbench.models.claude_models import (
    MAX_THINKING_BUDGET,
    accepts_temperature,
    claude_properties,
    thinking_budget,
)
from numbench.models.providers import (
    ModelProperties,
    ModelTarget,
    ProviderPlugin,
    ReasoningBudget,
    ReasoningLevel,
)

if TYPE_CHECKING:
    from numbench.models.openai_api import ApiFormat

STREAMS_FROM_OTHER_SERVERS = False
"""Whether a server that is not the provider's own streams without `--stream`.

Some change the record: LiteLLM's proxy estimates the usage of streams, and `transformers serve`
drops characters that end in the middle of a token.
"""

_OPENAI_URL = "https://api.openai.com/v1"
_OPENROUTER_URL = "https://openrouter.ai/api/v1"

_EFFORTS = ("none", "minimal", "low", "medium", "high", "xhigh", "max")
_OPENAI_REASONING_MODELS = ("gpt-5*", "gpt-6*", "o[1-9]*")


def _openai_format(target: ModelTarget) -> ApiFormat:
    from numbench.models.openai_api import RESPONSES_FORMAT, chat_format

    if target.api == "responses":
        return RESPONSES_FORMAT
    # OpenAI's reasoning models accept only the newer name of the limit, most servers the older.
    is_openai = target.is_in_catalogue or target.base_url is None
    return chat_format("max_completion_tokens" if is_openai else "max_tokens")


def should_stream(target: ModelTarget) -> bool:
    """Return whether to stream answers: as the user says, else from the provider itself."""
    if target.stream is not None:
        return target.stream
    return target.base_url is None or STREAMS_FROM_OTHER_SERVERS


def _open_openai(target: ModelTarget) -> Model:
    from numbench.models.openai_api import OpenAIModel

    return OpenAIModel(
        target.name,
        target.served_name,
        _openai_format(target),
        key=target.key,
        base_url=target.base_url or _OPENAI_URL,
        streams=should_stream(target),
        headers=target.headers,
        in_background=target.background,
    )


def _open_openai_batch(target: ModelTarget) -> BatchService:
    from numbench.models.openai_batch import OpenAIBatchService

    return OpenAIBatchService(
        target.served_name,
        _openai_format(target),
        key=target.key,
        base_url=target.base_url or _OPENAI_URL,
        headers=target.headers,
    )


def _open_openrouter(target: ModelTarget) -> Model:
    from numbench.models.openai_api import OpenAIModel, chat_format

    return OpenAIModel(
        target.name,
        target.served_name,
        chat_format("max_tokens"),
        key=target.key,
        base_url=target.base_url or _OPENROUTER_URL,
        streams=should_stream(target),
        headers=target.headers,
    )


def _open_gemini(target: ModelTarget) -> Model:
    from numbench.models.gemini_api import GeminiModel

    return GeminiModel(
        target.name,
        target.served_name,
        key=target.key,
        base_url=target.base_url,
        streams=should_stream(target),
        headers=target.headers,
    )


def _open_gemini_batch(target: ModelTarget) -> BatchService:
    from numbench.models.gemini_batch import GeminiBatchService

    return GeminiBatchService(
        target.served_name, key=target.key, base_url=target.base_url, headers=target.headers
    )


def _open_anthropic(target: ModelTarget) -> Model:
    from numbench.models.anthropic_api import AnthropicModel

    return AnthropicModel(
        target.name,
        target.served_name,
        key=target.key,
        base_url=target.base_url,
        streams=should_stream(target),
        headers=target.headers,
    )


def _open_anthropic_batch(target: ModelTarget) -> BatchService:
    from numbench.models.anthropic_batch import AnthropicBatchService

    return AnthropicBatchService(
        target.served_name, key=target.key, base_url=target.base_url, headers=target.headers
    )


def _open_litellm(target: ModelTarget) -> Model:
    from numbench.models.litellm_api import LiteLLMModel

    if target.stream:
        raise BadInput(f"{target.name}: models of litellm/ do not stream: omit --stream")
    return LiteLLMModel(
        target.name,
        target.served_name,
        key=target.key,
        base_url=target.base_url,
        headers=target.headers,
    )


def _pin_openrouter_hosts(names: Sequence[str], quantizations: Sequence[str]) -> dict[str, object]:
    choice = {"only": list(names), "quantizations": list(quantizations)}
    return {"provider": {name: values for name, values in choice.items() if values}}


def _thinking_level(level: str) -> ReasoningLevel:
    return ReasoningLevel(request={"thinking_level": level, "include_thoughts": True})


def _thinking_budget(tokens: int) -> dict[str, object]:
    request: dict[str, object] = {"thinking_budget": tokens}
    return request | {"include_thoughts": True} if tokens else request


def _router_properties(name: str) -> ModelProperties:
    """Return the settings of a model of OpenRouter: no temperature for the newer Claude models."""
    vendor, _, model = name.partition("/")
    is_accepted = vendor != "anthropic" or accepts_temperature(model)
    return ModelProperties(settings=RequestSettings(temperature=0.0 if is_accepted else None))


def _router_budget(tokens: int) -> dict[str, object]:
    return {"reasoning": {"max_tokens": tokens}}


def effort_levels() -> dict[str, ReasoningLevel]:
    return {effort: ReasoningLevel(request={"reasoning_effort": effort}) for effort in _EFFORTS}


OPENAI = ProviderPlugin(
    name="openai",
    open_model=_open_openai,
    key_variables=("OPENAI_API_KEY",),
    hosts=("api.openai.com",),
    levels=effort_levels(),
    rejects_temperature=_OPENAI_REASONING_MODELS,
    accepts_temperature_at_none=("gpt-6.1-terra*", "gpt-6-luna*"),
    open_batch=_open_openai_batch,
    batch_discount=0.5,
    apis=("chat", "responses"),
    takes_background=True,
    sdk="openai",
    inspects_requests=True,
)

OPENROUTER = ProviderPlugin(
    name="openrouter",
    open_model=_open_openrouter,
    examples=("VENDOR/NAME",),
    key_variables=("OPENROUTER_API_KEY",),
    hosts=("openrouter.ai",),
    levels={
        effort: ReasoningLevel(request={"reasoning": {"effort": effort}})
        for effort in _EFFORTS
        if effort != "max"
    },
    budgets={
        **{
            f"anthropic/claude-{model}": ReasoningBudget(_router_budget, 1024, 128_000)
            for model in (
                "3.7-*",
                "opus-4",
                "opus-4.[156]",
                "sonnet-4",
                "sonnet-4.[56]",
                "haiku-4.5",
            )
        },
        "google/gemini-2.5-*": ReasoningBudget(_router_budget, 128, 32_768),
    },
    # require_parameters: use only providers that honour every parameter of the request.
    request={"usage": {"include": True}, "provider": {"require_parameters": True}},
    properties_of=_router_properties,
    rejects_temperature=tuple(f"openai/{pattern}" for pattern in _OPENAI_REASONING_MODELS),
    reports_cost=True,
    sdk="openai",
    inspects_requests=True,
    pin_hosts=_pin_openrouter_hosts,
)

GEMINI = ProviderPlugin(
    name="gemini",
    open_model=_open_gemini,
    key_variables=("GEMINI_API_KEY", "GOOGLE_API_KEY"),
    hosts=("generativelanguage.googleapis.com",),
    levels={level: _thinking_level(level) for level in ("minimal", "low", "medium", "high")},
    # Gemini 2.5 takes a number of tokens instead; only Pro always reasons.
    levels_of={
        "gemini-2.5-pro*": {
            "minimal": ReasoningLevel(request=_thinking_budget(128)),
            "maximal": ReasoningLevel(request=_thinking_budget(32_768)),
        },
        "gemini-2.5-flash*": {
            "none": ReasoningLevel(request=_thinking_budget(0)),
            "maximal": ReasoningLevel(request=_thinking_budget(24_576)),
        },
    },
    budgets={
        "gemini-2.5-pro*": ReasoningBudget(_thinking_budget, 128, 32_768),
        "gemini-2.5-flash-lite*": ReasoningBudget(_thinking_budget, 512, 24_576, can_be_zero=True),
        "gemini-2.5-flash*": ReasoningBudget(_thinking_budget, 1, 24_576, can_be_zero=True),
    },
    # From 3 on Google advises against a low temperature, and from 3.5 on it ignores the value.
    rejects_temperature=("gemini-[3-9]*", "gemini-*-latest"),
    open_batch=_open_gemini_batch,
    batch_discount=0.5,
    sdk="google-genai",
    inspects_requests=True,
)

ANTHROPIC = ProviderPlugin(
    name="anthropic",
    open_model=_open_anthropic,
    key_variables=("ANTHROPIC_API_KEY",),
    hosts=("api.anthropic.com",),
    properties_of=claude_properties,
    rejects_temperature_when_reasoning=("*",),
    takes_seed=False,
    open_batch=_open_anthropic_batch,
    batch_discount=0.5,
    budgets={"claude-*-4-5*": ReasoningBudget(thinking_budget, 1024, MAX_THINKING_BUDGET)},
    inspects_requests=True,
)

LITELLM = ProviderPlugin(
    name="litellm",
    open_model=_open_litellm,
    examples=("PROVIDER/NAME",),
    levels=effort_levels(),
    rejects_temperature=tuple(
        f"{provider}/{pattern}"
        for provider in ("openai", "azure")
        for pattern in _OPENAI_REASONING_MODELS
    ),
    rejects_temperature_when_reasoning=("anthropic/*", "*claude*"),
    sdk="litellm",
    inspects_requests=True,
)
