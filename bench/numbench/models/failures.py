"""Failures of requests: what a reply means and how long to wait, and messages without secrets."""

from __future__ import annotations

import json
import re
from collections.abc import Mapping, Sequence
from typing import Any

import msgspec

from numbench.core.secrets import mask_secrets
from numbench.errors import NumbenchError, printable
from numbench.models.error_bodies import (
    MAX_TEXT,
    error_code_and_message,
    exceeds_daily_quota,
    retry_after,
    stated_wait,
)
from numbench.models.json_fields import PATTERNS, STATUSES, InvalidJson, WebPage, decode_json
from numbench.records import Completion, Failure, FailureKind, ToolCall, Usage

_TEMPORARY_STATUSES = frozenset({408, 409, 423, 424, 425, 444, 460, 498, 499})
"""Statuses below 500 of errors that may not recur; 498 is a lack of capacity at Groq."""

_UNPROCESSED_STATUSES = frozenset({409, 423, 425, 498, 501, 503, 505, 529})
"""Statuses of temporary errors that say that the request was not processed."""

_LONGEST_WAIT_SECONDS = 600.0
"""How long a run waits for a limit per day, if the server says so."""

_CONNECTION_FAILED = "connection failed: "
_LONE_SURROGATE = re.compile("[\ud800-\udfff]")
_MAX_MESSAGE_LENGTH = 300
_NO_USAGE = Usage()


class Unreached(Failure, frozen=True):
    """There was no connection to the server, so that the request was not sent."""

    @property
    def reason(self) -> str:
        """Why there was none."""
        return self.message.removeprefix(_CONNECTION_FAILED)


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
    message, code = message[:MAX_TEXT], code[:MAX_TEXT]
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
    except WebPage as page:
        body = web_page_failure(page, advises=status < 500).message
    except InvalidJson:
        body = content.decode("utf-8", "replace")
    # Google reports a bad key as a bad request.
    return failure_from_body(401 if b"API_KEY_INVALID" in content else status, headers, body)


def failure_from_body(status: int, headers: Mapping[str, str], body: object) -> Failure:
    """Return the failure for the decoded body of an unsuccessful response, or its text."""
    code, message = error_code_and_message(body)
    if not message and body and not isinstance(body, str):
        message = msgspec.json.encode(body).decode()
    wait = stated_wait(body, headers)
    failure = failure_from_status(status, message, code=code, retry_after=wait)
    return _dated(failure, body, retry_after(headers))


def failure_in_answer(error: object, status: int | None = None, default: str = "") -> Failure:
    """Return the failure for an error in a successful response; code or type stand for a status.

    Without one the failure is transient, unless the message says what else it is.
    status: what the format says of such errors. default: the message for a body without an error.
    """
    code, message = error_code_and_message(error)
    text = message or default or code or "the server reported an error"
    status = status or next(filter(None, map(_status_of, code.split())), None)
    wait = stated_wait(error, {})
    failure = failure_from_status(status or 400, text, code=code, retry_after=wait)
    says_what = any(PATTERNS[name].search(text) for name in ("no_credit", "wrong_path"))
    if not status and failure.kind != "item" and not says_what:
        return unreadable_failure(text)
    return _dated(failure, error, None)


def _dated(failure: Failure, body: object, wait: float | None) -> Failure:
    """Return `failure`, but as one of the whole run if it is due to a limit per day.

    Google uses one message for limits per minute and per day, and states a short delay for both;
    the limits of others roll, and `wait` is what a header says.
    """
    is_soon = wait is not None and wait <= _LONGEST_WAIT_SECONDS
    says_so = not is_soon and PATTERNS["daily_limit"].search(failure.message)
    if failure.kind != "rate_limit" or not (says_so or exceeds_daily_quota(body)):
        return failure
    message = f"the daily quota is used up: {failure.message}"
    return msgspec.structs.replace(failure, kind="run", message=message)


def _status_of(code: str) -> int | None:
    """Return the HTTP status that an error code is or stands for."""
    is_status = len(code) == 3 and code.isdecimal()
    status = int(code) if is_status else STATUSES.get(code, 0)
    return status if 400 <= status < 600 else None


def transient_failure(message: str, possibly_billed: bool = False) -> Failure:
    """Return a failure that may not recur."""
    return Failure(kind="transient", message=message, possibly_billed=possibly_billed)


