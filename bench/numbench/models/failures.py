"""Failures of requests: what a reply means and how long to wait, and messages without secrets."""

from __future__ import annotations

import math
import re
import time
from collections.abc import Mapping, Sequence
from datetime import UTC, datetime
from email.utils import parsedate_to_datetime

import msgspec

from numbench.errors import NumbenchError, printable
from numbench.models.json_fields import (
    InvalidJson,
    decode_json,
    object_at,
    objects_at,
    text_or_repr,
    value_at,
)
from numbench.records import Completion, Failure, FailureKind, Usage
from numbench.secrets import mask_secrets

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
    [
        "insufficient_quota",
        "billing_not_active",
        "billing_hard_limit_reached",
        "exceeded_current_quota_error",
        "enforced_spend_limit_reached",
        "contract_spend_limit_reached",
        "linked_organization_spend_limit_reached",
    ]
)
"""Error codes of an account without credit. Messages do not tell it from a limit per minute."""

_UNPROCESSED_STATUSES = frozenset({409, 501, 503, 505, 529})
"""Statuses of temporary errors that say that the request was not processed."""

_STATUS_BY_WORD = {
    "rate_limit_exceeded": 429,
    "insufficient_quota": 429,
    "invalid_prompt": 400,
    # Anthropic's types
    "invalid_request_error": 400,
    "authentication_error": 401,
    "billing_error": 402,
    "permission_error": 403,
    "not_found_error": 404,
    "conflict_error": 409,
    "request_too_large": 413,
    "rate_limit_error": 429,
    "api_error": 500,
    "timeout_error": 504,
    "overloaded_error": 529,
}
"""HTTP statuses of codes and types of errors in successful responses, streams and batches."""

_DURATION = re.compile(r"(?:\d+(?:\.\d+)?(?:ms|s|m|h|d))+", re.ASCII)
_DURATION_PART = re.compile(r"(\d+(?:\.\d+)?)(ms|s|m|h|d)", re.ASCII)
_SECONDS_PER_UNIT = {"ms": 0.001, "s": 1.0, "m": 60.0, "h": 3600.0, "d": 86400.0}
_FIRST_TIMESTAMP, _FIRST_MILLISECONDS = 1e9, 1e11
"""From these numbers on, a number is one of seconds, and of milliseconds, since 1970."""

_WAITS = {"retry-after": "s", "retry-after-ms": "ms"}
"""The headers with the time to wait, and their units."""

_RESET = re.compile("(x|anthropic)-ratelimit-(.+-)?reset(-.+)?")
"""The headers with the reset of a limit; what remains of it is in the one with `remaining`."""

_LIMIT_PER_DAY = re.compile(r"\bper[ -]day\b", re.IGNORECASE)

_CONNECTION_FAILED = "connection failed: "
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_MESSAGE_LENGTH = 300
_NO_USAGE = Usage()


class ProviderError(NumbenchError):
    """A request other than for a completion failed, for example one that starts a batch job.

    `failure` says whether to retry. Its message must not contain a key.
    """

    def __init__(self, failure: Failure) -> None:
        super().__init__(failure.text)
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


def failure_from_reply(status: int, headers: Mapping[str, str], content: bytes) -> Failure:
    """Return the failure for an unsuccessful response of any provider."""
    try:
        body = decode_json(content)
    except InvalidJson:
        body = content.decode("utf-8", "replace").strip()
    # Google reports a bad key as a bad request.
    return failure_from_body(401 if b"API_KEY_INVALID" in content else status, headers, body)


def failure_from_body(status: int, headers: Mapping[str, str], body: object) -> Failure:
    """Return the failure for the decoded body of an unsuccessful response, or its text."""
    code, message = error_code_and_message(body)
    failure = failure_from_status(
        status,
        message or ("" if isinstance(body, str) else text_or_repr(body)),
        code=code,
        retry_after=_wait(body, headers),
    )
    return _dated(failure, body)


def failure_in_answer(error: object, status: int | None = None) -> Failure:
    """Return the failure for an error in a successful response; code or type stand for a status.

    Without one the failure is transient, unless the message says that the prompt is rejected.
    status: what the format says of such errors.
    """
    code, message = error_code_and_message(error)
    text = message or code or "the server reported an error"
    status = status or _status_of(value_at(error, "code")) or _status_of(value_at(error, "type"))
    failure = failure_from_status(status or 400, text, code=code, retry_after=_wait(error, {}))
    if not status and failure.kind != "item":
        return unreadable_failure(text)
    return _dated(failure, error)


def error_code_and_message(body: object) -> tuple[str, str]:
    """Return the codes and the message in the body of an error, empty if it has none."""
    if not isinstance(body, dict):
        return "", text_or_repr(body) if body else ""
    error = body.get("error")
    if isinstance(error, str) and error:
        return text_or_repr(body.get("code")), error
    fields = _error_of(body)
    codes = ("code", "type", "param", "status", "details.error_code")
    code, message = (
        " ".join(text_or_repr(part) for path in paths if (part := value_at(fields, path)))
        for paths in (codes, ("message", "metadata.raw"))
    )
    return code, message


def _error_of(body: object) -> Mapping[str, object]:
    return object_at(body, "error") or object_at(body)


def _wait(body: object, headers: Mapping[str, str]) -> float | None:
    """Return the seconds to wait according to headers or, without any, to the body.

    OpenRouter repeats the headers of the provider behind it; Google states a delay.
    """
    error = _error_of(body)
    wait = retry_after({**object_at(error, "metadata.headers"), **headers})
    if wait is not None:
        return wait
    delays = (text_or_repr(each.get("retryDelay")) for each in objects_at(error, "details"))
    return next((_seconds(delay) for delay in delays if delay), None)


