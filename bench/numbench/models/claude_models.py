"""What is known of Anthropic's models by their names: reasoning levels, limits and settings.

Sources: the documentation of models, thinking and effort on platform.claude.com and the types of
the `anthropic` SDK 2.12, in November 2026.
"""

from __future__ import annotations

import re
from typing import NamedTuple

from numbench.models.base import RequestSettings
from numbench.models.providers import ModelProperties, ReasoningLevel

_DATE_SUFFIX = re.compile(r"-\d{8}$")
_VERSION = re.compile(r"claude-(?:[a-z]+-)?(\d+)(?:[.-](\d{1,2})(?!\d))?")

MAX_THINKING_BUDGET = 64_000 - 4096
"""The largest thinking budget: the longest output of 4.5 models, less tokens for the answer."""


class _Generation(NamedTuple):
    """Models that take the same parameters.

    max_tokens: the longest output of one request, thinking included. temperature: sent without
    reasoning; None if the models reject one. structured: whether they take a JSON schema.
    """

    levels: dict[str, ReasoningLevel]
    max_tokens: int
    temperature: float | None = None
    structured: bool = True


def _thinking(kind: str, **parameters: object) -> ReasoningLevel:
    return ReasoningLevel(request={"thinking": {"type": kind, **parameters}})


def thinking_budget(tokens: int) -> dict[str, object]:
    """Return the parameters of a thinking budget, for models that take one."""
    return {"thinking": {"type": "enabled", "budget_tokens": tokens}}


def _effort(effort: str) -> ReasoningLevel:
    """Return adaptive thinking at an effort. Without `display` the newer models omit its text."""
    thinking = {"type": "adaptive", "display": "summarized"}
    return ReasoningLevel(request={"thinking": thinking, "output_config": {"effort": effort}})


def _budgets() -> dict[str, ReasoningLevel]:
    """Return levels of thinking budgets: 1,024 is the least that is accepted."""
    budgets = {
        "minimal": 1024,
        "low": 4096,
        "medium": 16_384,
        "high": 32_768,
        "max": MAX_THINKING_BUDGET,
    }
    return {
        level: ReasoningLevel(request=thinking_budget(tokens)) for level, tokens in budgets.items()
    }


_WITHOUT_XHIGH = {effort: _effort(effort) for effort in ("low", "medium", "high", "max")}
_EFFORTS = {effort: _effort(effort) for effort in ("low", "medium", "high", "xhigh", "max")}

# Models up to 4.8 think only on request, later ones unless they are told not to.
_NO_REQUEST = ReasoningLevel()

_BUDGETED = _Generation({"none": _NO_REQUEST, **_budgets()}, 64_000, temperature=0.0)
_ADAPTIVE_OR_SAMPLED = _Generation(
    {"none": _NO_REQUEST, **_WITHOUT_XHIGH}, 128_000, temperature=0.0
)
_ADAPTIVE_ON_REQUEST = _Generation({"none": _NO_REQUEST, **_EFFORTS}, 128_000)
_ADAPTIVE = _Generation({"none": _thinking("disabled"), **_EFFORTS}, 128_000)
_BETWEEN_TOOLS = _Generation({"none": _thinking("between_tools"), **_EFFORTS}, 128_000)
_ALWAYS_THINKING = _Generation(_EFFORTS, 128_000)
_UNKNOWN = _ADAPTIVE._replace(structured=False)

_GENERATIONS = {
    "claude-haiku-4-5": _BUDGETED,
    "claude-sonnet-4-5": _BUDGETED,
    "claude-opus-4-5": _BUDGETED,
    "claude-sonnet-4-6": _ADAPTIVE_OR_SAMPLED,
    "claude-opus-4-6": _ADAPTIVE_OR_SAMPLED,
    "claude-opus-4-7": _ADAPTIVE_ON_REQUEST,
    "claude-opus-4-8": _ADAPTIVE_ON_REQUEST,
    "claude-sonnet-5": _ADAPTIVE,
    "claude-opus-5": _ADAPTIVE,
    "claude-haiku-5-5": _ADAPTIVE,
    "claude-sonnet-5-5": _BETWEEN_TOOLS,
    "claude-opus-5-5": _ALWAYS_THINKING,
    "claude-fable-5": _ALWAYS_THINKING,
    "claude-fable-5-1": _ALWAYS_THINKING,
    "claude-fable-5-2": _ALWAYS_THINKING,
    "claude-mythos-5": _ALWAYS_THINKING,
    "claude-mythos-5-1": _ALWAYS_THINKING,
    "claude-mythos-5-2": _ALWAYS_THINKING,
}


def claude_properties(name: str) -> ModelProperties:
    """Return the levels and settings of a Claude model; its name may end in a date.

    A model that is not known here counts as a recent one, without a JSON schema.
    """
    generation = _generation(name)
    settings = RequestSettings(
        temperature=generation.temperature,
        max_tokens=generation.max_tokens,
        structured=generation.structured,
    )
    return ModelProperties(levels=generation.levels, settings=settings)


def accepts_temperature(name: str) -> bool:
    """Return whether a Claude model accepts a temperature: up to 4.6. A name elsewhere has a dot.

    A name without a version counts as that of a recent model.
    """
    version = _VERSION.match(name)
    return version is not None and (int(version[1]), int(version[2] or 0)) <= (4, 6)


def max_output_tokens(name: str) -> int:
    """Return the longest output of a Claude model in one request, thinking included."""
    return _generation(name).max_tokens


def _generation(name: str) -> _Generation:
    return _GENERATIONS.get(_DATE_SUFFIX.sub("", name), _UNKNOWN)