def unreadable_failure(message: object) -> Failure:
    """Return the failure of a request whose response contains no answer that can be read.

    message: a text, or the error of who reads it.
    """
    if isinstance(message, Exception) and not isinstance(message, InvalidJson):
        message = f"the response cannot be read: {message!r}"
    return transient_failure(str(message), possibly_billed=True)


def web_page_failure(page: WebPage, advises: bool = True) -> Failure:
    """Return the failure of a request that a page for people answers: the URL is another one's."""
    message = f"the server sent a web page ({str(page)!r})"
    return Failure(kind="run", message=f"{message}; check --base-url" if advises else message)


def timeout_failure(seconds: float) -> Failure:
    """Return the failure of a request that exceeded its time limit."""
    return transient_failure(f"no answer within {seconds:g} s", possibly_billed=True)


def run_failure(message: str) -> Failure:
    """Return a failure that no request of the run can avoid."""
    return Failure(kind="run", message=message)


def wrong_server_failure(reason: object) -> Failure:
    """Return the failure of a request to a host that does not exist or speaks another protocol."""
    return Unreached(kind="run", message=f"{_CONNECTION_FAILED}{reason}")


def connection_failure(reason: object, was_sent: bool = True) -> Failure:
    """Return the failure of a request that got no complete response.

    `reason` is an error, or its message; some errors have no message but their name. `was_sent`:
    whether there was a connection, so that the request may have been processed.
    """
    message = f"{_CONNECTION_FAILED}{str(reason) or type(reason).__name__}"
    if not was_sent:
        return Unreached(kind="transient", message=message)
    return unreadable_failure(message)


def failed_completion(
    failure: Failure, usage: Usage = _NO_USAGE, cost: float | None = None
) -> Completion:
    """Return the completion of a request that failed; what it used may have been billed."""
    return Completion(error=failure, usage=usage, cost=cost)


def sanitize_completion(completion: Completion, secrets: Sequence[str]) -> Completion:
    """Return `completion` in the form in which it may leave an adapter.

    Secrets that a server may echo are masked, lone surrogates, which UTF-8 cannot encode, are
    replaced, and names and messages are short lines.
    """
    texts: dict[str, Any] = {
        name: sanitize(value, secrets)
        for name, sanitize in _SANITIZED.items()
        if (value := getattr(completion, name))
    }
    extra = {
        key: sanitize_line(value, secrets) if isinstance(value, str) else value
        for key, value in completion.extra.items()
    }
    if completion.calls:
        try:
            called = {"calls": msgspec.to_builtins(completion.calls), "reply": completion.reply}
            called = json.loads(sanitize_text(json.dumps(called, ensure_ascii=False), secrets))
            texts["calls"] = msgspec.convert(called["calls"], tuple[ToolCall, ...])
            texts["reply"] = tuple(called["reply"])
        except (ValueError, RecursionError) as problem:
            return failed_completion(unreadable_failure(problem), completion.usage, completion.cost)
    error = completion.error and sanitize_failure(completion.error, secrets)
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


_SANITIZED = {
    "text": sanitize_text,
    "reasoning_text": sanitize_text,
    "served_model": sanitize_line,
    "provider": sanitize_line,
}


def provider_error(failure: Failure, secrets: Sequence[str]) -> ProviderError:
    """Return the error to raise for `failure`, with a printable message without secrets."""
    return ProviderError(sanitize_failure(failure, secrets))


def _failure_kind(status: int, code: str, message: str, retry_after: float | None) -> FailureKind:
    text = f"{code} {message}"
    if PATTERNS["no_credit"].search(message):
        return "run"
    if status == 429:
        is_spent = retry_after is None and PATTERNS["spent_account_codes"].search(code)
        return "run" if is_spent else "rate_limit"
    is_too_large = PATTERNS["context_exceeded"].search(text) is not None
    if (status >= 500 and not is_too_large) or status in _TEMPORARY_STATUSES:
        return "transient"
    is_rejected = is_too_large or PATTERNS["prompt_rejected"].search(text)
    is_of_prompt = is_rejected and not _rejects_setting(text)
    if status == 413 or (is_of_prompt and (status in (400, 403, 422) or status >= 500)):
        return "item"
    return "run"


def _rejects_setting(text: str) -> bool:
    """Return whether the tokens that every request asks for are too many, not those of a prompt."""
    requested = PATTERNS["requested_tokens"].search(text)
    prompt = PATTERNS["prompt_tokens"].search(text)
    if requested and prompt:
        return int(requested[0]) >= int(prompt[0])
    return requested is not None or PATTERNS["setting_rejected"].search(text) is not None
