"""Models of all other providers, through litellm."""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections import defaultdict
from collections.abc import Iterable, Iterator, Mapping, Sequence
from dataclasses import replace
from fnmatch import fnmatchcase
from functools import wraps
from itertools import combinations
from typing import Any

import httpx
import openai

from numbench.errors import BadInput
from numbench.models import openai_chat
from numbench.models.base import NO_HEADERS, PLACEHOLDER_KEY, Message, RequestSettings
from numbench.models.credentials import check_api_key, known_secrets
from numbench.models.hosts import is_loopback
from numbench.models.json_fields import (
    InvalidJson,
    decode_json,
    dict_or_empty,
    text_or_repr,
    token_count,
)
from numbench.models.provider_errors import (
    connection_failure,
    failed_completion,
    failure_from_status,
    sanitize_completion,
    timeout_failure,
    unreadable_failure,
)
from numbench.models.rate_limit_headers import retry_after, with_hold_back_seconds
from numbench.models.request_inspection import RequestStopped, inspect_request
from numbench.records import Completion, Failure

# litellm reads these variables. Without them it downloads a price table and a list of headers.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"
# TCP keepalive, as in `aiohttp_transport`.
os.environ.setdefault("AIOHTTP_SO_KEEPALIVE", "True")
# Warnings of pydantic and log lines of litellm quote the server.
warnings.filterwarnings("ignore", category=UserWarning, module="pydantic")
logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)

import litellm  # noqa: E402

litellm.drop_params = False
litellm.telemetry = False
litellm.suppress_debug_info = True


def _inspect_before_sending() -> None:
    """Let inspectors see the requests of litellm, all of whose providers send through httpx.

    litellm's own hooks see a request before its provider's client changes it.
    """
    send, send_async = httpx.Client.send, httpx.AsyncClient.send

    def inspect(request: httpx.Request) -> None:
        try:
            inspect_request(request.content)
        except httpx.RequestNotRead:
            return
        except RequestStopped as error:
            raise httpx.ConnectError(str(error), request=request) from error

    @wraps(send)
    def inspected(self: httpx.Client, request: httpx.Request, **options: Any) -> httpx.Response:
        inspect(request)
        return send(self, request, **options)

    @wraps(send_async)
    async def inspected_async(
        self: httpx.AsyncClient, request: httpx.Request, **options: Any
    ) -> httpx.Response:
        inspect(request)
        return await send_async(self, request, **options)

    httpx.Client.send = inspected  # type: ignore[method-assign]
    httpx.AsyncClient.send = inspected_async  # type: ignore[method-assign]


_inspect_before_sending()

_KEY_PREFIXES = {
    "bedrock": ("aws",),
    "gemini": ("google",),
    "huggingface": ("hf",),
    "sagemaker": ("aws",),
    "together_ai": ("together",),
}
"""The prefixes of variables that do not begin with the name of their provider."""

_REQUIRES_TOKEN_LIMIT = "*claude*"
"""Models whose API requires a token limit, as a shell pattern."""

