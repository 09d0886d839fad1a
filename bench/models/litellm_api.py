"""All other providers, through litellm."""

from __future__ import annotations

import asyncio
import logging
import os
import warnings
from collections.abc import Sequence

# Read at litellm's import, which otherwise goes to the network for a table of prices.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
import openai

from bench.errors import BadInput
from bench.models import chat
from bench.models.base import Message, Settings
from bench.models.bodies import worded
from bench.models.failures import failed, from_status, harmless, transient
from bench.models.keys import check_key
from bench.models.litellm_usage import reported
from bench.models.rate_headers import retry_after, with_hold_back
from bench.models.secrets import secrets
from bench.records import Completion, Failure

litellm.drop_params = False
litellm.telemetry = False
litellm.suppress_debug_info = True

# Both write a server's own words to the terminal.
warnings.filterwarnings("ignore", category=UserWarning, module="pydantic")
logging.getLogger("LiteLLM").setLevel(logging.CRITICAL)

_OTHER_NAMES = {
    "bedrock": ("aws",),
    "gemini": ("google",),
    "huggingface": ("hf",),
    "sagemaker": ("aws",),
    "together_ai": ("together",),
}
"""How variables begin that do not begin with the provider's name."""

_UNREADABLE = (
    ArithmeticError,
    AttributeError,
    LookupError,
    RecursionError,
    TypeError,
    ValueError,
)
"""What litellm raises for a response that is not of the form it expects."""


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
        _check_keys(self._provider)
        self._secrets = secrets()

    async def answer(self, messages: Sequence[Message], settings: Settings) -> Completion:
        """One request. Failures are values, with keys masked wherever a server echoes them."""
        body = chat.request_body(self._served_name, messages, settings, "max_tokens")
        completion = await self._request(body, settings.timeout)
        return harmless(completion, self._secrets)

    async def close(self) -> None:
        """Close the connections that litellm keeps."""
        await litellm.close_litellm_async_clients()  # type: ignore[attr-defined, no-untyped-call]

    async def _request(self, body: dict[str, object], seconds: float) -> Completion:
        details: dict[str, object] = {}
        try:
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
            answer["usage"] = reported(answer.get("usage"), details.get("original_response"))
            headers = getattr(response, "_hidden_params", {}).get("additional_headers")
            return with_hold_back(chat.completion(answer), headers or {})
        except (TimeoutError, openai.APITimeoutError):
            return failed(transient(f"no answer within {seconds:g} s"))
        except openai.APIConnectionError as error:
            return failed(transient(f"connection failed: {worded(error.message)}"))
        except openai.APIError as error:
            return failed(_failure(error))
        except _UNREADABLE as error:
            # Before the request is on its way it is a fault of ours.
            if not details:
                raise
            return failed(transient(f"litellm cannot read the response: {error}"))


def _failure(error: openai.APIError) -> Failure:
    """The failure behind an error of litellm, which puts a status on every one of its own."""
    status = getattr(error, "status_code", None)
    return from_status(
        status if type(status) is int else 500,
        worded(error.message),
        code=worded(error.code),
        retry_after=retry_after(getattr(error, "litellm_response_headers", None) or {}),
    )


def _check_keys(provider: str) -> None:
    """BadInput for a key, as far as it can be told that it is this provider's, that is malformed.

    litellm takes the variables as they stand.
    """
    own = (provider.replace("_", ""), *_OTHER_NAMES.get(provider, ()))
    for variable, key in os.environ.items():
        plain = variable.upper().replace("_", "")
        if plain.endswith(("KEY", "TOKEN")) and plain.startswith(tuple(map(str.upper, own))):
            check_key(variable, key)
