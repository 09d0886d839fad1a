"""Prices, limits and capabilities of models, and costs of requests.

Prices come from the user, receipts (`prices.toml`), or the model map: an extract of litellm's
(`model_map.csv`) with the fields that are used here, of text models only. `make facts` compares
them with the newest release, `make model-map` takes it over.
"""

from __future__ import annotations

import csv
import io
import math
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from types import MappingProxyType
from typing import Any, NamedTuple, TypeVar

import msgspec
from msgspec import Struct

from numbench.journal.served_models import is_same_model
from numbench.models.facts import LIST_PRICE_VALUES, bundled_tables, is_parameter, user_tables
from numbench.models.facts import Price as Price
from numbench.models.providers import find_provider
from numbench.records import CACHE_WRITES, Completion, Response, Usage

_LISTS = ("levels", "lacks")
_PRICE_FIELDS = ("input", "output", "cache_write", "priced_up_to", "has_batch_price")
"""What a price takes from the map as it is."""

EXTRACT = Path(__file__).with_name("model_map.csv")


class ModelFacts(Struct, frozen=True):
    """One model of the map; None and "" are unknown.

    name: `PROVIDER/NAME` in litellm's terms. input, output, cache_write: US dollars per million
    tokens; output covers reasoning, cache_write is for input that is written to a cache.
    priced_up_to: input tokens of a request up to which the prices hold. has_batch_price: whether
    the batch API takes half the price. price_note: when less is charged. context, max_output:
    tokens. has_schema: support of JSON schemas. levels, lacks: reasoning levels that the model is
    known to have, and known to lack. retires: the date from which the provider no longer serves it;
    successor: the provider's name of the model to use instead.
    """

    name: str
    input: float | None = None
    output: float | None = None
    cache_write: float | None = None
    priced_up_to: int | None = None
    has_batch_price: bool = False
    price_note: str = ""
    context: int | None = None
    max_output: int | None = None
    has_schema: bool = False
    levels: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    retires: str = ""
    successor: str = ""


class ModelMap(NamedTuple):
    """All models by name, and the version of litellm that they are from, with the day."""

    version: str
    models: Mapping[str, ModelFacts]

    @property
    def source(self) -> str:
        """The source of a price or a limit, in a few words."""
        return f"model map of litellm {self.version}"


@cache
def load_model_map(path: Path = EXTRACT) -> ModelMap:
    """Return the bundled map, or another extract."""
    title, _, table = path.read_text(encoding="utf-8").partition("\n")
    models = {row["name"]: _facts(row) for row in csv.DictReader(io.StringIO(table))}
    return ModelMap(title.partition("litellm ")[2], models)


def find_facts(route: str) -> ModelFacts | None:
    """Return the facts on the model of a route, None if the map lacks it.

    A route through OpenRouter has its own entry only, because providers behind it differ.
    """
    models = load_model_map().models
    name = route.removeprefix("litellm/")
    if "/" in name or name == route:
        return models.get(name)
    # litellm accepts the names of these providers alone.
    return models.get(f"openai/{name}") or models.get(f"anthropic/{name}")


_OPENROUTER_VENDORS = {
    "google": "gemini",
    "mistralai": "mistral",
    "moonshotai": "moonshot",
    "x-ai": "xai",
}
"""OpenRouter's names of vendors that have others in the map."""


def find_vendor_facts(route: str) -> ModelFacts | None:
    """Return the facts on a model of OpenRouter at its own vendor, None if they are unknown."""
    return load_model_map().models.get(_vendor_route(route))


def _vendor_route(route: str) -> str:
    """Return the route of a model of OpenRouter at its own vendor, "" for another provider."""
    provider, _, name = route.partition("/")
    vendor, _, name = name.partition("/")
    if provider != "openrouter":
        return ""
    if vendor == "anthropic":
        name = name.replace(".", "-")
    return f"{_OPENROUTER_VENDORS.get(vendor, vendor)}/{name}"


def _facts(row: Mapping[str, str]) -> ModelFacts:
    """Return the facts in a row; empty cells are unknown."""
    fields: dict[str, object] = {name: cell for name, cell in row.items() if cell}
    fields |= {name: row[name].split() for name in _LISTS}
    return msgspec.convert(fields, ModelFacts, strict=False)


NO_PARAMETERS: Mapping[str, object] = MappingProxyType({})


