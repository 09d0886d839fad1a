"""Google's Gemini models through google-genai."""

from __future__ import annotations

import re
from collections.abc import AsyncIterator, Awaitable, Iterable, Mapping, Sequence

import httpx
from google import genai
from google.genai import types
from msgspec.structs import replace

from numbench.models.aiohttp_transport import AiohttpTransport
from numbench.models.base import (
    NO_HEADERS,
    PLACEHOLDER_KEY,
    Message,
    RequestSettings,
    answer_schema,
)
from numbench.models.credentials import known_secrets
from numbench.models.event_streams import (
    is_event_stream,
    merge_gemini_chunks,
    merge_gemini_events,
    refuses_streaming,
)
from numbench.models.http_exchange import receive_completion
from numbench.models.json_fields import (
    InvalidJson,
    decode_json,
    dict_or_empty,
    dicts_of,
    text_or_none,
    text_or_repr,
    token_count,
)
from numbench.models.openai_chat import error_code_and_message, failure_from_error_body
from numbench.models.provider_errors import (
    failed_completion,
    failure_from_status,
    sanitize_completion,
    unreadable_failure,
)
from numbench.models.rate_limit_headers import parse_seconds, retry_after
from numbench.records import Completion, Failure, FinishReason, Usage

API_VERSION = "v1beta"

_FINISH_REASONS: dict[str, FinishReason] = {
    "STOP": "stop",
    "MAX_TOKENS": "length",
    "SAFETY": "refusal",
    "RECITATION": "refusal",
    "BLOCKLIST": "refusal",
    "PROHIBITED_CONTENT": "refusal",
    "SPII": "refusal",
}
_KEY_HEADER = "x-goog-api-key"
_RETRY_DELAY = re.compile(rb'"retryDelay"\s*:\s*"([\d.]+)s"')


