"""Anthropic's Message Batches API: a list of requests as input, a file of results as output."""

from __future__ import annotations

from collections.abc import AsyncIterator, Awaitable, Collection, Mapping, Sequence
from datetime import UTC, datetime, timedelta
from urllib.parse import quote

import httpx
import msgspec

from numbench.models import anthropic_messages
from numbench.models.aiohttp_transport import MAX_BATCH_RESPONSE_BYTES
from numbench.models.anthropic_api import create_client, failure_from_response, version_header
from numbench.models.base import NO_HEADERS, BatchRequest, BatchStatus, RequestSettings
from numbench.models.batch_jobs import JobPage, add_result, iter_result_lines, list_jobs
from numbench.models.credentials import known_secrets
from numbench.models.http_exchange import receive_content, receive_object
from numbench.models.json_fields import (
    dict_or_empty,
    dicts_of,
    text_or_none,
    text_or_repr,
    token_count,
)
from numbench.models.provider_errors import (
    failed_completion,
    provider_error,
    sanitize_completion,
    sanitize_line,
    transient_failure,
)
from numbench.records import Completion, Failure, Job

_PATH = "messages/batches"
_PAGE_SIZE = 100
_FAILED_COUNTS = ("errored", "canceled", "expired")
_MAX_CUSTOM_ID_LENGTH = 64
_CLOCK_TOLERANCE = timedelta(hours=1)
"""How much earlier than planned a job may have started, by the provider's clock."""

_NO_SETTINGS = RequestSettings()


