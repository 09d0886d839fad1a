"""The one protocol that every model speaks, and the settings of a request."""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import dataclass, field
from typing import Literal, NamedTuple, Protocol

from bench.records import Completion
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


class Model(Protocol):
    """Who answers."""

    name: str

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """The model's completion. A failure of the provider is a value: `Completion.error`."""
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
