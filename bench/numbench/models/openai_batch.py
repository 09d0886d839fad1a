"""OpenAI's batch API: a file of requests as input, files of responses and errors as output.

The SDK uploads the files and starts the jobs.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from urllib.parse import quote

import msgspec
import openai

from numbench.models.base import PLACEHOLDER_KEY, BatchRequest
from numbench.models.batch_client import BatchClient, Entries
from numbench.models.facts import HostedProvider
from numbench.models.failures import (
    error_code_and_message,
    failed_completion,
    failure_from_reply,
    failure_from_status,
    failure_in_answer,
    transient_failure,
)
from numbench.models.http_client import sdk_client
from numbench.models.json_fields import object_at, objects_at, text_at, value_at
from numbench.models.providers import ModelTarget
from numbench.records import Completion, Failure, Job

_UNPROCESSED_CODES = ("batch_expired", "batch_cancelled")
"""Error codes of requests that were not processed before the job ended."""

_METADATA_KEY = "numbench"


class OpenAIBatchService(BatchClient):
    """Batch jobs for one model in one of OpenAI's formats."""

    max_requests = 50_000
    max_bytes = 200_000_000
    state = "status"
    final = ("completed", "failed", "expired", "cancelled")
    succeeded = "completed"
    failed = ("failed",)
    total = "total"

    def __init__(self, provider: HostedProvider, target: ModelTarget) -> None:
        """Connect to the provider's server, or to `target.base_url`."""
        super().__init__(provider, target)
        self._endpoint = "/v1" + self._format.url("", target.served_name, False)
        # The SDK replaces a header of its own only by one whose name has the same case.
        headers = {
            "Authorization" if name.lower() == "authorization" else name: value
            for name, value in target.headers.items()
        }
        self._sdk = openai.AsyncOpenAI(
            api_key=target.key or PLACEHOLDER_KEY,
            base_url=self._base_url,
            max_retries=0,
            default_headers=headers,
            http_client=sdk_client(self._http),
        )

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job and return its id."""
        file = (f"{key}.jsonl", b"".join(map(self._line, requests)), "application/jsonl")
        job = self._sdk.batches.create(
            input_file_id=await self._created(self._sdk.files.create(file=file, purpose="batch")),
            endpoint=self._endpoint,  # type: ignore[arg-type]
            completion_window="24h",
            metadata={_METADATA_KEY: key},
        )
        return await self._created(job)

    async def find(self, job: Job, other_ids: Collection[str] = ()) -> str | None:
        """Return the id of the newest job with the key of `job` in its metadata."""
        # The newest job is listed first.
        async for listed in self._jobs():
            if value_at(listed, f"metadata.{_METADATA_KEY}") == job.key:
                return self._id(listed)
        return None

    async def _pages_of_results(self, job: Job) -> AsyncIterator[Entries]:
        response = await self._object("GET", self._job_path(job.id or ""))
        for kind in ("output_file_id", "error_file_id"):
            if file := text_at(response, kind):
                path = f"files/{quote(file, safe='')}/content"
                yield self._result_lines(await self._content("GET", path))

    def _line(self, request: BatchRequest) -> bytes:
        line = {
            "custom_id": request.id,
            "method": "POST",
            "url": self._endpoint,
            "body": self._request_body(request),
        }
        return msgspec.json.encode(line) + b"\n"

    def _completion(self, result: Mapping[str, object]) -> Completion:
        response = object_at(result, "response")
        status = response.get("status_code")
        if not response or type(status) is not int:
            return failed_completion(_failure_without_response(result.get("error")))
        completion = self._format.parse(response.get("body"))
        if status == 200:
            return completion
        content = msgspec.json.encode(response.get("body"))
        failure = failure_from_reply(status, {}, content)
        return failed_completion(failure, completion.usage, completion.cost)

    def _job_failure(self, job: Mapping[str, object]) -> Failure | None:
        """Return the first error of a job that failed as a whole."""
        errors = objects_at(job, "errors.data")
        if not errors:
            return None
        code, message = error_code_and_message(errors[0])
        if "token_limit_exceeded" in code:
            # Too many tokens are enqueued; the limit is free again when other jobs end.
            return Failure(kind="rate_limit", message=message or code)
        return failure_from_status(400, message or code, code=code)


def _failure_without_response(error: object) -> Failure:
    """Return the failure of a request in a job that has no response."""
    code, message = error_code_and_message(error)
    if code in _UNPROCESSED_CODES or not (code or message):
        text = message or code or "the server sent neither a response nor an error"
        return transient_failure(text)
    return failure_in_answer(error)
