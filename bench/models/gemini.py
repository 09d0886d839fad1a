"""Google's Gemini models through google-genai."""

from __future__ import annotations

import asyncio
import re
from collections.abc import Awaitable, Iterable, Mapping, Sequence

import httpx
from google import genai
from google.genai import types

from bench.models.base import NO_KEY, Message, Settings, answer_schema
from bench.models.bodies import NoJson, decoded, worded
from bench.models.chat import count, error_text, mapping, reported, string
from bench.models.failures import failed, from_status, harmless, transient
from bench.models.rate_headers import retry_after, seconds_of
from bench.models.secrets import secrets
from bench.models.transport import AiohttpTransport
from bench.records import Completion, Failure, FinishReason, Usage

API_VERSION = "v1beta"

_FINISH: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
}
_RETRY_DELAY = re.compile(rb'"retryDelay"\s*:\s*"([\d.]+)s"')


class GeminiModel:
    """A Gemini model."""

    def __init__(
        self, name: str, served_name: str, *, key: str | None, base_url: str | None
    ) -> None:
        """`base_url` is another server with Gemini's protocol, None for Google's own."""
        self.name = name
        self._served_name = served_name
        self._secrets = secrets(key)
        self._connection = Connection(key, base_url)

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """One request. Failures are values, with the key masked wherever a server echoes it."""
        answered = await self._request(
            contents(messages), config(messages, settings), settings.timeout
        )
        return harmless(answered, self._secrets)

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def _request(
        self, turns: list[types.Content], shape: types.GenerateContentConfig, seconds: float
    ) -> Completion:
        sending = self._connection.sdk.models.generate_content(
            model=self._served_name, contents=list(turns), config=shape
        )
        try:
            async with asyncio.timeout(seconds):
                response = await arrival(sending)
            if not response.is_success:
                return failed(failure(response), _spent(response.content))
            return completion(decoded(response.content))
        except TimeoutError:
            return failed(transient(f"no answer within {seconds:g} s"))
        except httpx.HTTPError as error:
            return failed(transient(f"connection failed: {error or type(error).__name__}"))
        except NoJson as error:
            return failed(transient(str(error)))
        except RecursionError as error:
            return failed(transient(f"the server sent no Gemini response: {error}"))


class _Arrived(Exception):
    """A response, on its way past the SDK."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self.response = response


class _PastTheSdk(AiohttpTransport):
    """Raises every response: the SDK shapes and sends requests, and reads nothing.

    Its reader checks nothing, so that a body of another form ends in any error whatever, warns in
    the server's own words, and refuses answers that were paid for.
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise _Arrived(await super().handle_async_request(request))


async def arrival(sending: Awaitable[object]) -> httpx.Response:
    """The response to what a `Connection.sdk` sends. httpx.HTTPError where none came."""
    try:
        await sending
    except _Arrived as arrived:
        return arrived.response
    raise AssertionError("the SDK ended without a request")


