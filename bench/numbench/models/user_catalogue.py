"""The user's catalogue: a TOML file with named models and prices of their own."""

from __future__ import annotations

import math
import os
import re
import tomllib
from functools import lru_cache
from pathlib import Path

import msgspec
from msgspec import Struct

from numbench.errors import BadInput
from numbench.models.providers import CatalogueModel, ReasoningLevel, find_provider

USER_CATALOGUE = "numbench-catalogue.toml"
"""The user's catalogue in the working directory."""

CATALOGUE_VARIABLE = "NUMBENCH_CATALOGUE"
"""The environment variable with the path of the user's catalogue."""

_OLDER_FILE, _OLDER_VARIABLE = "numbench-prices.toml", "NUMBENCH_PRICES"
"""The names of the file and the variable when it had prices only."""

_FIELD_OF = {
    "model": "route",
    "seed": "seed",
    "max_tokens": "max_tokens",
    "max_completion_tokens": "max_tokens",
    "max_output_tokens": "max_tokens",
    "maxOutputTokens": "max_tokens",
}
"""The fields that set a parameter: records and cost limits rely on them."""

_OWN_PARAMETERS = frozenset({"messages", "input", "contents", "system", "stream"})
"""Parameters that the adapters set."""

_LEVEL = re.compile(r"[a-z0-9][a-z0-9.-]*")


class UserPrice(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens on one route (`PROVIDER/NAME`); `output` covers reasoning."""

    route: str
    input: float
    output: float
    date: str = "undated"
    source: str = "the user's catalogue"
    varies: bool = False


class UserCatalogue(Struct, frozen=True, forbid_unknown_fields=True):
    """The content of the file; empty if there is none. path: for messages."""

    model: tuple[CatalogueModel, ...] = ()
    price: tuple[UserPrice, ...] = ()
    path: str = ""


def load_user_catalogue() -> UserCatalogue:
    """Return the user's catalogue. Raises BadInput, with file, line and field, if it is wrong."""
    path = _path()
    if path is None:
        return UserCatalogue()
    try:
        return _read(str(path), path.read_text(encoding="utf-8"))
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror}; correct --catalogue or {CATALOGUE_VARIABLE}, the path of "
            "the catalogue"
        ) from error
    except UnicodeDecodeError as error:
        raise BadInput(f"{path}: {error}") from error


def _path() -> Path | None:
    for variable in (CATALOGUE_VARIABLE, _OLDER_VARIABLE):
        if path := os.environ.get(variable, "").strip():
            return Path(path)
    found = [Path(name) for name in (USER_CATALOGUE, _OLDER_FILE) if Path(name).is_file()]
    if len(found) > 1:
        raise BadInput(f"{_OLDER_FILE}: move its prices to {USER_CATALOGUE}, which is used instead")
    return found[0] if found else None


@lru_cache(maxsize=8)
def _read(path: str, text: str) -> UserCatalogue:
    try:
        content = tomllib.loads(text)
    except tomllib.TOMLDecodeError as error:
        raise BadInput(f"{path}: {error}") from error
    try:
        catalogue = msgspec.convert(content, UserCatalogue)
    except msgspec.ValidationError as error:
        message, _, place = str(error).partition(" - at `$")
        raise BadInput(f"{path}{_location(text, place.rstrip('`'))}: {message}") from error
    if catalogue.path:
        raise BadInput(f"{path}: the field 'path' is unknown; use [[model]] and [[price]]")
    for number, model in enumerate(catalogue.model):
        if problem := _problem(model, catalogue):
            raise BadInput(f"{path}{_location(text, f'.model[{number}]')}: {problem}")
    for number, price in enumerate(catalogue.price):
        for field, amount in (("input", price.input), ("output", price.output)):
            if not math.isfinite(amount) or amount < 0:
                raise BadInput(
                    f"{path}{_location(text, f'.price[{number}].{field}')}: {price.route}: "
                    f"{amount} is not a price in US dollars per million tokens; give 0 or more"
                )
    for number, price in enumerate(catalogue.price):
        if problem := _price_problem(price, catalogue):
            raise BadInput(f"{path}{_location(text, f'.price[{number}].route')}: {problem}")
    return msgspec.structs.replace(catalogue, path=path)


