"""What a model accepts, as far as it is known, and the default settings that follow from it.

One default for all routes: temperature 0, the JSON schema of the answer, and the model's own token
limit; each only if the model is known to accept it (the temperature: unless it is known not to).
The catalogue may deviate, and so may the user.
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from typing import NamedTuple

from numbench.models.base import RequestSettings
from numbench.models.model_map import find_facts
from numbench.models.providers import DEFAULT_LEVEL, ProviderPlugin


class Capabilities(NamedTuple):
    """What a model accepts at a reasoning level; None: unknown."""

    temperature: bool | None = None
    json_schema: bool | None = None


def find_capabilities(provider: ProviderPlugin, served_name: str, level: str) -> Capabilities:
    """Return the capabilities of a model outside the catalogue.

    Sources: its provider's declaration and the model map.
    """
    patterns = provider.rejects_temperature
    if level not in (DEFAULT_LEVEL, "none"):
        patterns += provider.rejects_temperature_when_reasoning
    rejects = _matches(served_name, patterns)
    if level == "none" and _matches(served_name, provider.accepts_temperature_at_none):
        rejects = False
    facts = find_facts(f"{provider.name}/{served_name}")
    has_schema = provider.takes_schema and facts is not None and facts.has_schema
    return Capabilities(
        temperature=False if rejects else None, json_schema=True if has_schema else None
    )


def _matches(served_name: str, patterns: Sequence[str]) -> bool:
    return any(fnmatchcase(served_name, pattern) for pattern in patterns)


def default_settings(
    capabilities: Capabilities, known: RequestSettings, request: dict[str, object]
) -> RequestSettings:
    """Return the settings of requests to a model with these capabilities.

    known: what its provider knows of the model. request: the parameters of its provider and
    reasoning level.
    """
    return replace(
        known,
        temperature=None if capabilities.temperature is False else known.temperature,
        structured=known.structured or capabilities.json_schema is True,
        request=request,
    )