_PARSE_ERRORS = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""Errors that litellm raises for a response of an unexpected form."""


_UNOBSERVABLE_PROVIDERS = frozenset({"aiohttp_openai", "petals"})
"""Providers that litellm does not ask through httpx: a preview of a request would be sent."""


class LiteLLMModel:
    """A model of any provider that litellm supports. Its cost is unknown unless reported."""

    def __init__(
        self,
        name: str,
        served_name: str,
        *,
        key: str | None,
        base_url: str | None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Raise BadInput for a provider that litellm does not support, or a key that is not set."""
        self.name = name
        self._served_name = served_name
        self._base_url = base_url
        self._key = key
        if key is None and base_url is not None and not is_loopback(base_url):
            # Without a key litellm sends the provider's own, from the environment.
            self._key = PLACEHOLDER_KEY
        try:
            _, self._provider, _, _ = litellm.get_llm_provider(model=served_name)
        except openai.APIError as error:
            raise BadInput(
                f"litellm has no provider for {served_name!r}: use litellm/PROVIDER/NAME"
            ) from error
        if self._provider in _UNOBSERVABLE_PROVIDERS:
            raise BadInput(
                f"{name}: litellm sends requests to {self._provider} in a way that cannot be "
                "observed; use another route"
            )
        missing = litellm.validate_environment(model=served_name)["missing_keys"]
        if missing and base_url is None and key is None:
            raise BadInput(f"{name} needs a key: set {', '.join(missing)}")
        _check_api_keys(self._provider)
        self._secrets = known_secrets(key, base_url, headers.values())
        self._headers = headers

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Send one request. Failures are values; secrets that a server echoes are masked."""
        if settings.max_tokens is None:
            settings = replace(settings, max_tokens=_needed_token_limit(self._served_name))
        body = openai_chat.build_request(self._served_name, messages, settings, "max_tokens")
        completion = await self._request(body, settings.timeout)
        return sanitize_completion(completion, self._secrets)

    async def close(self) -> None:
        """Close litellm's connections."""
        await litellm.close_litellm_async_clients()  # type: ignore[attr-defined, no-untyped-call]

    async def _request(self, body: dict[str, object], seconds: float) -> Completion:
        details: dict[str, object] = {}
        try:
            async with asyncio.timeout(seconds):
                response = await litellm.acompletion(
                    **body,
                    api_base=self._base_url,
                    api_key=self._key,
                    num_retries=0,
                    max_retries=0,
                    timeout=seconds,
                    extra_headers=dict(self._headers) or None,
                    logger_fn=details.update,
                )
            answer = {"provider": self._provider} | response.model_dump()
            answer["usage"] = confirmed_usage(answer.get("usage"), details.get("original_response"))
            headers = getattr(response, "_hidden_params", {}).get("additional_headers")
            return with_hold_back_seconds(openai_chat.parse_completion(answer), headers or {})
        except (TimeoutError, openai.APITimeoutError):
            return failed_completion(timeout_failure(seconds))
        except openai.APIConnectionError as error:
            return failed_completion(connection_failure(text_or_repr(error.message)))
        except openai.APIError as error:
            return failed_completion(_failure(error))
        except _PARSE_ERRORS as error:
            # Without a response it is an error in this program.
            if not details:
                raise
            return failed_completion(
                unreadable_failure(f"litellm cannot read the response: {error}")
            )


def _needed_token_limit(served_name: str) -> int | None:
    """Return the model's own limit if its API requires one, as Claude's does, else None.

    Without one litellm sends a smaller limit when the model reasons.
    """
    if not fnmatchcase(served_name, _REQUIRES_TOKEN_LIMIT):
        return None
    names = (served_name, served_name.partition("/")[2])
    limits = (litellm.model_cost.get(name, {}).get("max_output_tokens") for name in names)
    return next((limit for limit in limits if type(limit) is int), None)


def _failure(error: openai.APIError) -> Failure:
    """Return the failure for an error of litellm, all of which have a status."""
    status = getattr(error, "status_code", None)
    return failure_from_status(
        status if type(status) is int else 500,
        text_or_repr(error.message),
        code=text_or_repr(error.code),
        retry_after=retry_after(getattr(error, "litellm_response_headers", None) or {}),
    )


def _check_api_keys(provider: str) -> None:
    """Raise BadInput for a malformed key in a variable that seems to be this provider's.

    litellm uses the variables without a check.
    """
    prefixes = (provider.replace("_", ""), *_KEY_PREFIXES.get(provider, ()))
    for variable, key in os.environ.items():
        name = variable.upper().replace("_", "")
        if name.endswith(("KEY", "TOKEN")) and name.startswith(tuple(map(str.upper, prefixes))):
            check_api_key(variable, key)


_USAGE_OBJECTS = ("usage", "usageMetadata", "usage_metadata", "meta")
"""The fields of a response that contain its counts. Ollama's are at the top level."""

