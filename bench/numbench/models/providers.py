"""Providers: the ways to reach a model, built in, installed as plugins, or rows of a catalogue.

The part of a model's name before the first slash names its provider: `openai/gpt-5` is the model
`gpt-5` of the provider `openai`. A server with a known wire format is a row of `providers.toml` or
of the user's catalogue (`HostedProvider`). Anything else is one `ProviderPlugin` object: inside
this package in `_BUILT_IN`, in any other package as an entry point in the group
`numbench.providers`.
"""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping
from dataclasses import dataclass, field
from functools import cache, partial
from pkgutil import resolve_name
from typing import TYPE_CHECKING, NamedTuple, get_args

from numbench.core.installation import load_plugins
from numbench.errors import BadInput
from numbench.models.base import Api, Model, ModelTarget, RequestSettings
from numbench.models.facts import (
    Facts,
    HostedProvider,
    NamedModel,
    Price,
    ReasoningLevel,
    Rule,
    bundled_tables,
    catalogue_path,
    user_tables,
)

if TYPE_CHECKING:
    from numbench.models.batch_client import BatchService

ENTRY_POINTS = "numbench.providers"


class ModelProperties(NamedTuple):
    """The properties of an open model in this process.

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


@dataclass(frozen=True, kw_only=True)
class ProviderPlugin:
    """One way to reach models. A new provider needs the first two fields.

    name: the first part of the names of its models: lower-case letters, digits, `-` and `_`.
    open_model: returns the model for a `ModelTarget`: an object with `answer` and `close`. It may
        be a class. Raises BadInput if the model does not exist or cannot be used. Import SDKs
        inside this function: the object itself is loaded to list models and has to be light.
    examples: what may follow the slash, for help and messages: placeholders in capital letters
        (`NAME`, `VENDOR/NAME`) or, if there are only a few models, their names.
    in_process: the models run in this process. They have no server, key, batch API or price, and
        `ModelTarget` holds names only. Such a model may have an attribute `properties` of type
        `ModelProperties`.
    key_variables: environment variables that may hold the API key; the first that is set counts.
        Empty: no key is needed, or `open_model` finds it itself.
    hosts: the provider's own hosts, and those above them: with a `base_url` elsewhere, the key of
        `key_variables` is not sent.
    levels: the reasoning levels of `--reasoning`, in the provider's own terms.
        Without `--reasoning` a hosted model is used at the level `default`, which adds nothing.
    rules: facts about some of its models, by route and level: `facts.Rule`.
    models: named models, with routes of this provider; the names contain no slash.
    prices: prices of its models. A user's own price table takes precedence.
    reports_cost: every completion has a cost, so that `--max-cost` needs no price.
    open_batch: returns the batch API for a `ModelTarget`. None: there is none.
    batch_discount: the share of the price that the batch API takes off.
    apis: the formats of OpenAI's protocol that `--api` may select.
    sdk: the installed distribution that makes the requests; its version is written to `run.json`.
    takes_prompts: whether models read system prompts and worked examples.
    deterministic: whether a model gives the same answer to the same request every time, so that
        `--samples` and `--temperature` are refused.
    concurrency: the default number of concurrent requests.
    inspects_requests: whether its models have `request_body`, which takes the arguments of `answer`
        and returns the body of the request. Only then are requests recorded and compared.
    takes_tools: whether `request_body` offers what `RequestSettings.tools` names, and completions
        have the calls.
    note: what `run.json` says about the requests of this provider.
    """

    name: str
    open_model: Callable[[ModelTarget], Model]
    examples: tuple[str, ...] = ("NAME",)
    in_process: bool = False
    key_variables: tuple[str, ...] = ()
    hosts: tuple[str, ...] = ()
    levels: Mapping[str, ReasoningLevel] = field(default_factory=dict)
    rules: tuple[Rule, ...] = ()
    models: tuple[NamedModel, ...] = ()
    prices: tuple[Price, ...] = ()
    reports_cost: bool = False
    open_batch: Callable[[ModelTarget], BatchService] | None = None
    batch_discount: float = 0.0
    apis: tuple[Api, ...] = ("chat",)
    sdk: str | None = None
    takes_prompts: bool = True
    deterministic: bool = False
    concurrency: int = 16
    inspects_requests: bool = False
    takes_tools: bool = False
    note: str = ""
    facts: Facts = field(default_factory=Facts)

    def __post_init__(self) -> None:
        if not re.fullmatch("[a-z0-9_-]+", self.name):
            raise ValueError(f"provider name {self.name!r}: use a-z, 0-9, '-' and '_'")

    @property
    def routes(self) -> tuple[str, ...]:
        """The examples with the provider's name, for example `openai/NAME`."""
        return tuple(f"{self.name}/{example}" for example in self.examples)

    @property
    def is_router(self) -> bool:
        """Whether the provider passes requests on to other vendors."""
        return any("/" in example for example in self.examples)


