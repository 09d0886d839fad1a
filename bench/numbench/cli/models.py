"""The command that lists models."""

from __future__ import annotations

from fnmatch import fnmatchcase
from typing import TYPE_CHECKING

from numbench.cli.options import console, plain_table
from numbench.errors import BadInput

if TYPE_CHECKING:
    from rich.console import RenderableType

    from numbench.models.prices import ModelFacts

_PRICE_NOTE = "$: US dollars per million tokens, in and out; ≈: of other providers; ?: unknown."
_MAP_COLUMNS = ("$ in", "$ out", "Input", "Output", "Schema", "Reasoning", "Route")


def models(pattern: str = "", *, all_: bool = False, limit: int = 40) -> None:
    """List the models: reasoning levels, prices, API key status.

    \b
    Examples:
      numbench models
      numbench models gpt                         named models only
      numbench models --all gpt-6                 every route that contains it
      numbench models --all 'gemini/*flash*'
      numbench run --model NAME --reasoning LEVEL --limit 5

    Prices are US dollars per million tokens. With --all they are those of litellm's model map,
    which is bundled; the names are routes for --model. Writes no files. Needs no network.

    Options:
      pattern: Part of a name, or a pattern such as 'openai/gpt-6*'.
      all_: Search all models whose prices or limits are known.
      limit (N): Maximum number of rows with --all; 0 for all.
    """
    if limit < 0:
        raise BadInput(f"--limit {limit}: give 0 or more")
    if all_:
        # Routes stay whole on a narrow terminal.
        console(width=200).print(_map_table(pattern, limit))
    else:
        console().print(_catalogue_table(pattern))


def _catalogue_table(pattern: str = "") -> RenderableType:
    """Return the catalogue: levels, prices, key status, and routes to other models.

    Raises BadInput if no name matches `pattern`.
    """
    from rich.console import Group
    from rich.text import Text

    from numbench.models.catalogue import find_model_provider, named_models
    from numbench.models.facts import USER_CATALOGUE
    from numbench.models.prices import load_model_map
    from numbench.models.providers import all_providers
    from numbench.secrets import key_from_environment, load_env_file

    load_env_file()
    listed = [model for model in named_models().values() if _matches(model.name, pattern)]
    if not listed:
        raise BadInput(f"no named model matches {pattern!r}: try numbench models --all {pattern}")
    columns = ("Model", "Levels", "Provider", "$ in", "$ out")
    table = plain_table("<<<>>", *columns, overflow="fold")
    keys = {}
    for model in listed:
        provider = find_model_provider(model.route)
        table.add_row(
            model.name, ", ".join(model.all_levels()), provider.name, *_prices(model.route)
        )
        for variable in provider.key_variables[:1]:
            key = key_from_environment(provider.key_variables)
            keys[key.variable if key else variable] = "set" if key else "not set"
    routes: dict[bool, list[str]] = {False: [], True: []}
    for provider in all_providers():
        routes[provider.in_process] += provider.routes
    key_lines = "".join(f"\n  {key} ({state})" for key, state in keys.items())
    notes = (
        f"{_PRICE_NOTE}\n"
        "Prices of the paper's models: its receipts of 2025; of the others: the\n"
        f"{load_model_map().source}. Your own: {USER_CATALOGUE}.\n"
        f"API keys:{key_lines}\n\n"
        f"Other models, by route: {', '.join(routes[False])}.\n"
        "Search them, with prices and limits: numbench models --all PATTERN.\n"
        "Any OpenAI-compatible server: openai/NAME with --base-url URL.\n"
        f"In this process, without an API key: {', '.join(routes[True])}."
    )
    return Group(table, Text("\n" + notes))


def _map_table(pattern: str, limit: int) -> RenderableType:
    """Return the models of the map whose routes match, at most `limit` unless that is 0.

    The routes, at the end of their lines, may be longer than the line: they are there to be copied.
    Raises BadInput if there are none.
    """
    from rich.console import Group
    from rich.text import Text

    from numbench.models.prices import load_model_map
    from numbench.models.providers import find_provider

    source, routes = load_model_map().source, {}
    for name, facts in load_model_map().models.items():
        # Its provider's own route, or the one through litellm.
        routes[name if find_provider(name.partition("/")[0]) else f"litellm/{name}"] = facts
    matching = [route for route in routes if _matches(route, pattern)]
    matching.sort(key=lambda route: (route.startswith("litellm/"), route))
    if not matching:
        raise BadInput(f"no model matches {pattern!r} in the {source}: try a shorter part of it")
    shown = matching[: limit or None]
    table = plain_table(">>>><<<", *_MAP_COLUMNS, no_wrap=True)
    for route in shown:
        table.add_row(*_map_row(route, routes[route]))
    rest = len(matching) - len(shown)
    more = f"{rest:,} more: narrow the pattern, or add --limit 0.\n" if rest else ""
    notes = (
        f"{more}{_PRICE_NOTE}\n"
        "Input, Output: most tokens. Reasoning: levels known beyond low, medium, high.\n"
        f"Source: {source};\nyour own prices and the paper's receipts come first."
    )
    return Group(table, Text("\n" + notes))


def _map_row(route: str, facts: ModelFacts) -> tuple[str, ...]:
    reasoning = (", ".join(facts.levels) or "yes") if facts.reasons else ""
    limits = (_tokens(facts.context), _tokens(facts.max_output))
    return (*_prices(route), *limits, "yes" if facts.has_schema else "", reasoning, route)


def _matches(name: str, pattern: str) -> bool:
    if any(character in pattern for character in "*?["):
        return fnmatchcase(name.lower(), f"*{pattern.lower()}*")
    return pattern.lower() in name.lower()


def _tokens(count: int | None) -> str:
    if count is None:
        return "?"
    return f"{count / 1e6:.3g}M" if count >= 1_000_000 else f"{count // 1000}k"


def _prices(route: str) -> tuple[str, str]:
    from numbench.models.prices import find_price

    price = find_price(route)
    if price is None:
        return "?", "?"
    prefix = "≈" if price.varies else ""
    return f"{prefix}{price.input:.3g}", f"{prefix}{price.output:.3g}"