_TOP_LEVEL_FIELDS = ("prompt_eval_count", "eval_count")
_INPUT_FIELDS = (
    "prompt_tokens",
    "input_tokens",
    "promptTokenCount",
    "inputTokens",
    "prompt_eval_count",
)
_CACHE_FIELDS = (
    "cache_creation_input_tokens",
    "cache_read_input_tokens",
    "cacheWriteInputTokens",
    "cacheReadInputTokens",
)
_OUTPUT_FIELDS = (
    "completion_tokens",
    "output_tokens",
    "candidatesTokenCount",
    "outputTokens",
    "eval_count",
)
_REASONING_FIELDS = ("reasoning_tokens", "thinking_tokens", "thoughtsTokenCount")
_COST_FIELDS = ("cost", "is_byok", "cost_details", "cost_in_usd_ticks")

_Counts = Mapping[str, set[int]]


def confirmed_usage(usage: object, original: object) -> dict[str, object]:
    """Return litellm's `usage` without the counts that the provider did not report.

    litellm estimates missing counts itself. A count is kept if the provider's `original` response
    contains it under a name of the same meaning. Two sums count as contained: the input plus what
    was read from and written to a cache, and the output plus the reasoning, because some providers
    report these separately.
    """
    numbers = dict_or_empty(usage)
    details = dict_or_empty(numbers.get("completion_tokens_details"))
    response = _decode_response(original)
    counts = _reported_counts(response)
    reasoning = _values_under(_REASONING_FIELDS, counts)
    output = _values_under(_OUTPUT_FIELDS, counts)
    cached = list(_iter_values(_CACHE_FIELDS, counts))
    inputs = {
        base + sum(addends)
        for base in _values_under(_INPUT_FIELDS, counts)
        for size in range(len(_CACHE_FIELDS) + 1)
        for addends in combinations(cached, size)
    }
    reported = dict_or_empty(response.get("usage"))
    return {name: reported[name] for name in _COST_FIELDS if name in reported} | {
        "prompt_tokens": _confirmed(numbers.get("prompt_tokens"), inputs),
        "completion_tokens": _confirmed(
            numbers.get("completion_tokens"),
            output | {visible + hidden for visible in output for hidden in reasoning},
        ),
        "completion_tokens_details": {
            "reasoning_tokens": _confirmed(details.get("reasoning_tokens"), reasoning)
        },
        "total_tokens": _confirmed(
            numbers.get("total_tokens"), _values_under(("total_tokens",), counts)
        ),
    }


def _decode_response(original: object) -> Mapping[str, object]:
    try:
        return dict_or_empty(decode_json(str(original).encode("utf-8", "replace")))
    except InvalidJson:
        return {}


def _reported_counts(response: Mapping[str, object]) -> _Counts:
    """Return the token counts in a response by field name."""
    counts: defaultdict[str, set[int]] = defaultdict(set)
    top_level = [(name, response.get(name)) for name in _TOP_LEVEL_FIELDS]
    nested = _walk_fields([response.get(key) for key in _USAGE_OBJECTS])
    for name, value in (*top_level, *nested):
        if (number := token_count(value)) is not None:
            counts[name].add(number)
    return counts


def _walk_fields(objects: list[object]) -> Iterator[tuple[str, object]]:
    """Yield the names and values in JSON objects, and in the objects that they contain."""
    while objects:
        for name, value in dict_or_empty(objects.pop()).items():
            if isinstance(value, dict):
                objects.append(value)
            else:
                yield name, value


def _values_under(names: Iterable[str], counts: _Counts) -> set[int]:
    return set(_iter_values(names, counts))


def _iter_values(names: Iterable[str], counts: _Counts) -> Iterator[int]:
    for name in names:
        yield from counts.get(name, ())


def _confirmed(value: object, reported: set[int]) -> int | None:
    number = token_count(value)
    return number if number in reported else None
