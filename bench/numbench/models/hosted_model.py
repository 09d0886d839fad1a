"""Models behind a server, whatever its wire format: what is built here is what is sent."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Mapping, Sequence
from functools import partial

import msgspec

from numbench._version import __version__
from numbench.core.secrets import known_secrets, named_secrets
from numbench.models.base import PLACEHOLDER_KEY, Message, ModelTarget, RequestSettings
from numbench.models.base_url import is_host_of
from numbench.models.facts import HostedProvider
from numbench.models.failures import (
    ProviderError,
    failed_completion,
    failure_from_reply,
    sanitize_completion,
    unreadable_failure,
    web_page_failure,
)
from numbench.models.formats import FORMATS
from numbench.models.http_client import MAX_RESPONSE_BYTES, HttpClient, Reply
from numbench.models.json_fields import PATTERNS, InvalidJson, WebPage
from numbench.records import Completion

_REFUSING_STATUSES = (400, 404, 405, 415, 422, 501)
"""Statuses with which a server may refuse to stream."""

_LARGE_RESPONSE_BYTES = 2**20
"""Larger responses are read in a thread, lest they delay other requests."""


class HostedServer:
    """A server that implements one of the wire formats, or the jobs of a batch API."""

    max_response_bytes = MAX_RESPONSE_BYTES

    def __init__(self, provider: HostedProvider, target: ModelTarget) -> None:
        """Prepare requests to the provider's server, or to `target.base_url`."""
        self.name = target.name
        self._provider, self._target = provider, target
        self._format = FORMATS["responses" if target.api == "responses" else provider.formats[0]]
        # Other servers than OpenAI's know the older name of the token limit only.
        is_elsewhere = target.base_url and not is_host_of(provider.own_hosts, target.base_url)
        elsewhere = provider.token_limit_elsewhere if is_elsewhere else None
        self._limit_field = elsewhere or provider.token_limit
        self._base_url = (target.base_url or provider.url).rstrip("/")
        self._secrets = known_secrets(target.key, self._base_url, target.headers.values())
        self._http = HttpClient(self.max_response_bytes)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.close()

    def _body(self, messages: Sequence[Message], settings: RequestSettings) -> dict[str, object]:
        """Return the body of a request that does not stream."""
        return self._format.body(self._target.served_name, messages, settings, self._limit_field)

    def _headers(self, body: Mapping[str, object]) -> dict[str, str]:
        """Return the headers of a request; those of the user replace others of any case."""
        target = self._target
        headers = {"Content-Type": "application/json", "User-Agent": f"numbench/{__version__}"}
        headers |= self._format.headers(target.key or PLACEHOLDER_KEY, body)
        if target.base_url is None:
            variables = self._provider.header_variables.items()
            headers |= {name: os.environ[each] for name, each in variables if os.environ.get(each)}
        own = {name.lower() for name in target.headers}
        return {k: v for k, v in headers.items() if k.lower() not in own} | dict(target.headers)


class HostedModel(HostedServer):
    """A model on a server that implements one of the wire formats."""

    def __init__(self, provider: HostedProvider, target: ModelTarget) -> None:
        """Prepare requests to the provider's server, or to `target.base_url`."""
        super().__init__(provider, target)
        self._streams = target.base_url is None if target.stream is None else target.stream
        self._url = self._format.url(self._base_url, target.served_name, self._streams)
        self._stream_fields = dict(self._format.stream)
        if not provider.stream_options:
            self._stream_fields.pop("stream_options", None)

    def request_body(
        self, messages: Sequence[Message], settings: RequestSettings
    ) -> dict[str, object]:
        """Return the body that `answer` sends."""
        body = self._body(messages, settings)
        return body | self._stream_fields if self._streams else body

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Send one request. Failures are values; secrets that a server echoes are masked."""
        body = self.request_body(messages, settings)
        headers, content = self._headers(body), msgspec.json.encode(body)
        try:
            reply = await self._http.request("POST", self._url, headers, content, settings.timeout)
            read = partial(self._completion, reply, settings.max_tokens)
            is_large = len(reply.content) > _LARGE_RESPONSE_BYTES
            completion = await asyncio.to_thread(read) if is_large else read()
            error = completion.error
            if error and error.status == 429 and self._provider.quota_recovers:
                limited = msgspec.structs.replace(error, kind="rate_limit")
                completion = msgspec.structs.replace(completion, error=limited)
        except ProviderError as problem:
            completion = failed_completion(problem.failure)
        except WebPage as page:
            completion = failed_completion(web_page_failure(page))
        except Exception as problem:  # noqa: BLE001
            # No reply ends a run with a traceback.
            completion = failed_completion(unreadable_failure(problem))
        return sanitize_completion(completion, (*self._secrets, *named_secrets(settings.params)))

    def _completion(self, reply: Reply, max_tokens: int | None) -> Completion:
        """Return the completion in a response. Raises InvalidJson if there is none.

        That of a response that was cut off may be complete: only bytes after it are missing.
        """
        if reply.is_success:
            try:
                found = self._format.parse(self._format.decode(reply.content), max_tokens)
            except (InvalidJson, RecursionError):
                if reply.cut is None:
                    raise
                return failed_completion(reply.cut)
            return failed_completion(reply.cut) if reply.cut and found.error else found
        failure = failure_from_reply(reply.status, reply.headers, reply.content)
        is_refusal = reply.status in _REFUSING_STATUSES and failure.kind == "run"
        if self._streams and is_refusal and PATTERNS["streaming_refused"].search(failure.message):
            message = f"the server does not stream (add --no-stream): {failure.message}"
            failure = msgspec.structs.replace(failure, message=message)
        try:
            known = self._format.parse(self._format.decode(reply.content))
        except (InvalidJson, RecursionError):
            return failed_completion(failure)
        return failed_completion(failure, known.usage, known.cost)
