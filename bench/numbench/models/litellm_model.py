"""Models of further providers, through litellm, which may rewrite messages and parameters."""

from __future__ import annotations

import asyncio
import os
import warnings
from collections.abc import Sequence
from dataclasses import replace
from functools import partial
from importlib.util import find_spec
from logging import CRITICAL, getLogger
from typing import Any

from numbench.core.secrets import known_secrets, named_secrets
from numbench.errors import BadInput
from numbench.models import failures
from numbench.models.base import PLACEHOLDER_KEY, Message, Model, ModelTarget, RequestSettings
from numbench.models.base_url import is_loopback
from numbench.models.error_bodies import retry_after
from numbench.models.formats import FORMATS
from numbench.models.formats.base import Charges
from numbench.models.json_fields import (
    USAGE_FIELDS,
    decoded,
    object_at,
    parse_cost,
    parse_usage,
    text_or_repr,
)
from numbench.models.prices import find_facts
from numbench.models.providers import ProviderPlugin
from numbench.records import Completion, Usage

_WIRES = {"choices": "chat", "output": "responses", "content": "messages", "candidates": "gemini"}
"""The field of a provider's response that tells its format."""

_FURTHER_COUNTS = ("ollama", "bedrock", "cohere")
"""Other formats in which a response may have its counts."""


class LiteLLMModel:
    """A model of any provider that litellm supports. Its cost is unknown unless reported."""

    def __init__(self, litellm: Any, target: ModelTarget) -> None:
        """Raise BadInput for a provider that litellm does not support, or a key that is not set."""
        self.name, self._litellm, self._target = target.name, litellm, target
        try:
            _, self._provider, _, _ = litellm.get_llm_provider(model=target.served_name)
        except litellm.exceptions.BadRequestError as error:
            raise BadInput(
                f"litellm has no provider for {target.served_name!r}: use litellm/PROVIDER/NAME"
            ) from error
        missing = litellm.validate_environment(model=target.served_name)["missing_keys"]
        if missing and target.base_url is None and target.key is None:
            raise BadInput(f"{target.name} needs a key: set {', '.join(missing)}")
        # Without a key litellm sends the provider's own, from the environment.
        is_elsewhere = target.base_url is not None and not is_loopback(target.base_url)
        self._key = target.key or (PLACEHOLDER_KEY if is_elsewhere else None)
        self._secrets = known_secrets(target.key, target.base_url, target.headers.values())

    def request_body(
        self, messages: Sequence[Message], settings: RequestSettings
    ) -> dict[str, object]:
        """Return what litellm gets to make a request of."""
        facts = find_facts(self.name)
        if settings.max_tokens is None and facts and "claude" in self._target.served_name:
            # Its API requires a limit; litellm's own is smaller when the model reasons.
            settings = replace(settings, max_tokens=facts.max_output)
        return FORMATS["chat"].body(self._target.served_name, messages, settings, "max_tokens")

    async def answer(self, messages: Sequence[Message], settings: RequestSettings) -> Completion:
        """Send one request. Failures are values; secrets that a server echoes are masked."""
        import openai

        body, details = self.request_body(messages, settings), dict[str, object]()
        secrets = (*self._secrets, *named_secrets(settings.params))
        try:
            async with asyncio.timeout(settings.timeout):
                response = await self._litellm.acompletion(
                    **body,
                    api_base=self._target.base_url,
                    api_key=self._key,
                    num_retries=0,
                    max_retries=0,
                    timeout=settings.timeout,
                    extra_headers=dict(self._target.headers) or None,
                    logger_fn=details.update,
                )
            fields = {"provider": self._provider} | response.model_dump()
            reported = charges_in(details.get("original_response"))
            completion = FORMATS["chat"].parse(fields, settings.max_tokens, reported)
            return failures.sanitize_completion(completion, secrets)
        except TimeoutError:
            failure = failures.timeout_failure(settings.timeout)
        except openai.APIError as error:
            status = getattr(error, "status_code", None)
            headers = getattr(error, "litellm_response_headers", None) or {}
            failure = failures.failure_from_status(
                status if type(status) is int else 500,
                text_or_repr(error.message),
                code=text_or_repr(error.code),
                retry_after=retry_after(headers),
            )
            if not _was_sent(error):
                failure = failures.connection_failure(failure.message, was_sent=False)
        except (ArithmeticError, AttributeError, LookupError, TypeError, ValueError) as error:
            # Without a response it is an error in this program.
            if not details:
                raise
            failure = failures.unreadable_failure(f"litellm cannot read the response: {error}")
        return failures.sanitize_completion(failures.failed_completion(failure), secrets)

    async def close(self) -> None:
        """Close litellm's connections."""
        await self._litellm.close_litellm_async_clients()


def charges_in(original: object) -> Charges:
    """Return usage and cost in a provider's `original` response.

    litellm's own usage has counts that it estimates itself.
    """
    response = object_at(decoded(str(original).encode("utf-8", "replace")))
    readers = [FORMATS[wire].usage for field, wire in _WIRES.items() if field in response]
    readers += [partial(parse_usage, fields=USAGE_FIELDS[name]) for name in _FURTHER_COUNTS]
    usages = (read(response) for read in readers)
    return next((each for each in usages if each.source), Usage()), parse_cost(response)


def _was_sent(error: BaseException | None) -> bool:
    """Return whether there was a connection: litellm wraps the error that says so."""
    while error is not None:
        if type(error).__name__ in ("ConnectError", "ConnectTimeout", "ClientConnectorError"):
            return False
        error = error.__cause__ or error.__context__
    return True


def _open(target: ModelTarget) -> Model:
    if find_spec("litellm") is None:
        raise BadInput(f"{target.name} needs the package litellm: pip install litellm")
    if target.stream:
        raise BadInput(f"{target.name}: models of litellm/ do not stream: omit --stream")
    # Without these it downloads a price table and a list of headers.
    os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"
    os.environ["LITELLM_LOCAL_ANTHROPIC_BETA_HEADERS"] = "True"
    # Warnings of pydantic and log lines of litellm quote the server.
    warnings.filterwarnings("ignore", category=UserWarning, module="pydantic")
    getLogger("LiteLLM").setLevel(CRITICAL)
    import litellm

    litellm.telemetry, litellm.drop_params, litellm.suppress_debug_info = False, False, True
    return LiteLLMModel(litellm, target)


PROVIDER = ProviderPlugin(
    name="litellm",
    open_model=_open,
    examples=("PROVIDER/NAME",),
    sdk="litellm",
    inspects_requests=True,
    takes_tools=True,
    note="litellm may rewrite messages and parameters",
)
