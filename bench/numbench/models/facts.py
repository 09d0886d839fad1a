"""What is known about models and providers, as rows of TOML files: `Tables`.

The bundled files (`providers.toml`, `catalogue.toml`, `prices.toml`) and the user's catalogue have
the same tables.
"""

from __future__ import annotations

import math
import os
import re
import tomllib
from collections import Counter
from collections.abc import Mapping
from datetime import date
from fnmatch import fnmatchcase
from functools import cache, lru_cache
from pathlib import Path
from typing import Annotated, Literal
from urllib.parse import urlsplit

import msgspec
from msgspec import Meta, Struct

from numbench.core.installation import read_toml
from numbench.errors import BadInput
from numbench.models.base_url import may_see_keys

USER_CATALOGUE = "numbench-catalogue.toml"
"""The user's catalogue in the working directory."""

CATALOGUE_VARIABLE = "NUMBENCH_CATALOGUE"
"""The environment variable with the path of the user's catalogue."""

DEFAULT_LEVEL = "default"
"""The reasoning level of a model that is used without `--reasoning` and has no named models."""

REASONING = "reasoning"
"""In `Rule.at`: every level but `default` and `none`."""

TOKENS_LEVEL = re.compile(r"([0-9]{1,9})-tokens")
"""The names of levels with a number of reasoning tokens."""

_LEVEL = re.compile(r"[a-z0-9][a-z0-9.-]*")
_DATE_SUFFIX = re.compile(r"-(\d{8}|\d{4}-\d\d-\d\d)$")

NOTICE_DAYS = 30
"""From so many days before a model retires on, plans and runs say so."""

_PARAMETERS = read_toml(Path(__file__).with_name("parameters.toml"))

LIST_PRICE_VALUES = frozenset(_PARAMETERS["values"]["list_price"])
"""Values of priced parameters, in requests and answers, with which the list price applies."""


def folded(name: str) -> str:
    """Return the name of a parameter without underscores, in lower case."""
    return name.replace("_", "").lower()


OWN_PARAMETERS = {
    folded(name): advice for advice, names in _PARAMETERS["own"].items() for name in names
}
"""What to do instead of setting a parameter that numbench sets, by folded names."""

WAYS_OUT: dict[str, str] = _PARAMETERS["ways_out"]
"""What to do if a provider rejects a request for a parameter, by patterns of its name."""

ParameterKind = Literal["messages", "varying", "priced", "fees"]


def is_parameter(name: str, kind: ParameterKind) -> bool:
    """Return whether a parameter of a request is of a kind in `parameters.toml`."""
    return folded(name) in map(folded, _PARAMETERS["kinds"][kind])


_Tokens = Annotated[int, Meta(ge=1)]
_Dollars = Annotated[float, Meta(ge=0, le=1e9)]


