"""The one protocol that every model speaks, and the settings of a request."""

from __future__ import annotations

from collections.abc import AsyncIterator, Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from bench.records import Completion, Failure
from bench.tasks.base import AnswerKind

TIMEOUT = 1800.0
"""Seconds that one request may take: maximal reasoning on a hard question takes many minutes."""

Api = Literal["chat", "responses"]
"""The formats of OpenAI's protocol."""

NO_KEY = "none"
"""Sent to a server that needs no key, because the SDKs insist on one."""


class Message(NamedTuple):
    """One turn of the conversation that a model is asked to continue."""

    role: Literal["system", "user", "assistant"]
    content: str


@dataclass(frozen=True)
class Settings:
    """All that shapes a request beside its messages.

    structured: ask for an answer that obeys `answer_schema(answer_kind)`.
    request: the parameters of the reasoning level, in the provider's own terms.
    timeout: seconds after which a request counts as failed.
    """

    temperature: float | None = None
    max_tokens: int | None = None
    structured: bool = False
    answer_kind: AnswerKind = "number"
    request: dict[str, object] = field(default_factory=dict)
    seed: int | None = None
    timeout: float = TIMEOUT


class Request(NamedTuple):
    """What a model is asked about one item."""

    messages: Sequence[Message]
    settings: Settings


class Model(Protocol):
    """Who answers."""

    name: str

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """The model's completion. A failure of the provider is a value: `Completion.error`."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


class BatchRequest(NamedTuple):
    """One request of a batch. `id` is the caller's own, once in a job."""

    id: str
    messages: Sequence[Message]
    settings: Settings


class BatchStatus(NamedTuple):
    """Where a job stands.

    ended: nothing more will come of it, whether it went well or not. done: requests answered.
    failed: requests that ended without an answer. state: the provider's word. error: why the job
    as a whole came to nothing, where the provider says so.
    """

    ended: bool
    done: int | None
    failed: int | None
    total: int | None
    state: str
    error: Failure | None = None


class BatchService(Protocol):
    """A provider's batch API: jobs of many requests, answered within a day at a lower price.

    Every method that asks the provider asks once, and raises `failures.ProviderFault` where that
    fails. One job takes at most `most_requests` requests, whose sizes sum to at most `most_bytes`.
    """

    most_requests: int
    most_bytes: int

    def size(self, request: BatchRequest) -> int:
        """Bytes that the request takes of a job's."""
        ...

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """The id of a new job, into which `key` is written for `find`."""
        ...

    async def find(self, key: str) -> str | None:
        """The id of the newest job that was submitted under `key`."""
        ...

    async def status(self, job: str) -> BatchStatus:
        """Where the job stands."""
        ...

    def results(self, job: str, ids: Sequence[str]) -> AsyncIterator[tuple[str, Completion]]:
        """What came back, in any order, each id at most once; failures are values.

        `ids` are those of the job's requests, in their order. Whatever is not yielded has no
        result: its request is still open, also in a job that ended.
        """
        ...

    async def cancel(self, job: str) -> None:
        """Ask for the job's end. What is answered by then is paid for and can be fetched."""
        ...

    async def close(self) -> None:
        """Give connections back."""
        ...


def answer_schema(kind: AnswerKind) -> dict[str, object]:
    """The JSON schema of `{"answer": …}`: a number, an interval's letter or a list of numbers."""
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
