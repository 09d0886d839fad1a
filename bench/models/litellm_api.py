"""All other providers, through litellm."""

from __future__ import annotations

import asyncio
import os
from collections.abc import Sequence

# Read at litellm's import, which otherwise goes to the network for a table of prices.
os.environ["LITELLM_LOCAL_MODEL_COST_MAP"] = "True"

import litellm
import openai

from bench.errors import BadInput
from bench.models import chat
from bench.models.base import Message, Settings
from bench.models.failures import failed, from_status, retry_after, transient, without_secrets
from bench.records import Completion

litellm.drop_params = False
litellm.telemetry = False
litellm.suppress_debug_info = True


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
            async with asyncio.timeout(seconds):
                response = await litellm.acompletion(
                    **body, api_base=self._base_url, num_retries=0, max_retries=0, timeout=seconds
                )
            return chat.completion({"provider": self._provider} | response.model_dump())
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
