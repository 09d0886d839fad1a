"""What tokens cost: the price table (`prices.toml`), the user's own, and a request's cost."""

from __future__ import annotations

import math
import os
import tomllib
from functools import cache
from pathlib import Path

import msgspec
from msgspec import Struct

from bench.errors import BadInput
from bench.records import Completion, Usage

OWN = "numbench-prices.toml"
"""The user's price table in the working directory."""

VARIABLE = "NUMBENCH_PRICES"
"""The environment variable that names the user's price table, wherever it is."""


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens on one route; `output` are all generated tokens.

    varies: the mean over several providers' prices: good for a plan, not for a bill.
    own: it comes from the user's table, not from ours; never written in a file.
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
        """Where a cost at this price comes from, in a few words."""
        return f"price table ({self.date})"


class _Table(Struct, frozen=True, forbid_unknown_fields=True):
    price: tuple[Price, ...] = ()


def price_of(route: str) -> Price | None:
    """The price on `route` (`PROVIDER/NAME`), None where nobody has told it.

    The user's table comes before ours. BadInput where theirs cannot be read.
    """
    own = _own_path()
    prices = (_read(own, own=True) if own else ()) + _shipped()
    return next((price for price in prices if price.route == route), None)


def price_at(route: str, base_url: str | None) -> Price | None:
    """The price on `route` at the server `base_url`, of which only the user's table can tell."""
    price = price_of(route)
    return price if price is None or base_url is None or price.own else None


def cost(usage: Usage, price: Price) -> float | None:
    """US dollars for `usage`, None where a count is not known. Discounts are not known to us."""
    if usage.input is None or usage.generated is None:
        return None
    return (usage.input * price.input + usage.generated * price.output) / 1e6


def billed(completion: Completion, price: Price | None, discount: float = 0.0) -> Completion:
    """`completion` with a cost as far as one is known, and in `extra` who said so.

    What the provider reports stands. A price that varies makes no bill. `discount`: the share of
    the price that a batch job takes off.
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
def _shipped() -> tuple[Price, ...]:
    return _read(Path(__file__).with_name("prices.toml"), own=False)


def _own_path() -> Path | None:
    named = os.environ.get(VARIABLE, "").strip()
    if named:
        return Path(named)
    return Path(OWN) if Path(OWN).is_file() else None


def _read(path: Path, own: bool) -> tuple[Price, ...]:
    """The rows of one table. BadInput, naming the file, where it is not such a table."""
    try:
        table = msgspec.convert(tomllib.loads(path.read_text(encoding="utf-8")), _Table)
    except OSError as error:
        raise BadInput(f"{path}: {error.strerror}; {VARIABLE} names a price table") from error
    except (UnicodeDecodeError, tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"{path}: {error}") from error
    for price in table.price:
        for amount in (price.input, price.output):
            if not math.isfinite(amount) or amount < 0:
                raise BadInput(f"{path}: {price.route}: {amount} is no price per million tokens")
    return tuple(msgspec.structs.replace(price, own=own) for price in table.price)
