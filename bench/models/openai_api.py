"""OpenAI's Chat Completions, and every server that speaks them (OpenRouter, vLLM, Ollama, …)."""

from __future__ import annotations

import asyncio
from collections.abc import Sequence

import httpx
import msgspec
import openai

from bench.models import chat
from bench.models.base import NO_KEY, Message, Settings
from bench.models.failures import failed, from_status, retry_after, transient, without_secrets
from bench.models.transport import AiohttpTransport
from bench.records import Completion


class ChatModel:
    """A model behind a server that speaks Chat Completions."""

    def __init__(
        self, name: str, served_name: str, *, key: str | None, base_url: str, token_limit: str
    ) -> None:
        """`token_limit` is the server's name for the limit on generated tokens."""
        self.name = name
        self._served_name = served_name
        self._secrets = [key] if key else []
        self._token_limit = token_limit
        self._client = openai.AsyncOpenAI(
            api_key=key or NO_KEY,
            base_url=base_url,
            max_retries=0,
            timeout=None,
            http_client=httpx.AsyncClient(transport=AiohttpTransport()),
        )

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """One request. Failures are values, with the key masked wherever a server echoes it."""
        body = chat.request_body(self._served_name, messages, settings, self._token_limit)
        completion = await self._request(body, settings.timeout)
        return without_secrets(completion, self._secrets)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _request(self, body: dict[str, object], seconds: float) -> Completion:
        try:
            async with asyncio.timeout(seconds):
                # The plain response: the SDK's typed one costs several times the request itself
                # and drops what it does not know.
                response = await self._client.post(
                    "/chat/completions", cast_to=httpx.Response, body=body
                )
            return chat.completion(msgspec.json.decode(response.content))
        except (TimeoutError, openai.APITimeoutError):
            return failed(transient(f"no answer within {seconds:g} s"))
        except openai.APIStatusError as error:
            code, message = chat.error_text(error.body)
            wait = retry_after(error.response.headers)
            return failed(
                from_status(
                    error.status_code, message or error.message, code=code, retry_after=wait
                )
            )
        except openai.APIConnectionError as error:
            return failed(transient(f"connection failed: {error.__cause__ or error}"))
        except (msgspec.DecodeError, UnicodeDecodeError, RecursionError) as error:
            return failed(transient(f"the server sent no JSON: {error}"))
