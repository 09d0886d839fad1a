"""Prices, limits and capabilities of hosted models: an extract of litellm's model map, as data.

The extract (`model_map.csv`) has the fields that are used here, of text models only. After a new
release of litellm: `make model-map`.
"""

from __future__ import annotations

import csv
import io
from collections.abc import Mapping
from functools import cache
from pathlib import Path
from typing import NamedTuple

import msgspec
from msgspec import Struct

from numbench.models.base import RequestSettings

_FLAGS = ("has_batch_price", "reasons", "has_schema")
_LISTS = ("levels", "lacks")

EXTRACT = Path(__file__).with_name("model_map.csv")


class ModelFacts(Struct, frozen=True):
    """One model of the map; None and "" are unknown.

    name: `PROVIDER/NAME` in litellm's terms. input, output: US dollars per million tokens; output
    covers reasoning. priced_up_to: input tokens of a request up to which the prices hold.
    has_batch_price: whether the batch API takes half the price. price_note: when less is charged.
    context, max_output: tokens. reasons, has_schema: support of reasoning and of JSON schemas.
    levels, lacks: reasoning levels that the model is known to have, and known to lack. retires: the
    date from which the provider no longer serves it.
    """

    name: str
    input: float | None = None
    output: float | None = None
    priced_up_to: int | None = None
    has_batch_price: bool = False
    price_note: str = ""
    context: int | None = None
    max_output: int | None = None
    reasons: bool = False
    has_schema: bool = False
    levels: tuple[str, ...] = ()
    lacks: tuple[str, ...] = ()
    retires: str = ""


class ModelMap(NamedTuple):
    """All models by name, and the version of litellm that they are from."""

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
    return ModelMap(title.rpartition(" ")[2], models)


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
    "anthropic": "anthropic",
    "deepseek": "deepseek",
    "google": "gemini",
    "mistralai": "mistral",
    "moonshotai": "moonshot",
    "openai": "openai",
    "x-ai": "xai",
}
"""OpenRouter's names of vendors, and those of the map."""


def find_vendor_facts(route: str) -> ModelFacts | None:
    """Return the facts on a model of OpenRouter at its own vendor, None if they are unknown."""
    provider, _, name = route.partition("/")
    vendor, _, name = name.partition("/")
    if provider != "openrouter" or vendor not in _OPENROUTER_VENDORS:
        return None
    if vendor == "anthropic":
        name = name.replace(".", "-")
    return load_model_map().models.get(f"{_OPENROUTER_VENDORS[vendor]}/{name}")


class TokenLimits(NamedTuple):
    """The most tokens of an answer, and of a question with its answer; None if unknown.

    output_source: where the limit of an answer is from.
    """

    output: int | None = None
    context: int | None = None
    output_source: str = ""


def token_limits(facts: ModelFacts | None, settings: RequestSettings) -> TokenLimits:
    """Return the limits of the requests with these settings."""
    context = facts.context if facts else None
    if settings.max_tokens is not None:
        return TokenLimits(settings.max_tokens, context, "--max-tokens or the catalogue")
    return TokenLimits(facts.max_output if facts else None, context, "the model's limit")


def _facts(row: Mapping[str, str]) -> ModelFacts:
    """Return the facts in a row; empty cells are unknown."""
    fields: dict[str, object] = {name: cell for name, cell in row.items() if cell}
    fields |= {name: True for name in _FLAGS if name in fields}
    fields |= {name: row[name].split() for name in _LISTS}
    return msgspec.convert(fields, ModelFacts, strict=False)
