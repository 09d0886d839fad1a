"""Opening models and batch APIs by name, and describing them without a key."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import replace
from pathlib import Path
from typing import ClassVar, NamedTuple, get_args
from weakref import WeakSet, WeakValueDictionary

from numbench.errors import BadInput
from numbench.models.base import (
    PLACEHOLDER_KEY,
    PROVIDERS_OWN,
    Api,
    BatchService,
    Message,
    Model,
    RequestSettings,
    Server,
)
from numbench.models.catalogue import (
    ModelDescription,
    describe_hosted,
    find_model_provider,
    select_level,
)
from numbench.models.facts import DEFAULT_LEVEL, ReasoningLevel
from numbench.models.providers import (
    ModelProperties,
    ModelTarget,
    ModelWithProperties,
    ProviderPlugin,
    provider_names,
)
from numbench.models.servers import check_transport, is_host_of, is_loopback
from numbench.records import Completion
from numbench.secrets import check_api_key, key_from_environment, load_env_file


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
    if server.api not in get_args(Api):
        raise BadInput(f"unknown --api {server.api!r}: use {' or '.join(get_args(Api))}")
    provider = find_model_provider(name, server.base_url)
    if not provider.in_process:
        return describe_hosted(name, reasoning, server.base_url, server.api)
    _refuse(name, {"--base-url": server.base_url is not None, "--api": server.api != "chat"})
    return _describe_in_process(provider, name, reasoning)


def open_model(
    name: str,
    reasoning: str | None = None,
    server: Server = PROVIDERS_OWN,
    needs_key: bool = True,
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
        _refuse(name, {"--header": bool(server.headers), "--stream": bool(server.stream)})
        return OpenedModel(_SharedModel(description.model), description)
    target = _target(name, description, server, needs_key)
    return OpenedModel(description.provider.open_model(target), description)


def open_batch(
    name: str,
    reasoning: str | None = None,
    server: Server = PROVIDERS_OWN,
    needs_key: bool = True,
) -> BatchService:
    """Open the batch API of the provider of the model that `open_model` would open.

    Raises BadInput as `open_model` does, and if the provider has no batch API.
    """
    provider = find_model_provider(name, server.base_url)
    _refuse(name, {"--batch": provider.in_process})
    description = describe_model(name, reasoning, server)
    if provider.open_batch is None:
        able = provider_names(lambda plugin: plugin.open_batch is not None)
        raise BadInput(
            f"{name}: {provider.name} has no batch API ({able} have one): leave out --batch"
        )
    return provider.open_batch(_target(name, description, server, needs_key))


def _refuse(name: str, options: Mapping[str, bool]) -> None:
    """Raise BadInput if an option is given that a model in this process does not have."""
    for option, is_given in options.items():
        if is_given:
            raise BadInput(f"{name} runs in this process: leave out {option}")


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
    properties = model.properties if isinstance(model, ModelWithProperties) else ModelProperties()
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


class _SharedModel:
    """One use of a model in this process; the last of several concurrent ones closes it."""

    _open: ClassVar[WeakSet[_SharedModel]] = WeakSet()

    def __init__(self, model: Model) -> None:
        self.name, self._model = model.name, model
        self._open.add(self)

    def __getattr__(self, name: str) -> object:
        return getattr(self._model, name)

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Return the completion of the model."""
        return await self._model.answer(messages, settings)

    async def close(self) -> None:
        """Close the model, unless it is in use elsewhere."""
        is_open = self in self._open
        self._open.discard(self)
        if is_open and all(other._model is not self._model for other in self._open):
            await self._model.close()


def _target(
    name: str, description: ModelDescription, server: Server, needs_key: bool
) -> ModelTarget:
    """Return the target of a hosted model. Raises BadInput for a missing or malformed key."""
    provider, base_url, variable = description.provider, server.base_url, server.api_key_env
    if base_url and (variable or server.headers):
        check_transport(base_url)
    variables = (variable,) if variable else provider.key_variables
    key = None if needs_key else PLACEHOLDER_KEY
    if environment_key := key_from_environment(variables):
        check_api_key(environment_key.variable, environment_key.key)
        is_known = not base_url or is_loopback(base_url) or is_host_of(provider.hosts, base_url)
        key = environment_key.key if is_known or variable else None
    elif needs_key and variables and (variable or not base_url):
        is_openai = name.startswith("openai/") and not base_url
        own = ", or give --base-url for your own server" if is_openai else ""
        raise BadInput(
            f"{name} needs a key: set {' or '.join(variables)} in the environment or in .env{own}"
        )
    return ModelTarget(
        name=name,
        served_name=description.served_name,
        key=key,
        base_url=base_url or None,
        api=server.api,
        headers=server.headers,
        stream=server.stream,
    )
