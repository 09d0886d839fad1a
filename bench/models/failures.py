"""From a provider's fault to a `Failure`: what the runner is to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable

import msgspec

from bench.errors import NumbenchError
from bench.records import Completion, Failure, FailureKind

_ABOUT_THE_PROMPT = re.compile(
    r"content.?(filter|policy|management)|moderation|flagged|safety|context.?(length|window)"
    r"|maximum context|too (long|many tokens)|token count|string_above_max_length|prompt",
    re.IGNORECASE,
)
_QUOTA_SPENT = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_SHOWN = 300
_SHORTEST_KEY = 8


class ProviderFault(NumbenchError):
    """A provider did not do what it was asked beside answering, such as to start a job.

    `failure` says whether to try again. Its message must hold no key.
    """

    def __init__(self, failure: Failure) -> None:
        status = f"HTTP {failure.status}: " if failure.status else ""
        super().__init__(f"{status}{failure.message}")
        self.failure = failure


def from_status(
    status: int, message: str, *, code: str = "", retry_after: float | None = None
) -> Failure:
    """The failure behind an HTTP status. `code` is the provider's own word for it, if any."""
    said = f"{code} {message}"
    if 300 <= status < 400:
        message = "the server redirects elsewhere, and no key goes there: check --base-url"
    return Failure(
        kind=_kind(status, said),
        message=_one_line(message) or f"HTTP {status}",
        status=status,
        retry_after=retry_after,
    )


def transient(message: str) -> Failure:
    """A failure that may pass: a dropped connection, a timeout, an answer nobody can read."""
    return Failure(kind="transient", message=_one_line(message))


def failed(failure: Failure) -> Completion:
    """The completion of a request that brought no answer."""
    return Completion(error=failure)


def without_secrets(completion: Completion, secrets: Iterable[str]) -> Completion:
    """`completion` with every occurrence of a secret masked, wherever a server may echo one.

    What is too short to be a provider's key (servers of one's own take `1` or `EMPTY`) stays:
    masking it would mutilate answers.
    """
    present = _present(secrets, _all_text(completion))
    if not present:
        return completion
    changes = {
        name: _masked(value, present)
        for name in completion.__struct_fields__
        if isinstance(value := getattr(completion, name), str | Failure)
    }
    changes["extra"] = {key: _masked(value, present) for key, value in completion.extra.items()}
    return msgspec.structs.replace(completion, **changes)


def fault(failure: Failure, secrets: Iterable[str]) -> ProviderFault:
    """The error to raise for `failure`, its message with every occurrence of a secret masked."""
    message = _masked(failure.message, _present(secrets, failure.message))
    return ProviderFault(msgspec.structs.replace(failure, message=message))


def _kind(status: int, said: str) -> FailureKind:
    if status == 429:
        # A spent quota is refilled by a person, not by waiting.
        return "run" if _QUOTA_SPENT.search(said) else "rate_limit"
    if status >= 500 or status in (408, 409, 499):
        return "transient"
    about_the_prompt = _ABOUT_THE_PROMPT.search(said) is not None
    if status == 413 or (status in (400, 403, 422) and about_the_prompt):
        return "item"
    return "run"


def _one_line(message: str) -> str:
    line = " ".join(message.split())
    return line if len(line) <= _SHOWN else line[:_SHOWN] + "…"


def _all_text(completion: Completion) -> str:
    error = completion.error.message if completion.error else ""
    fields = (completion.text, completion.reasoning_text, completion.served_model)
    return "\n".join(map(str, (*fields, completion.provider, error, *completion.extra.values())))


def _present(secrets: Iterable[str], said: str) -> list[str]:
    return [secret for secret in secrets if len(secret) >= _SHORTEST_KEY and secret in said]


def _masked(value: object, secrets: list[str]) -> object:
    if isinstance(value, Failure):
        return msgspec.structs.replace(value, message=_masked(value.message, secrets))
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "[key]")
    return value
