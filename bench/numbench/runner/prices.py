"""Prices of tokens: the bundled table (`prices.toml`), the user's table, and costs of requests."""

from __future__ import annotations

import math
import os
import tomllib
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from numbench.errors import BadInput
from numbench.models.providers import provider_price
from numbench.records import Completion, Usage

USER_PRICE_TABLE = "numbench-prices.toml"
"""The user's price table in the working directory."""

PRICE_TABLE_VARIABLE = "NUMBENCH_PRICES"
"""The environment variable with the path of the user's price table."""


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens on one route; `output` is for all generated tokens.

    varies: the price is a mean over several providers: used in plans, not in costs of requests.
    own: the price is from the user's table; never written to a file.
    """

    route: str
    input: float
    output: float
    date: str = "undated"
    source: str = "the user's price table"
    varies: bool = False
    own: bool = False

    @property
    def basis(self) -> str:
        """The origin of a cost at this price, in a few words."""
        return f"price table ({self.date})"


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    price: tuple[Price, ...] = ()


def find_price(route: str, base_url: str | None = None) -> Price | None:
    """Return the price on `route` (`PROVIDER/NAME`), None if it is unknown.

    The user's table takes precedence over the bundled one, and that over the prices of a plugin.
    With `base_url`, which names another server than the provider's, only the user's table counts.
    Raises BadInput if the user's table cannot be read.
    """
    user_table = _user_table_path()
    prices = _read(user_table, own=True) if user_table else ()
    if base_url is None:
        prices += _bundled_prices()
    price = next((price for price in prices if price.route == route), None)
    if price is None and base_url is None and (declared := provider_price(route)):
        return Price(**msgspec.structs.asdict(declared))
    return price


def cost(usage: Usage, price: Price) -> float | None:
    """Return the US dollars for `usage` without discounts, None if a token count is unknown."""
    if usage.input is None or usage.generated is None:
        return None
    return (usage.input * price.input + usage.generated * price.output) / 1e6


def with_cost(completion: Completion, price: Price | None, discount: float = 0.0) -> Completion:
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


@cache
def _bundled_prices() -> tuple[Price, ...]:
    return _read(Path(__file__).with_name("prices.toml"), own=False)


def _user_table_path() -> Path | None:
    path = os.environ.get(PRICE_TABLE_VARIABLE, "").strip()
    if path:
        return Path(path)
    return Path(USER_PRICE_TABLE) if Path(USER_PRICE_TABLE).is_file() else None


def _read(path: Path, own: bool) -> tuple[Price, ...]:
    """Return the rows of a price table. Raises BadInput, naming the file, if it is malformed."""
    try:
        table = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _Table)
    except OSError as error:
        raise BadInput(
            f"{path}: {error.strerror}; correct {PRICE_TABLE_VARIABLE}, the path of the price table"
        ) from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"{path}: {error}") from error
    for price in table.price:
        for amount in (price.input, price.output):
            if not math.isfinite(amount) or amount < 0:
                raise BadInput(
                    f"{path}: {price.route}: {amount} is not a price in US dollars per million "
                    "tokens; give 0 or more"
                )
    return tuple(msgspec.structs.replace(price, own=own) for price in table.price)
