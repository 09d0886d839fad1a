"""The protocols that every model and every batch API implements, and the settings of a request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol, runtime_checkable

from numbench.records import Completion, Failure, Job
from numbench.tasks.base import AnswerKind

DEFAULT_TIMEOUT_SECONDS = 1800.0
"""Time limit of one request: maximal reasoning on a hard question takes many minutes."""

Api = Literal["chat", "responses"]
"""The formats of OpenAI's protocol: Chat Completions and Responses."""

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

    base_url: str | None = None
    api: Api = "chat"
    api_key_env: str | None = None
    headers: Mapping[str, str] = field(default_factory=dict)
    stream: bool | None = None


PROVIDERS_OWN = Server()
"""The provider's own server, with its defaults."""


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
    """

    temperature: float | None = None
    max_tokens: int | None = None
    structured: bool = False
    answer_kind: AnswerKind = "number"
    request: dict[str, object] = field(default_factory=dict)
    seed: int | None = None
    timeout: float = DEFAULT_TIMEOUT_SECONDS
    params: dict[str, object] = field(default_factory=dict)


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
        """Return the body that `answer` sends. Raises BadInput for one that would be rejected."""
        ...


@runtime_checkable
class ModelOnListingServer(Protocol):
    """A model on a server that can list its models."""

    async def served_models(self, path: str = "") -> Sequence[str]:
        """Return the names of the models that the server offers, empty if it does not list them.

        path: what to add to the base URL, to find out whether the API is there.
        """
        ...


class BatchRequest(NamedTuple):
    """One request of a batch job. `id` is chosen by the caller and unique within the job."""

    id: str
    messages: Sequence[Message]
    settings: RequestSettings


class BatchStatus(NamedTuple):
    """The state of a batch job.

    is_finished: the job brings no further results, whether it succeeded or not.
    succeeded, failed: requests that ended with and without an answer.
    state: the provider's name of the state.
    error: why the job as a whole failed, if the provider says so.
    """

    is_finished: bool
    succeeded: int | None
    failed: int | None
    total: int | None
    state: str
    error: Failure | None = None


class BatchService(Protocol):
    """A provider's batch API: jobs of many requests, answered within a day at a lower price.

    Methods that contact the provider do so once and raise `failures.ProviderError` if that
    fails. One job takes at most `max_requests` requests, whose sizes sum to at most `max_bytes`.
    """

    max_requests: int
    max_bytes: int

    def size(self, request: BatchRequest) -> int:
        """Return the bytes that the request takes of `max_bytes`."""
        ...

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job that `find` can find by `key`. Returns its id."""
        ...

    async def find(self, job: Job, other_ids: Collection[str] = ()) -> str | None:
        """Return the id of the newest job that was submitted with the key of `job`.

        `job` is planned or lost: the provider may not have received it. `other_ids` are those of
        the other jobs of its run, for providers that do not show the key of every job.
        """
        ...

    async def status(self, job: str) -> BatchStatus:
        """Return the state of the job."""
        ...

    def results(self, job: Job) -> AsyncIterator[tuple[str, Completion]]:
        """Yield the results by the id of their request, in any order; failures are values.

        Each id is yielded at most once. One that is not yielded has no result: its request is
        still open, also if the job has ended.
        """
        ...

    async def cancel(self, job: str) -> None:
        """Request the end of the job. Requests answered by then are billed and can be fetched."""
        ...

    async def close(self) -> None:
        """Release connections and other resources."""
        ...


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
    """Return the JSON schema of `{"answer": …}`: a number, a letter or a list of numbers."""
    answers: dict[AnswerKind, dict[str, object]] = {
        "number": {"type": "number"},
        "letter": {"type": "string"},
        "list": {"type": "array", "items": {"type": "number"}},
    }
    return {
        "type": "object",
        "properties": {"answer": answers[kind]},
        "required": ["answer"],
        "additionalProperties": False,
    }