def _problem(model: CatalogueModel, catalogue: UserCatalogue) -> str | None:
    """Return what is wrong with an entry, None if nothing is."""
    if "/" in model.name or not model.name.strip() or not model.name.isprintable():
        return f"name {model.name!r}: give a name without slashes and control characters"
    if sum(other.name == model.name for other in catalogue.model) > 1:
        return f"name {model.name!r}: there are two models of this name"
    if not model.levels:
        return f"{model.name}: levels: give at least one, for example default = {{}}"
    for level in model.levels:
        if not _LEVEL.fullmatch(level):
            return f"{model.name}: level {level!r}: use a-z, 0-9, '-' and '.'"
        if re.fullmatch(r"\d+-tokens", level):
            return f"{model.name}: level {level!r}: this name is that of --reasoning-tokens"
    providers = {model.route.partition("/")[0]}
    for limit in (model.max_tokens, *(level.max_tokens for level in model.levels.values())):
        if limit is not None and limit < 1:
            return f"{model.name}: max_tokens {limit}: give 1 or more"
    for level, settings in model.levels.items():
        for name in settings.request:
            if field := _FIELD_OF.get(name):
                return f"{model.name}: level {level}: request.{name}: use the field {field}"
            if name in _OWN_PARAMETERS:
                return f"{model.name}: level {level}: request.{name}: numbench sets it; omit it"
        if problem := _temperature_problem(model, settings):
            return f"{model.name}: level {level}: request.temperature: {problem}"
        if settings.route:
            providers.add(settings.route.partition("/")[0])
            if "/" not in settings.route:
                return f"{model.name}: level {level}: route {settings.route!r}: use PROVIDER/NAME"
    provider = find_provider(model.route.partition("/")[0])
    if not model.route.partition("/")[2] or provider is None or provider.in_process:
        return f"{model.name}: route {model.route!r}: use PROVIDER/NAME of a provider with a server"
    if len(providers) > 1:
        return f"{model.name}: all routes of a model need the same provider"
    return None


def _temperature_problem(model: CatalogueModel, level: ReasoningLevel) -> str | None:
    """Return what is wrong with the temperature in the request of a level, None if nothing is."""
    value = level.request.get("temperature", 0.0)
    if type(value) not in (int, float) or not 0 <= msgspec.convert(value, float) < math.inf:
        return f"{value!r}: give a number, 0 or more"
    accepts = model.temperature if level.temperature is None else level.temperature
    if "temperature" in level.request and not accepts:
        return "temperature = false says that the model accepts none; omit one of them"
    return None


def _price_problem(price: UserPrice, catalogue: UserCatalogue) -> str | None:
    """Return what is wrong with the route of a price, None if nothing is."""
    if not price.route.partition("/")[2]:
        return f"route {price.route!r}: use PROVIDER/NAME"
    if sum(other.route == price.route for other in catalogue.price) > 1:
        return f"{price.route}: there are two prices for this route"
    return None


def _location(text: str, place: str) -> str:
    """Return `, line N, FIELD` for a place such as `.price[1].input`."""
    match = re.match(r"\.(\w+)\[(\d+)\](?:\.(\w+))?", place)
    if not match:
        return f", {place.lstrip('.')}" if place else ""
    table, number, field = match[1], int(match[2]), match[3]
    lines = text.splitlines()
    headers = [n for n, line in enumerate(lines) if re.match(r"\s*\[\[\w+\]\]", line)]
    starts = [n for n in headers if re.match(rf"\s*\[\[{table}\]\]", lines[n])]
    if number >= len(starts):
        return f", {place.lstrip('.')}"
    start = starts[number]
    end = next((n for n in headers if n > start), len(lines))
    found = [
        n for n in range(start, end) if field and re.match(rf"\s*(\[\w+\.)?{field}\b", lines[n])
    ]
    return f", line {(found or [start])[0] + 1}, {place.lstrip('.')}"
