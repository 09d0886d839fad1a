"""From a provider's fault to a `Failure`: what the runner is to do about it."""

from __future__ import annotations

import re
from collections.abc import Iterable, Mapping
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from bench.records import Completion, Failure, FailureKind

_ABOUT_THE_PROMPT = re.compile(
    r"content.?(filter|policy|management)|moderation|flagged|safety|context.?(length|window)"
    r"|maximum context|too (long|many tokens)|token count|string_above_max_length|prompt",
    re.IGNORECASE,
)
_QUOTA_SPENT = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_SHOWN = 300
_SHORTEST_KEY = 8


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


def retry_after(headers: Mapping[str, str]) -> float | None:
    """Seconds to wait by the `Retry-After` header: a number of seconds or an HTTP date."""
    value = headers.get("retry-after")
    if value is None:
        return None
    try:
        return max(0.0, float(value))
    except ValueError:
        pass
    try:
        until = parsedate_to_datetime(value)
    except ValueError:
        return None
    aware = until if until.tzinfo else until.replace(tzinfo=UTC)
    return max(0.0, (aware - datetime.now(UTC)).total_seconds())


def without_secrets(completion: Completion, secrets: Iterable[str]) -> Completion:
    """`completion` with every occurrence of a secret masked, wherever a server may echo one.

    What is too short to be a provider's key (servers of one's own take `1` or `EMPTY`) stays:
    masking it would mutilate answers.
    """
    said = _all_text(completion)
    present = [secret for secret in secrets if len(secret) >= _SHORTEST_KEY and secret in said]
    if not present:
        return completion
    changes = {
        name: _masked(value, present)
        for name in completion.__struct_fields__
        if isinstance(value := getattr(completion, name), str | Failure)
    }
    changes["extra"] = {key: _masked(value, present) for key, value in completion.extra.items()}
    return msgspec.structs.replace(completion, **changes)


def _kind(status: int, said: str) -> FailureKind:
    if status == 429:
        # A spent quota is refilled by a person, not by waiting.
        return "run" if _QUOTA_SPENT.search(said) else "rate_limit"
    if status >= 500 or status in (408, 409):
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


def _masked(value: object, secrets: list[str]) -> object:
    if isinstance(value, Failure):
        return msgspec.structs.replace(value, message=_masked(value.message, secrets))
    if isinstance(value, str):
        for secret in secrets:
            value = value.replace(secret, "[key]")
    return value
