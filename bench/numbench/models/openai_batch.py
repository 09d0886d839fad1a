"""OpenAI's batch API: a file of requests as input, files of responses and errors as output."""

from __future__ import annotations

import asyncio
from collections.abc import AsyncIterator, Collection, Mapping, Sequence
from urllib.parse import quote

import httpx
import msgspec
import openai

from numbench.models import openai_chat
from numbench.models.aiohttp_transport import MAX_BATCH_RESPONSE_BYTES
from numbench.models.base import DEFAULT_TIMEOUT_SECONDS, NO_HEADERS, BatchRequest, BatchStatus
from numbench.models.batch_jobs import JobPage, add_result, iter_result_lines, list_jobs
from numbench.models.credentials import known_secrets
from numbench.models.json_fields import (
    InvalidJson,
    decode_json,
    dict_or_empty,
    dicts_of,
    text_or_none,
    text_or_repr,
    token_count,
)
from numbench.models.openai_api import ApiFormat, create_client, failure_from_api_error
from numbench.models.openai_responses import (
    NOT_SENT,
    has_own_summary,
    refuses_summary,
    summary_failure,
    without_summary,
)
from numbench.models.provider_errors import (
    failed_completion,
    failure_from_status,
    provider_error,
    sanitize_completion,
    sanitize_failure,
    sanitize_line,
    timeout_failure,
    transient_failure,
)
from numbench.records import Completion, Failure, Job

_FINAL_STATES = ("completed", "failed", "expired", "cancelled")
_UNPROCESSED_CODES = ("batch_expired", "batch_cancelled")
"""Error codes of requests that were not processed before the job ended."""

_METADATA_KEY, _NOT_SENT_KEY = "numbench", "not_sent"
_PAGE_SIZE = 100