class GeminiModel:
    """A Gemini model.

    name: the name that the user gave. served_name: Google's name of the model. streams: whether to
    stream answers, until the server refuses that.
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
        """Connect to Google's server, or to `base_url`, which implements the same API."""
        self.name = name
        self._served_name = served_name
        self._secrets = known_secrets(key, base_url, headers.values())
        self._connection = GeminiConnection(key, base_url, headers)
        self._streams = streams

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Send one request. Failures are values; secrets that a server echoes are masked."""
        sending = self._send(build_contents(messages), build_config(messages, settings))
        completion = await receive_completion(sending, _parse, settings.timeout)
        return sanitize_completion(completion, self._secrets)

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()

    async def _send(
        self, turns: list[types.Content], config: types.GenerateContentConfig
    ) -> httpx.Response:
        """Return the response to a request, streamed if the server does not refuse that."""
        models, name, contents = self._connection.sdk.models, self._served_name, list(turns)
        if self._streams:
            stream = models.generate_content_stream(model=name, contents=contents, config=config)
            response = await send_and_capture(_exhaust(stream))
            if response.is_success or not _refuses_streaming(response):
                return response
            self._streams = False
        return await send_and_capture(
            models.generate_content(model=name, contents=contents, config=config)
        )


def _parse(response: httpx.Response) -> Completion:
    if not response.is_success:
        return failed_completion(
            failure_from_response(response), _usage_in_error_body(response.content)
        )
    return parse_completion(_decode(response.content))


async def _exhaust(stream: Awaitable[AsyncIterator[object]]) -> None:
    async for _ in await stream:
        pass


def _refuses_streaming(response: httpx.Response) -> bool:
    """Return whether the server does not stream, or does not know the path of streams."""
    if refuses_streaming(response.status_code, response.content):
        return True
    try:
        body = decode_json(response.content)
    except InvalidJson:
        body = None
    # Google's own errors, such as that of an unknown model, have an error object.
    return response.status_code in (404, 405) and not _error(body)


def _decode(content: bytes) -> object:
    """Return the response in a body, streamed or not. Raises InvalidJson if there is none."""
    if is_event_stream(content):
        return merge_gemini_events(content)
    body = decode_json(content)
    return merge_gemini_chunks(dicts_of(body)) if isinstance(body, list) and body else body


class _CapturedResponse(Exception):
    """Carries a response past the SDK to `send_and_capture`."""

    def __init__(self, response: httpx.Response) -> None:
        super().__init__()
        self.response = response


class _ResponseCapturingTransport(AiohttpTransport):
    """Raises every response, so that the SDK builds and sends requests but parses nothing.

    Its parser does no checks: an unexpected body causes arbitrary errors and warnings that quote
    the server, and loses answers that are billed.
    """

    async def handle_async_request(self, request: httpx.Request) -> httpx.Response:
        raise _CapturedResponse(await super().handle_async_request(request))


async def send_and_capture(sending: Awaitable[object]) -> httpx.Response:
    """Return the response to a call of `GeminiConnection.sdk`.

    Raises httpx.HTTPError if there is none.
    """
    try:
        await sending
    except _CapturedResponse as captured:
        return captured.response
    raise AssertionError("the SDK sent no request")


class GeminiConnection:
    """Google's SDK without redirects, retries and time limits.

    Await its calls by `send_and_capture`.
    """

    def __init__(
        self, key: str | None, base_url: str | None, headers: Mapping[str, str] = NO_HEADERS
    ) -> None:
        # The SDK would replace the user's header by the key.
        own_key = next((v for name, v in headers.items() if name.lower() == _KEY_HEADER), None)
        headers = {name: v for name, v in headers.items() if name.lower() != _KEY_HEADER}
        # The SDK's own transport sends the key to any server that it is redirected to.
        self.http = httpx.AsyncClient(transport=_ResponseCapturingTransport())
        # Without an explicit number of attempts the SDK retries broken connections.
        options = types.HttpOptions(
            base_url=base_url,
            api_version=API_VERSION,
            headers=dict(headers) or None,
            httpx_async_client=self.http,
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        client = genai.Client(
            api_key=own_key or key or PLACEHOLDER_KEY, vertexai=False, http_options=options
        )
        self.sdk = client.aio

    async def close(self) -> None:
        """Close the connections."""
        await self.sdk.aclose()
        await self.http.aclose()


def build_contents(messages: Sequence[Message]) -> list[types.Content]:
    """Return the messages without the system prompt."""
    return [
        types.Content(
            role="model" if message.role == "assistant" else "user",
            parts=[types.Part(text=message.content)],
        )
        for message in messages
        if message.role != "system"
    ]


def build_config(
    messages: Sequence[Message], settings: RequestSettings
) -> types.GenerateContentConfig:
    """Return the system prompt and the settings of the answer."""
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
        http_options=types.HttpOptions(extra_body=settings.params) if settings.params else None,
    )


def parse_completion(body: object) -> Completion:
    """Return the completion in a decoded response body, or the failure that it reports."""
    response = dict_or_empty(body)
    usage = _usage(dict_or_empty(response.get("usageMetadata")))
    if response.get("error"):
        failure = failure_from_error_body(response["error"])
        return failed_completion(with_daily_quota(failure, _error(body)), usage)
    candidates = response.get("candidates")
    if not isinstance(candidates, list) or not candidates:
        if reason := text_or_none(dict_or_empty(response.get("promptFeedback")).get("blockReason")):
            error = Failure(kind="item", message=f"prompt blocked: {reason}")
            return Completion(finish_reason="refusal", usage=usage, error=error)
        return failed_completion(unreadable_failure("the server sent no candidates"), usage)
    candidate = dict_or_empty(candidates[0])
    finish = candidate.get("finishReason")
    parts = dicts_of(dict_or_empty(candidate.get("content")).get("parts"))
    identity = text_or_none(response.get("responseId"))
    return Completion(
        text=_text(part for part in parts if not part.get("thought")),
        reasoning_text=_text(part for part in parts if part.get("thought")) or None,
        finish_reason=None
        if finish is None
        else _FINISH_REASONS.get(text_or_repr(finish), "other"),
        usage=usage,
        served_model=text_or_none(response.get("modelVersion")),
        provider="google",
        extra={"id": identity} if identity else {},
    )


def _text(parts: Iterable[Mapping[str, object]]) -> str:
    return "".join(text_or_none(part.get("text")) or "" for part in parts)


def _usage(numbers: Mapping[str, object]) -> Usage:
    """Return the usage. Gemini counts the answer and the reasoning separately, and omits zeros.

    With the total, one of the two follows from the other.
    """
    input_tokens = token_count(numbers.get("promptTokenCount"))
    total = token_count(numbers.get("totalTokenCount"))
    visible = token_count(numbers.get("candidatesTokenCount"))
    reasoning = token_count(numbers.get("thoughtsTokenCount"))
    generated = None
    if visible is not None and reasoning is not None:
        generated = token_count(visible + reasoning)
    elif input_tokens is not None and total is not None:
        tool_tokens = token_count(numbers.get("toolUsePromptTokenCount")) or 0
        generated = token_count(total - input_tokens - tool_tokens)
    if generated is not None and generated < max(visible or 0, reasoning or 0):
        generated = None
    if generated is not None and reasoning is None and visible is not None:
        reasoning = generated - visible
    if generated is not None and visible is None and reasoning is not None:
        visible = generated - reasoning
    is_known = any(value is not None for value in (input_tokens, visible, reasoning, generated))
    return Usage(
        input=input_tokens,
        reasoning=reasoning,
        visible=visible,
        generated=generated,
        source="reported" if is_known else None,
    )


def failure_from_response(response: httpx.Response) -> Failure:
    """Return the failure for an unsuccessful response."""
    try:
        body = decode_json(response.content)
    except InvalidJson:
        body = response.text
    code, message = error_code_and_message(body)
    wait = retry_after(response.headers)
    if wait is None and (delay := _RETRY_DELAY.search(response.content)):
        wait = parse_seconds(delay[1].decode())
    is_bad_key = b"API_KEY_INVALID" in response.content
    failure = failure_from_status(
        401 if is_bad_key else response.status_code,
        message,
        code=f"{code} {text_or_repr(_error(body).get('status'))}",
        retry_after=wait,
    )
    return with_daily_quota(failure, _error(body))


def with_daily_quota(failure: Failure, error: Mapping[str, object]) -> Failure:
    """Return `failure`, but as one of the whole run if `error` names an exceeded quota per day.

    Google uses one message for quotas per minute and per day, and states a short delay for both.
    """
    violations = (
        violation
        for detail in dicts_of(error.get("details"))
        for violation in dicts_of(detail.get("violations"))
    )
    is_daily = any("PerDay" in text_or_repr(each.get("quotaId")) for each in violations)
    if failure.kind != "rate_limit" or not is_daily:
        return failure
    return replace(failure, kind="run", message=f"the quota per day is used up: {failure.message}")


def _usage_in_error_body(content: bytes) -> Usage:
    """Return the usage that the body of an error reports, if any."""
    try:
        return _usage(dict_or_empty(dict_or_empty(_decode(content)).get("usageMetadata")))
    except InvalidJson:
        return Usage()


def _error(body: object) -> Mapping[str, object]:
    return dict_or_empty(dict_or_empty(body).get("error"))
