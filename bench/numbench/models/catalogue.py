"""The catalogue: what a model's name resolves to, from the bundled files, plugins and the user."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from difflib import get_close_matches
from functools import reduce
from typing import NamedTuple

import msgspec

from numbench.errors import BadInput
from numbench.models.base import Api, Model, RequestSettings
from numbench.models.base_url import is_host_of, normalize_base_url
from numbench.models.facts import (
    DEFAULT_LEVEL,
    TOKENS_LEVEL,
    Facts,
    NamedModel,
    ReasoningBudget,
    ReasoningLevel,
    Rule,
    bundled_tables,
    catalogue_path,
    fill,
    user_tables,
)
from numbench.models.prices import ModelFacts, find_facts, find_vendor_facts, load_model_map
from numbench.models.providers import (
    ProviderPlugin,
    all_providers,
    find_provider,
    join_names,
    plugin_providers,
)

_MAX_SUGGESTIONS = 3


class ModelDescription(NamedTuple):
    """A model at a reasoning level, before any request is made.

    settings: a template; the runner sets the kind of answer for each task.
    identity: what else identifies the requests of a run: route, server, and the API format if it
        is not Chat Completions; for models in this process, for example a hash of the weights.
    provider, served_name: who serves it, under which name.
    takes_seed: whether requests may contain a seed.
    level_request: the part of the settings' `request` that is due to the reasoning level.
    facts: prices and limits according to the catalogue and the model map, None if both lack the
        model or another server serves it.
    known: what else is known of the model.
    model: the open model, of those in this process: it stays open as long as its description.
    """

    display: str
    level: str
    settings: RequestSettings
    identity: dict[str, object]
    provider: ProviderPlugin
    served_name: str
    takes_seed: bool = True
    level_request: Mapping[str, object] = {}
    facts: ModelFacts | None = None
    known: Facts = Facts()
    model: Model | None = None

    @property
    def notices(self) -> list[str]:
        """What to know before the model is asked: that it retires, or may refuse its level."""
        notices = [f"{self.served_name} {self.known.retirement}"] if self.known.retirement else []
        if self.level in unconfirmed_levels(str(self.route), self.known):
            notices.append(
                f"it is not known whether {self.served_name} has the level {self.level}; the "
                "provider may refuse it"
            )
        return notices

    @property
    def route(self) -> str | None:
        """`PROVIDER/NAME`, None for models in this process."""
        route = self.identity.get("route")
        return None if route is None else str(route)


def bundled_models() -> tuple[NamedModel, ...]:
    """Return the named models of this package, with the settings of their levels."""
    return tuple(map(_with_levels, bundled_tables().model))


def named_models() -> dict[str, NamedModel]:
    """Return all named models by name: the bundled ones, plugins', then the user's.

    The user's replace others of their name. Raises BadInput for a broken plugin or user catalogue,
    or a name that exists twice.
    """
    models = {model.name: model for model in bundled_tables().model}
    for provider in plugin_providers().values():
        for model in provider.models:
            if model.name in models:
                raise BadInput(
                    f"the plugin provider {provider.name!r} names a model {model.name!r}, which "
                    "exists already; rename it"
                )
            models[model.name] = model
    models |= {model.name: model for model in user_tables().model}
    return {name: _with_levels(model) for name, model in models.items()}


def bundled_model(name: str) -> NamedModel | None:
    """Return the bundled model `name`, None if there is none or the user replaces it."""
    if any(model.name == name for model in user_tables().model):
        return None
    return next((model for model in bundled_models() if model.name == name), None)


def find_named_model(name: str) -> NamedModel | None:
    """Return the named model `name`. Plugins are loaded only if the catalogues lack the name."""
    for model in (*user_tables().model, *bundled_tables().model):
        if model.name == name:
            return _with_levels(model)
    return None if "/" in name else named_models().get(name)


def levels_of_model(name: str) -> tuple[str, ...]:
    """Return the reasoning levels of a model. Raises BadInput for an unknown one."""
    if model := find_named_model(name):
        return tuple(model.all_levels())
    return tuple(_levels_of_route(name, find_model_provider(name)))


def unconfirmed_levels(route: str, known: Facts) -> set[str]:
    """Return the levels of the API of a route that its model may refuse."""
    if not known.levels_vary:
        return set()
    mapped = find_facts(route) or ModelFacts(route)
    # The map has no flags for these: they come with the others.
    with_flags = ("low", "medium", "high") if mapped.levels or mapped.lacks else ()
    return set(known.all_levels()).difference(mapped.levels, with_flags)


def find_model_provider(name: str, base_url: str | None = None) -> ProviderPlugin:
    """Return the provider of a model. Raises BadInput, with suggestions, for an unknown name.

    base_url: that of the user's own server, whose models have a route of their own.
    """
    model = find_named_model(name)
    provider_name, _, served_name = (model.route if model else name).partition("/")
    provider = find_provider(provider_name) if served_name else None
    if provider is None and base_url:
        route = f"openai/{'NAME' if name.endswith('/') else name}"
        raise BadInput(f"unknown model {name!r}: for the server at --base-url use {route!r}")
    if provider is None:
        raise _unknown_model_error(name)
    return provider


def describe_hosted(
    name: str, reasoning: str | None = None, base_url: str | None = None, api: Api = "chat"
) -> ModelDescription:
    """Return the description of a model behind a server at a reasoning level.

    On another server than the provider's, a model has a level only if one is given, and no settings
    but those of the provider's format, the level and the user's catalogue.
    Raises BadInput, with suggestions, for an unknown model, or a level or API that it lacks.
    """
    provider, model = find_model_provider(name, base_url), find_named_model(name)
    if api not in provider.apis:
        choices = " or ".join(provider.apis)
        raise BadInput(f"{name}: --api {api}: {provider.name} has {choices} only: omit --api")
    server = normalize_base_url(base_url, provider.key_variables) if base_url else None
    is_elsewhere = server is not None and not is_host_of(provider.hosts, server)
    route = model.route if model else name
    levels = model.all_levels() if model else _levels_of_route(name, provider, is_elsewhere)
    # Only the user knows a model of that name on another server.
    is_users = any(each.name == name for each in user_tables().model)
    defaults = model if is_users or not is_elsewhere else None
    if tokens := TOKENS_LEVEL.fullmatch(reasoning or ""):
        budget = _facts(route, provider, DEFAULT_LEVEL).budget
        level, chosen = tokens[0], _budget_level(name, int(tokens[1]), budget, levels)
    elif reasoning is None and defaults is None:
        level, chosen = DEFAULT_LEVEL, ReasoningLevel()
    else:
        level = select_level(name, reasoning, levels)
        chosen = levels[level]
    route = chosen.route or route
    facts = _facts(route, provider, level, is_elsewhere)
    base = facts.request
    if defaults:
        facts = facts.updated(msgspec.structs.replace(defaults, levels=None, none=None))
    elif is_elsewhere:
        chosen = msgspec.structs.replace(chosen, structured=None)
    settings = _settings(facts.updated(chosen), defaults)
    takes_seed = facts.takes_seed is not False and api == "chat"
    identity: dict[str, object] = {"route": route, "base_url": server}
    identity |= {"api": api} if api != "chat" else {}
    identity |= {"note": provider.note} if provider.note else {}
    served_name = route.partition("/")[2]
    return ModelDescription(
        display=model.display if model else served_name,
        level=level,
        settings=settings if takes_seed else replace(settings, seed=None),
        identity=identity,
        provider=provider,
        served_name=served_name,
        takes_seed=takes_seed,
        level_request={k: v for k, v in settings.request.items() if base.get(k) != v},
        facts=None if base_url else _limits(route, facts),
        known=facts,
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
    if not levels:
        raise BadInput(f"{name} has no reasoning levels: omit --reasoning")
    if reasoning not in levels:
        raise BadInput(f"{name} has no reasoning level {reasoning!r}; possible: {choices}")
    return reasoning


def _facts(route: str, provider: ProviderPlugin, level: str, is_elsewhere: bool = False) -> Facts:
    """Return the facts about the model of a route at a level: later sources take precedence.

    These are the model map, the provider, and the rules of the bundled files, plugins and the user.
    Whether another server takes a schema only the user knows.
    """
    facts, mapped = Facts(), None if is_elsewhere else find_facts(route)
    if mapped:
        retires, successor = mapped.retires or None, mapped.successor or None
        facts = Facts(structured=mapped.has_schema or None, retires=retires, successor=successor)
    facts = facts.updated(provider.facts).updated(Facts(levels=dict(provider.levels) or None))
    facts = _with_rules(facts, (*bundled_tables().rule, *provider.rules), route, level)
    if is_elsewhere:
        facts = msgspec.structs.replace(facts, structured=None, retires=None, levels_vary=None)
    return _with_rules(facts, user_tables().rule, route, level)


def _limits(route: str, facts: Facts) -> ModelFacts | None:
    """Return the facts of the model map with the limits of the catalogue, which go first."""
    mapped = find_facts(route) or find_vendor_facts(route)
    own = {name: limit for name in ("context", "max_output") if (limit := getattr(facts, name))}
    return msgspec.structs.replace(mapped or ModelFacts(route), **own) if own else mapped


def _with_rules(facts: Facts, rules: Sequence[Rule], route: str, level: str) -> Facts:
    applying = (rule for rule in rules if rule.applies(route, level))
    return reduce(Facts.updated, applying, facts)


def _settings(facts: Facts, model: NamedModel | None) -> RequestSettings:
    """Return the settings of requests.

    Models get temperature 0 unless they are known to reject it, and the JSON schema of the answer
    if they, or those who named them, are known to take it.
    """
    request = dict(facts.request)
    temperature = None if facts.temperature is False else 0.0
    if isinstance(request.get("temperature"), int | float):
        # So that --temperature replaces it, and the record has the one that is sent.
        temperature = msgspec.convert(request.pop("temperature"), float)
    return RequestSettings(
        temperature=temperature,
        max_tokens=facts.max_tokens,
        structured=model is not None if facts.structured is None else facts.structured,
        seed=model.seed if model else None,
        request=request,
    )


def _with_levels(model: NamedModel) -> NamedModel:
    """Return a named model whose levels have their settings, those of its route as a default."""
    provider = find_provider(model.route.partition("/")[0])
    if provider is None or provider.in_process:
        raise BadInput(
            f"{catalogue_path()}: {model.name}: route {model.route!r}: use PROVIDER/NAME of a "
            "provider with a server"
        )
    facts = _facts(model.route, provider, DEFAULT_LEVEL).updated(model)
    levels = facts.all_levels() or {DEFAULT_LEVEL: ReasoningLevel()}
    vary = bool(facts.levels_vary)
    return msgspec.structs.replace(model, levels=levels, levels_vary=vary, none=None)


def _levels_of_route(
    name: str, provider: ProviderPlugin, is_elsewhere: bool = False
) -> dict[str, ReasoningLevel]:
    """Return the levels of a model by its route, without those that the model map says it lacks.

    Levels of a rule are those of the model itself. Another server, which may have another model,
    has those of the API too.
    """
    facts = _facts(name, provider, DEFAULT_LEVEL, is_elsewhere)
    mapped = find_facts(name) if facts.levels_vary else None
    levels = provider.facts.all_levels() if is_elsewhere else {}
    lacks = mapped.lacks if mapped else ()
    return levels | {level: v for level, v in facts.all_levels().items() if level not in lacks}


def _budget_level(
    name: str, tokens: int, budget: ReasoningBudget | None, levels: Mapping[str, ReasoningLevel]
) -> ReasoningLevel:
    """Return the level with a number of reasoning tokens. Raises BadInput if the model takes none.

    name: for messages. levels: those that the model has instead.
    """
    if budget is None:
        choices = f"use --reasoning {', '.join(levels)}" if levels else "omit --reasoning"
        raise BadInput(f"{name} does not accept a number of reasoning tokens: {choices}")
    if tokens == 0 and budget.zero is not None:
        return ReasoningLevel(request=budget.zero)
    if not budget.minimum <= tokens <= budget.maximum:
        zero = "0, or " if budget.zero is not None else ""
        raise BadInput(
            f"{name}: --reasoning {tokens}: give {zero}{budget.minimum:,} to {budget.maximum:,}"
        )
    return ReasoningLevel(request=fill(budget.request, "{tokens}", tokens))


def _unknown_model_error(name: str) -> BadInput:
    """Return the error for an unknown model, with at most three suggestions."""
    routers = [plugin for plugin in all_providers() if plugin.is_router]
    suggestions = _suggest_models(name) or [route for each in routers for route in each.routes]
    return BadInput(
        f"unknown model {name!r}: did you mean {join_names(suggestions, 'or')}? "
        "(`numbench models PATTERN` searches them)"
    )


def _suggest_models(name: str) -> list[str]:
    """Return valid names that the user may have meant: first models of a similar name."""
    provider_name, _, rest = name.partition("/")
    providers = {plugin.name: plugin for plugin in all_providers()}
    if provider_name in providers:
        return list(providers[provider_name].routes[:_MAX_SUGGESTIONS])
    routers = [plugin.name for plugin in providers.values() if plugin.is_router]
    routes = [route for plugin in providers.values() for route in plugin.routes]
    known = {}
    for route in (*load_model_map().models, *routes):
        vendor, _, served_name = route.partition("/")
        if vendor in providers and vendor not in routers:
            known[served_name] = route
    known |= {each: each for each in named_models()}
    similar = get_close_matches((rest or name).lower(), known, n=1, cutoff=0.75)
    suggestions = [known[each] for each in similar]
    if rest:
        similar = get_close_matches(provider_name.lower(), providers, n=1, cutoff=0.75)
        suggestions += [f"{each}/{rest}" for each in similar] or [f"{r}/{name}" for r in routers]
    return list(dict.fromkeys(suggestions))[:_MAX_SUGGESTIONS]
