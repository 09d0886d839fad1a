"""Opening models and batch APIs by name, and describing them without a key."""

from __future__ import annotations

import re
from collections.abc import Callable, Mapping, Sequence
from dataclasses import replace
from ipaddress import ip_address
from typing import NamedTuple, get_args
from urllib.parse import urlsplit

from numbench.errors import BadInput
from numbench.models.base import (
    NO_HEADERS,
    PLACEHOLDER_KEY,
    Api,
    BatchService,
    Model,
    RequestSettings,
)
from numbench.models.catalogue import (
    ResolvedModel,
    find_model_provider,
    resolve_model,
    select_level,
)
from numbench.models.credentials import check_api_key, key_from_environment, load_env_file
from numbench.models.hosts import check_transport, is_loopback
from numbench.models.providers import (
    DEFAULT_LEVEL,
    ModelProperties,
    ModelTarget,
    ModelWithProperties,
    ProviderPlugin,
    ReasoningLevel,
    is_installed,
    provider_names,
)
from numbench.url_secrets import mask_secret_segments


class ModelDescription(NamedTuple):
    """A model at a reasoning level, before any request is made.

    settings: a template; the runner sets the kind of answer for each task.
    identity: what else identifies the requests of a run: route, server, and the API format if it
        is not Chat Completions; for models in this process, for example a hash of the weights.
    sdk: the distribution that makes the requests, None if there is none.
    key_variables, key_is_set: the environment variables that may hold the API key, and whether
        one of them does; no variables if no key is needed.
    batch_discount: the share of the price that the batch API takes off, None if there is none.
    concurrency: the default number of concurrent requests.
    takes_prompts: whether the model reads system prompts and worked examples.
    takes_seed: whether requests may contain a seed.
    is_deterministic: whether the same request gets the same answer every time.
    inspects_requests: whether requests can be seen before they are sent, see `ProviderPlugin`.
    level_request: the part of the settings' `request` that is due to the reasoning level.
    pin_hosts: returns the parameters that restrict requests to some hosts of the model, see
        `ProviderPlugin`.
    """

    display: str
    level: str
    settings: RequestSettings
    identity: dict[str, object]
    sdk: str | None = None
    key_variables: tuple[str, ...] = ()
    key_is_set: bool = True
    batch_discount: float | None = None
    concurrency: int = 16
    takes_prompts: bool = True
    takes_seed: bool = True
    is_deterministic: bool = False
    inspects_requests: bool = False
    level_request: Mapping[str, object] = {}
    pin_hosts: Callable[[Sequence[str], Sequence[str]], Mapping[str, object]] | None = None

    @property
    def route(self) -> str | None:
        """`PROVIDER/NAME`, None for models in this process."""
        route = self.identity.get("route")
        return None if route is None else str(route)


class OpenedModel(NamedTuple):
    """A model that is ready for requests, and its description."""

    model: Model
    description: ModelDescription


def describe_model(
    name: str, reasoning: str | None = None, base_url: str | None = None, api: Api = "chat"
) -> ModelDescription:
    """Return the description of the model that `open_model` would open; no key is needed.

    Raises BadInput as `open_model` does, except for a missing key.
    """
    load_env_file()
    provider = find_model_provider(name, base_url)
    if provider.in_process:
        return _open_in_process(provider, name, reasoning, base_url, api).description
    return _describe(name, resolve_model(name, reasoning), base_url, api)


def open_model(
    name: str,
    reasoning: str | None = None,
    base_url: str | None = None,
    api: Api = "chat",
    api_key_env: str | None = None,
    allow_http: bool = False,
    headers: Mapping[str, str] = NO_HEADERS,
    needs_key: bool = True,
    stream: bool | None = None,
    background: bool = False,
) -> OpenedModel:
    """Open the model `name` at the level `reasoning`, on the server `base_url` if one is given.

    Raises BadInput, saying what is possible, for an unknown model, a level that it does not have,
    a level that has to be named, an API format that its provider does not have, a missing key or
    a malformed URL.

    The provider's own key is sent to the provider's hosts and to this machine only; for another
    `base_url`, `api_key_env` names the environment variable with its key. Plain HTTP beyond
    private networks needs `allow_http`. `headers` are added to every request. Without `needs_key`
    a model can be opened that has no key, to see its requests. `stream`: whether to stream answers;
    None for the provider's default. `background`: whether the provider generates answers in the
    background.
    """
    load_env_file()
    provider = find_model_provider(name, base_url)
    if background and (api != "responses" or not provider.takes_background):
        able = provider_names(lambda plugin: plugin.takes_background)
        raise BadInput(
            f"{name}: --background needs --api responses, which {able} has: add it, or omit "
            "--background"
        )
    if background and stream:
        raise BadInput("answers in the background do not stream: omit --stream or --background")
    if provider.in_process:
        if headers:
            raise BadInput(f"{name} runs in this process: leave out --header")
        if stream:
            raise BadInput(f"{name} runs in this process: leave out --stream")
        return _open_in_process(provider, name, reasoning, base_url, api)
    resolved = resolve_model(name, reasoning)
    description = _describe(name, resolved, base_url, api)
    server = _Server(base_url, api_key_env, allow_http, headers, needs_key, stream, background)
    model = provider.open_model(_target(name, resolved, server, api))
    return OpenedModel(model, description)


