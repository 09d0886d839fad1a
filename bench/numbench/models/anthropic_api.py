"""Anthropic's Claude models through the Messages API, or a server that implements it."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import httpx

from numbench.models import anthropic_messages
from numbench.models.aiohttp_transport import MAX_RESPONSE_BYTES, AiohttpTransport
from numbench.models.base import NO_HEADERS, PLACEHOLDER_KEY, Message, RequestSettings
from numbench.models.credentials import known_secrets
from numbench.models.event_streams import (
    is_event_stream,
    merge_message_events,
    refuses_streaming,
)
from numbench.models.http_exchange import receive_completion
from numbench.models.json_fields import InvalidJson, decode_json, dict_or_empty
from numbench.models.provider_errors import failed_completion, sanitize_completion
from numbench.models.rate_limit_headers import retry_after, with_hold_back_seconds
from numbench.records import Completion, Failure, Usage

_ANTHROPIC_URL = "https://api.anthropic.com"
_PATH = "messages"


class AnthropicModel:
    """A Claude model.

    name: the name that the user gave. served_name: Anthropic's name of the model. streams: whether
    to stream answers, until the server refuses that or streams one without its usage.
    """

    def __init__(
        self,
        name: str,
        served_name: str,
        *,
        key: str | None,
        base_url: str | None,
        streams: bool,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Connect to Anthropic's server, or to `base_url`, which implements the same API."""
        self.name = name
        self._served_name = served_name
        self._secrets = known_secrets(key, base_url, headers.values())
        self._http = create_client(key, base_url, headers=headers)
        self._streams = streams

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Send one request. Failures are values; secrets that a server echoes are masked."""
        body = anthropic_messages.build_request(self._served_name, messages, settings)
        if message := anthropic_messages.token_limit_error(body):
            return failed_completion(Failure(kind="run", message=message, status=400))
        sending = self._send(body, version_header(settings))
        completion = await receive_completion(sending, self._parse, settings.timeout)
        return sanitize_completion(completion, self._secrets)

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _send(self, body: Mapping[str, object], headers: Mapping[str, str]) -> httpx.Response:
        """Return the response to a request, streamed if the server does not refuse that."""
        if self._streams:
            response = await self._http.post(_PATH, json={**body, "stream": True}, headers=headers)
            if not refuses_streaming(response.status_code, response.content):
                return response
            self._streams = False
        return await self._http.post(_PATH, json=body, headers=headers)

    def _parse(self, response: httpx.Response) -> Completion:
        if not response.is_success:
            return failed_completion(
                failure_from_response(response), _usage_in_error_body(response.content)
            )
        completion = anthropic_messages.parse_completion(_decode(response.content))
        is_stream = is_event_stream(response.content)
        if completion.error is None and is_stream and completion.usage == Usage():
            self._streams = False
        return with_hold_back_seconds(completion, response.headers)


def create_client(
    key: str | None,
    base_url: str | None,
    max_response_bytes: int = MAX_RESPONSE_BYTES,
    headers: Mapping[str, str] = NO_HEADERS,
) -> httpx.AsyncClient:
    """Return a client for the API, without redirects, retries and time limits.

    `base_url` may end in `/v1`, like those of OpenAI's API.
    """
    all_headers = httpx.Headers({"x-api-key": key or PLACEHOLDER_KEY})
    all_headers.update(headers)
    root = (base_url or _ANTHROPIC_URL).rstrip("/").removesuffix("/v1")
    return httpx.AsyncClient(
        transport=AiohttpTransport(max_response_bytes),
        base_url=f"{root}/v1/",
        headers=all_headers,
        timeout=None,
    )


def version_header(settings: RequestSettings) -> dict[str, str]:
    """Return the header with the version of the API for a request."""
    return {"anthropic-version": anthropic_messages.api_version(settings)}


def failure_from_response(response: httpx.Response) -> Failure:
    """Return the failure for an unsuccessful response."""
    try:
        body = decode_json(response.content)
    except InvalidJson:
        body = response.text
    wait = retry_after(response.headers)
    return anthropic_messages.failure_from_body(response.status_code, body, wait)


def _decode(content: bytes) -> object:
    """Return the response in a body, streamed or not. Raises InvalidJson if there is none."""
    return merge_message_events(content) if is_event_stream(content) else decode_json(content)


def _usage_in_error_body(content: bytes) -> Usage:
    """Return the usage that the body of an error reports, if any."""
    try:
        body = dict_or_empty(decode_json(content))
    except InvalidJson:
        return Usage()
    return anthropic_messages.parse_usage(dict_or_empty(body.get("usage")))
