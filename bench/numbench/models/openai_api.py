"""Models behind OpenAI's Chat Completions or Responses API, or a server that implements one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import httpx
import openai

from numbench.models import openai_chat, openai_responses
from numbench.models.aiohttp_transport import AiohttpTransport
from numbench.models.base import PLACEHOLDER_KEY, Message, RequestSettings
from numbench.models.credentials import known_secrets
from numbench.models.json_fields import InvalidJson, decode_json
from numbench.models.provider_errors import (
    connection_failure,
    failed_completion,
    failure_from_status,
    sanitize_completion,
    timeout_failure,
    transient_failure,
)
from numbench.models.rate_limit_headers import with_hold_back_seconds
from numbench.records import Completion, Failure, Usage


class ApiFormat(NamedTuple):
    """An API format: the path of its requests, their bodies, and the parser of responses."""

    path: str
    build_request: Callable[[str, Sequence[Message], RequestSettings], dict[str, object]]
    parse_completion: Callable[[object], Completion]


RESPONSES_FORMAT = ApiFormat(
    "/responses", openai_responses.build_request, openai_responses.parse_completion
)


def chat_format(token_limit: str) -> ApiFormat:
    """Return Chat Completions. `token_limit`: the server's name of the limit on new tokens."""
    build_request = partial(openai_chat.build_request, token_limit=token_limit)
    return ApiFormat("/chat/completions", build_request, openai_chat.parse_completion)


class OpenAIModel:
    """A model on a server that implements one of the API formats.

    name: the name that the user gave. served_name: the server's own name of the model.
    """

    def __init__(
        self, name: str, served_name: str, api_format: ApiFormat, *, key: str | None, base_url: str
    ) -> None:
        self.name = name
        self._served_name = served_name
        self._format = api_format
        self._secrets = known_secrets(key)
        self._client = create_client(key, base_url)

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Send one request. Failures are values; secrets that a server echoes are masked."""
        body = self._format.build_request(self._served_name, messages, settings)
        completion = await self._request(body, settings.timeout)
        return sanitize_completion(completion, self._secrets)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _request(self, body: dict[str, object], seconds: float) -> Completion:
        try:
            async with asyncio.timeout(seconds):
                # The SDK's typed response takes several times as long as the request itself and
                # drops unknown fields.
                response = await self._client.post(
                    self._format.path, cast_to=httpx.Response, body=body
                )
            completion = self._format.parse_completion(decode_json(response.content))
            return with_hold_back_seconds(completion, response.headers)
        except (TimeoutError, openai.APITimeoutError):
            return failed_completion(timeout_failure(seconds))
        except openai.APIStatusError as error:
            return failed_completion(
                failure_from_api_error(error),
                *usage_in_error_body(self._format, error.response.content),
            )
        except openai.APIError as error:
            return failed_completion(failure_from_api_error(error))
        except InvalidJson as error:
            return failed_completion(transient_failure(str(error)))
        except RecursionError as error:
            return failed_completion(transient_failure(f"the server sent no response: {error}"))


def usage_in_error_body(api_format: ApiFormat, content: bytes) -> tuple[Usage, float | None]:
    """Return the usage and cost that the body of an error reports, if any."""
    try:
        completion = api_format.parse_completion(decode_json(content))
    except (InvalidJson, RecursionError):
        return Usage(), None
    return completion.usage, completion.cost


def create_client(key: str | None, base_url: str) -> openai.AsyncOpenAI:
    """Return a client without retries and time limits, which are up to its users."""
    return openai.AsyncOpenAI(
        api_key=key or PLACEHOLDER_KEY,
        base_url=base_url,
        max_retries=0,
        timeout=None,
        http_client=httpx.AsyncClient(transport=AiohttpTransport()),
    )


def failure_from_api_error(error: openai.APIError) -> Failure:
    """Return the failure for an error of the SDK."""
    if not isinstance(error, openai.APIStatusError):
        return connection_failure(error.__cause__ or error)
    code, message = openai_chat.error_code_and_message(error.body)
    wait = openai_chat.upstream_retry_after(error.body, error.response.headers)
    return failure_from_status(
        error.status_code, message or error.message, code=code, retry_after=wait
    )
