"""Who answers: one protocol, `Model`, and one door, `open_model`."""

from __future__ import annotations

import os
from collections.abc import Callable, Sequence
from dataclasses import replace
from ipaddress import ip_address
from pathlib import Path
from typing import TYPE_CHECKING, NamedTuple, get_args
from urllib.parse import urlsplit

from bench.errors import BadInput
from bench.models.base import Api, BatchService, Message, Model, Request, Settings
from bench.models.catalogue import (
    Configuration,
    Level,
    Provider,
    check_level,
    load,
    resolve,
    unknown_model,
)
from bench.models.keys import check_key, read_env_file
from bench.shipped import checkpoint_folder

if TYPE_CHECKING:
    from bench.models.openai_api import Format

__all__ = [
    "About",
    "Api",
    "Message",
    "Model",
    "Opened",
    "Request",
    "Settings",
    "describe_model",
    "open_batch",
    "open_model",
]


class About(NamedTuple):
    """What a name and a level mean, before anybody is asked.

    settings: a template; the runner sets the kind of answer per task.
    identity: what else tells this run's requests from another's: route, server, and the format
        where it is not Chat.
    sdk: the distribution that makes the requests, None for models in this process.
    keys: the environment variables of which one holds the key, and whether one is set; none
        where no key is needed.
    batch_discount: the share of the price that the batch API takes off, None where there is none.
    concurrency: requests in flight where nobody says otherwise.
    """

    display: str
    level: str
    settings: Settings
    identity: dict[str, object]
    sdk: str | None = None
    keys: tuple[str, ...] = ()
    key_is_set: bool = True
    batch_discount: float | None = None
    concurrency: int = 16

    @property
    def route(self) -> str | None:
        """`PROVIDER/NAME`, None for models in this process."""
        route = self.identity.get("route")
        return None if route is None else str(route)


class Opened(NamedTuple):
    """A model that is ready to answer."""

    model: Model
    about: About


def describe_model(
    name: str, reasoning: str | None = None, base_url: str | None = None, api: Api = "chat"
) -> About:
    """What `open_model` would open, without its key. BadInput as there, but for the key."""
    read_env_file()
    if name.partition("/")[0] in _IN_PROCESS:
        return open_model(name, reasoning, base_url, api).about
    return _describe(name, resolve(name, reasoning), base_url, api)


def open_model(
    name: str, reasoning: str | None = None, base_url: str | None = None, api: Api = "chat"
) -> Opened:
    """The model `name` at the level `reasoning`, at another server where `base_url` is given.

    BadInput, naming what is possible, for an unknown model, a level that it lacks, a level that
    must be named, a format that its provider lacks, a missing key, or a malformed URL.
    """
    read_env_file()
    kind, _, rest = name.partition("/")
    if kind in _IN_PROCESS:
        if base_url is not None:
            raise BadInput(f"{name} runs in this process: leave out --base-url")
        if api != "chat":
            raise BadInput(f"{name} runs in this process: leave out --api")
        return _IN_PROCESS[kind](name, rest, reasoning)
    configuration = resolve(name, reasoning)
    about = _describe(name, configuration, base_url, api)
    return Opened(_connect(name, configuration, base_url, api), about)


def _describe(name: str, configuration: Configuration, base_url: str | None, api: Api) -> About:
    _check_api(name, configuration.provider, api)
    provider = load().provider[configuration.provider]
    identity: dict[str, object] = {
        "route": f"{configuration.provider}/{configuration.served_name}",
        "base_url": _checked_url(base_url, provider.keys) if base_url else None,
    }
    settings = configuration.settings
    if api != "chat":
        identity["api"] = api
        settings = replace(settings, seed=None)
    return About(
        display=configuration.display,
        level=configuration.level,
        settings=settings,
        identity=identity,
        sdk=provider.sdk,
        keys=provider.keys,
        key_is_set=not provider.keys
        or any(os.environ.get(key, "").strip() for key in provider.keys),
        batch_discount=provider.batch_discount,
    )


def open_batch(
    name: str, reasoning: str | None = None, base_url: str | None = None, api: Api = "chat"
) -> BatchService:
    """The batch API of the provider of what `open_model` would open.

    BadInput as there, and where the provider has no batch API.
    """
    read_env_file()
    if name.partition("/")[0] in _IN_PROCESS:
        raise BadInput(f"{name} runs in this process: leave out --batch")
    configuration = resolve(name, reasoning)
    _check_api(name, configuration.provider, api)
    provider = load().provider[configuration.provider]
    if provider.batch_discount is None:
        others = load().provider.items()
        able = [route for route, other in others if other.batch_discount is not None]
        raise BadInput(
            f"{name} is reached through {configuration.provider}, which has no batch API "
            f"({' and '.join(able)} have one): leave out --batch"
        )
    if base_url:
        _checked_url(base_url, provider.keys)
    served_name, key = configuration.served_name, _key(name, provider, base_url)
    if configuration.provider == "gemini":
        from bench.models.gemini_batch import GeminiBatches

        return GeminiBatches(served_name, key=key, base_url=base_url)
    from bench.models.openai_batch import OpenAIBatches

    return OpenAIBatches(
        served_name,
        _format(configuration, base_url, api),
        key=key,
        base_url=base_url or provider.base_url or "",
    )


