"""The protocol that every model implements, settings of requests, batch requests, and servers.

The functions at the end say how the URL of a server is written, and whether it may see a key.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from ipaddress import IPv4Address, IPv6Address, ip_address
from typing import Literal, NamedTuple, Protocol, runtime_checkable
from urllib.parse import urlsplit

from numbench.core.secrets import mask_secret_segments
from numbench.errors import BadInput
from numbench.records import Completion, Failure
from numbench.tasks.base import LETTERS, AnswerKind

DEFAULT_TIMEOUT_SECONDS = 1800.0
"""Time limit of one request: maximal reasoning on a hard question takes many minutes."""

Api = Literal["chat", "responses"]
"""The formats of OpenAI's protocol: Chat Completions and Responses."""

_PRIVATE_SUFFIXES = (".local", ".localhost", ".internal", ".lan", ".home.arpa")
_REQUEST_PATH = re.compile(r"/(?:(?:chat/)?completions|responses|messages|models)$")
_MALFORMED_URL = "--base-url: not a URL such as http://127.0.0.1:8000/v1"

PLACEHOLDER_KEY = "none"
"""The key that is sent to a server that needs none, because the SDKs require one."""


@dataclass(frozen=True)
class Server:
    """How the user wants a model to be reached.

    base_url: another server than the provider's own. api: the format of OpenAI's protocol.
    api_key_env: the environment variable with the key of `base_url`. headers: added to every
    request; their values may be secrets. stream: whether to stream answers; None for the default
    of the provider.
    """

    base_url: str | None = field(default=None, repr=False)
    api: Api = "chat"
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    stream: bool | None = None


PROVIDERS_OWN = Server()
"""The provider's own server, with its defaults."""


@dataclass(frozen=True)
class ModelTarget:
    """The model that a provider is to open.

    name: the name that the user gave, for messages: `PROVIDER/NAME` or that of a named model.
    served_name: the provider's own name of the model: NAME.
    key: the API key; None if the provider needs none, or for a `base_url` without one.
    base_url: the server that the user gave; None for the provider's own.
    api: the format of OpenAI's protocol.
    headers: HTTP headers that the user adds to every request; their values may be secrets.
    stream: whether to stream answers, as the user says; None if it is up to the provider.
    """

    name: str
    served_name: str
    key: str | None = field(default=None, repr=False)
    base_url: str | None = field(default=None, repr=False)
    api: Api = "chat"
    headers: Mapping[str, str] = field(default_factory=dict, repr=False)
    stream: bool | None = None


class Message(NamedTuple):
    """One message of a conversation."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class RequestSettings:
    """Everything that shapes a request except its messages.

    structured: request an answer that obeys `answer_schema(answer_kind)`.
    request: the parameters of the reasoning level, in the provider's own terms.
    params: parameters that the user adds to the body, in the provider's own terms, nested.
    timeout: seconds after which a request counts as failed.
    tools: offer the calculator; the text that `parse_calculator` reads.
    turns: the replies to earlier requests of the conversation, whose calls have results.
    sampling: options without a field here, such as `top_p`: each format puts them where its API
    has parameters of sampling.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    structured: bool = False
    answer_kind: AnswerKind = "number"
    request: dict[str, object] = field(default_factory=dict)
    seed: int | None = None
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    params: dict[str, object] = field(default_factory=dict, repr=False)
    tools: str | None = None
    turns: Sequence[Completion] = ()
    sampling: dict[str, object] = field(default_factory=dict)


class Request(NamedTuple):
    """The messages and settings of the request for one item."""

    messages: Sequence[Message]
    settings: RequestSettings


class Model(Protocol):
    """A model that answers requests, many of them concurrently."""

    name: str

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Return the model's completion; a failure of the provider is `Completion.error`."""
        ...

    async def close(self) -> None:
        """Release connections and other resources."""
        ...


@runtime_checkable
class ModelWithBodies(Protocol):
    """A model whose requests are known before they are sent."""

    def request_body(
        self, messages: Sequence[Message], settings: RequestSettings
    ) -> Mapping[str, object]:
        """Return the body that `answer` sends."""
        ...


class BatchRequest(NamedTuple):
    """One request of a batch job. `id` is chosen by the caller and unique within the job."""

    id: str
    messages: Sequence[Message]
    settings: RequestSettings


class BatchStatus(NamedTuple):
    """The state of a batch job.

    is_finished: the job brings no further results, whether it succeeded or not.
    done: requests that ended with or without an answer, as far as the provider says so.
    state: the provider's name of the state.
    error: why the job as a whole failed, if the provider says so.
    """

    is_finished: bool
    done: int
    state: str
    error: Failure | None = None


def merge_parameters(body: Mapping[str, object], params: Mapping[str, object]) -> dict[str, object]:
    """Return `body` with `params` added; objects that both contain are merged."""
    merged = dict(body)
    for name, value in params.items():
        before = merged.get(name)
        if isinstance(before, Mapping) and isinstance(value, Mapping):
            value = merge_parameters(before, value)
        merged[name] = value
    return merged


def last_user_message(messages: Sequence[Message]) -> str:
    """Return the content of the last user message: the question without its prompts."""
    return next(message.content for message in reversed(messages) if message.role == "user")


def system_prompt(messages: Sequence[Message]) -> str:
    """Return the system prompts, separated by blank lines."""
    return "\n\n".join(message.content for message in messages if message.role == "system")


def answer_schema(kind: AnswerKind) -> dict[str, object]:
    """Return the JSON schema of `{"answer": …}`: a number, a text or a list of numbers."""
    answers: dict[AnswerKind, dict[str, object]] = {
        "letter": {"type": "string", "enum": list(LETTERS)},
        "fraction": {"type": "string"},
        "list": {"type": "array", "items": {"type": "number"}},
    }
    return {
        "type": "object",
        "properties": {"answer": answers.get(kind, {"type": "number"})},
        "required": ["answer"],
        "additionalProperties": False,
    }


def is_loopback(base_url: str) -> bool:
    """Return whether the server of a URL is on this machine."""
    host = _host(base_url)
    address = _address(host)
    return host == "localhost" if address is None else address.is_loopback


def is_host_of(hosts: Sequence[str], base_url: str) -> bool:
    """Return whether a server is one of a provider's hosts, or below one, through https."""
    host = _host(base_url)
    is_own = any(host == each or host.endswith(f".{each}") for each in hosts)
    return is_own and urlsplit(base_url).scheme == "https"


def may_see_keys(base_url: str) -> bool:
    """Return whether a URL is that of https, or of plain HTTP in a private network.

    Names without a dot and with a suffix for private networks count as private.
    """
    host, scheme = _host(base_url), urlsplit(base_url).scheme
    address = _address(host)
    is_private_name = host[:1].isalpha() and ("." not in host or host.endswith(_PRIVATE_SUFFIXES))
    is_private = is_private_name if address is None else address.is_private or address.is_link_local
    return scheme == "https" or (scheme == "http" and is_private)


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


def _host(base_url: str) -> str:
    return (urlsplit(base_url).hostname or "").rstrip(".")


def _address(host: str) -> IPv4Address | IPv6Address | None:
    """Return the address that a host is, None if it is a name."""
    try:
        return ip_address(host.partition("%")[0])
    except ValueError:
        return None
