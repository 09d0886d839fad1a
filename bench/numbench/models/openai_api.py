"""Models behind OpenAI's Chat Completions or Responses API, or a server that implements one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Mapping, Sequence
from contextlib import suppress
from functools import partial
from typing import NamedTuple

import httpx
import msgspec
import openai

from numbench.models import openai_background, openai_chat, openai_responses
from numbench.models.aiohttp_transport import MAX_RESPONSE_BYTES, AiohttpTransport, WrongServer
from numbench.models.background_responses import ResponseTracker, current_tracker
from numbench.models.base import NO_HEADERS, PLACEHOLDER_KEY, Message, RequestSettings
from numbench.models.credentials import known_secrets, mask_secrets
from numbench.models.event_streams import (
    IncompleteStream,
    is_event_stream,
    merge_chat_events,
    merge_response_events,
    refuses_streaming,
)
from numbench.models.json_fields import InvalidJson, decode_json, dict_or_empty, dicts_of
from numbench.models.provider_errors import (
    connection_failure,
    failed_completion,
    failure_from_status,
    sanitize_completion,
    sanitize_line,
    timeout_failure,
    unreadable_failure,
    wrong_server_failure,
)
from numbench.models.rate_limit_headers import with_hold_back_seconds
from numbench.records import Completion, Failure, Usage

_MODELS_TIMEOUT_SECONDS = 5.0
_MAX_MODELS = 2000


class ApiFormat(NamedTuple):
    """An API format: the path of its requests, their bodies, and the parser of responses.

    stream_parameters: what a body adds to request a stream. merge_events: returns the response
    that the events of a stream make up.
    """

    path: str
    build_request: Callable[[str, Sequence[Message], RequestSettings], dict[str, object]]
    parse_completion: Callable[[object], Completion]
    stream_parameters: Mapping[str, object]
    merge_events: Callable[[bytes], Mapping[str, object]]

    def decode(self, content: bytes) -> object:
        """Return the response in a body, streamed or not. Raises InvalidJson if there is none."""
        return self.merge_events(content) if is_event_stream(content) else decode_json(content)


RESPONSES_FORMAT = ApiFormat(
    "/responses",
    openai_responses.build_request,
    openai_responses.parse_completion,
    {"stream": True},
    merge_response_events,
)


def chat_format(token_limit: str, asks_for_usage: bool = True) -> ApiFormat:
    """Return Chat Completions. `token_limit`: the server's name of the limit on new tokens.

    asks_for_usage: whether a stream has its usage only on request.
    """
    build_request = partial(openai_chat.build_request, token_limit=token_limit)
    return ApiFormat(
        "/chat/completions",
        build_request,
        openai_chat.parse_completion,
        {"stream": True} | ({"stream_options": {"include_usage": True}} if asks_for_usage else {}),
        merge_chat_events,
    )


class _Endpoint:
    """One URL of a server, which takes the bodies of requests.

    Requests have the headers of the SDK, but are sent without it: its work for one request takes
    longer than everything else that happens to an item.
    """

    def __init__(self, client: openai.AsyncOpenAI, path: str) -> None:
        # The defaults contain the user's headers, which may replace the key. An organization that
        # is not set is a marker instead of a text.
        headers = {**client.auth_headers, **client.default_headers}
        self._headers = httpx.Headers({k: v for k, v in headers.items() if isinstance(v, str)})
        self._url = httpx.URL(str(client.base_url).rstrip("/") + path)
        self._transport = AiohttpTransport()

    async def post(self, body: Mapping[str, object], path: str = "") -> httpx.Response:
        """Return the response to a request. Raises openai.APIError if it is none or an error."""
        return await self._send("POST", path, msgspec.json.encode(body))

    async def get(self, path: str) -> httpx.Response:
        """Return the response to a request without a body. Raises openai.APIError like `post`."""
        return await self._send("GET", path)

    async def _send(self, method: str, path: str, content: bytes | None = None) -> httpx.Response:
        url = httpx.URL(f"{self._url}{path}")
        request = httpx.Request(method, url, headers=self._headers, content=content)
        try:
            response = await self._transport.handle_async_request(request)
        except httpx.HTTPError as error:
            raise openai.APIConnectionError(request=request) from error
        if not response.is_success:
            response.request = request
            raise _status_error(response)
        return response

    async def close(self) -> None:
        """Close the connections."""
        await self._transport.aclose()


def _status_error(response: httpx.Response) -> openai.APIStatusError:
    """Return the error of a response, with the error object in its body, or the text."""
    body: object = response.text.strip()
    message = str(body) or f"Error code: {response.status_code}"
    with suppress(InvalidJson):
        body = decode_json(response.content)
        message = f"Error code: {response.status_code} - {body}"
    error = body.get("error", body) if isinstance(body, dict) else body
    return openai.APIStatusError(message, response=response, body=error)


class OpenAIModel:
    """A model on a server that implements one of the API formats.

    name: the name that the user gave. served_name: the server's own name of the model. streams:
    whether to stream answers, until the server refuses that or streams one without its usage, or
    the first ones without a finish reason.
    In the Responses format a summary of the reasoning is requested until the server refuses it;
    the records of requests without it say so. One that the user asks for is never left out.
    in_background: whether the server generates responses in the background. One that an earlier
    attempt has started is collected in any case. quota_recovers: whether the server uses the code
    of a spent account for its rate limits.
    """

    def __init__(
        self,
        name: str,
        served_name: str,
        api_format: ApiFormat,
        *,
        key: str | None,
        base_url: str,
        streams: bool,
        headers: Mapping[str, str] = NO_HEADERS,
        in_background: bool = False,
        quota_recovers: bool = False,
    ) -> None:
        self.name = name
        self._quota_recovers = quota_recovers
        self._served_name = served_name
        self._format = api_format
        self._secrets = known_secrets(key, base_url, headers.values())
        self._client = create_client(key, base_url, headers=headers)
        self._endpoint = _Endpoint(self._client, api_format.path)
        self._streams = streams and not in_background
        self._in_background = in_background
        self._has_finished_stream = False
        self._asks_for_summary = True

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Send one request. Failures are values; secrets that a server echoes are masked."""
        body = self._format.build_request(self._served_name, messages, settings)
        completion = await self._request(body, settings)
        error = completion.error
        if error is not None and error.status == 429 and self._quota_recovers:
            limited = msgspec.structs.replace(error, kind="rate_limit")
            completion = msgspec.structs.replace(completion, error=limited)
        return sanitize_completion(completion, self._secrets)

    async def close(self) -> None:
        """Close the connections."""
        await self._endpoint.close()
        await self._client.close()

    async def served_models(self, path: str = "") -> Sequence[str]:
        """Return the names in the server's list of models, empty if it sends none in time."""
        endpoint = _Endpoint(self._client, f"{path}/models")
        try:
            async with asyncio.timeout(_MODELS_TIMEOUT_SECONDS):
                response = await endpoint.get("")
            entries = dicts_of(dict_or_empty(decode_json(response.content)).get("data"))
        except (TimeoutError, openai.APIError, InvalidJson, RecursionError):
            return []
        finally:
            await endpoint.close()
        names = [entry.get("id") for entry in entries[:_MAX_MODELS]]
        return [sanitize_line(name, self._secrets) for name in names if isinstance(name, str)]

    async def _request(self, body: Mapping[str, object], settings: RequestSettings) -> Completion:
        seconds, tracker = settings.timeout, current_tracker()
        try:
            async with asyncio.timeout(seconds):
                response, not_sent = await self._respond(body, settings, tracker)
            completion = self._format.parse_completion(self._format.decode(response.content))
            if completion.error is None and is_event_stream(response.content):
                self._has_finished_stream = True
                self._streams = self._streams and completion.usage != Usage()
            if not_sent:
                # The request is not the one of the run's settings.
                completion = msgspec.structs.replace(
                    completion, extra=completion.extra | {"not_sent": not_sent}
                )
            if completion.error is not None:
                tracker.end()
            return with_hold_back_seconds(completion, response.headers)
        except (TimeoutError, openai.APITimeoutError):
            return await self._after_timeout(seconds, tracker)
        except openai_background.ResponseGone:
            tracker.end()
            message = "the server does not have the response that it has started"
            return failed_completion(unreadable_failure(message))
        except openai.APIStatusError as error:
            failure = failure_from_api_error(error)
            if _refuses_summary(error) and openai_responses.has_own_summary(settings):
                failure = openai_responses.summary_failure(failure.message)
            return failed_completion(
                failure,
                *usage_in_error_body(self._format, error.response.content),
            )
        except openai.APIError as error:
            return failed_completion(failure_from_api_error(error))
        except InvalidJson as error:
            if isinstance(error, IncompleteStream) and error.has_end_marker:
                # Either this answer was cut off, or this server never sends a finish reason.
                self._streams = self._streams and self._has_finished_stream
            return failed_completion(unreadable_failure(error))
        except RecursionError as error:
            return failed_completion(unreadable_failure(f"the server sent no response: {error}"))

    async def _respond(
        self, body: Mapping[str, object], settings: RequestSettings, tracker: ResponseTracker
    ) -> tuple[httpx.Response, str]:
        """Return the complete response to a request, and the parameter that was left out."""
        if tracker.response_id is not None:
            response = await openai_background.poll(self._endpoint, tracker.response_id)
            return response, openai_responses.left_out(body, decode_json(response.content))
        if not self._in_background:
            return await self._post(body, settings)
        body = openai_background.background_request(body, settings)
        response, not_sent = await self._post(body, settings)
        response_id = openai_background.id_in_progress(response)
        # An id that repeats a secret is not written to a file.
        if response_id and mask_secrets(response_id, self._secrets) == response_id:
            tracker.start(response_id)
            response = await openai_background.poll(self._endpoint, response_id)
        return response, not_sent

    async def _after_timeout(self, seconds: float, tracker: ResponseTracker) -> Completion:
        """Return the failure of a late request, or the answer that is complete after all.

        A response in the background that cannot be cancelled stays in progress, for a later
        attempt.
        """
        failure = timeout_failure(seconds)
        if tracker.response_id is None:
            return failed_completion(failure)
        response = await openai_background.cancel(self._endpoint, tracker.response_id)
        if response is None:
            return failed_completion(failure)
        completion = self._format.parse_completion(decode_json(response.content))
        if completion.error is None:
            return completion
        tracker.end()
        return failed_completion(failure, completion.usage, completion.cost)

    async def _post(
        self, body: Mapping[str, object], settings: RequestSettings
    ) -> tuple[httpx.Response, str]:
        """Return the response to a request, and the parameter that was left out, if any."""
        has_summary = "summary" in dict_or_empty(body.get("reasoning"))
        if not has_summary or openai_responses.has_own_summary(settings):
            return await self._post_once(body), ""
        if self._asks_for_summary:
            try:
                return await self._post_once(body), ""
            except openai.APIStatusError as error:
                if not _refuses_summary(error):
                    raise
                self._asks_for_summary = False
        body = openai_responses.without_summary(body)
        return await self._post_once(body), openai_responses.NOT_SENT

    async def _post_once(self, body: Mapping[str, object]) -> httpx.Response:
        """Return the response to a request, streamed if the server does not refuse that."""
        if self._streams:
            try:
                return await self._endpoint.post({**body, **self._format.stream_parameters})
            except openai.APIStatusError as error:
                if not refuses_streaming(error.status_code, error.response.content):
                    raise
                self._streams = False
        return await self._endpoint.post(body)


