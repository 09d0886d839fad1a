"""Gemini's batch API, whose jobs contain their requests and responses.

Jobs are started by google-genai but read without it: the SDK drops the counts of requests, and
rejects a whole job if one result has an unexpected form.
"""

from __future__ import annotations

from collections.abc import AsyncIterator, Collection, Mapping, Sequence

from google import genai
from google.genai import types

from numbench.models.base import PLACEHOLDER_KEY, BatchRequest
from numbench.models.batch_client import BatchClient, Entries
from numbench.models.facts import HostedProvider
from numbench.models.failures import failed_completion, failure_in_answer
from numbench.models.formats import gemini
from numbench.models.http_client import sdk_client
from numbench.models.json_fields import (
    object_at,
    objects_at,
    text_at,
    text_or_repr,
    tokens_at,
    value_at,
)
from numbench.models.providers import ModelTarget
from numbench.records import Completion, Failure, Job

_METADATA_KEY = "key"

_HTTP_STATUS_BY_RPC_CODE = (
    *(200, 499, 500, 400, 504, 404, 409, 403, 429),
    *(400, 409, 400, 501, 500, 503, 500, 401),
)
"""The HTTP status of each code of google.rpc.Code, from 0."""


class GeminiBatchService(BatchClient):
    """Batch jobs for one Gemini model."""

    # Google limits the bytes of a job to 20 MB, and not the number of its requests.
    max_requests = 50_000
    max_bytes = 19_900_000
    takes_parameters = False
    query = "pageSize=100"
    after = "pageToken"
    cancel_path = ":cancel"
    jobs = "operations"
    id_field = "name"
    state = "metadata.state"
    final = ("SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
    counts = "metadata.batchStats"
    succeeded = "successfulRequestCount"
    failed = ("failedRequestCount",)
    total = "requestCount"

    def __init__(self, provider: HostedProvider, target: ModelTarget) -> None:
        """Connect to the provider's server, or to `target.base_url`."""
        super().__init__(provider, target)
        # The SDK would replace the user's header by the key.
        headers = {name.lower(): value for name, value in target.headers.items()}
        key = headers.pop(gemini.KEY_HEADER, None) or target.key or PLACEHOLDER_KEY
        options = types.HttpOptions(
            base_url=self._base_url,
            api_version=gemini.API_VERSION,
            headers=headers or None,
            httpx_async_client=sdk_client(self._http),
            # Without an explicit number of attempts the SDK retries broken connections.
            retry_options=types.HttpRetryOptions(attempts=1),
        )
        self._sdk = genai.Client(api_key=key, vertexai=False, http_options=options).aio

    @property
    def _api_url(self) -> str:
        return f"{self._base_url}/{gemini.API_VERSION}"

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job and return its id."""
        job = self._sdk.batches.create(
            model=self._target.served_name,
            src=list(map(self._inlined, requests)),
            config=types.CreateBatchJobConfig(display_name=key),
        )
        return await self._created(job)

    async def find(self, job: Job, other_ids: Collection[str] = ()) -> str | None:
        """Return the id of the newest job whose display name is the key of `job`."""
        created = [
            (text_or_repr(value_at(listed, "metadata.createTime")), name)
            async for listed in self._jobs()
            if value_at(listed, "metadata.displayName") == job.key
            and (name := text_at(listed, "name"))
        ]
        return max(created)[1] if created else None

    async def _pages_of_results(self, job: Job) -> AsyncIterator[Entries]:
        """Yield the results of a job with the ids of their requests.

        If the server omits ids, results are matched by position, provided that there are as many
        as requests and no id contradicts its position.
        """
        response = await self._object("GET", self._job_path(job.id or ""))
        outputs = (
            objects_at(response, f"{output}.inlinedResponses.inlinedResponses")
            for output in ("metadata.output", "response")
        )
        results = next(filter(None, outputs), [])
        ids = [value_at(result, f"metadata.{_METADATA_KEY}") for result in results]
        if len(ids) == len(job.items) and all(
            identity in (None, item) for identity, item in zip(ids, job.items, strict=True)
        ):
            ids = list(job.items)
        yield [(text_or_repr(each), result) for each, result in zip(ids, results, strict=True)]

    def _inlined(self, request: BatchRequest) -> types.InlinedRequest:
        """Return the SDK's form of a request: its settings are one object."""
        body = self._request_body(request)
        config = {**object_at(body, "generationConfig")}
        system = objects_at(body, "systemInstruction.parts")
        config["systemInstruction"] = "".join(str(part["text"]) for part in system) or None
        return types.InlinedRequest.model_validate(
            {
                "contents": body["contents"],
                "config": config,
                "metadata": {_METADATA_KEY: request.id},
            }
        )

    def _completion(self, result: Mapping[str, object]) -> Completion:
        if error := result.get("error"):
            return failed_completion(_failure_from_rpc_status(error))
        return self._format.parse(result.get("response"))

    def _job_failure(self, job: Mapping[str, object]) -> Failure | None:
        error = job.get("error") or value_at(job, "metadata.error")
        return _failure_from_rpc_status(error) if error else None


def _failure_from_rpc_status(error: object) -> Failure:
    """Return the failure for a google.rpc.Status."""
    code = tokens_at(error, "code")
    known = range(len(_HTTP_STATUS_BY_RPC_CODE))
    status = 500 if code is None else _HTTP_STATUS_BY_RPC_CODE[code] if code in known else code
    message = text_at(error, "message") or f"error {code}"
    return failure_in_answer({**object_at(error), "message": message, "code": None}, status)