def open_batch(
    name: str,
    reasoning: str | None = None,
    base_url: str | None = None,
    api: Api = "chat",
    api_key_env: str | None = None,
    allow_http: bool = False,
    headers: Mapping[str, str] = NO_HEADERS,
    needs_key: bool = True,
) -> BatchService:
    """Open the batch API of the provider of the model that `open_model` would open.

    Raises BadInput as `open_model` does, and if the provider has no batch API.
    """
    load_env_file()
    provider = find_model_provider(name, base_url)
    if provider.in_process:
        raise BadInput(f"{name} runs in this process: leave out --batch")
    resolved = resolve_model(name, reasoning)
    _check_api(name, provider, api)
    if provider.open_batch is None:
        able = provider_names(lambda plugin: plugin.open_batch is not None)
        raise BadInput(
            f"{name}: {provider.name} has no batch API ({able} have one): leave out --batch"
        )
    if base_url:
        normalize_base_url(base_url, provider.key_variables)
    server = _Server(base_url, api_key_env, allow_http, headers, needs_key)
    return provider.open_batch(_target(name, resolved, server, api))


def _describe(
    name: str, resolved: ResolvedModel, base_url: str | None, api: Api
) -> ModelDescription:
    provider = resolved.provider
    _check_api(name, provider, api)
    if provider.sdk is not None and not is_installed(provider.sdk):
        raise BadInput(f"{name} needs the package {provider.sdk}: pip install {provider.sdk}")
    variables = provider.key_variables
    identity: dict[str, object] = {
        "route": f"{provider.name}/{resolved.served_name}",
        "base_url": normalize_base_url(base_url, variables) if base_url else None,
    }
    settings = resolved.settings
    if api != "chat":
        identity["api"] = api
    takes_seed = provider.takes_seed and api == "chat"
    if not takes_seed:
        settings = replace(settings, seed=None)
    return ModelDescription(
        display=resolved.display,
        level=resolved.level,
        settings=settings,
        identity=identity,
        sdk=provider.sdk,
        key_variables=variables,
        key_is_set=not variables or key_from_environment(variables) is not None,
        batch_discount=provider.batch_discount if provider.open_batch else None,
        concurrency=provider.concurrency,
        takes_prompts=provider.takes_prompts,
        takes_seed=takes_seed,
        is_deterministic=provider.deterministic,
        inspects_requests=provider.inspects_requests,
        level_request={
            name: value
            for name, value in settings.request.items()
            if provider.request.get(name) != value
        },
        pin_hosts=provider.pin_hosts,
    )


def _open_in_process(
    provider: ProviderPlugin, name: str, reasoning: str | None, base_url: str | None, api: Api
) -> OpenedModel:
    for option, is_given in (("--base-url", base_url is not None), ("--api", api != "chat")):
        if is_given:
            raise BadInput(f"{name} runs in this process: leave out {option}")
    served_name = name.partition("/")[2]
    if provider.levels:
        # Opening the model may take minutes.
        select_level(name, reasoning, provider.levels)
    model = provider.open_model(ModelTarget(name, served_name))
    properties = model.properties if isinstance(model, ModelWithProperties) else ModelProperties()
    levels = properties.levels or provider.levels or {DEFAULT_LEVEL: ReasoningLevel()}
    level = select_level(name, reasoning, levels)
    request = {**provider.request, **properties.settings.request, **levels[level].request}
    description = ModelDescription(
        display=properties.display or served_name,
        level=level,
        settings=replace(properties.settings, request=request),
        identity=dict(properties.identity),
        sdk=provider.sdk,
        concurrency=provider.concurrency,
        takes_prompts=provider.takes_prompts,
        is_deterministic=provider.deterministic,
    )
    return OpenedModel(model, description)