def _refuses_summary(error: openai.APIStatusError) -> bool:
    is_refusal = openai_responses.refuses_summary(dict_or_empty(error.body))
    return error.status_code == 400 and is_refusal


def usage_in_error_body(api_format: ApiFormat, content: bytes) -> tuple[Usage, float | None]:
    """Return the usage and cost that the body of an error reports, if any."""
    try:
        completion = api_format.parse_completion(api_format.decode(content))
    except (InvalidJson, RecursionError):
        return Usage(), None
    return completion.usage, completion.cost


def create_client(
    key: str | None,
    base_url: str,
    max_response_bytes: int = MAX_RESPONSE_BYTES,
    headers: Mapping[str, str] = NO_HEADERS,
) -> openai.AsyncOpenAI:
    """Return a client without retries and time limits, which are up to its users."""
    # The SDK replaces a header of its own only by one whose name has the same case.
    headers = {
        "Authorization" if name.lower() == "authorization" else name: value
        for name, value in headers.items()
    }
    return openai.AsyncOpenAI(
        api_key=key or PLACEHOLDER_KEY,
        base_url=base_url,
        max_retries=0,
        timeout=None,
        default_headers=headers,
        http_client=httpx.AsyncClient(transport=AiohttpTransport(max_response_bytes)),
    )


def failure_from_api_error(error: openai.APIError) -> Failure:
    """Return the failure for an error of the SDK."""
    if not isinstance(error, openai.APIStatusError):
        reason = error.__cause__ or error
        if isinstance(reason, WrongServer):
            return wrong_server_failure(reason)
        return connection_failure(reason, was_sent=not isinstance(reason, httpx.ConnectError))
    code, message = openai_chat.error_code_and_message(error.body)
    wait = openai_chat.upstream_retry_after(error.body, error.response.headers)
    return failure_from_status(
        error.status_code, message or error.message, code=code, retry_after=wait
    )
