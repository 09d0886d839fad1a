"""Errors of providers: their classification as a `Failure`, and messages without secrets."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from numbench.errors import NumbenchError, printable
from numbench.models.credentials import mask_secrets
from numbench.records import Completion, Failure, FailureKind, Usage
from numbench.thinking_text import move_thinking

_Text = TypeVar("_Text", str, str | None)

_PROMPT_REJECTED = re.compile(
    # rejected for its content
    r"content.?(filter|policy|management)|policy.?violation|violat\w+.{0,40}polic|moderation"
    r"|flagged|\bsafety\b(?!.?(setting|identifier))|inappropriate content"
    r"|invalid.?prompt|prompt (was |is |has been )?(blocked|rejected|refused|filtered)"
    # rejected for its length
    r"|context.?(length|window|limit|size)|maximum context|too (long|many tokens)|token count"
    r"|string_above_max_length|(input|prompt)[\w ]{0,30}(length|tokens?)\b.{0,60}(exceed|limit|max)"
    r"|exceed.{0,60}(input|prompt)[\w ]{0,10}(length|tokens?|limit)",
    re.IGNORECASE,
)
"""Words of an error that is due to the prompt itself: other prompts may be answered."""

_SETTING_REJECTED = re.compile(r"max_\w*tokens\W.{0,60}too (large|high|big)", re.IGNORECASE)
"""Words that mention the context too, but reject a setting that all requests share."""

_SPENT_ACCOUNT_CODES = frozenset(
    {
        "insufficient_quota",
        "billing_not_active",
        "billing_hard_limit_reached",
        "exceeded_current_quota_error",
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "linked_organization_spend_limit_reached",
    }
)
"""Error codes of an account without credit. Messages do not tell it from a limit per minute."""

_UNPROCESSED_STATUSES = frozenset({409, 501, 503, 505, 529})
"""Statuses of temporary errors that say that the request was not processed."""

_CONNECTION_FAILED = "connection failed: "
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_MESSAGE_LENGTH = 300
_NO_USAGE = Usage()


class ProviderError(NumbenchError):
    """A request other than for a completion failed, for example one that starts a batch job.

    `failure` says whether to retry. Its message must not contain a key.
    """

    def __init__(self, failure: Failure) -> None:
        status = f"HTTP {failure.status}: " if failure.status else ""
        super().__init__(f"{status}{failure.message}")
        self.failure = failure


def failure_from_status(
    status: int, message: str, *, code: str = "", retry_after: float | None = None
) -> Failure:
    """Return the failure for an HTTP status. `code` is the provider's error code, if any."""
    if not 100 <= status < 600:
        status = 500
    if 300 <= status < 400:
        message = "the server redirects to another URL, which gets no key: check --base-url"
    kind = _failure_kind(status, code, message, retry_after)
    return Failure(
        kind=kind,
        message=message if message.strip() else f"HTTP {status}",
        status=status,
        retry_after=retry_after,
        possibly_billed=kind == "transient" and status not in _UNPROCESSED_STATUSES,
    )


def transient_failure(message: str, possibly_billed: bool = False) -> Failure:
    """Return a failure that may not recur."""
    return Failure(kind="transient", message=message, possibly_billed=possibly_billed)


def unreadable_failure(message: object) -> Failure:
    """Return the failure of a request whose response contains no answer that can be read."""
    return transient_failure(str(message), possibly_billed=True)


def timeout_failure(seconds: float) -> Failure:
    """Return the failure of a request that exceeded its time limit."""
    return transient_failure(f"no answer within {seconds:g} s", possibly_billed=True)


def wrong_server_failure(reason: object) -> Failure:
    """Return the failure of a request to a host that does not exist or speaks another protocol."""
    return Failure(kind="run", message=f"{_CONNECTION_FAILED}{reason}")


def connection_failure(reason: object, was_sent: bool = True) -> Failure:
    """Return the failure of a request that got no complete response.

    `reason` is an error, or its message; some errors have no message but their name. `was_sent`:
    whether there was a connection, so that the request may have been processed.
    """
    message = f"{_CONNECTION_FAILED}{str(reason) or type(reason).__name__}"
    return transient_failure(message, possibly_billed=was_sent)


def connection_error(failure: Failure) -> str | None:
    """Return why there was no connection to the server, None if the request may have been sent."""
    if failure.status is not None or failure.possibly_billed:
        return None
    message = failure.message
    is_unsent = message.startswith(_CONNECTION_FAILED)
    return message.removeprefix(_CONNECTION_FAILED) if is_unsent else None


def failed_completion(
    failure: Failure, usage: Usage = _NO_USAGE, cost: float | None = None
) -> Completion:
    """Return the completion of a request that failed; what it used may have been billed."""
    return Completion(error=failure, usage=usage, cost=cost)


def sanitize_completion(completion: Completion, secrets: Sequence[str]) -> Completion:
    """Return `completion` in the form in which it may leave an adapter.

    Thinking in the text is moved to the reasoning. Secrets that a server may echo are masked, lone
    surrogates, which UTF-8 cannot encode, are replaced, and a failure's message is one short line.
    """
    completion = move_thinking(completion)
    error = completion.error
    return msgspec.structs.replace(
        completion,
        text=_sanitize_text(completion.text, secrets),
        reasoning_text=_sanitize_text(completion.reasoning_text, secrets),
        served_model=_sanitize_text(completion.served_model, secrets),
        provider=_sanitize_text(completion.provider, secrets),
        extra={
            key: _sanitize_text(value, secrets) if isinstance(value, str) else value
            for key, value in completion.extra.items()
        },
        error=error and sanitize_failure(error, secrets),
    )


def sanitize_failure(failure: Failure, secrets: Sequence[str]) -> Failure:
    """Return `failure` with a message of one short printable line without secrets.

    Messages are truncated only here, after masking, so that no part of a secret is left.
    """
    return msgspec.structs.replace(failure, message=sanitize_line(failure.message, secrets))


def sanitize_line(text: str, secrets: Sequence[str]) -> str:
    """Return `text` as one short printable line without secrets."""
    return _truncate_line(_sanitize_text(text, secrets))


def provider_error(failure: Failure, secrets: Sequence[str]) -> ProviderError:
    """Return the error to raise for `failure`, with a printable message without secrets."""
    return ProviderError(sanitize_failure(failure, secrets))


def _failure_kind(status: int, code: str, message: str, retry_after: float | None) -> FailureKind:
    text = f"{code} {message}"
    if status == 429:
        is_spent = retry_after is None and not _SPENT_ACCOUNT_CODES.isdisjoint(code.split())
        return "run" if is_spent else "rate_limit"
    if status >= 500 or status in (408, 409, 499):
        return "transient"
    rejects_prompt = _PROMPT_REJECTED.search(text) and not _SETTING_REJECTED.search(text)
    if status == 413 or (status in (400, 403, 422) and rejects_prompt):
        return "item"
    return "run"


def _sanitize_text(text: _Text, secrets: Sequence[str]) -> _Text:
    if text is None:
        return None
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", mask_secrets(text, secrets))


def _truncate_line(message: str) -> str:
    """Return one line of at most `_MAX_MESSAGE_LENGTH` characters, unprintable ones escaped."""
    line = printable(" ".join(message.split())[: _MAX_MESSAGE_LENGTH + 1])
    return line if len(line) <= _MAX_MESSAGE_LENGTH else line[:_MAX_MESSAGE_LENGTH] + "…"
