"""From a provider's fault to a `Failure`: what the runner is to do about it."""

from __future__ import annotations

import re
from collections.abc import Sequence
from typing import TypeVar

import msgspec

from bench.errors import NumbenchError
from bench.models.secrets import masked
from bench.records import Completion, Failure, FailureKind, Usage

_Text = TypeVar("_Text", str, str | None)

_ABOUT_THE_PROMPT = re.compile(
    # what it says
    r"content.?(filter|policy|management)|policy.?violation|violat\w+.{0,40}polic|moderation"
    r"|flagged|\bsafety\b(?!.?(setting|identifier))|inappropriate content"
    r"|invalid.?prompt|prompt (was |is |has been )?(blocked|rejected|refused|filtered)"
    # how long it is
    r"|context.?(length|window|limit|size)|maximum context|too (long|many tokens)|token count"
    r"|string_above_max_length|(input|prompt)[\w ]{0,30}(length|tokens?)\b.{0,60}(exceed|limit|max)"
    r"|exceed.{0,60}(input|prompt)[\w ]{0,10}(length|tokens?|limit)",
    re.IGNORECASE,
)
"""Words of a refusal that is due to the question itself: another one may be answered."""

_ABOUT_A_SETTING = re.compile(r"max_\w*tokens\W.{0,60}too (large|high|big)", re.IGNORECASE)
"""Words that speak of the context as well, but refuse a setting that all requests share."""

_QUOTA_SPENT = re.compile(r"insufficient_quota|exceeded your current quota|billing", re.IGNORECASE)
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_SHOWN = 300


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
    if not 100 <= status < 600:
        status = 500
    said = f"{code} {message}"
    if 300 <= status < 400:
        message = "the server redirects elsewhere, and no key goes there: check --base-url"
    return Failure(
        kind=_kind(status, said),
        message=message if message.strip() else f"HTTP {status}",
        status=status,
        retry_after=retry_after,
    )


def transient(message: str) -> Failure:
    """A failure that may pass: a dropped connection, a timeout, an answer nobody can read."""
    return Failure(kind="transient", message=message)


def failed(failure: Failure, usage: Usage = Usage(), cost: float | None = None) -> Completion:  # noqa: B008 - immutable
    """The completion of a request that brought no answer, but may have been paid for."""
    return Completion(error=failure, usage=usage, cost=cost)


def harmless(completion: Completion, secrets: Sequence[str]) -> Completion:
    """`completion` as it may leave an adapter.

    Every secret that a server may echo is masked, what no file can hold (lone surrogates) is
    replaced, and a failure's message is one short line.
    """
    error = completion.error
    return msgspec.structs.replace(
        completion,
        text=_clean(completion.text, secrets),
        reasoning_text=_clean(completion.reasoning_text, secrets),
        served_model=_clean(completion.served_model, secrets),
        provider=_clean(completion.provider, secrets),
        extra={
            key: _clean(value, secrets) if isinstance(value, str) else value
            for key, value in completion.extra.items()
        },
        error=error and harmless_failure(error, secrets),
    )


def harmless_failure(failure: Failure, secrets: Sequence[str]) -> Failure:
    """`failure` with a message of one short line that holds no secret and may be printed.

    Messages are cut here alone, so that no part of a secret is left at the cut.
    """
    return msgspec.structs.replace(failure, message=harmless_line(failure.message, secrets))


def harmless_line(text: str, secrets: Sequence[str]) -> str:
    """`text` as one short line that holds no secret and may be printed."""
    return _one_line(_clean(text, secrets))


def fault(failure: Failure, secrets: Sequence[str]) -> ProviderFault:
    """The error to raise for `failure`, as it may be printed."""
    return ProviderFault(harmless_failure(failure, secrets))


def _kind(status: int, said: str) -> FailureKind:
    if status == 429:
        # A spent quota is refilled by a person, not by waiting.
        return "run" if _QUOTA_SPENT.search(said) else "rate_limit"
    if status >= 500 or status in (408, 409, 499):
        return "transient"
    about_the_prompt = _ABOUT_THE_PROMPT.search(said) and not _ABOUT_A_SETTING.search(said)
    if status == 413 or (status in (400, 403, 422) and about_the_prompt):
        return "item"
    return "run"


def _clean(text: _Text, secrets: Sequence[str]) -> _Text:
    if text is None:
        return None
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", masked(text, secrets))


def _one_line(message: str) -> str:
    """At most `_SHOWN` characters, with what is no printable character spelt out."""
    line = " ".join(message.split())
    shown = "".join(c if c.isprintable() else repr(c)[1:-1] for c in line[: _SHOWN + 1])
    return shown if len(shown) <= _SHOWN else shown[:_SHOWN] + "…"
