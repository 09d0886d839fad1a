"""Providers: the ways to reach a model, built in or installed as plugins.

The part of a model's name before the first slash names its provider: `openai/gpt-5` is the model
`gpt-5` of the provider `openai`. A provider is one `ProviderPlugin` object, registered in one
place: inside this package in `_BUILT_IN`, in any other package as an entry point in the group
`numbench.providers`.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping, Sequence
from dataclasses import dataclass, field
from fnmatch import fnmatchcase
from functools import cache
from importlib.metadata import PackageNotFoundError, version
from pkgutil import resolve_name
from typing import NamedTuple, Protocol, runtime_checkable

from msgspec import Struct

from numbench.errors import BadInput
from numbench.models.base import Api, BatchService, Model, RequestSettings
from numbench.plugins import load_plugins

ENTRY_POINTS = "numbench.providers"

DEFAULT_LEVEL = "default"
"""The reasoning level of a model that is used without `--reasoning` and has no named models."""


class ReasoningLevel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """The settings of one reasoning level.

    request: parameters that are added to `RequestSettings.request`, in the provider's own terms.
    The other fields override those of a `CatalogueModel` and have no effect elsewhere.
    """

    request: dict[str, object] = {}
    route: str | None = None
    structured: bool | None = None
    max_tokens: int | None = None
    temperature: bool | None = None


class ReasoningBudget(NamedTuple):
    """A number of reasoning tokens that a model takes (`--reasoning-tokens`).

    request: returns the parameters for a number, in the provider's own terms. It is `minimum` to
    `maximum` tokens, or 0 if that is `can_be_zero`.
    """

    request: Callable[[int], dict[str, object]]
    minimum: int
    maximum: int
    can_be_zero: bool = False


class CatalogueModel(Struct, frozen=True, kw_only=True, forbid_unknown_fields=True):
    """A named model: an alias of `route` (`PROVIDER/NAME`) with reasoning levels and settings.

    temperature: whether the model accepts one; requests then set it to 0.
    structured: whether requests contain the JSON schema of the answer.
    seed: sent with every request.
    date, source: when and in which documentation the levels were checked.
    """

    name: str
    display: str
    route: str
    levels: dict[str, ReasoningLevel]
    temperature: bool = True
    structured: bool = True
    max_tokens: int | None = None
    seed: int | None = None
    date: str = ""
    source: str = ""


class ModelPrice(Struct, frozen=True, kw_only=True):
    """US dollars per million tokens on one route (`PROVIDER/NAME`); `output` covers reasoning.

    date, source: when and where the price was found; both are shown with every cost.
    """

    route: str
    input: float
    output: float
    date: str
    source: str


@dataclass(frozen=True)
class ModelTarget:
    """The model that a provider is to open.

    name: the name that the user gave, for messages: `PROVIDER/NAME` or that of a named model.
    served_name: the provider's own name of the model: NAME.
    key: the API key; None if the provider needs none, or for a `base_url` without one.
    base_url: the server that the user gave; None for the provider's own.
    api: the format of OpenAI's protocol.
    is_in_catalogue: whether the user gave the name of a named model.
    headers: HTTP headers that the user adds to every request; their values may be secrets.
    stream: whether to stream answers, as the user says; None if it is up to the provider.
    background: whether answers are generated in the background and polled (`takes_background`).
    """

    name: str
    served_name: str
    key: str | None = None
    base_url: str | None = None
    api: Api = "chat"
    is_in_catalogue: bool = False
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: bool | None = None
    background: bool = False


class ModelProperties(NamedTuple):
    """The properties of a model: of one in this process once it is open, of a hosted one by name.

    display: its name in reports. Default: the part of its name after the slash.
    levels: its reasoning levels. Default: those of the provider.
    settings: the settings of its requests; the reasoning level adds to `request`.
    identity: what else identifies the model, for example a hash of its weights. It is written to
        `run.json`, and a run is not resumed with a different identity.
    """

    display: str | None = None
    levels: Mapping[str, ReasoningLevel] | None = None
    settings: RequestSettings = RequestSettings()
    identity: Mapping[str, object] = {}


def _default_properties(name: str) -> ModelProperties:
    return ModelProperties(settings=RequestSettings(temperature=0.0))


@runtime_checkable
class ModelWithProperties(Protocol):
    """A model in this process that has `properties`."""

    @property
    def properties(self) -> ModelProperties:
        """The properties of the model."""
        ...


@dataclass(frozen=True, kw_only=True)
class ProviderPlugin:
    """One way to reach models. A new provider needs the first two fields.

    name: the first part of the names of its models: lower-case letters, digits, `-` and `_`.
    open_model: returns the model for a `ModelTarget`. It may be a class. Raises BadInput if the
        model does not exist or cannot be used. Import SDKs inside this function: the object itself
        is loaded to list models and has to be light.
    examples: what may follow the slash, for help and messages: placeholders in capital letters
        (`NAME`, `VENDOR/NAME`) or, if there are only a few models, their names.
    in_process: the models run in this process. They have no server, key, batch API or price, and
        `open_model` also serves to describe them; `ModelTarget` then holds names only. Such a
        model may have an attribute `properties` of type `ModelProperties`.
    key_variables: environment variables that may hold the API key; the first that is set counts.
        Empty: no key is needed, or `open_model` finds it itself.
    hosts: the provider's own hosts, and those above them: with a `base_url` elsewhere, the key of
        `key_variables` is not sent.
    levels: the reasoning levels of `--reasoning`, in the provider's own terms.
        Without `--reasoning` a hosted model is used at the level `default`, which adds nothing.
    levels_of: other levels of some models, by shell pattern; the first that matches counts.
    budgets: the models that take a number of reasoning tokens, by shell pattern.
    request: parameters of every request, in the provider's own terms; a level adds to them.
    properties_of: returns what is known of a hosted model by its name NAME. Its levels replace
        `levels`; its token limit also applies to named models without one.
    rejects_temperature: models that accept no temperature, as shell patterns. Others get 0.
    accepts_temperature_at_none: those of them that accept one at the level none.
    rejects_temperature_when_reasoning: those that accept one at the levels default and none only.
    models: named models, with routes of this provider; the names contain no slash.
    prices: prices of its models. A user's own price table takes precedence.
    reports_cost: every completion has a cost, so that `--max-cost` needs no price.
    open_batch: returns the batch API for a `ModelTarget`. None: there is none.
    batch_discount: the share of the price that the batch API takes off.
    apis: the formats of OpenAI's protocol that `--api` may select.
    takes_background: whether the provider can generate answers in the background; the model then
        tells the tracker of `background_responses` the id of each.
    sdk: the installed distribution that makes the requests; its version is written to `run.json`.
    takes_prompts: whether models read system prompts and worked examples.
    takes_seed: whether requests may contain a seed.
    takes_schema: whether requests may contain a JSON schema, whatever the model map says.
    deterministic: whether a model gives the same answer to the same request every time, so that
        `--samples` and `--temperature` are refused.
    concurrency: the default number of concurrent requests.
    inspects_requests: whether all requests go through `AiohttpTransport` or another transport that
        calls `inspect_request`. Only then are they recorded and compared within a run.
    pin_hosts: for providers that pass requests on to several hosts of a model: returns the
        parameters that restrict a request to hosts of these names and these quantizations.
    """

    name: str
    open_model: Callable[[ModelTarget], Model]
    examples: tuple[str, ...] = ("NAME",)
    in_process: bool = False
    key_variables: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    levels: Mapping[str, ReasoningLevel] = field(default_factory=dict)
    levels_of: Mapping[str, Mapping[str, ReasoningLevel]] = field(default_factory=dict)
    budgets: Mapping[str, ReasoningBudget] = field(default_factory=dict)
    request: Mapping[str, object] = field(default_factory=dict)
    properties_of: Callable[[str], ModelProperties] = _default_properties
    rejects_temperature: tuple[str, ...] = ()
    accepts_temperature_at_none: tuple[str, ...] = ()
    rejects_temperature_when_reasoning: tuple[str, ...] = ()
    models: tuple[CatalogueModel, ...] = ()
    prices: tuple[ModelPrice, ...] = ()
    reports_cost: bool = False
    open_batch: Callable[[ModelTarget], BatchService] | None = None
    batch_discount: float = 0.0
    apis: tuple[Api, ...] = ("chat",)
    takes_background: bool = False
    sdk: str | None = None
    takes_prompts: bool = True
    takes_seed: bool = True
    takes_schema: bool = True
    deterministic: bool = False
    concurrency: int = 16
    inspects_requests: bool = False
    pin_hosts: Callable[[Sequence[str], Sequence[str]], Mapping[str, object]] | None = None

    def __post_init__(self) -> None:
        if not self.name or not set(self.name) <= _NAME_CHARACTERS:
            raise ValueError(f"provider name {self.name!r}: use a-z, 0-9, '-' and '_'")
        for model in self.models:
            if "/" in model.name or not model.levels:
                raise ValueError(f"model {model.name!r}: give a name without a slash, and levels")
        routes = [model.route for model in self.models]
        routes += [level.route for m in self.models for level in m.levels.values() if level.route]
        routes += [price.route for price in self.prices]
        for route in routes:
            if not route.startswith(f"{self.name}/"):
                raise ValueError(f"route {route!r} does not begin with '{self.name}/'")

    def levels_for(self, served_name: str) -> Mapping[str, ReasoningLevel]:
        """Return the reasoning levels of a model."""
        matches = (
            self.levels_of[each] for each in self.levels_of if fnmatchcase(served_name, each)
        )
        return next(matches, self.properties_of(served_name).levels or self.levels)

    def budget_for(self, served_name: str) -> ReasoningBudget | None:
        """Return the numbers of reasoning tokens that a model takes, None if it takes none."""
        matches = (self.budgets[each] for each in self.budgets if fnmatchcase(served_name, each))
        return next(matches, None)

    @property
    def routes(self) -> tuple[str, ...]:
        """The examples with the provider's name, for example `openai/NAME`."""
        return tuple(f"{self.name}/{example}" for example in self.examples)