def _dated(failure: Failure, body: object) -> Failure:
    """Return `failure`, but as one of the whole run if it is due to a limit per day.

    Google uses one message for limits per minute and per day, and states a short delay for both.
    """
    details = objects_at(_error_of(body), "details")
    violations = (each for detail in details for each in objects_at(detail, "violations"))
    is_daily = _LIMIT_PER_DAY.search(failure.message) is not None or any(
        "PerDay" in text_or_repr(each.get("quotaId")) for each in violations
    )
    if failure.kind != "rate_limit" or not is_daily:
        return failure
    message = f"the quota per day is used up: {failure.message}"
    return msgspec.structs.replace(failure, kind="run", message=message)


def retry_after(headers: Mapping[str, object]) -> float | None:
    """Return the seconds to wait after a request that was rejected for now, None if unknown.

    That is what the server says explicitly, else the longest reset of the limits that are, or
    may be, exhausted. Malformed headers count as absent.
    """
    fields = {str(name).lower(): str(value).strip() for name, value in headers.items()}
    for name, unit in _WAITS.items():
        if (seconds := _seconds(fields.get(name, ""), unit)) is not None:
            return seconds
    resets = [
        _seconds(fields[name])
        for name in filter(_RESET.fullmatch, fields)
        if _seconds(fields.get(name.replace("reset", "remaining"), "0")) == 0
    ]
    return max((seconds for seconds in resets if seconds is not None), default=None)


def _seconds(text: str, unit: str = "s") -> float | None:
    """Return a number of seconds of 0 or more, None if the text has no such meaning.

    That is a number, a duration (`6m0s`, `20ms`, `1h2m`), or a moment that is still to come: a
    date, or seconds or milliseconds since 1970.
    """
    number = text + (unit if text[-1:].isdigit() else "")
    if not _DURATION.fullmatch(number):
        seconds = _seconds_until(text)
    else:
        parts = _DURATION_PART.findall(number)
        seconds = sum(float(value) * _SECONDS_PER_UNIT[name] for value, name in parts)
        if seconds >= _FIRST_MILLISECONDS:
            seconds /= 1000
        if seconds >= _FIRST_TIMESTAMP:
            seconds -= time.time()
    return seconds if 0 <= seconds < math.inf else None


def _seconds_until(text: str) -> float:
    """Return the seconds from now to an ISO 8601 or HTTP date, NaN for another text."""
    for parse in (datetime.fromisoformat, parsedate_to_datetime):
        try:
            moment = parse(text)
            aware = moment if moment.tzinfo else moment.replace(tzinfo=UTC)
            return aware.timestamp() - time.time()
        except (ValueError, OverflowError):
            continue
    return math.nan


def _status_of(code: object) -> int | None:
    """Return the HTTP status that an error code is or stands for."""
    if isinstance(code, str):
        status = int(code) if len(code) == 3 and code.isdecimal() else _STATUS_BY_WORD.get(code, 0)
    else:
        status = code if type(code) is int else 0
    return status if 400 <= status < 600 else None


def transient_failure(message: str, possibly_billed: bool = False) -> Failure:
    """Return a failure that may not recur."""
    return Failure(kind="transient", message=message, possibly_billed=possibly_billed)


def unreadable_failure(message: object) -> Failure:
    """Return the failure of a request whose response contains no answer that can be read."""
    return transient_failure(str(message), possibly_billed=True)


def timeout_failure(seconds: float) -> Failure:
    """Return the failure of a request that exceeded its time limit."""
    return transient_failure(f"no answer within {seconds:g} s", possibly_billed=True)


def run_failure(message: str) -> Failure:
    """Return a failure that no request of the run can avoid."""
    return Failure(kind="run", message=message)


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

    Secrets that a server may echo are masked, lone surrogates, which UTF-8 cannot encode, are
    replaced, and a failure's message is one short line.
    """
    error = completion.error
    texts = {
        name: sanitize_text(value, secrets)
        for name in ("text", "reasoning_text", "served_model", "provider")
        if (value := getattr(completion, name))
    }
    extra = {
        key: sanitize_text(value, secrets) if isinstance(value, str) else value
        for key, value in completion.extra.items()
    }
    error = error and sanitize_failure(error, secrets)
    return msgspec.structs.replace(completion, **texts, extra=extra, error=error)


def sanitize_failure(failure: Failure, secrets: Sequence[str]) -> Failure:
    """Return `failure` with a message of one short printable line without secrets."""
    return msgspec.structs.replace(failure, message=sanitize_line(failure.message, secrets))


def sanitize_line(text: str, secrets: Sequence[str]) -> str:
    """Return `text` as one short printable line without secrets.

    It is truncated only after masking, so that no part of a secret is left.
    """
    words = " ".join(sanitize_text(text, secrets).split())
    line = printable(words[: _MAX_MESSAGE_LENGTH + 1])
    return line if len(line) <= _MAX_MESSAGE_LENGTH else line[:_MAX_MESSAGE_LENGTH] + "…"


def sanitize_text(text: str, secrets: Sequence[str]) -> str:
    """Return `text` without secrets and lone surrogates."""
    return _LONE_SURROGATE.sub("\N{REPLACEMENT CHARACTER}", mask_secrets(text, secrets))


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
