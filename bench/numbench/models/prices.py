"""Prices of tokens, from the user, receipts (`prices.toml`) or litellm's map; costs of requests."""

from __future__ import annotations

from collections.abc import Mapping
from datetime import date
from types import MappingProxyType
from typing import TypeVar

import msgspec

from numbench.models.facts import Price as Price
from numbench.models.facts import bundled_tables, user_tables
from numbench.models.model_map import ModelFacts, find_facts, find_vendor_facts, load_model_map
from numbench.models.providers import find_provider
from numbench.records import Completion, Usage

NO_PARAMETERS: Mapping[str, object] = MappingProxyType({})

_PRICED_PARAMETERS = ("inference_geo", "service_tier", "serviceTier", "speed")
"""Parameters of a request that change its price at a provider."""

_LIST_PRICE_VALUES = ("default", "standard", "standard_only")
"""Values of those parameters with which the list price applies."""


_FEE_PARAMETERS = frozenset(
    {
        "enablesearch",
        "mcpservers",
        "plugins",
        "searchparameters",
        "tools",
        "websearchoptions",
    }
)
"""Parameters that let a provider use tools, with fees besides those for tokens.

In lower case without underscores.
"""


def find_price(
    route: str, base_url: str | None = None, params: Mapping[str, object] = NO_PARAMETERS
) -> Price | None:
    """Return the price on `route` (`PROVIDER/NAME`), None if it is unknown.

    The user's catalogue takes precedence over the bundled table, that over the prices of a plugin,
    and those over the model map. With `base_url`, which names another server than the provider's,
    only the user's catalogue counts, and so it does with `params` that change the price, such as a
    service tier. With tools there is none: no price of tokens covers their fees. Raises BadInput if
    the catalogue cannot be read.
    """
    if fee_parameters(params):
        return None
    for own in user_tables().price:
        if own.route == route:
            return msgspec.structs.replace(own, own=True)
    priced = [params[name] for name in _PRICED_PARAMETERS if name in params]
    if base_url is not None or any(value not in _LIST_PRICE_VALUES for value in priced):
        return None
    today = date.today().isoformat()
    provider = find_provider(route.partition("/")[0])
    declared = (*(provider.prices if provider else ()), *bundled_tables().price)
    valid = [price for price in declared if price.route == route and price.since <= today]
    return valid[-1] if valid else _mapped_price(route)


def fee_parameters(params: Mapping[str, object]) -> list[str]:
    """Return the names of the parameters that let a provider use tools, which have fees."""
    folded = {name: name.replace("_", "").lower() for name, value in params.items() if value}
    return [name for name in folded if folded[name] in _FEE_PARAMETERS]


def _mapped_price(route: str) -> Price | None:
    if facts := find_facts(route):
        return _price(route, facts)
    if facts := find_vendor_facts(route):
        price = _price(route, facts)
        note = "the price of the vendor itself"
        return price and msgspec.structs.replace(price, varies=True, note=note)
    return None


def _price(route: str, facts: ModelFacts) -> Price | None:
    if facts.input is None or facts.output is None:
        return None
    return Price(
        route=route,
        input=facts.input,
        output=facts.output,
        date="",
        source=load_model_map().source,
        priced_up_to=facts.priced_up_to,
        has_batch_price=facts.has_batch_price,
        note=f"less is charged {facts.price_note}" if facts.price_note else "",
    )


def cost(usage: Usage, price: Price) -> float | None:
    """Return the US dollars for `usage` without discounts, such as those for cached input.

    None if a token count is unknown, or the request is longer than the price holds for.
    """
    if usage.input is None or usage.generated is None:
        return None
    if price.priced_up_to is not None and usage.input > price.priced_up_to:
        return None
    return (usage.input * price.input + usage.generated * price.output) / 1e6


CompletionT = TypeVar("CompletionT", bound=Completion)


def with_cost(completion: CompletionT, price: Price | None, discount: float = 0.0) -> CompletionT:
    """Return `completion` with its cost, if it is known, and with the cost's source in `extra`.

    A cost reported by the provider is kept. A price that varies gives no cost. `discount`: the
    share of the price that a batch job saves.
    """
    if "cost_source" in completion.extra:
        return completion
    amount, source = completion.cost, "provider"
    if amount is None and price is not None and not price.varies:
        full = cost(completion.usage, price)
        amount = None if full is None else full * (1 - discount)
        source = price.basis + (", batch" if discount else "")
    if amount is None:
        return completion
    extra = completion.extra | {"cost_source": source}
    return msgspec.structs.replace(completion, cost=amount, extra=extra)
