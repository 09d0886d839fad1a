"""The catalogue of named models and providers (`catalogue.toml`), and what a name resolves to."""

from __future__ import annotations

import os
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from fnmatch import fnmatchcase
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from bench.errors import BadInput
from bench.models.base import Settings
from bench.models.keys import read_env_file

DEFAULT = "default"
"""The level of a model outside the catalogue that is asked without naming a level."""

OTHER_ROUTES = (
    "openai/NAME",
    "openrouter/VENDOR/NAME",
    "gemini/NAME",
    "litellm/PROVIDER/NAME",
    "baseline/float64",
    "baseline/float32",
    "baseline/bfloat16",
    "hf/PATH",
    "checkpoint/PATH",
    "replay/RUN",
)


class Level(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One reasoning level; what else it names overrides the model's own."""

    request: dict[str, object] = {}
    route: str | None = None
    structured: bool | None = None
    max_tokens: int | None = None


class Named(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One model of the catalogue. `seed` is sent where the provider offers one."""

    name: str
    display: str
    route: str
    levels: dict[str, Level]
    temperature: bool = True
    structured: bool = True
    max_tokens: int | None = None
    seed: int | None = None


class Provider(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """One way to reach models: `keys` are environment variables, the first that is set counts.

    without_temperature: models that reject one, patterns as the shell's.
    reasoning_without_temperature: those that reject one where a level but none is given.
    reports_cost: every answer comes with what it cost. batch_discount: the share of the price that
    its batch API takes off, None where it has none.
    """

    keys: tuple[str, ...]
    sdk: str
    levels: dict[str, Level]
    base_url: str | None = None
    request: dict[str, object] = {}
    without_temperature: tuple[str, ...] = ()
    reasoning_without_temperature: tuple[str, ...] = ()
    reports_cost: bool = False
    batch_discount: float | None = None


class Catalogue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """All of `catalogue.toml`."""

    model: tuple[Named, ...]
    provider: dict[str, Provider]


class Listed(NamedTuple):
    """One line of `numbench models`. `key` names the variable that holds the key."""

    name: str
    display: str
    route: str
    levels: tuple[str, ...]
    key: str
    key_is_set: bool


class Configuration(NamedTuple):
    """A model at a level: whom to ask, under which name, and with which settings."""

    display: str
    level: str
    provider: str
    served_name: str
    settings: Settings
    named: bool


@cache
def load() -> Catalogue:
    """The catalogue that came with the package."""
    path = Path(__file__).with_name("catalogue.toml")
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Catalogue)


def entries() -> tuple[Listed, ...]:
    """The named models, with their levels and whether their key is set."""
    read_env_file()
    listed = []
    for model in load().model:
        keys = load().provider[model.route.partition("/")[0]].keys
        present = next((key for key in keys if os.environ.get(key)), None)
        levels = tuple(model.levels)
        key = present or keys[0]
        listed.append(Listed(model.name, model.display, model.route, levels, key, bool(present)))
    return tuple(listed)


def resolve(name: str, reasoning: str | None) -> Configuration:
    """What `name`, a catalogue name or a provider's route, means at the level `reasoning`.

    BadInput, naming what is possible, for an unknown model or a level that it lacks.
    """
    for model in load().model:
        if model.name == name:
            return _resolve_named(model, reasoning)
    provider, _, served_name = name.partition("/")
    if provider not in load().provider or not served_name:
        raise unknown_model(name)
    return _resolve_route(name, provider, served_name, reasoning)


def unknown_model(name: str) -> BadInput:
    """The error for a model that nobody knows."""
    names = [model.name for model in load().model]
    close = get_close_matches(name, [*names, *OTHER_ROUTES], n=1)
    hint = f" (did you mean {close[0]}?)" if close else ""
    return BadInput(
        f"unknown model {name!r}{hint}: give one of {', '.join(names)}, "
        f"or a route: {', '.join(OTHER_ROUTES)}"
    )


def check_level(name: str, reasoning: str | None, levels: Mapping[str, Level]) -> str:
    """The level to use among `levels`; a single one needs no naming. BadInput otherwise."""
    possible = ", ".join(levels)
    if reasoning is None:
        if len(levels) > 1:
            raise BadInput(f"{name} has several reasoning levels, give --reasoning: {possible}")
        return next(iter(levels))
    if reasoning not in levels:
        raise BadInput(f"{name} has no reasoning level {reasoning!r}; possible: {possible}")
    return reasoning


def _resolve_named(model: Named, reasoning: str | None) -> Configuration:
    level = check_level(model.name, reasoning, model.levels)
    chosen = model.levels[level]
    provider, _, served_name = (chosen.route or model.route).partition("/")
    structured = model.structured if chosen.structured is None else chosen.structured
    settings = Settings(
        temperature=0.0 if model.temperature else None,
        max_tokens=chosen.max_tokens or model.max_tokens,
        structured=structured,
        seed=model.seed,
        request=load().provider[provider].request | chosen.request,
    )
    return Configuration(model.display, level, provider, served_name, settings, named=True)


def _resolve_route(
    name: str, provider: str, served_name: str, reasoning: str | None
) -> Configuration:
    known = load().provider[provider]
    level, request = DEFAULT, known.request
    if reasoning is not None:
        level = check_level(name, reasoning, known.levels)
        request = request | known.levels[level].request
    patterns = known.without_temperature
    if level not in (DEFAULT, "none"):
        patterns += known.reasoning_without_temperature
    rejects = any(fnmatchcase(served_name, pattern) for pattern in patterns)
    settings = Settings(temperature=None if rejects else 0.0, request=request)
    return Configuration(served_name, level, provider, served_name, settings, named=False)