def _check_api(name: str, provider: str, api: Api) -> None:
    """BadInput for a format that nobody knows or that the provider lacks."""
    if api not in get_args(Api):
        raise BadInput(f"unknown --api {api!r}: give one of {', '.join(get_args(Api))}")
    if api != "chat" and provider != "openai":
        raise BadInput(
            f"{name} is reached through {provider}, and only openai speaks {api}: leave out --api"
        )


def _connect(name: str, configuration: Configuration, base_url: str | None, api: Api) -> Model:
    """The adapter of the configuration's provider; its SDK is imported only here."""
    provider = load().provider[configuration.provider]
    served_name = configuration.served_name
    if configuration.provider == "litellm":
        from bench.models.litellm_api import LitellmModel

        return LitellmModel(name, served_name, base_url=base_url)
    key = _key(name, provider, base_url)
    if configuration.provider == "gemini":
        from bench.models.gemini import GeminiModel

        return GeminiModel(name, served_name, key=key, base_url=base_url)
    from bench.models.openai_api import OpenAIModel

    return OpenAIModel(
        name,
        served_name,
        _format(configuration, base_url, api),
        key=key,
        base_url=base_url or provider.base_url or "",
    )


def _format(configuration: Configuration, base_url: str | None, api: Api) -> Format:
    from bench.models.openai_api import RESPONSES, chat_format

    if api == "responses":
        return RESPONSES
    # OpenAI's reasoning models take only the newer name of the limit, most servers the older.
    own = configuration.provider == "openai" and (configuration.named or base_url is None)
    return chat_format("max_completion_tokens" if own else "max_tokens")


def _key(name: str, provider: Provider, base_url: str | None) -> str | None:
    for variable in provider.keys:
        if key := os.environ.get(variable, "").strip():
            check_key(variable, key)
            return key
    if base_url is not None:
        return None
    raise BadInput(
        f"{name} needs a key: set {' or '.join(provider.keys)} in the environment or in .env"
    )


def _open_baseline(name: str, precision: str, reasoning: str | None) -> Opened:
    from bench.models.baseline import PRECISIONS, BaselineModel

    if precision not in PRECISIONS:
        raise unknown_model(name)
    level = check_level(name, reasoning, {"none": Level()})
    model = BaselineModel(name, PRECISIONS[precision])
    return Opened(model, About(f"{precision} arithmetic", level, Settings(), identity={}))


def _open_replay(name: str, folder: str, reasoning: str | None) -> Opened:
    from bench.models.replay import ReplayModel

    model = ReplayModel(name, Path(folder))
    level = check_level(name, reasoning, {model.info.reasoning: Level()})
    return Opened(model, About(f"{model.info.display} (replay)", level, Settings(), identity={}))


def _open_huggingface(name: str, folder: str, reasoning: str | None) -> Opened:
    if not folder:
        raise unknown_model(name)
    from bench.models.huggingface import MAX_TOKENS, HuggingFaceModel

    model = HuggingFaceModel(name, Path(folder).expanduser())
    level = check_level(name, reasoning, model.levels)
    settings = Settings(temperature=0.0, max_tokens=MAX_TOKENS, request=model.levels[level].request)
    identity: dict[str, object] = {
        "model_sha256": model.fingerprint,
        "precision": model.precision,
    }
    display = Path(folder).name
    return Opened(model, About(display, level, settings, identity, sdk="transformers"))


def _open_checkpoint(name: str, folder: str, reasoning: str | None) -> Opened:
    if not folder:
        raise unknown_model(name)
    from bench.models.checkpoint import MOST, CheckpointModel

    level = check_level(name, reasoning, {"none": Level()})
    model = CheckpointModel(name, checkpoint_folder(folder))
    settings = Settings(temperature=0.0, max_tokens=model.limit)
    identity: dict[str, object] = {
        "model_sha256": model.fingerprint,
        "precision": model.precision,
    }
    return Opened(model, About(model.display, level, settings, identity, concurrency=MOST))


_IN_PROCESS: dict[str, Callable[[str, str, str | None], Opened]] = {
    "baseline": _open_baseline,
    "replay": _open_replay,
    "hf": _open_huggingface,
    "checkpoint": _open_checkpoint,
}
"""What opens the models that run in this process, by the first part of their names."""


def _checked_url(base_url: str, keys: Sequence[str]) -> str:
    """`base_url` in the form that is written down.

    BadInput where it is none that can be asked; it says nothing of what stands in it, which may be
    a password.
    """
    try:
        parts = urlsplit(base_url)
        host, port = parts.hostname or "", parts.port
        is_address = ":" in host and bool(ip_address(host.partition("%")[0]))
        known = is_address or bool(host and host.encode("idna"))
    except ValueError:
        raise BadInput(_NO_URL) from None
    plain = base_url.isprintable() and " " not in base_url
    if not (known and plain and parts.scheme in ("http", "https")):
        raise BadInput(_NO_URL)
    if "@" in parts.netloc:
        variable = " or ".join(keys) or "the provider's environment variable"
        raise BadInput(f"--base-url holds a user's name: give the server's key by {variable}")
    if "?" in base_url or "#" in base_url:
        raise BadInput("--base-url: leave out what begins with ? or #, no request would carry it")
    shown = f"[{host}]" if is_address else host
    return f"{parts.scheme}://{shown}{f':{port}' if port else ''}{parts.path}"


_NO_URL = "--base-url: not a URL such as http://127.0.0.1:8000/v1"