_BUILT_IN = {
    "litellm": "numbench.models.litellm_model:PROVIDER",
    "baseline": "numbench.models.baseline:PROVIDER",
    "hf": "numbench.models.huggingface_model:PROVIDER",
}
"""The providers of this package without a row of `providers.toml`."""


def find_provider(name: str) -> ProviderPlugin | None:
    """Return the provider `name`. Raises BadInput for a broken plugin or catalogue.

    Plugins are loaded only if no other provider has this name.
    """
    return _own_providers().get(name) or plugin_providers().get(name)


def all_providers() -> tuple[ProviderPlugin, ...]:
    """Return all providers, those of plugins last. Raises BadInput for a broken plugin."""
    return (*_own_providers().values(), *plugin_providers().values())


def join_names(names: list[str], conjunction: str) -> str:
    """Return `a, b and c`."""
    *others, last = names or [""]
    return f"{', '.join(others)} {conjunction} {last}" if others else last


def _own_providers() -> dict[str, ProviderPlugin]:
    """Return the built-in providers and those of the user's catalogue by name."""
    providers = dict(_built_in_providers())
    for row in user_tables().provider:
        if row.name in providers:
            raise BadInput(f"{catalogue_path()}: a provider {row.name!r} exists already; rename it")
        providers[row.name] = _hosted(row)
    return providers


@cache
def _built_in_providers() -> dict[str, ProviderPlugin]:
    hosted = {row.name: _hosted(row) for row in bundled_tables().provider}
    return hosted | {name: resolve_name(path) for name, path in _BUILT_IN.items()}


def _hosted(row: HostedProvider) -> ProviderPlugin:
    """Return the provider that a row describes."""
    return ProviderPlugin(
        name=row.name,
        open_model=partial(_open_hosted, row),
        examples=row.examples,
        key_variables=row.keys,
        hosts=row.own_hosts,
        reports_cost=row.reports_cost,
        open_batch=partial(_open_batch, row) if row.batch else None,
        batch_discount=row.batch_discount,
        apis=tuple(api for api in get_args(Api) if api in row.formats) or ("chat",),
        inspects_requests=True,
        takes_tools=True,
        facts=row,
    )


def _open_hosted(row: HostedProvider, target: ModelTarget) -> Model:
    from numbench.models.hosted_model import HostedModel

    return HostedModel(row, target)


def _open_batch(row: HostedProvider, target: ModelTarget) -> BatchService:
    from numbench.models.batch_services import BATCH_SERVICES

    assert row.batch is not None
    return BATCH_SERVICES[row.batch](row, target)


@cache
def plugin_providers() -> dict[str, ProviderPlugin]:
    """Return the providers of plugins by name."""
    plugins: dict[str, ProviderPlugin] = {}
    for entry, plugin in load_plugins(ENTRY_POINTS, ProviderPlugin):
        source = f"plugin provider {plugin.name!r} (entry point {entry!r} in {ENTRY_POINTS})"
        if plugin.name in _own_providers() or plugin.name in plugins:
            raise BadInput(f"{source}: a provider of this name exists already; rename it")
        plugins[plugin.name] = plugin
    return plugins