_NAME_CHARACTERS = frozenset("abcdefghijklmnopqrstuvwxyz0123456789-_")

_BUILT_IN = {
    "openai": "numbench.models.hosted_providers:OPENAI",
    "openrouter": "numbench.models.hosted_providers:OPENROUTER",
    "gemini": "numbench.models.hosted_providers:GEMINI",
    "xai": "numbench.models.openai_compatible:XAI",
    "deepseek": "numbench.models.openai_compatible:DEEPSEEK",
    "dashscope": "numbench.models.openai_compatible:DASHSCOPE",
    "moonshot": "numbench.models.openai_compatible:MOONSHOT",
    "mistral": "numbench.models.openai_compatible:MISTRAL",
    "meta": "numbench.models.openai_compatible:META",
    "together_ai": "numbench.models.openai_compatible:TOGETHER",
    "anthropic": "numbench.models.hosted_providers:ANTHROPIC",
    "litellm": "numbench.models.hosted_providers:LITELLM",
    "baseline": "numbench.models.baseline:PROVIDER",
    "hf": "numbench.models.huggingface_model:PROVIDER",
    "replay": "numbench.models.replay:PROVIDER",
}
"""The providers of this package, imported when they are first needed."""


def find_provider(name: str) -> ProviderPlugin | None:
    """Return the provider `name`. Raises BadInput for a broken plugin.

    Plugins are loaded only if no built-in provider has this name.
    """
    if name in _BUILT_IN:
        return _load_built_in(name)
    return _plugin_providers().get(name)


