"""HTTP requests to providers without an SDK in between, and their failures."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable, Mapping, Sequence

import httpx

from numbench.models.aiohttp_transport import WrongServer
from numbench.models.base import DEFAULT_TIMEOUT_SECONDS
from numbench.models.json_fields import InvalidJson, decode_json, dict_or_empty
from numbench.models.provider_errors import (
    connection_failure,
    failed_completion,
    provider_error,
    timeout_failure,
    transient_failure,
    unreadable_failure,
    wrong_server_failure,
)
from numbench.records import Completion, Failure

FailureParser = Callable[[httpx.Response], Failure]
"""Returns the failure for an unsuccessful response."""


async def receive_completion(
    sending: Awaitable[httpx.Response],
    parse: Callable[[httpx.Response], Completion],
    seconds: float,
) -> Completion:
    """Return the completion in the response to a request, or the failure if there is none.

    `seconds`: the time limit of the request. `parse` may raise InvalidJson.
    """
    try:
        async with asyncio.timeout(seconds):
            response = await sending
        return parse(response)
    except TimeoutError:
        return failed_completion(timeout_failure(seconds))
    except WrongServer as error:
        return failed_completion(wrong_server_failure(error))
    except httpx.HTTPError as error:
        was_sent = not isinstance(error, httpx.ConnectError)
        return failed_completion(connection_failure(error, was_sent))
    except InvalidJson as error:
        return failed_completion(unreadable_failure(error))
    except RecursionError as error:
        return failed_completion(unreadable_failure(f"the server sent no response: {error}"))


async def receive_content(
    sending: Awaitable[httpx.Response], parse_failure: FailureParser, secrets: Sequence[str]
) -> bytes:
    """Return the body of a successful response. Raises ProviderError if there is none."""
    try:
        async with asyncio.timeout(DEFAULT_TIMEOUT_SECONDS):
            response = await sending
        if response.is_success:
            return response.content
        failure = parse_failure(response)
    except TimeoutError:
        failure = timeout_failure(DEFAULT_TIMEOUT_SECONDS)
    except httpx.HTTPError as error:
        failure = connection_failure(error)
    except (InvalidJson, RecursionError) as error:
        failure = transient_failure(str(error))
    raise provider_error(failure, secrets)


async def receive_object(
    sending: Awaitable[httpx.Response], parse_failure: FailureParser, secrets: Sequence[str]
) -> Mapping[str, object]:
    """Return the JSON object in a successful response. Raises ProviderError if there is none."""
    content = await receive_content(sending, parse_failure, secrets)
    try:
        return dict_or_empty(decode_json(content))
    except InvalidJson as error:
        raise provider_error(transient_failure(str(error)), secrets) from None
