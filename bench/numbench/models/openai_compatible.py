"""The built-in providers with a server of OpenAI's Chat Completions format.

They are asked directly: what is sent is what a level says, and no library changes it on the way.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping

from numbench.models.base import Model
from numbench.models.hosted_providers import effort_levels, should_stream
from numbench.models.providers import (
    ModelTarget,
    ProviderPlugin,
    ReasoningBudget,
    ReasoningLevel,
)


def _opener(
    url: str,
    token_limit: str = "max_tokens",
    asks_for_usage: bool = True,
    quota_recovers: bool = False,
) -> Callable[[ModelTarget], Model]:
    """Return the function that opens the models of the server at `url`."""

    def open_model(target: ModelTarget) -> Model:
        from numbench.models.openai_api import OpenAIModel, chat_format

        return OpenAIModel(
            target.name,
            target.served_name,
            chat_format(token_limit, asks_for_usage),
            key=target.key,
            base_url=target.base_url or url,
            streams=should_stream(target),
            headers=target.headers,
            quota_recovers=quota_recovers,
        )

    return open_model


def _levels(*names: str) -> Mapping[str, ReasoningLevel]:
    levels = effort_levels()
    return {name: levels[name] for name in names}


def _thinking(kind: str, **more: object) -> ReasoningLevel:
    return ReasoningLevel(request={"thinking": {"type": kind}, **more})


XAI = ProviderPlugin(
    name="xai",
    open_model=_opener("https://api.x.ai/v1", "max_completion_tokens"),
    key_variables=("XAI_API_KEY",),
    hosts=("api.x.ai",),
    levels=_levels("low", "medium", "high"),
    # Other models of Grok 4.20 and before take no level.
    levels_of={
        "grok-4.[67]*": _levels("low", "medium", "high", "xhigh"),
        "grok-4.3*": _levels("none", "low", "medium", "high"),
        "grok-4.20-multi-agent*": _levels("low", "medium", "high", "xhigh"),
        "grok-4.20*": {},
    },
    reports_cost=True,
    sdk="openai",
    inspects_requests=True,
)

DEEPSEEK = ProviderPlugin(
    name="deepseek",
    open_model=_opener("https://api.deepseek.com"),
    key_variables=("DEEPSEEK_API_KEY",),
    hosts=("api.deepseek.com",),
    levels={
        "none": _thinking("disabled"),
        **{
            effort: _thinking("enabled", reasoning_effort=effort)
            for effort in ("low", "high", "max")
        },
    },
    rejects_temperature_when_reasoning=("*",),
    takes_schema=False,
    sdk="openai",
    inspects_requests=True,
)

DASHSCOPE = ProviderPlugin(
    name="dashscope",
    # Its limit of tokens per minute has the code insufficient_quota, a spent account status 400.
    open_model=_opener(
        "https://dashscope-intl.aliyuncs.com/compatible-mode/v1", quota_recovers=True
    ),
    key_variables=("DASHSCOPE_API_KEY",),
    hosts=("dashscope-intl.aliyuncs.com",),
    levels={
        "none": ReasoningLevel(request={"enable_thinking": False}),
        **_levels("low", "medium", "xhigh"),
    },
    budgets={
        "qwen*": ReasoningBudget(
            lambda tokens: {"enable_thinking": True, "thinking_budget": tokens}, 1, 262_144
        )
    },
    takes_schema=False,
    sdk="openai",
    inspects_requests=True,
)

MOONSHOT = ProviderPlugin(
    name="moonshot",
    open_model=_opener("https://api.moonshot.ai/v1", "max_completion_tokens"),
    key_variables=("MOONSHOT_API_KEY",),
    hosts=("api.moonshot.ai",),
    levels=_levels("low", "high", "max"),
    levels_of={"kimi-k2.[56]*": {"none": _thinking("disabled")}, "kimi-k2*": {}},
    rejects_temperature=("kimi-*",),
    sdk="openai",
    inspects_requests=True,
)

MISTRAL = ProviderPlugin(
    name="mistral",
    # Its streams always end with the usage, and it rejects fields that it does not know.
    open_model=_opener("https://api.mistral.ai/v1", asks_for_usage=False),
    key_variables=("MISTRAL_API_KEY",),
    hosts=("api.mistral.ai",),
    levels=_levels("none", "high"),
    # Its seed has another name (`random_seed`).
    takes_seed=False,
    sdk="openai",
    inspects_requests=True,
)

META = ProviderPlugin(
    name="meta",
    open_model=_opener("https://api.meta.ai/v1", "max_completion_tokens"),
    key_variables=("META_API_KEY", "MODEL_API_KEY"),
    hosts=("api.meta.ai",),
    levels=_levels("minimal", "low", "medium", "high", "xhigh"),
    levels_of={"muse-wonder*": _levels("minimal", "low", "medium", "high", "xhigh", "max")},
    rejects_temperature=("muse-wonder*",),
    sdk="openai",
    inspects_requests=True,
)

TOGETHER = ProviderPlugin(
    name="together_ai",
    open_model=_opener("https://api.together.ai/v1"),
    key_variables=("TOGETHER_API_KEY", "TOGETHERAI_API_KEY"),
    hosts=("api.together.ai", "api.together.xyz"),
    levels=_levels("low", "medium", "high"),
    levels_of={"moonshotai/Kimi-K3*": _levels("low", "high", "max")},
    sdk="openai",
    inspects_requests=True,
)
