"""OpenAI's Chat Completions and Responses, and every server that speaks them (OpenRouter, …)."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from functools import partial
from typing import NamedTuple

import httpx
import openai

from bench.models import chat, responses
from bench.models.base import NO_KEY, Message, Settings
from bench.models.bodies import NoJson, decoded
from bench.models.failures import failed, from_status, harmless, transient
from bench.models.rate_headers import with_hold_back
from bench.models.secrets import secrets
from bench.models.transport import AiohttpTransport
from bench.records import Completion, Failure, Usage


class Format(NamedTuple):
    """One of the two formats: where a request goes, its body, and how a response is read."""

    path: str
    body: Callable[[str, Sequence[Message], Settings], dict[str, object]]
    completion: Callable[[object], Completion]


RESPONSES = Format("/responses", responses.request_body, responses.completion)


def chat_format(token_limit: str) -> Format:
    """Chat Completions. `token_limit` is the server's name for the limit on generated tokens."""
    body = partial(chat.request_body, token_limit=token_limit)
    return Format("/chat/completions", body, chat.completion)


class OpenAIModel:
    """A model behind a server that speaks one of the formats."""

    def __init__(
        self, name: str, served_name: str, spoken: Format, *, key: str | None, base_url: str
    ) -> None:
        self.name = name
        self._served_name = served_name
        self._format = spoken
        self._secrets = secrets(key)
        self._client = client(key, base_url)

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """One request. Failures are values, with the key masked wherever a server echoes it."""
        body = self._format.body(self._served_name, messages, settings)
        completion = await self._request(body, settings.timeout)
        return harmless(completion, self._secrets)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _request(self, body: dict[str, object], seconds: float) -> Completion:
        try:
            async with asyncio.timeout(seconds):
                # The plain response: the SDK's typed one costs several times the request itself
                # and drops what it does not know.
                response = await self._client.post(
                    self._format.path, cast_to=httpx.Response, body=body
                )
            completion = self._format.completion(decoded(response.content))
            return with_hold_back(completion, response.headers)
        except (TimeoutError, openai.APITimeoutError):
            return failed(transient(f"no answer within {seconds:g} s"))
        except openai.APIStatusError as error:
            return failed(failure(error), *spent(self._format, error.response.content))
        except openai.APIError as error:
            return failed(failure(error))
        except NoJson as error:
            return failed(transient(str(error)))
        except RecursionError as error:
            return failed(transient(f"the server sent no response: {error}"))


def spent(spoken: Format, content: bytes) -> tuple[Usage, float | None]:
    """Usage and cost in the body of an error, as far as it has them."""
    try:
        said = spoken.completion(decoded(content))
    except (NoJson, RecursionError):
        return Usage(), None
    return said.usage, said.cost


def client(key: str | None, base_url: str) -> openai.AsyncOpenAI:
    """A client that asks once: attempts are counted, and time is limited, where it is used."""
    return openai.AsyncOpenAI(
        api_key=key or NO_KEY,
        base_url=base_url,
        max_retries=0,
        timeout=None,
        http_client=httpx.AsyncClient(transport=AiohttpTransport()),
    )


def failure(error: openai.APIError) -> Failure:
    """The failure behind an error of the SDK."""
    if not isinstance(error, openai.APIStatusError):
        return transient(f"connection failed: {error.__cause__ or error}")
    code, message = chat.error_text(error.body)
    wait = chat.wait_passed_on(error.body, error.response.headers)
    return from_status(error.status_code, message or error.message, code=code, retry_after=wait)
