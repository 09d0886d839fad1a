"""Google's Gemini models through google-genai."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Sequence

import aiohttp
import httpx
from google import genai
from google.genai import errors, types
from pydantic import ValidationError

from bench.models.base import NO_KEY, Message, Settings, answer_schema
from bench.models.failures import failed, from_status, retry_after, transient, without_secrets
from bench.models.transport import AiohttpTransport
from bench.records import Completion, Failure, FinishReason, Usage

_FINISH: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
}
_RETRY_DELAY = re.compile(r"'retryDelay': '([\d.]+)s'")


class GeminiModel:
    """A Gemini model."""

    def __init__(
        self, name: str, served_name: str, *, key: str | None, base_url: str | None
    ) -> None:
        """`base_url` is another server with Gemini's protocol, None for Google's own."""
        self.name = name
        self._served_name = served_name
        self._secrets = [key] if key else []
        # One attempt, said explicitly: left out, the SDK repeats a broken connection by itself.
        # A client of ours, because the SDK's own takes the key along to wherever it is redirected.
        self._http = httpx.AsyncClient(transport=AiohttpTransport())
        options = types.HttpOptions(
            base_url=base_url,
            api_version="v1beta",
            httpx_async_client=self._http,
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        self._client = genai.Client(api_key=key or NO_KEY, vertexai=False, http_options=options)

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """One request. Failures are values, with the key masked wherever a server echoes it."""
        system = "\n\n".join(m.content for m in messages if m.role == "system")
        contents = [
            types.Content(
                role="model" if message.role == "assistant" else "user",
                parts=[types.Part(text=message.content)],
            )
            for message in messages
            if message.role != "system"
        ]
        completion = await self._request(contents, _config(system, settings), settings.timeout)
        return without_secrets(completion, self._secrets)

    async def close(self) -> None:
        """Close the connections."""
        await self._client.aio.aclose()
        await self._http.aclose()

    async def _request(
        self, contents: list[types.Content], config: types.GenerateContentConfig, seconds: float
    ) -> Completion:
        try:
            async with asyncio.timeout(seconds):
                response = await self._client.aio.models.generate_content(
                    model=self._served_name, contents=list(contents), config=config
                )
            return _completion(response)
        except TimeoutError:
            return failed(transient(f"no answer within {seconds:g} s"))
        except errors.APIError as error:
            return failed(_failure(error))
        except (aiohttp.ClientError, httpx.HTTPError) as error:
            return failed(transient(f"connection failed: {error or type(error).__name__}"))
        except (
            errors.UnknownApiResponseError,
            ValidationError,
            ValueError,
            AttributeError,
            TypeError,
        ) as error:
            # The SDK reads a body that is not of Gemini's form without checking it.
            return failed(transient(f"the server sent no Gemini response: {error}"))


def _config(system: str, settings: Settings) -> types.GenerateContentConfig:
    structured = settings.structured
    return types.GenerateContentConfig(
        system_instruction=system or None,
        temperature=settings.temperature,
        max_output_tokens=settings.max_tokens,
        seed=settings.seed,
        thinking_config=(
            types.ThinkingConfig.model_validate(settings.request) if settings.request else None
        ),
        response_mime_type="application/json" if structured else None,
        response_json_schema=answer_schema(settings.answer_kind) if structured else None,
    )


def _completion(response: types.GenerateContentResponse) -> Completion:
    if not response.candidates:
        feedback = response.prompt_feedback
        if feedback is not None and feedback.block_reason is not None:
            reason = f"prompt blocked: {feedback.block_reason.value}"
            return Completion(
                finish_reason="refusal",
                usage=_usage(response.usage_metadata),
                error=Failure(kind="item", message=reason),
            )
        return failed(transient("the server sent no candidates"))
    candidate = response.candidates[0]
    parts = (candidate.content.parts if candidate.content else None) or []
    finish = candidate.finish_reason
    return Completion(
        text="".join(part.text or "" for part in parts if not part.thought),
        reasoning_text="".join(part.text or "" for part in parts if part.thought) or None,
        finish_reason=None if finish is None else _FINISH.get(finish.value, "other"),
        usage=_usage(response.usage_metadata),
        served_model=response.model_version,
        provider="google",
        extra={"id": response.response_id} if response.response_id else {},
    )


def _usage(numbers: types.GenerateContentResponseUsageMetadata | None) -> Usage:
    """Gemini counts candidates and thoughts apart, and leaves out what is zero or unknown."""
    if numbers is None:
        return Usage()
    asked, total = numbers.prompt_token_count, numbers.total_token_count
    visible, reasoning = numbers.candidates_token_count, numbers.thoughts_token_count
    generated = None
    if visible is not None and reasoning is not None:
        generated = visible + reasoning
    elif asked is not None and total is not None and total >= asked:
        generated = total - asked - (numbers.tool_use_prompt_token_count or 0)
    return Usage(
        input=asked, reasoning=reasoning, visible=visible, generated=generated, source="reported"
    )


def _failure(error: errors.APIError) -> Failure:
    message = error.message or str(error)
    headers = getattr(error.response, "headers", None) or {}
    wait = retry_after({str(key).lower(): str(value) for key, value in headers.items()})
    if wait is None and (delay := _RETRY_DELAY.search(str(error.details))):
        wait = float(delay[1])
    bad_key = "API_KEY_INVALID" in str(error.details)
    status = error.code if isinstance(error.code, int) else 500
    return from_status(
        401 if bad_key else status, message, code=error.status or "", retry_after=wait
    )
