"""Gemini's batch API, whose jobs contain their requests and responses.

Jobs are started by google-genai but read without it: the SDK drops the counts of requests, and
rejects a whole job if one result has an unexpected form.
"""

from __future__ import annotations

import json
from collections.abc import AsyncIterator, Awaitable, Collection, Iterator, Mapping, Sequence
from urllib.parse import quote

import httpx
from google.genai import types

from numbench.models import gemini_api
from numbench.models.aiohttp_transport import MAX_BATCH_RESPONSE_BYTES, AiohttpTransport
from numbench.models.base import NO_HEADERS, PLACEHOLDER_KEY, BatchRequest, BatchStatus
from numbench.models.batch_jobs import JobPage, add_result, list_jobs
from numbench.models.credentials import known_secrets
from numbench.models.http_exchange import receive_object
from numbench.models.json_fields import (
    dict_or_empty,
    dicts_of,
    text_or_none,
    text_or_repr,
    token_count,
)
from numbench.models.provider_errors import (
    failed_completion,
    failure_from_status,
    provider_error,
    sanitize_completion,
    sanitize_failure,
    sanitize_line,
    transient_failure,
)
from numbench.records import Completion, Failure, Job

_GOOGLE_BASE_URL = "https://generativelanguage.googleapis.com"
_FINAL_STATES = ("SUCCEEDED", "PARTIALLY_SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED")
_METADATA_KEY = "key"
_PAGE_SIZE = 100
_REQUEST_OVERHEAD_BYTES = 400
"""An upper bound for the bytes of a request beyond its contents and configuration."""

_HTTP_STATUS_BY_RPC_CODE = {
    1: 499,
    2: 500,
    3: 400,
    4: 504,
    5: 404,
    6: 409,
    7: 403,
    8: 429,
    9: 400,
    10: 409,
    11: 400,
    12: 501,
    13: 500,
    14: 503,
    15: 500,
    16: 401,
}
"""The HTTP status of each code of google.rpc.Code."""


