"""OpenAI's background mode: a response is started, polled by its id, and cancelled if late.

Source: OpenAI's guide to background mode, November 2026. A stored response can be fetched for
weeks; without `store`, or with zero data retention, for about ten minutes.
"""

from __future__ import annotations

import asyncio
import time
from collections.abc import Mapping
from typing import Protocol
from urllib.parse import quote

import httpx
import openai

from numbench.models.base import RequestSettings
from numbench.models.json_fields import InvalidJson, decode_json, dict_or_empty, text_or_none
from numbench.models.rate_limit_headers import parse_seconds

MIN_POLL_SECONDS = 1.0
MAX_POLL_SECONDS = 15.0
POLL_TIMEOUT_SECONDS = 60.0
_POLL_SHARE = 0.1
"""The wait between two polls, as a share of the time so far: what an answer may be late."""

_CANCEL_SECONDS = 30.0
_MAX_NOT_FOUND = 5
"""Polls in a row that may not find a response: one may be asked for before it can be seen."""

_IN_PROGRESS = ("queued", "in_progress")


class ResponseGone(Exception):
    """The provider does not have a response any more."""


class Endpoint(Protocol):
    """The part of an endpoint for responses that is needed here; both raise openai.APIError."""

    async def get(self, path: str) -> httpx.Response:
        """Return the response to a GET request below the endpoint."""
        ...

    async def post(self, body: Mapping[str, object], path: str = "") -> httpx.Response:
        """Return the response to a POST request."""
        ...


def background_request(body: Mapping[str, object], settings: RequestSettings) -> dict[str, object]:
    """Return the body of a request that is answered in the background, and stored until then."""
    stored = {} if "store" in settings.params else {"store": True}
    return {**body, **stored, "background": True}


def id_in_progress(response: httpx.Response) -> str | None:
    """Return the id of a response that is being generated, None if it is complete or none."""
    body = _body(response)
    response_id = text_or_none(body.get("id"))
    if body.get("status") not in _IN_PROGRESS or response_id is None:
        return None
    return response_id if response_id.isascii() and response_id.isprintable() else None


async def poll(endpoint: Endpoint, response_id: str) -> httpx.Response:
    """Return a response when it is complete, however often the connection is lost.

    Raises ResponseGone if the provider does not have it, and openai.APIStatusError for an error
    that lasts, such as that of a wrong key.
    """
    start, not_found = time.monotonic(), 0
    while True:
        response: httpx.Response | None = None
        try:
            async with asyncio.timeout(POLL_TIMEOUT_SECONDS):
                response = await endpoint.get(_path(response_id))
            not_found = 0
            if _is_complete(response):
                return response
        except openai.APIStatusError as error:
            not_found = not_found + 1 if error.status_code == 404 else 0
            if not_found >= _MAX_NOT_FOUND:
                raise ResponseGone from error
            if error.status_code < 500 and error.status_code not in (404, 408, 409, 429):
                raise
        except (TimeoutError, openai.APIConnectionError):
            pass
        await asyncio.sleep(_pause(time.monotonic() - start, response))


async def cancel(endpoint: Endpoint, response_id: str) -> httpx.Response | None:
    """Cancel a response and return it as it then is; None if that is not known."""
    try:
        async with asyncio.timeout(_CANCEL_SECONDS):
            response = await endpoint.post({}, f"{_path(response_id)}/cancel")
    except (TimeoutError, openai.APIError):
        return None
    return response if _is_complete(response) else None


def _pause(elapsed: float, response: httpx.Response | None) -> float:
    """Return the seconds until the next poll: as the server says, else in proportion."""
    header = response.headers.get("openai-poll-after-ms", "") if response else ""
    asked = parse_seconds(header, 0.001)
    pause = max(MIN_POLL_SECONDS, _POLL_SHARE * elapsed) if asked is None else asked
    return min(pause, MAX_POLL_SECONDS)


def _is_complete(response: httpx.Response) -> bool:
    """Return whether a response says that it is complete; garbage says nothing."""
    status = text_or_none(_body(response).get("status"))
    return status is not None and status not in _IN_PROGRESS


def _body(response: httpx.Response) -> Mapping[str, object]:
    try:
        return dict_or_empty(decode_json(response.content))
    except (InvalidJson, RecursionError):
        return {}


def _path(response_id: str) -> str:
    return f"/{quote(response_id, safe='')}"