class AnthropicBatchService:
    """Batch jobs for one Claude model.

    A job at Anthropic has no name: its key is part of the ids of its requests, which only the
    results show.
    """

    max_requests = 100_000
    max_bytes = 250_000_000

    def __init__(
        self,
        served_name: str,
        *,
        key: str | None,
        base_url: str | None,
        headers: Mapping[str, str] = NO_HEADERS,
    ) -> None:
        """Connect to Anthropic's server, or to `base_url`, which implements the same API."""
        self._served_name = served_name
        self._secrets = known_secrets(key, base_url, headers.values())
        self._http = create_client(key, base_url, MAX_BATCH_RESPONSE_BYTES, headers)

    def size(self, request: BatchRequest) -> int:
        """Return an upper bound for the bytes of the request."""
        return len(msgspec.json.encode(self._entry(request, "x" * _MAX_CUSTOM_ID_LENGTH))) + 1

    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job and return its id.

        Raises ProviderError if it was not started, or may not have been.
        """
        entries = [
            self._entry(request, _custom_id(key, position))
            for position, request in enumerate(requests)
        ]
        settings = requests[0].settings if requests else _NO_SETTINGS
        job = await self._object(
            self._http.post(
                _PATH,
                content=msgspec.json.encode({"requests": entries}),
                headers={"content-type": "application/json", **version_header(settings)},
            )
        )
        return self._id(job)

    async def find(self, job: Job, other_ids: Collection[str] = ()) -> str | None:
        """Return the id of the newest job with the key of `job`.

        A job that has not ended does not show its key. If it is the only one of its size since
        `job` was planned, `other_ids` aside, it counts as found; `results` yields nothing if it is
        another.
        Raises ProviderError if there are several.
        """
        unfinished: list[str] = []
        async for listed in list_jobs(self._job_page):
            if _is_older(listed, job):
                break
            identity = self._id(listed)
            if identity in other_ids or _total(listed) != len(job.items):
                continue
            if listed.get("processing_status") != "ended":
                unfinished.append(identity)
            elif [
                result async for result in self.results(msgspec.structs.replace(job, id=identity))
            ]:
                return identity
        if len(unfinished) > 1:
            message = (
                "the submission of a job was cut off, and each of these may be it: "
                f"{', '.join(unfinished)}; run the same command again when they have ended"
            )
            raise provider_error(Failure(kind="run", message=message), self._secrets)
        return unfinished[0] if unfinished else None

    async def status(self, job: str) -> BatchStatus:
        """Return the state of the job, without counts until it has ended."""
        response = await self._get(_job_path(job))
        state = sanitize_line(text_or_repr(response.get("processing_status")), self._secrets)
        counts = dict_or_empty(response.get("request_counts"))
        is_finished = state == "ended"
        failed = [token_count(counts.get(name)) for name in _FAILED_COUNTS]
        return BatchStatus(
            is_finished=is_finished,
            succeeded=token_count(counts.get("succeeded")) if is_finished else None,
            failed=sum(count or 0 for count in failed) if is_finished else None,
            total=_total(response),
            state=state,
        )

    async def results(self, job: Job) -> AsyncIterator[tuple[str, Completion]]:
        """Yield the results of a job that has ended, also of one that was canceled."""
        response = self._http.get(f"{_job_path(job.id or '')}/results", headers=_headers())
        content = await receive_content(response, failure_from_response, self._secrets)
        request_ids = {_custom_id(job.key, n): each for n, each in enumerate(job.items)}
        results: dict[str, Completion] = {}
        for custom_id, line in iter_result_lines(content):
            if request_id := request_ids.get(custom_id):
                completion = sanitize_completion(_completion(line), self._secrets)
                add_result(results, request_id, completion)
        for request_id, completion in results.items():
            yield request_id, completion

    async def cancel(self, job: str) -> None:
        """Request the end of the job."""
        await self._object(self._http.post(f"{_job_path(job)}/cancel", headers=_headers()))

    async def close(self) -> None:
        """Close the connections."""
        await self._http.aclose()

    async def _job_page(self, after: str) -> JobPage:
        query = f"?limit={_PAGE_SIZE}" + (after and f"&after_id={after}")
        page = await self._get(_PATH + query)
        jobs = dicts_of(page.get("data"))
        has_more = bool(jobs) and page.get("has_more") is True
        return JobPage(jobs, quote(self._id(jobs[-1]), safe="") if has_more else "")

    async def _get(self, path: str) -> Mapping[str, object]:
        return await self._object(self._http.get(path, headers=_headers()))

    async def _object(self, sending: Awaitable[httpx.Response]) -> Mapping[str, object]:
        return await receive_object(sending, failure_from_response, self._secrets)

    def _entry(self, request: BatchRequest, custom_id: str) -> dict[str, object]:
        body = anthropic_messages.build_request(
            self._served_name, request.messages, request.settings
        )
        return {"custom_id": custom_id, "params": body}

    def _id(self, response: Mapping[str, object]) -> str:
        identity = text_or_none(response.get("id"))
        if identity and identity.isprintable():
            return identity
        raise provider_error(transient_failure("the server sent no id"), self._secrets)


def _completion(line: Mapping[str, object]) -> Completion:
    """Return the completion in a line of results; requests without an answer are not billed."""
    result = dict_or_empty(line.get("result"))
    match text_or_repr(result.get("type")):
        case "succeeded":
            return anthropic_messages.parse_completion(result.get("message"))
        case "errored":
            error = dict_or_empty(result.get("error"))
            failure = anthropic_messages.failure_from_error(error.get("error") or error)
            return failed_completion(msgspec.structs.replace(failure, possibly_billed=False))
        case "canceled" | "expired" as ending:
            return failed_completion(transient_failure(f"the request {_ENDINGS[ending]}"))
    return failed_completion(transient_failure("the server sent neither a response nor an error"))


_ENDINGS = {"canceled": "was canceled", "expired": "expired before it was processed"}


def _is_older(listed: Mapping[str, object], job: Job) -> bool:
    """Return whether a job was created before `job` was planned."""
    try:
        created = datetime.fromisoformat(text_or_repr(listed.get("created_at")))
        planned = datetime.fromisoformat(job.at or "")
    except ValueError:
        return False
    created, planned = (t if t.tzinfo else t.replace(tzinfo=UTC) for t in (created, planned))
    return created < planned - _CLOCK_TOLERANCE


def _total(job: Mapping[str, object]) -> int | None:
    """Return the number of requests of a job."""
    counts = dict_or_empty(job.get("request_counts")).values()
    known = [count for value in counts if (count := token_count(value)) is not None]
    return sum(known) if known else None


def _custom_id(key: str, position: int) -> str:
    return f"{key}-{position}"


def _headers() -> dict[str, str]:
    return version_header(_NO_SETTINGS)


def _job_path(job: str) -> str:
    return f"{_PATH}/{quote(job, safe='')}"