class GeminiBatchService:
    """Batch jobs for one Gemini model."""

    # Google limits the bytes of a job to 20 MB, and not the number of its requests.
    max_requests = 50_000
    max_bytes = 19_900_000
    takes_parameters = False

    def __init__(
        self,
        served_name: str,
        *,
        key: str | None,
        base_url: str | None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Connect to Google's server, or to `base_url`, which implements the same API."""
        self._served_name = served_name
        self._secrets = known_secrets(key, base_url, headers.values())
        base_url = (base_url or _GOOGLE_BASE_URL).rstrip("/")
        self._connection = gemini_api.GeminiConnection(key, base_url, headers)
        self._http = httpx.AsyncClient(
            transport=AiohttpTransport(MAX_BATCH_RESPONSE_BYTES),
            base_url=f"{base_url}/{gemini_api.API_VERSION}/",
            headers={"x-goog-api-key": key or PLACEHOLDER_KEY, **headers},
            timeout=None,
        )

    def size(self, request: BatchRequest) -> int:
        """Return an upper bound for the bytes of the request."""
        dumped = _inlined_request(request).model_dump(mode="json", by_alias=True, exclude_none=True)
        return len(json.dumps(dumped)) + _REQUEST_OVERHEAD_BYTES + len(self._served_name)

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job and return its id.

        Raises ProviderError if it was not started, or may not have been.
        """
        sending = self._connection.sdk.batches.create(
            model=self._served_name,
            src=[_inlined_request(request) for request in requests],
            config=types.CreateBatchJobConfig(display_name=key),
        )
        job = await self._response_json(gemini_api.send_and_capture(sending))
        name = text_or_none(job.get("name"))
        if name and name.isprintable():
            return name
        raise provider_error(transient_failure("the server sent no job name"), self._secrets)

    async def find(self, job: Job, other_ids: Collection[str] = ()) -> str | None:
        """Return the id of the newest job whose display name is the key of `job`."""
        created: list[tuple[str, str]] = []
        async for listed in list_jobs(self._job_page):
            metadata = dict_or_empty(listed.get("metadata"))
            name = text_or_none(listed.get("name"))
            if name and metadata.get("displayName") == job.key:
                created.append((text_or_repr(metadata.get("createTime")), name))
        return max(created)[1] if created else None

    async def status(self, job: str) -> BatchStatus:
        """Return the state of the job."""
        response = await self._get_json(_path(job))
        metadata = dict_or_empty(response.get("metadata"))
        state = sanitize_line(text_or_repr(metadata.get("state")), self._secrets)
        state = state.removeprefix("BATCH_STATE_").removeprefix("JOB_STATE_")
        counts = dict_or_empty(metadata.get("batchStats"))
        error = response.get("error") or metadata.get("error")
        failure = _failure_from_rpc_status(error) if error else None
        return BatchStatus(
            is_finished=state in _FINAL_STATES or response.get("done") is True,
            succeeded=_int64(counts.get("successfulRequestCount")),
            failed=_int64(counts.get("failedRequestCount")),
            total=_int64(counts.get("requestCount")),
            state=state,
            error=failure and sanitize_failure(failure, self._secrets),
        )

    async def results(self, job: Job) -> AsyncIterator[tuple[str, Completion]]:
        """Yield the results, also of a job that failed, expired or was cancelled.

        A result contains the id of its request. If the server omits ids, results are matched by
        position, provided that there are as many as requests and no id contradicts its position.
        """
        response = await self._get_json(_path(job.id or ""))
        results: dict[str, Completion] = {}
        for request_id, result in _match_results(_inlined_results(response), job.items):
            completion = sanitize_completion(_completion(result), self._secrets)
            add_result(results, request_id, completion)
        for request_id, completion in results.items():
            yield request_id, completion

    async def cancel(self, job: str) -> None:
        """Request the end of the job."""
        await self._response_json(
            gemini_api.send_and_capture(self._connection.sdk.batches.cancel(name=job))
        )

    async def close(self) -> None:
        """Close the connections."""
        await self._connection.close()
        await self._http.aclose()

    async def _job_page(self, token: str) -> JobPage:
        page = await self._get_json(
            f"batches?pageSize={_PAGE_SIZE}" + (token and f"&pageToken={token}")
        )
        next_page = quote(text_or_none(page.get("nextPageToken")) or "", safe="")
        return JobPage(dicts_of(page.get("operations")), next_page)

    async def _get_json(self, path: str) -> Mapping[str, object]:
        return await self._response_json(self._http.get(path))

    async def _response_json(self, sending: Awaitable[httpx.Response]) -> Mapping[str, object]:
        return await receive_object(sending, gemini_api.failure_from_response, self._secrets)


def _inlined_request(request: BatchRequest) -> types.InlinedRequest:
    return types.InlinedRequest(
        contents=list(gemini_api.build_contents(request.messages)),
        config=gemini_api.build_config(request.messages, request.settings),
        metadata={_METADATA_KEY: request.id},
    )


def _inlined_results(job: Mapping[str, object]) -> list[Mapping[str, object]]:
    """Return the results in a job, which Google puts in one of two places."""
    for output in (dict_or_empty(job.get("metadata")).get("output"), job.get("response")):
        inner = dict_or_empty(dict_or_empty(output).get("inlinedResponses")).get("inlinedResponses")
        if isinstance(inner, list):
            return dicts_of(inner)
    return []


def _match_results(
    results: Sequence[Mapping[str, object]], ids: Sequence[str]
) -> Iterator[tuple[str, Mapping[str, object]]]:
    """Yield the results with the ids of their requests, without those of unknown requests."""
    result_ids = [dict_or_empty(result.get("metadata")).get(_METADATA_KEY) for result in results]
    in_order = len(results) == len(ids) and all(
        result_id in (None, request_id)
        for result_id, request_id in zip(result_ids, ids, strict=True)
    )
    known = set(ids)
    for position, (result_id, result) in enumerate(zip(result_ids, results, strict=True)):
        if in_order:
            yield ids[position], result
        elif isinstance(result_id, str) and result_id in known:
            yield result_id, result


def _completion(result: Mapping[str, object]) -> Completion:
    if error := result.get("error"):
        return failed_completion(_failure_from_rpc_status(error))
    return gemini_api.parse_completion(result.get("response"))


def _failure_from_rpc_status(error: object) -> Failure:
    """Return the failure for a google.rpc.Status."""
    rpc_status = dict_or_empty(error)
    code = token_count(rpc_status.get("code"))
    status = 500 if code is None else _HTTP_STATUS_BY_RPC_CODE.get(code, code)
    message = text_or_none(rpc_status.get("message")) or f"error {code}"
    return gemini_api.with_daily_quota(failure_from_status(status, message), rpc_status)


def _int64(value: object) -> int | None:
    """Return a count, which Google's JSON represents as a string."""
    text = str(token_count(value)) if isinstance(value, int) else text_or_repr(value)
    return token_count(int(text)) if text.isascii() and text.isdigit() and len(text) < 20 else None


def _path(job: str) -> str:
    return quote(job, safe="/")