def _check_api(name: str, provider: ProviderPlugin, api: Api) -> None:
    """Raise BadInput for an unknown API format or one that the provider does not have."""
    if api not in get_args(Api):
        raise BadInput(f"unknown --api {api!r}: use {' or '.join(get_args(Api))}")
    if api not in provider.apis:
        able = provider_names(lambda plugin: api in plugin.apis)
        raise BadInput(
            f"{name}: --api {api} is available from {able} only, not from {provider.name}: "
            "leave out --api"
        )


class _Server(NamedTuple):
    """Where requests go, as the user gave it: see `open_model`."""

    base_url: str | None
    api_key_env: str | None
    allow_http: bool
    headers: Mapping[str, str]
    needs_key: bool = True
    stream: bool | None = None
    background: bool = False


def _target(name: str, resolved: ResolvedModel, server: _Server, api: Api) -> ModelTarget:
    """Return the target of a hosted model. Raises BadInput for a missing or malformed key."""
    base_url = server.base_url or None
    if base_url is not None and not server.allow_http:
        check_transport(base_url)
    return ModelTarget(
        name=name,
        served_name=resolved.served_name,
        key=_api_key(name, resolved.provider, server),
        base_url=base_url,
        api=api,
        is_in_catalogue=resolved.is_in_catalogue,
        headers=server.headers,
        stream=server.stream,
        background=server.background,
    )


def _api_key(name: str, provider: ProviderPlugin, server: _Server) -> str | None:
    variables: Sequence[str] = provider.key_variables
    if server.api_key_env is not None:
        variables = (server.api_key_env,)
    if environment_key := key_from_environment(variables):
        check_api_key(environment_key.variable, environment_key.key)
        is_sent = server.api_key_env is not None or _is_trusted(server.base_url, provider)
        return environment_key.key if is_sent else None
    if not server.needs_key:
        return PLACEHOLDER_KEY
    if variables and (server.base_url is None or server.api_key_env):
        own = ", or give --base-url for your own server" if name.startswith("openai/") else ""
        raise BadInput(
            f"{name} needs a key: set {' or '.join(variables)} in the environment or in .env{own}"
        )
    return None


def _is_trusted(base_url: str | None, provider: ProviderPlugin) -> bool:
    """Return whether a server may see the provider's key: the provider itself, or this machine."""
    if not base_url:
        return True
    host = (urlsplit(base_url).hostname or "").rstrip(".")
    own = any(host == each or host.endswith(f".{each}") for each in provider.hosts)
    is_encrypted = urlsplit(base_url).scheme == "https"
    return (own and is_encrypted) or is_loopback(base_url)


_REQUEST_PATH = re.compile(r"/(?:(?:chat/)?completions|responses|messages|models)$")
_MALFORMED_URL = "--base-url: not a URL such as http://127.0.0.1:8000/v1"


def normalize_base_url(base_url: str, key_variables: Sequence[str]) -> str:
    """Return `base_url` as it is written to `run.json`, without keys in its path or a final slash.

    Raises BadInput if it is malformed, contains a user name, a query string or a fragment, or ends
    in the path of a request. The message repeats no other part of the URL, which may contain a
    password.
    """
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname or "", parts.port
        is_address = ":" in host and bool(ip_address(host.partition("%")[0]))
        is_valid_host = is_address or bool(host and host.encode("idna"))
    except ValueError:
        raise BadInput(_MALFORMED_URL) from None
    is_plain = base_url.isprintable() and " " not in base_url
    if not (is_valid_host and is_plain and parts.scheme in ("http", "https")):
        raise BadInput(_MALFORMED_URL)
    if "@" in parts.netloc:
        variable = " or ".join(key_variables) or "the environment variable of the provider"
        raise BadInput(f"--base-url contains a user name: set the server's key in {variable}")
    if "?" in base_url or "#" in base_url:
        raise BadInput("--base-url: query strings and fragments (? and #) are not supported")
    path = parts.path.rstrip("/")
    if end := _REQUEST_PATH.search(path):
        raise BadInput(f"--base-url: omit {end[0]!r} at its end, which requests add themselves")
    written_host = f"[{host}]" if is_address else host
    url = f"{parts.scheme}://{written_host}{f':{port}' if port else ''}{path}"
    return mask_secret_segments(url)