def find_price(
    route: str, base_url: str | None = None, params: Mapping[str, object] = NO_PARAMETERS
) -> Price | None:
    """Return the price on `route` (`PROVIDER/NAME`), None if it is unknown.

    The user's catalogue takes precedence over the bundled table, that over the prices of a plugin,
    and those over the model map.
    With `base_url`, which names another server than the provider's, only the user's catalogue
    counts, and so it does with `params` that change the price, such as a service tier. With tools
    there is none: no price of tokens covers their fees. Raises BadInput if the catalogue cannot be
    read.
    """
    if fee_parameters(params):
        return None
    own = [price for price in user_tables().price if price.route == route and price.is_current]
    if own:
        return msgspec.structs.replace(own[-1], own=True)
    priced = [value for name, value in params.items() if is_parameter(name, "priced")]
    if base_url is not None or any(value not in LIST_PRICE_VALUES for value in priced):
        return None
    provider = find_provider(route.partition("/")[0])
    prices = (*(provider.prices if provider else ()), *bundled_tables().price)
    known = [price for price in prices if price.route == route]
    if known:
        return next((price for price in reversed(known) if price.is_current), None)
    if (vendor := _vendor_route(route)) and not find_facts(route):
        price, note = find_price(vendor), "the price of the vendor itself"
        changes = {"route": route, "varies": True, "own": False, "note": note}
        return price and msgspec.structs.replace(price, **changes)
    return _mapped_price(route)


def find_answer_price(
    route: str,
    base_url: str | None,
    params: Mapping[str, object],
    served: str | None,
    is_batch: bool = False,
) -> Price | None:
    """Return the price of an answer by the model `served`, None if it is unknown.

    served: as the provider names it; None if it names none. Other arguments: as in `find_price`.
    """
    price = find_price(route, base_url, params)
    # What the user says of their own server holds whatever it answers with.
    is_users = price is not None and price.own and base_url is not None
    if served is not None and not is_users and not is_same_model(route, served):
        near, far = route.rpartition("/")[0], route.partition("/")[0]
        names = (f"{near}/{served.rpartition('/')[2]}", f"{far}/{served}")
        price = next(filter(None, (find_price(name, base_url, params) for name in names)), None)
    return None if price and is_batch and not price.has_batch_price else price


def fee_parameters(params: Mapping[str, object]) -> list[str]:
    """Return the names of the parameters that let a provider use tools, which have fees."""
    # An empty object turns a tool on, too, with its defaults.
    used = (name for name, value in params.items() if value or isinstance(value, Mapping))
    return [name for name in used if is_parameter(name, "fees")]


def _mapped_price(route: str) -> Price | None:
    facts = find_facts(route)
    if facts is None or facts.input is None or facts.output is None:
        return None
    note = f"less is charged {facts.price_note}" if facts.price_note else ""
    known: dict[str, Any] = {name: getattr(facts, name) for name in _PRICE_FIELDS}
    return Price(route=route, date="", source=load_model_map().source, note=note, **known)


def cost(usage: Usage, price: Price, cache_writes: int = 0) -> float | None:
    """Return the US dollars for `usage` without discounts, such as those for cached input.

    cache_writes: input tokens that the provider wrote to its cache. None if a token count or the
    price of a write is unknown, or the request is longer than the price holds for.
    """
    if usage.input is None or usage.generated is None:
        return None
    if price.priced_up_to is not None and usage.input > price.priced_up_to:
        return None
    if cache_writes and price.cache_write is None:
        return None
    written = cache_writes * ((price.cache_write or 0.0) - price.input)
    return (usage.input * price.input + usage.generated * price.output + written) / 1e6


def _surcharge(
    extra: Mapping[str, object], surcharges: Mapping[str, float], is_batch: bool
) -> float | None:
    """Return the factor on the price by the tier and region that an answer names, if known."""
    values = {str(extra[name]).lower() for name in extra if is_parameter(name, "priced")}
    values -= LIST_PRICE_VALUES | ({"batch"} if is_batch else set())
    return math.prod(map(surcharges.__getitem__, values)) if values <= surcharges.keys() else None


CompletionT = TypeVar("CompletionT", bound=Completion)


def with_cost(
    completion: CompletionT,
    price: Price | None,
    discount: float = 0.0,
    surcharges: Mapping[str, float] = MappingProxyType({}),
) -> CompletionT:
    """Return `completion` with its cost and the source of that, if they are known.

    A cost reported by the provider is kept; one by price adds that of failed attempts. A price that
    varies gives no cost, nor does a tier or a region of unknown price. discount: the share of the
    price that a batch job saves. surcharges: factors on the price, by the tier or region that the
    answer names.
    """
    if completion.cost_source is not None:
        return completion
    amount, source = completion.cost, "provider"
    extra = completion.extra
    factor = _surcharge(extra, surcharges, bool(discount)) if price and not price.own else 1.0
    if amount is None and price is not None and not price.varies and factor is not None:
        writes, read = extra.get(CACHE_WRITES), completion.usage.input or 0
        full = cost(completion.usage, price, min(writes, read) if type(writes) is int else 0)
        failed = completion.known_cost if isinstance(completion, Response) else None
        amount = None if full is None else full * factor * (1 - discount) + (failed or 0.0)
        source = price.basis + (", batch" if discount else "")
    if amount is None:
        return completion
    return msgspec.structs.replace(completion, cost=amount, cost_source=source)