class Connection:
    """Google's SDK over a transport that follows no redirect; `arrival` awaits its calls.

    It asks once: attempts are counted, and time is limited, where it is used.
    """

    def __init__(self, key: str | None, base_url: str | None) -> None:
        # The SDK's own transport takes the key along to wherever it is redirected.
        self.http = httpx.AsyncClient(transport=_PastTheSdk())
        # One attempt, said explicitly: left out, the SDK repeats a broken connection by itself.
        options = types.HttpOptions(
            base_url=base_url,
            api_version=API_VERSION,
            httpx_async_client=self.http,
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        client = genai.Client(api_key=key or NO_KEY, vertexai=False, http_options=options)
        self.sdk = client.aio

    async def close(self) -> None:
        """Close the connections."""
        await self.sdk.aclose()
        await self.http.aclose()


def contents(messages: Sequence[Message]) -> list[types.Content]:
    """The turns of the conversation, without what the system says."""
    return [
        types.Content(
            role="model" if message.role == "assistant" else "user",
            parts=[types.Part(text=message.content)],
        )
        for message in messages
        if message.role != "system"
    ]


def config(messages: Sequence[Message], settings: Settings) -> types.GenerateContentConfig:
    """What the system says, and all that shapes the answer."""
    structured = settings.structured
    return types.GenerateContentConfig(
        system_instruction="\n\n".join(m.content for m in messages if m.role == "system") or None,
        temperature=settings.temperature,
        max_output_tokens=settings.max_tokens,
        seed=settings.seed,
        thinking_config=(
            types.ThinkingConfig.model_validate(settings.request) if settings.request else None
        ),
        response_mime_type="application/json" if structured else None,
        response_json_schema=answer_schema(settings.answer_kind) if structured else None,
    )


def completion(body: object) -> Completion:
    """The completion in a response's decoded body, or the failure that it reports."""
    response = mapping(body)
    used = _usage(mapping(response.get("usageMetadata")))
    if response.get("error"):
        return failed(reported(response["error"]), used)
    candidates = response.get("candidates")
    if not isinstance(candidates, list) or not candidates:
        if reason := string(mapping(response.get("promptFeedback")).get("blockReason")):
            error = Failure(kind="item", message=f"prompt blocked: {reason}")
            return Completion(finish_reason="refusal", usage=used, error=error)
        return failed(transient("the server sent no candidates"), used)
    candidate = mapping(candidates[0])
    finish = candidate.get("finishReason")
    said = mapping(candidate.get("content")).get("parts")
    parts = [mapping(part) for part in said] if isinstance(said, list) else []
    identity = string(response.get("responseId"))
    return Completion(
        text=_text(part for part in parts if not part.get("thought")),
        reasoning_text=_text(part for part in parts if part.get("thought")) or None,
        finish_reason=None if finish is None else _FINISH.get(worded(finish), "other"),
        usage=used,
        served_model=string(response.get("modelVersion")),
        provider="google",
        extra={"id": identity} if identity else {},
    )


def _text(parts: Iterable[Mapping[str, object]]) -> str:
    return "".join(string(part.get("text")) or "" for part in parts)


def _usage(numbers: Mapping[str, object]) -> Usage:
    """Gemini counts candidates and thoughts apart, and leaves out what is zero or unknown."""
    asked, total = count(numbers.get("promptTokenCount")), count(numbers.get("totalTokenCount"))
    visible = count(numbers.get("candidatesTokenCount"))
    reasoning = count(numbers.get("thoughtsTokenCount"))
    generated = None
    if visible is not None and reasoning is not None:
        generated = count(visible + reasoning)
    elif asked is not None and total is not None:
        generated = count(total - asked - (count(numbers.get("toolUsePromptTokenCount")) or 0))
    if generated is not None and generated < max(visible or 0, reasoning or 0):
        generated = None
    known = any(value is not None for value in (asked, visible, reasoning, generated))
    return Usage(
        input=asked,
        reasoning=reasoning,
        visible=visible,
        generated=generated,
        source="reported" if known else None,
    )


def failure(response: httpx.Response) -> Failure:
    """The failure behind a response that is no success."""
    try:
        body = decoded(response.content)
    except NoJson:
        body = response.text
    code, message = error_text(body)
    wait = retry_after(response.headers)
    if wait is None and (delay := _RETRY_DELAY.search(response.content)):
        wait = seconds_of(delay[1].decode())
    bad_key = b"API_KEY_INVALID" in response.content
    return from_status(
        401 if bad_key else response.status_code,
        message,
        code=f"{code} {worded(_error(body).get('status'))}",
        retry_after=wait,
    )


def _spent(content: bytes) -> Usage:
    """Usage in the body of an error, as far as it has any."""
    try:
        return _usage(mapping(mapping(decoded(content)).get("usageMetadata")))
    except NoJson:
        return Usage()


def _error(body: object) -> Mapping[str, object]:
    return mapping(mapping(body).get("error"))
