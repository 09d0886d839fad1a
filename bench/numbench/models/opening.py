"""Models and batch APIs are opened and described by name."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple
from weakref import WeakValueDictionary

from numbench.core.secrets import check_api_key, key_from_environment, load_env_file
from numbench.core.texts import Sentences
from numbench.errors import BadInput
from numbench.models.base import PLACEHOLDER_KEY, PROVIDERS_OWN, Model, ModelTarget, Server
from numbench.models.base_url import is_host_of, is_loopback, may_see_keys
from numbench.models.catalogue import (
    ModelDescription,
    describe_hosted,
    find_model_provider,
    select_level,
)
from numbench.models.facts import DEFAULT_LEVEL, ReasoningLevel
from numbench.models.providers import (
    ModelProperties,
    ProviderPlugin,
    all_providers,
    join_names,
)

if TYPE_CHECKING:
    from numbench.models.batch_client import BatchService

_text = Sentences(__file__)


class OpenedModel(NamedTuple):
    """A model that is ready for requests, and its description."""

    model: Model
    description: ModelDescription


def describe_model(
    name: str, reasoning: str | None = None, server: Server = PROVIDERS_OWN
) -> ModelDescription:
    """Return the description of the model that `open_model` would open; no key is needed.

    Raises BadInput as `open_model` does, except for a missing key.
    """
    load_env_file()
    provider = find_model_provider(name, server.base_url)
    if not provider.in_process:
        return describe_hosted(name, reasoning, server.base_url, server.api)
    return _describe_in_process(provider, name, reasoning)


def open_model(
    name: str, reasoning: str | None = None, server: Server = PROVIDERS_OWN, needs_key: bool = True
) -> OpenedModel:
    """Open the model `name` at the level `reasoning`, on the user's server if there is one.

    Raises BadInput, saying what is possible, for an unknown model, a level that it does not have,
    a level that has to be named, an API format that its provider does not have, a missing key or
    a malformed URL.

    The provider's own key is sent to the provider's hosts and to this machine only; another server
    gets that of `server.api_key_env`. A key or headers need https beyond private networks. Without
    `needs_key` a model can be opened that has no key, to see its requests.
    """
    description = describe_model(name, reasoning, server)
    if description.model is not None:
        return OpenedModel(description.model, description)
    target = _target(name, description, server, needs_key)
    return OpenedModel(description.provider.open_model(target), description)


def open_batch(
    name: str, reasoning: str | None = None, server: Server = PROVIDERS_OWN, needs_key: bool = True
) -> BatchService:
    """Open the batch API of the provider of the model that `open_model` would open.

    Raises BadInput as `open_model` does, and if the provider has no batch API.
    """
    description = describe_model(name, reasoning, server)
    provider = description.provider
    if provider.open_batch is None:
        able = [plugin.name for plugin in all_providers() if plugin.open_batch]
        about = {"name": name, "provider": provider.name, "able": join_names(able, "and")}
        raise BadInput(_text("no_batch", **about))
    return provider.open_batch(_target(name, description, server, needs_key))


def missing_key(description: ModelDescription, server: Server = PROVIDERS_OWN) -> str:
    """Return the variables that may hold the key of a model; empty if one does, or none must."""
    variables = () if server.base_url else description.provider.key_variables
    if server.api_key_env:
        variables = (server.api_key_env,)
    return "" if key_from_environment(variables) else " or ".join(variables)


def check_key(name: str, description: ModelDescription, server: Server = PROVIDERS_OWN) -> None:
    """Raise BadInput if the model `name` needs a key that is not set."""
    if missing := missing_key(description, server):
        is_openai = name.startswith("openai/") and not server.base_url
        raise BadInput(_text("no_openai_key" if is_openai else "no_key", name=name, keys=missing))


_Files = tuple[tuple[str, int, int], ...]

_open_models: WeakValueDictionary[tuple[str, _Files], Model] = WeakValueDictionary()
"""The models in this process by name and files: loading and hashing one may take minutes."""


def _files_of(served_name: str) -> _Files:
    """Return names, sizes and times of the files in a model's folder; none for another name.

    A network that is trained again in its folder is another model.
    """
    folder = Path(served_name)
    if not folder.is_dir():
        return ()
    states = ((path.name, path.stat()) for path in sorted(folder.iterdir()))
    return tuple((name, state.st_size, state.st_mtime_ns) for name, state in states)


def _describe_in_process(
    provider: ProviderPlugin, name: str, reasoning: str | None
) -> ModelDescription:
    served_name = name.partition("/")[2]
    if provider.levels:
        # Opening the model may take minutes.
        select_level(name, reasoning, provider.levels)
    key = (name, _files_of(served_name))
    model = _open_models.get(key)
    if model is None:
        model = provider.open_model(ModelTarget(name, served_name))
        _open_models[key] = model
    properties: ModelProperties = getattr(model, "properties", ModelProperties())
    levels = properties.levels or provider.levels or {DEFAULT_LEVEL: ReasoningLevel()}
    level = select_level(name, reasoning, levels)
    request = {**properties.settings.request, **levels[level].request}
    return ModelDescription(
        display=properties.display or served_name,
        level=level,
        settings=replace(properties.settings, request=request),
        identity=dict(properties.identity),
        provider=provider,
        served_name=served_name,
        model=model,
    )


def _target(
    name: str, description: ModelDescription, server: Server, needs_key: bool
) -> ModelTarget:
    """Return the target of a hosted model. Raises BadInput for a missing or malformed key."""
    provider, base_url, variable = description.provider, server.base_url, server.api_key_env
    if base_url and (variable or server.headers) and not may_see_keys(base_url):
        raise BadInput(_text("plain_text"))
    if needs_key:
        check_key(name, description, server)
    variables = (variable,) if variable else provider.key_variables
    key = None if needs_key else PLACEHOLDER_KEY
    if environment_key := key_from_environment(variables):
        check_api_key(environment_key.variable, environment_key.key)
        is_known = not base_url or is_loopback(base_url) or is_host_of(provider.hosts, base_url)
        key = environment_key.key if is_known or variable else None
    return ModelTarget(
        name, description.served_name, key, base_url, server.api, server.headers, server.stream
    )