class OpenAIBatchService:
    """Batch jobs for one model in one API format.

    In the Responses format a summary of the reasoning is requested until the server refuses it.
    The requests that it refused count as open, and the metadata of later jobs say what is missing.
    """

    max_requests = 50_000
    max_bytes = 200_000_000

    def __init__(
        self,
        served_name: str,
        api_format: ApiFormat,
        *,
        key: str | None,
        base_url: str,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        self._served_name = served_name
        self._format = api_format
        self._secrets = known_secrets(key, base_url, headers.values())
        self._client = create_client(key, base_url, MAX_BATCH_RESPONSE_BYTES, headers)
        self._asks_for_summary = True

    def size(self, request: BatchRequest) -> int:
        """Return the bytes of the request's line."""
        return len(self._line(request))

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job and return its id.

        Raises ProviderError if it was not started, or may not have been.
        """
        if not self._asks_for_summary and any(has_own_summary(each.settings) for each in requests):
            raise provider_error(summary_failure("the summary was refused"), self._secrets)
        metadata = {_METADATA_KEY: key}
        metadata |= {} if self._asks_for_summary else {_NOT_SENT_KEY: NOT_SENT}
        lines = b"".join(map(self._line, requests))
        file = await self._post(
            "/files",
            {"purpose": "batch"},
            files=[("file", (f"{key}.jsonl", lines, "application/jsonl"))],
            headers={"Content-Type": "multipart/form-data"},
        )
        job = await self._post(
            "/batches",
            {
                "input_file_id": self._id(file),
                "endpoint": f"/v1{self._format.path}",
                "completion_window": "24h",
                "metadata": metadata,
            },
        )
        return self._id(job)

    async def find(self, job: Job, other_ids: Collection[str] = ()) -> str | None:
        """Return the id of the newest job with the key of `job` in its metadata."""
        # The newest job is listed first.
        async for listed in list_jobs(self._job_page):
            if dict_or_empty(listed.get("metadata")).get(_METADATA_KEY) == job.key:
                return self._id(listed)
        return None

    async def status(self, job: str) -> BatchStatus:
        """Return the state of the job."""
        response = await self._get_json(f"/batches/{_url_quoted(job)}")
        state = sanitize_line(text_or_repr(response.get("status")), self._secrets)
        counts, error = dict_or_empty(response.get("request_counts")), self._job_failure(response)
        return BatchStatus(
            is_finished=state in _FINAL_STATES,
            succeeded=token_count(counts.get("completed")),
            failed=token_count(counts.get("failed")),
            total=token_count(counts.get("total")),
            state=state,
            error=error and sanitize_failure(error, self._secrets),
        )

    async def results(self, job: Job) -> AsyncIterator[tuple[str, Completion]]:
        """Yield the results, also of a job that failed, expired or was cancelled."""
        response = await self._get_json(f"/batches/{_url_quoted(job.id or '')}")
        open_ids = set(job.items)
        has_left_out = dict_or_empty(response.get("metadata")).get(_NOT_SENT_KEY) == NOT_SENT
        for kind in ("output_file_id", "error_file_id"):
            if file := text_or_none(response.get(kind)):
                content = await self._get(f"/files/{_url_quoted(file)}/content")
                results = self._parse_results(content, open_ids)
                open_ids -= results.keys()
                for request_id, completion in results.items():
                    yield (
                        request_id,
                        _recording_not_sent(completion) if has_left_out else completion,
                    )

    async def cancel(self, job: str) -> None:
        """Request the end of the job."""
        await self._post(f"/batches/{_url_quoted(job)}/cancel", {})

    async def close(self) -> None:
        """Close the connections."""
        await self._client.close()

    async def _job_page(self, after: str) -> JobPage:
        page = await self._get_json(f"/batches?limit={_PAGE_SIZE}" + (after and f"&after={after}"))
        jobs = dicts_of(page.get("data"))
        has_more = bool(jobs) and page.get("has_more") is True
        return JobPage(jobs, _url_quoted(self._id(jobs[-1])) if has_more else "")

    def _line(self, request: BatchRequest) -> bytes:
        body = self._format.build_request(self._served_name, request.messages, request.settings)
        if "reasoning" in body and not self._asks_for_summary:
            body = without_summary(body)
        line = {
            "custom_id": request.id,
            "method": "POST",
            "url": f"/v1{self._format.path}",
            "body": body,
        }
        return msgspec.json.encode(line) + b"\n"

    def _parse_results(self, content: bytes, ids: Collection[str]) -> dict[str, Completion]:
        """Return the results in a file by id, without unreadable lines and unknown ids."""
        results: dict[str, Completion] = {}
        for request_id, result in iter_result_lines(content):
            if request_id in ids:
                completion = sanitize_completion(self._completion(result), self._secrets)
                add_result(results, request_id, completion)
        return results

    def _completion(self, result: Mapping[str, object]) -> Completion:
        response = dict_or_empty(result.get("response"))
        status = response.get("status_code")
        if not response or type(status) is not int:
            return failed_completion(_failure_without_response(result.get("error")))
        completion = self._format.parse_completion(response.get("body"))
        if status == 200:
            return completion
        body = dict_or_empty(response.get("body"))
        code, message = openai_chat.error_code_and_message(response.get("body"))
        failure = failure_from_status(status, message, code=code)
        if refuses_summary(dict_or_empty(body.get("error"))):
            failure = self._without_summary_from_now_on(message)
        return failed_completion(failure, completion.usage, completion.cost)

    def _without_summary_from_now_on(self, message: str) -> Failure:
        """Return the failure of requests that are to be submitted again without a summary."""
        self._asks_for_summary = False
        return transient_failure(message)

    def _job_failure(self, job: Mapping[str, object]) -> Failure | None:
        """Return the first error of a job that failed as a whole."""
        errors = dicts_of(dict_or_empty(job.get("errors")).get("data"))
        if not errors:
            return None
        code, message = openai_chat.error_code_and_message(errors[0])
        if refuses_summary(errors[0]):
            return self._without_summary_from_now_on(message)
        if "token_limit_exceeded" in code:
            # Too many tokens are enqueued; the limit is free again when other jobs end.
            return Failure(kind="rate_limit", message=message or code)
        return failure_from_status(400, message or code, code=code)

    async def _get_json(self, path: str) -> Mapping[str, object]:
        return self._decode_object(await self._get(path))

    async def _get(self, path: str) -> bytes:
        return await self._call("get", path)

    async def _post(
        self,
        path: str,
        body: Mapping[str, object],
        files: Sequence[tuple[str, tuple[str, bytes, str]]] | None = None,
        headers: Mapping[str, str] | None = None,
    ) -> Mapping[str, object]:
        options = {"headers": headers} if headers else {}
        return self._decode_object(
            await self._call("post", path, body=body, files=files, options=options)
        )

    async def _call(self, method: str, path: str, **arguments: object) -> bytes:
        """Return the content of a response. Raises ProviderError if the request fails."""
        call = getattr(self._client, method)
        try:
            async with asyncio.timeout(DEFAULT_TIMEOUT_SECONDS):
                response: httpx.Response = await call(path, cast_to=httpx.Response, **arguments)
        except (TimeoutError, openai.APITimeoutError) as error:
            raise provider_error(timeout_failure(DEFAULT_TIMEOUT_SECONDS), self._secrets) from error
        except openai.APIError as error:
            raise provider_error(failure_from_api_error(error), self._secrets) from None
        return response.content

    def _decode_object(self, content: bytes) -> Mapping[str, object]:
        try:
            return dict_or_empty(decode_json(content))
        except InvalidJson as error:
            raise provider_error(transient_failure(str(error)), self._secrets) from None

    def _id(self, response: Mapping[str, object]) -> str:
        identity = text_or_none(response.get("id"))
        if identity and identity.isprintable():
            return identity
        raise provider_error(transient_failure("the server sent no id"), self._secrets)


def _failure_without_response(error: object) -> Failure:
    """Return the failure of a request in a job that has no response."""
    code, message = openai_chat.error_code_and_message(error)
    if code in _UNPROCESSED_CODES or not (code or message):
        return transient_failure(
            message or code or "the server sent neither a response nor an error"
        )
    return openai_chat.failure_from_error_body(error)


def _recording_not_sent(completion: Completion) -> Completion:
    """Return the result of a request without a summary with a note, if it is an answer."""
    if completion.error is not None:
        return completion
    return msgspec.structs.replace(completion, extra=completion.extra | {"not_sent": NOT_SENT})


def _url_quoted(identity: str) -> str:
    return quote(identity, safe="")
