"""All other providers, through litellm."""

from __future__ import annotations

import asyncio
import os
import re
from collections.abc import Iterator, Mapping, Sequence
from itertools import combinations

# Read at litellm's import, which otherwise goes to the network for a table of prices.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
import msgspec
import openai

from bench.errors import BadInput
from bench.models import chat
from bench.models.base import Message, Settings
from bench.models.failures import failed, from_status, transient, without_secrets
from bench.models.rate_headers import retry_after, with_hold_back
from bench.records import Completion

litellm.drop_params = False
litellm.telemetry = False
litellm.suppress_debug_info = True

_COUNTS_TOKENS = re.compile("token|count", re.IGNORECASE)


class LitellmModel:
    """A model of any provider that litellm knows. Its cost is unknown unless reported."""

    def __init__(self, name: str, served_name: str, *, base_url: str | None) -> None:
        """BadInput for a provider that litellm does not know, or a key that is not set."""
        self.name = name
        self._served_name = served_name
        self._base_url = base_url
        try:
            _, self._provider, _, _ = litellm.get_llm_provider(model=served_name)
        except openai.APIError as error:
            raise BadInput(
                f"litellm knows no provider for {served_name!r}: give litellm/PROVIDER/NAME"
            ) from error
        missing = litellm.validate_environment(model=served_name)["missing_keys"]
        if missing and base_url is None:
            raise BadInput(f"{name} needs a key: set {', '.join(missing)}")
        # litellm picks the key itself, so any of those that are set may be echoed.
        self._secrets = [value for key, value in os.environ.items() if key.endswith("_API_KEY")]

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """One request. Failures are values, with keys masked wherever a server echoes them."""
        body = chat.request_body(self._served_name, messages, settings, "max_tokens")
        completion = await self._request(body, settings.timeout)
        return without_secrets(completion, self._secrets)

    async def close(self) -> None:
        """Close the connections that litellm keeps."""
        await litellm.close_litellm_async_clients()  # type: ignore[attr-defined, no-untyped-call]

    async def _request(self, body: dict[str, object], seconds: float) -> Completion:
        try:
            details: dict[str, object] = {}
            async with asyncio.timeout(seconds):
                response = await litellm.acompletion(
                    **body,
                    api_base=self._base_url,
                    num_retries=0,
                    max_retries=0,
                    timeout=seconds,
                    logger_fn=details.update,
                )
            answer = {"provider": self._provider} | response.model_dump()
            answer["usage"] = _reported(answer.get("usage"), details.get("original_response"))
            headers = getattr(response, "_hidden_params", {}).get("additional_headers")
            return with_hold_back(chat.completion(answer), headers or {})
        except (TimeoutError, openai.APITimeoutError):
            return failed(transient(f"no answer within {seconds:g} s"))
        except openai.APIConnectionError as error:
            return failed(transient(f"connection failed: {error.message}"))
        except openai.APIError as error:
            # litellm puts a status on every error of its own.
            status = getattr(error, "status_code", None) or 500
            wait = retry_after(getattr(error, "litellm_response_headers", None) or {})
            return failed(
                from_status(
                    int(status), error.message, code=str(error.code or ""), retry_after=wait
                )
            )


def _reported(usage: object, original: object) -> dict[str, object]:
    """The `usage` that litellm gives, without what the provider's `original` response lacks.

    litellm writes 0, or a count of its own, where a provider reports nothing. Some figures are
    the sum of two that the provider reports, such as a candidate's and its thoughts' tokens.
    """
    try:
        said = list(_token_counts(msgspec.json.decode(str(original))))
    except (msgspec.DecodeError, RecursionError):
        said = []
    attested = {*said, *map(sum, combinations(said, 2))}

    def kept(numbers: Mapping[str, object]) -> dict[str, object]:
        return {
            name: value
            for name, value in numbers.items()
            if not name.endswith("_tokens") or value in attested
        }

    numbers = chat.mapping(usage)
    details = chat.mapping(numbers.get("completion_tokens_details"))
    return kept(numbers) | {"completion_tokens_details": kept(details)}


def _token_counts(value: object, name: str = "") -> Iterator[int]:
    """All whole numbers in a decoded response whose names are those of a count of tokens."""
    if isinstance(value, dict):
        for key, inner in value.items():
            yield from _token_counts(inner, str(key))
    elif isinstance(value, list):
        for inner in value:
            yield from _token_counts(inner, name)
    elif _COUNTS_TOKENS.search(name) and (number := chat.count(value)) is not None:
        yield number
