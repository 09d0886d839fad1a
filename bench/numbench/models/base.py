"""The protocol that every model implements: its target, messages, settings, and batch jobs."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from numbench.records import Completion, Failure
from numbench.tasks.base import LETTERS, AnswerKind

DEFAULT_TIMEOUT_SECONDS = 1800.0
"""Time limit of one request: maximal reasoning on a hard question takes many minutes."""

Api = Literal["chat", "responses"]
"""The formats of OpenAI's protocol: Chat Completions and Responses."""

PLACEHOLDER_KEY = "none"
"""The key that is sent to a server that needs none."""


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

    async def close(self) -> None:
        """Release connections and other resources."""


@runtime_checkable
class ModelWithBodies(Protocol):
    """A model whose requests are known before they are sent."""

    def request_body(
        self, messages: Sequence[Message], settings: RequestSettings
    ) -> Mapping[str, object]:
        """Return the body that `answer` sends."""


class BatchRequest(NamedTuple):
    """One request of a batch job. `id` is chosen by the caller and unique within the job."""

    id: str
    messages: Sequence[Message]
    settings: RequestSettings


class BatchStatus(NamedTuple):
    """The state of a batch job.

    is_finished: the job has ended, whether it succeeded or not; some results may come later.
    done: requests that ended with or without an answer, as far as the provider says so.
    state: the provider's name of the state.
    answers: requests that ended with one; None if the provider counts nothing.
    error: why the job as a whole failed, if the provider says so.
    """

    is_finished: bool
    done: int
    state: str
    answers: int | None = None
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
