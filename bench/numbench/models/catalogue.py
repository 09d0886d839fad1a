"""Named models (the catalogue, plugins, the user), and what a model's name resolves to."""

from __future__ import annotations

import re
import tomllib
from collections.abc import Mapping
from difflib import get_close_matches
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from numbench.errors import BadInput
from numbench.models.base import RequestSettings
from numbench.models.capabilities import default_settings, find_capabilities
from numbench.models.credentials import key_from_environment, load_env_file
from numbench.models.model_map import find_facts
from numbench.models.providers import (
    DEFAULT_LEVEL,
    CatalogueModel,
    ProviderPlugin,
    ReasoningLevel,
    all_providers,
    find_provider,
    join_names,
    plugin_models,
)
from numbench.models.user_catalogue import load_user_catalogue

_MAX_SUGGESTIONS = 3

_TOKENS_LEVEL = re.compile(r"([0-9]{1,9})-tokens")


class Catalogue(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The content of `catalogue.toml`."""

    model: tuple[CatalogueModel, ...]


class CatalogueEntry(NamedTuple):
    """One row of `numbench models`. key: the variable of the API key; None if none is needed."""

    name: str
    display: str
    route: str
    levels: tuple[str, ...]
    key: str | None
    key_is_set: bool


class ResolvedModel(NamedTuple):
    """A model at a reasoning level: its provider, its name there, and its request settings."""

    display: str
    level: str
    provider: ProviderPlugin
    served_name: str
    settings: RequestSettings
    is_in_catalogue: bool


@cache
def load_catalogue() -> Catalogue:
    """Return the bundled catalogue."""
    path = Path(__file__).with_name("catalogue.toml")
    return msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), Catalogue)


def named_models() -> dict[str, CatalogueModel]:
    """Return all named models by name: the bundled catalogue's, plugins', then the user's.

    The user's replace others of their name. Raises BadInput for a broken plugin or user catalogue,
    or a name that exists twice.
    """
    models = {model.name: model for model in load_catalogue().model}
    for model in plugin_models():
        if model.name in models:
            raise BadInput(
                f"the plugin provider {_provider_name(model.route)!r} names a model "
                f"{model.name!r}, which exists already ({models[model.name].route}); rename it"
            )
        models[model.name] = model
    return models | {model.name: model for model in load_user_catalogue().model}


def bundled_model(name: str) -> CatalogueModel | None:
    """Return the model of the bundled catalogue, None if there is none or the user replaces it."""
    if any(model.name == name for model in load_user_catalogue().model):
        return None
    return next((model for model in load_catalogue().model if model.name == name), None)


def reasoning_tokens_level(tokens: int) -> str:
    """Return the level of `--reasoning-tokens`, which names runs and their folders."""
    return f"{tokens}-tokens"


def find_named_model(name: str) -> CatalogueModel | None:
    """Return the named model `name`. Plugins are loaded only if the catalogues lack the name."""
    bundled = {model.name: model for model in load_catalogue().model}
    bundled |= {model.name: model for model in load_user_catalogue().model}
    if name in bundled or "/" in name:
        return bundled.get(name)
    return named_models().get(name)


def list_models() -> tuple[CatalogueEntry, ...]:
    """Return the named models with their levels and whether their API keys are set."""
    load_env_file()
    entries = []
    for model in named_models().values():
        variables = _provider_of(model).key_variables
        environment_key = key_from_environment(variables)
        key = environment_key.variable if environment_key else next(iter(variables), None)
        is_set = environment_key is not None or not variables
        entries.append(
            CatalogueEntry(model.name, model.display, model.route, tuple(model.levels), key, is_set)
        )
    return tuple(entries)


def levels_of_model(name: str) -> tuple[str, ...]:
    """Return the reasoning levels of a model. Raises BadInput for an unknown one."""
    if model := find_named_model(name):
        return tuple(model.levels)
    return tuple(_levels_of_route(name, find_model_provider(name)))


def find_model_provider(name: str, base_url: str | None = None) -> ProviderPlugin:
    """Return the provider of a model. Raises BadInput, with suggestions, for an unknown name.

    base_url: that of the user's own server, whose models have a route of their own.
    """
    if model := find_named_model(name):
        return _provider_of(model)
    provider_name, _, served_name = name.partition("/")
    provider = find_provider(provider_name) if served_name else None
    if provider is None and base_url:
        raise BadInput(f"unknown model {name!r}: for the server at --base-url use 'openai/{name}'")
    if provider is None:
        raise unknown_model_error(name)
    return provider


def resolve_model(name: str, reasoning: str | None) -> ResolvedModel:
    """Resolve the name or route of a hosted model at a reasoning level.

    Raises BadInput, with suggestions, for an unknown model or a level that it does not have.
    """
    provider = find_model_provider(name)
    if model := find_named_model(name):
        return _resolve_named_model(model, reasoning)
    return _resolve_route(name, provider, reasoning)


def unknown_model_error(name: str) -> BadInput:
    """Return the error for an unknown model, with at most three suggestions."""
    if suggestions := _suggest_models(name):
        return BadInput(
            f"unknown model {name!r}: did you mean {join_names(suggestions, 'or')}? "
            "(`numbench models` lists all)"
        )
    routes = [route for plugin in _routers() for route in plugin.routes]
    return BadInput(
        f"unknown model {name!r}: use a name that `numbench models` lists, or a route such as "
        f"{join_names(routes, 'or')}"
    )


def select_level(name: str, reasoning: str | None, levels: Mapping[str, ReasoningLevel]) -> str:
    """Return the level to use; a single one need not be named.

    Raises BadInput if `reasoning` is not one of `levels`, or is missing and there are several.
    """
    choices = ", ".join(levels)
    if reasoning is None:
        if len(levels) > 1:
            raise BadInput(f"{name} has several reasoning levels: give --reasoning {choices}")
        return next(iter(levels))
    if reasoning not in levels:
        if not levels:
            raise BadInput(f"{name} has no reasoning levels: leave out --reasoning")
        raise BadInput(f"{name} has no reasoning level {reasoning!r}; possible: {choices}")
    return reasoning


def _resolve_named_model(model: CatalogueModel, reasoning: str | None) -> ResolvedModel:
    provider = _provider_of(model)
    if tokens := _TOKENS_LEVEL.fullmatch(reasoning or ""):
        level = tokens[0]
        chosen = _budget_level(model.name, model.route, provider, int(tokens[1]), model.levels)
    else:
        level = select_level(model.name, reasoning, model.levels)
        chosen = model.levels[level]
    structured = model.structured if chosen.structured is None else chosen.structured
    temperature = model.temperature if chosen.temperature is None else chosen.temperature
    served_name = (chosen.route or model.route).partition("/")[2]
    known = provider.properties_of(served_name).settings
    request = {**provider.request, **chosen.request}
    default_temperature = 0.0 if temperature else None
    if isinstance(request.get("temperature"), int | float):
        # So that --temperature replaces it, and the record has the one that is sent.
        default_temperature = msgspec.convert(request.pop("temperature"), float)
    settings = RequestSettings(
        temperature=default_temperature,
        max_tokens=chosen.max_tokens or model.max_tokens or known.max_tokens,
        structured=structured,
        seed=model.seed,
        request=request,
    )
    return ResolvedModel(
        model.display, level, provider, served_name, settings, is_in_catalogue=True
    )


def _resolve_route(name: str, provider: ProviderPlugin, reasoning: str | None) -> ResolvedModel:
    served_name = name.partition("/")[2]
    known = provider.properties_of(served_name)
    level, request = DEFAULT_LEVEL, {**provider.request, **known.settings.request}
    levels = _levels_of_route(name, provider)
    if tokens := _TOKENS_LEVEL.fullmatch(reasoning or ""):
        level = tokens[0]
        request |= _budget_level(name, name, provider, int(tokens[1]), levels).request
    elif reasoning is not None:
        level = select_level(name, reasoning, levels)
        request |= levels[level].request
    capabilities = find_capabilities(provider, served_name, level)
    settings = default_settings(capabilities, known.settings, request)
    display = known.display or served_name
    return ResolvedModel(display, level, provider, served_name, settings, is_in_catalogue=False)


def _levels_of_route(name: str, provider: ProviderPlugin) -> dict[str, ReasoningLevel]:
    """Return the levels of a model by its route: the provider's without those it is known to lack.

    A router adapts levels to the models behind it.
    """
    levels = dict(provider.levels_for(name.partition("/")[2]))
    facts = None if any("/" in example for example in provider.examples) else find_facts(name)
    lacks = facts.lacks if facts else ()
    return {level: settings for level, settings in levels.items() if level not in lacks}


def _budget_level(
    name: str,
    route: str,
    provider: ProviderPlugin,
    tokens: int,
    levels: Mapping[str, ReasoningLevel],
) -> ReasoningLevel:
    """Return the level with a number of reasoning tokens. Raises BadInput if the model takes none.

    name: for messages. levels: those that the model has instead.
    """
    budget = provider.budget_for(route.partition("/")[2])
    if budget is None:
        choices = f"use --reasoning {', '.join(levels)}" if levels else "it has no levels either"
        raise BadInput(f"{name} takes no number of reasoning tokens: {choices}")
    if not (budget.minimum <= tokens <= budget.maximum or (tokens == 0 and budget.can_be_zero)):
        zero = "0, or " if budget.can_be_zero else ""
        raise BadInput(
            f"{name}: --reasoning-tokens {tokens}: give {zero}{budget.minimum:,} to "
            f"{budget.maximum:,}"
        )
    return ReasoningLevel(request=budget.request(tokens))


def _suggest_models(name: str) -> list[str]:
    """Return valid names that the user may have meant, the likeliest first."""
    provider_name, _, rest = name.partition("/")
    provider = find_provider(provider_name)
    if provider is not None:
        return list(provider.routes[:_MAX_SUGGESTIONS])
    names = [*named_models(), *(route for route in _all_routes() if route.islower())]
    suggestions = get_close_matches(name.lower(), names, n=1)
    if rest:
        providers = [plugin.name for plugin in all_providers()]
        if similar := get_close_matches(provider_name.lower(), providers, n=1, cutoff=0.75):
            suggestions.append(f"{similar[0]}/{rest}")
        else:
            suggestions += [f"{plugin.name}/{name}" for plugin in _routers()]
    return list(dict.fromkeys(suggestions))[:_MAX_SUGGESTIONS]


def _all_routes() -> list[str]:
    return [route for plugin in all_providers() for route in plugin.routes]


def _routers() -> list[ProviderPlugin]:
    """Return the providers that pass requests on to other vendors."""
    return [
        plugin for plugin in all_providers() if any("/" in example for example in plugin.examples)
    ]


def _provider_of(model: CatalogueModel) -> ProviderPlugin:
    provider = find_provider(_provider_name(model.route))
    assert provider is not None, f"no provider for {model.route}"
    return provider


def _provider_name(route: str) -> str:
    return route.partition("/")[0]