def all_providers() -> tuple[ProviderPlugin, ...]:
    """Return the built-in providers, then those of plugins. Raises BadInput for a broken plugin."""
    return (*map(_load_built_in, _BUILT_IN), *_plugin_providers().values())


def provider_names(is_able: Callable[[ProviderPlugin], bool]) -> str:
    """Return the names of the providers that fulfil `is_able`, for a message."""
    return join_names([plugin.name for plugin in all_providers() if is_able(plugin)], "and")


def plugin_models() -> Iterator[CatalogueModel]:
    """Yield the named models of plugins."""
    for plugin in _plugin_providers().values():
        yield from plugin.models


def provider_price(route: str) -> ModelPrice | None:
    """Return the price that the provider of `route` declares for it, None if there is none."""
    plugin = find_provider(route.partition("/")[0])
    prices = plugin.prices if plugin else ()
    return next((price for price in prices if price.route == route), None)


def join_names(names: list[str], conjunction: str) -> str:
    """Return `a, b and c`."""
    *others, last = names or [""]
    return f"{', '.join(others)} {conjunction} {last}" if others else last


@cache
def _load_built_in(name: str) -> ProviderPlugin:
    plugin = resolve_name(_BUILT_IN[name])
    assert isinstance(plugin, ProviderPlugin)
    return plugin


@cache
def _plugin_providers() -> dict[str, ProviderPlugin]:
    """Return the providers of plugins by name."""
    plugins: dict[str, ProviderPlugin] = {}
    for entry, plugin in load_plugins(ENTRY_POINTS, ProviderPlugin):
        source = f"plugin provider {plugin.name!r} (entry point {entry!r} in {ENTRY_POINTS})"
        if plugin.name in _BUILT_IN or plugin.name in plugins:
            raise BadInput(f"{source}: a provider of this name exists already; rename it")
        if plugin.sdk is not None and not is_installed(plugin.sdk):
            raise BadInput(f"{source}: its sdk {plugin.sdk!r} is not installed; install it")
        plugins[plugin.name] = plugin
    return plugins


def is_installed(distribution: str) -> bool:
    """Return whether a distribution is installed, without importing it."""
    try:
        version(distribution)
    except PackageNotFoundError:
        return False
    return True