class Settings(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """What requests contain; None is not known.

    request: parameters in the provider's own terms. temperature: whether the models accept one;
    requests then set it to 0. structured: whether they take the JSON schema of the answer.
    max_tokens: the token limit to send.
    """

    request: dict[str, object] = {}
    temperature: bool | None = None
    structured: bool | None = None
    max_tokens: _Tokens | None = None

    def __post_init__(self) -> None:
        for name in self.request:
            if folded(name) in OWN_PARAMETERS and name != "temperature":
                fields = "route, seed, max_tokens and structured"
                raise ValueError(f"request.{name}: numbench sets it; use the fields {fields}")


class ReasoningLevel(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one reasoning level, which take precedence over those of its model.

    route: of another model, which reasons at this level.
    """

    route: str | None = None


class ReasoningBudget(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The numbers of reasoning tokens that a model takes (`--reasoning N`).

    request: the parameters, in which `"{tokens}"` stands for the number of `minimum` to `maximum`
    tokens. zero: those for 0 tokens, None if reasoning cannot be turned off.
    """

    request: dict[str, object]
    minimum: int
    maximum: int
    zero: dict[str, object] | None = None


class Facts(Settings, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about some models; None is not known.

    date, source: when the facts of the row were compared with which evidence; ISO 8601.
    levels: the reasoning levels: names, whose parameters are those of `level_request` with the name
    in place of `"{level}"`, or names with their settings. levels_vary: whether the levels are those
    of an API, some of which some of its models refuse. none: the parameters of the level `none`, if
    it has others. budget: numbers of reasoning tokens. takes_seed: whether the models take a seed.
    context, max_output: tokens; max_output is that of one request.
    limit_excludes_reasoning: whether reasoning is billed beyond the limit on new tokens.
    surcharges: factors on the price, by the tier or region that an answer names.
    retires: the first day on which the provider no longer serves the models; successor: the
    provider's name of the model to use instead; is_rerouted: whether the successor then answers
    requests for the models. elsewhere: who else serves them.
    """

    date: str | None = None
    source: str | None = None
    levels: tuple[str, ...] | dict[str, ReasoningLevel] | None = None
    levels_vary: bool | None = None
    level_request: dict[str, object] | None = None
    none: dict[str, object] | None = None
    budget: ReasoningBudget | None = None
    takes_seed: bool | None = None
    context: _Tokens | None = None
    max_output: _Tokens | None = None
    limit_excludes_reasoning: bool | None = None
    surcharges: dict[str, float] | None = None
    retires: str | None = None
    successor: str | None = None
    is_rerouted: bool | None = None
    elsewhere: str | None = None

    def __post_init__(self) -> None:
        Settings.__post_init__(self)
        _days_until(self.retires)
        for level in self.all_levels():
            if not _LEVEL.fullmatch(level) or TOKENS_LEVEL.fullmatch(level):
                raise ValueError(
                    f"level {level!r}: use a-z, 0-9, '-' and '.', and no number of tokens"
                )

    def updated(self, other: Settings) -> Facts:
        """Return these facts with those of `other`, which take precedence."""
        changes = {
            name: value
            for name in Facts.__struct_fields__
            if (value := getattr(other, name, None)) is not None
        }
        if "levels" in changes:
            # The level none belongs to the others.
            changes = {"none": None, "levels_vary": None, **changes}
        return msgspec.structs.replace(self, **changes | {"request": self.request | other.request})

    @property
    def is_retired(self) -> bool:
        """Whether the provider no longer serves the models today."""
        return _days_until(self.retires) <= 0

    @property
    def retirement(self) -> str:
        """When the models retire and what follows; empty if it is more than a month ahead."""
        days = _days_until(self.retires)
        if days > NOTICE_DAYS:
            return ""
        ahead = f" (in {days:.0f} day{'s' * (days > 1)})" if days > 0 else ""
        then = self.successor and f"; successor: {self.successor}"
        if self.successor and self.is_rerouted:
            then = f"; the provider then answers with {self.successor} at that model's price"
        where = self.elsewhere and f"; elsewhere: {self.elsewhere}"
        verb = "retires" if days > 0 else "retired"
        return f"{verb} on {self.retires}{ahead}{then or ''}{where or ''}"

    def all_levels(self) -> dict[str, ReasoningLevel]:
        """Return the reasoning levels with their settings."""
        levels = {} if self.none is None else {"none": ReasoningLevel(request=self.none)}
        if isinstance(self.levels, dict):
            return levels | self.levels
        template = self.level_request or {}
        return levels | {
            name: ReasoningLevel(request=fill(template, "{level}", name))
            for name in self.levels or ()
        }


class Rule(Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """Facts about the models whose routes match a shell pattern; of several the last counts.

    match: a pattern of `PROVIDER/NAME`, or several; a date at the end of a name may be missing.
    at: the levels to which the facts apply, `reasoning` for all that reason; empty: all.
    """

    match: str | tuple[str, ...]
    at: tuple[str, ...] = ()

    def applies(self, route: str, level: str) -> bool:
        """Return whether the facts apply to the model of a route at a level."""
        if self.at:
            reasons = level not in (DEFAULT_LEVEL, "none")
            if level not in self.at and not (reasons and REASONING in self.at):
                return False
        patterns = (self.match,) if isinstance(self.match, str) else self.match
        names = (route, _DATE_SUFFIX.sub("", route))
        return any(fnmatchcase(name, pattern) for name in names for pattern in patterns)


class HostedProvider(Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A provider whose server has a known wire format, and facts about all of its models.

    url: the base URL. formats: `chat` (OpenAI's Chat Completions), `responses`, `messages`
    (Anthropic) or `gemini`; `--api` selects among several. keys: environment variables that may
    hold the API key. hosts: the provider's hosts, which may see it; default: that of the URL.
    examples: what may follow the slash, for help and messages.
    token_limit: the name of the limit on new tokens; token_limit_elsewhere: that at a `--base-url`.
    stream_options: whether a stream of Chat Completions has its usage only on request.
    quota_recovers: whether the code for a spent account is also used for limits per minute.
    header_variables: headers that environment variables may set.
    reports_cost: whether responses have their price in dollars.
    batch: the batch API; batch_discount: the share of the price that it takes off.
    """

    name: Annotated[str, Meta(pattern="^[a-z0-9_-]+$")]
    url: str
    formats: tuple[Literal["chat", "responses", "messages", "gemini"], ...] = ("chat",)
    keys: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    examples: tuple[str, ...] = ("NAME",)
    token_limit: str = "max_tokens"
    token_limit_elsewhere: str | None = None
    stream_options: bool = True
    quota_recovers: bool = False
    header_variables: dict[str, str] = {}
    reports_cost: bool = False
    batch: Literal["openai", "anthropic", "gemini"] | None = None
    batch_discount: float = 0.0

    def __post_init__(self) -> None:
        Facts.__post_init__(self)
        if not urlsplit(self.url).hostname or not may_see_keys(self.url):
            raise ValueError(f"provider {self.name!r}: url {self.url!r}: use https://HOST/PATH")

    @property
    def own_hosts(self) -> tuple[str, ...]:
        """The provider's hosts."""
        return self.hosts or (urlsplit(self.url).hostname or "",)


class NamedModel(Facts, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named model: an alias of `route` (`PROVIDER/NAME`), with facts that go before the route's.

    seed: sent with every request.
    """

    name: str
    display: str
    route: str
    seed: int | None = None

    def __post_init__(self) -> None:
        Facts.__post_init__(self)
        if "/" in self.name or not self.name.strip() or not self.name.isprintable():
            raise ValueError(
                f"model {self.name!r}: give a name without slashes and control characters"
            )
        provider = provider_of(self.route)
        for level, settings in self.all_levels().items():
            if settings.route and provider_of(settings.route) != provider:
                raise ValueError(f"level {level}: all routes of a model need the same provider")


class Price(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """US dollars per million tokens on one route (`PROVIDER/NAME`); `output` covers reasoning.

    date, source: when and where the price was found; both are shown with every cost.
    cache_write: of input that the provider writes to its cache; None if it writes none.
    varies: the price is a mean over several providers, or that of one of them: used in plans, not
        in costs of requests.
    own: the price is from the user's catalogue; never written to a file.
    priced_up_to: input tokens of a request up to which the price holds; None for any number.
    has_batch_price: whether the discount of the batch API is known to apply.
    since, until: the first and the last day of the price, if they are known.
    note: what to know about the price.
    """

    route: str
    input: _Dollars
    output: _Dollars
    cache_write: _Dollars | None = None
    date: str = "undated"
    source: str = "the user's catalogue"
    varies: bool = False
    own: bool = False
    priced_up_to: int | None = None
    has_batch_price: bool = True
    since: str = ""
    until: str = ""
    note: str = ""

    def __post_init__(self) -> None:
        provider_of(self.route)
        _days_until(self.since or None), _days_until(self.until or None)

    @property
    def is_current(self) -> bool:
        """Whether the price holds today."""
        return self.since <= today().isoformat() <= (self.until or "9999")

    @property
    def basis(self) -> str:
        """The origin of a cost at this price, in a few words."""
        return f"price table ({self.date})" if self.date else self.source

    @property
    def record(self) -> dict[str, object]:
        """The price as it is written to `run.json`: only its origin if it is the user's own."""
        if self.own:
            return {"source": "the user's catalogue"}
        names = ["route", "input", "output", "source"] + (["date"] if self.date else [])
        return {name: getattr(self, name) for name in names}


class Tables(Struct, frozen=True, forbid_unknown_fields=True):
    """The tables of a file."""

    provider: tuple[HostedProvider, ...] = ()
    rule: tuple[Rule, ...] = ()
    model: tuple[NamedModel, ...] = ()
    price: tuple[Price, ...] = ()

    def __post_init__(self) -> None:
        names = [f"models of the name {model.name!r}" for model in self.model]
        names += [f"prices for {price.route} {price.since}".rstrip() for price in self.price]
        for name, count in Counter(names).items():
            if count > 1:
                raise ValueError(f"there are two {name}")


def today() -> date:
    """Return the day that facts and prices are looked up for."""
    return date.today()


def _days_until(day: str | None) -> float:
    """Return the days from today to an ISO date, infinity for None. Raises ValueError."""
    return math.inf if day is None else (date.fromisoformat(day) - today()).days


def provider_of(route: str) -> str:
    """Return the provider of a route. Raises ValueError if it is not a route."""
    provider, _, name = route.partition("/")
    if not name:
        raise ValueError(f"route {route!r}: use PROVIDER/NAME")
    return provider


@cache
def bundled_tables() -> Tables:
    """Return the tables of this package."""
    names = ("providers.toml", "catalogue.toml", "prices.toml")
    return _read("", *(Path(__file__).with_name(name).read_text("utf-8") for name in names))


def user_tables() -> Tables:
    """Return the user's catalogue. Raises BadInput, with file and row, if it is wrong."""
    path = catalogue_path()
    if path is None:
        return Tables()
    try:
        return _read(str(path), path.read_text(encoding="utf-8-sig"))
    except (OSError, UnicodeDecodeError) as error:
        reason = error.strerror if isinstance(error, OSError) else error
        raise BadInput(
            f"{path}: {reason}; correct {CATALOGUE_VARIABLE}, the path of the catalogue"
        ) from error


def catalogue_path() -> Path | None:
    """Return the path of the user's catalogue, None if there is none."""
    if path := os.environ.get(CATALOGUE_VARIABLE, "").strip():
        return Path(path)
    return Path(USER_CATALOGUE) if Path(USER_CATALOGUE).is_file() else None


@lru_cache(maxsize=8)
def _read(path: str, *texts: str) -> Tables:
    try:
        merged = {name: rows for text in texts for name, rows in tomllib.loads(text).items()}
        return msgspec.convert(merged, Tables)
    except (tomllib.TOMLDecodeError, msgspec.ValidationError) as error:
        raise BadInput(f"{path}: {str(error).replace(' - at `$.', ', in `')}") from error


def fill(template: Mapping[str, object], mark: str, value: object) -> dict[str, object]:
    """Return parameters with `value` in place of each text `mark`."""
    filled = {name: value if part == mark else part for name, part in template.items()}
    nested = {k: fill(v, mark, value) for k, v in filled.items() if isinstance(v, Mapping)}
    return filled | nested
