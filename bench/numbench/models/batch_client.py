"""What the batch APIs share: requests about jobs, their lists and states, and their results."""

from __future__ import annotations

import json
import re
from abc import ABC, abstractmethod
from collections.abc import (
    AsyncIterator,
    Collection,
    Iterable,
    Iterator,
    Mapping,
    Sequence,
)
from pathlib import Path
from urllib.parse import quote

import msgspec
from msgspec import Struct

from numbench.core.installation import read_toml
from numbench.models import failures
from numbench.models.base import BatchRequest, BatchStatus
from numbench.models.failures import ProviderError
from numbench.models.hosted_model import HostedServer
from numbench.models.http_client import MAX_BATCH_RESPONSE_BYTES
from numbench.models.json_fields import (
    InvalidJson,
    JsonObject,
    decode_json,
    decoded,
    object_at,
    objects_at,
    text_at,
    text_or_repr,
    tokens_at,
    value_at,
)
from numbench.records import Completion, Failure, Job

_STATE_PREFIX = re.compile("(BATCH|JOB)_STATE_")
_OVERHEAD_BYTES = 500
"""An upper bound for the bytes of a request in a job beyond its body and its names."""

Entries = Iterable[tuple[str, JsonObject]]
"""Results with the ids of their requests."""


class JobsApi(Struct, frozen=True, forbid_unknown_fields=True):
    """Where an API keeps what about jobs: paths of URLs, and names of fields (`a.b`: nested).

    path: of the list of jobs; it precedes the id of a job, unless the id is a path itself. query:
    of a page of the list; after: its parameter for the next one. jobs: the field with the jobs of a
    page. id_field, key_field, state: of a job; created: its time, empty if the newest job is listed
    first; final: the states of jobs that have ended, first with success. results_fields: of where
    the results are, first those of answers. counts: of requests; done: of those that ended, first
    with an answer.
    """

    state: str
    final: tuple[str, ...]
    results_fields: tuple[str, ...]
    done: tuple[str, ...]
    path: str = "batches"
    query: str = "limit=100"
    after: str = "after"
    jobs: str = "data"
    id_field: str = "id"
    key_field: str = "metadata.numbench"
    created: str = ""
    counts: str = "request_counts"


JOBS_APIS = msgspec.convert(
    read_toml(Path(__file__).with_name("batch_apis.toml")), dict[str, JobsApi]
)
"""The APIs by name, from `batch_apis.toml`."""


class BatchService(HostedServer, ABC):
    """A provider's batch API: jobs of many requests, answered within a day at a lower price.

    Methods that contact the provider do so once and raise `failures.ProviderError` if that
    fails. One job takes at most `max_requests` requests, whose sizes sum to at most `max_bytes`.
    api: where it keeps what about jobs.
    """

    max_response_bytes = MAX_BATCH_RESPONSE_BYTES
    max_requests: int
    max_bytes: int
    api: JobsApi

    @abstractmethod
    async def submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """Start a job that `find` can find by `key`. Returns its id."""

    async def find(self, job: Job, other_ids: Collection[str] = ()) -> str | None:
        """Return the id of the newest job that was submitted with the key of `job`.

        `job` is planned or lost: the provider may not have received it. `other_ids` are those of
        the other jobs of its run, for providers that do not show the key of every job.
        """
        found: dict[str, str] = {}
        async for each in self._jobs():
            if value_at(each, self.api.key_field) == job.key:
                found[text_or_repr(value_at(each, self.api.created))] = self._id(each)
                if not self.api.created:
                    break
        return found[max(found)] if found else None

    @abstractmethod
    def _pages_of_results(self, job: Job) -> AsyncIterator[Entries]:
        """Yield the results in each file of a job."""

    @abstractmethod
    def _completion(self, result: JsonObject) -> Completion:
        """Return the completion in a result."""

    def size(self, request: BatchRequest) -> int:
        """Return an upper bound for the bytes of the request in a job."""
        names = len(request.id) + len(self._target.served_name)
        return len(json.dumps(self._request_body(request))) + names + _OVERHEAD_BYTES

    async def results(self, job: Job) -> AsyncIterator[tuple[str, Completion]]:
        """Yield the results by the id of their request, in any order; failures are values.

        Each id is yielded at most once: of several results the first with an answer counts. One
        that is not yielded is still open, also if the job has failed, expired or was cancelled.
        """
        open_ids = set(job.items)
        async for entries in self._pages_of_results(job):
            results: dict[str, Completion] = {}
            for request_id, result in entries:
                known = results.get(request_id)
                if request_id in open_ids and (known is None or known.error):
                    try:
                        completion = self._completion(result)
                    except Exception as problem:  # noqa: BLE001
                        # The other results are paid for.
                        unread = failures.unreadable_failure(problem)
                        completion = failures.failed_completion(unread)
                    results[request_id] = failures.sanitize_completion(completion, self._secrets)
            open_ids -= results.keys()
            for each in results.items():
                yield each

    async def status(self, job: str) -> BatchStatus:
        """Return the state of the job."""
        response = await self._object(self._job_path(job))
        state = _STATE_PREFIX.sub("", text_or_repr(value_at(response, self.api.state)), count=1)
        state = failures.sanitize_line(state, self._secrets)
        counts = self._counts(response)
        failure = self._job_failure(response)
        return BatchStatus(
            is_finished=state in self.api.final or response.get("done") is True,
            done=sum(counts.get(name, 0) for name in self.api.done),
            state=state,
            answers=counts.get(self.api.done[0], 0) if any(counts.values()) else None,
            error=failure and failures.sanitize_failure(failure, self._secrets),
        )

    def _request_body(self, request: BatchRequest) -> dict[str, object]:
        """Return the body that a single request would have."""
        return self._body(request.messages, request.settings)

    def _job_failure(self, job: JsonObject) -> Failure | None:
        """Return why a job failed as a whole, None if it did not."""
        return None

    def _counts(self, job: JsonObject) -> dict[str, int]:
        """Return the known counts of requests."""
        numbers = object_at(job, self.api.counts)
        return {name: n for name in numbers if (n := tokens_at(numbers[name])) is not None}

    def _job_path(self, job: str) -> str:
        is_path = job.startswith(f"{self.api.path}/")
        return quote(job) if is_path else f"{self.api.path}/{quote(job, safe='')}"

    async def _jobs(self) -> AsyncIterator[JsonObject]:
        """Yield the jobs of all pages. Raises ProviderError if the server repeats a page."""
        token, seen = "", set[str]()
        while token not in seen:
            seen.add(token)
            after = token and f"&{self.api.after}={quote(token, safe='')}"
            page = await self._object(f"{self.api.path}?{self.api.query}{after}")
            jobs = objects_at(page, self.api.jobs)
            for job in jobs:
                yield job
            token = text_at(page, "nextPageToken") or ""
            if jobs and page.get("has_more") is True:
                token = self._id(jobs[-1])
            if not token:
                return
        raise self._error("the server lists the same jobs again")

    async def _object(self, path: str, body: JsonObject | None = None) -> JsonObject:
        """Return the JSON object in a successful response. Raises ProviderError without one."""
        return self._json_object(await self._content(path, body))

    def _json_object(self, content: bytes) -> JsonObject:
        try:
            return object_at(decode_json(content))
        except InvalidJson as error:
            raise self._error(str(error)) from None

    async def _content(self, path: str, body: JsonObject | None = None) -> bytes:
        sample = next(iter(objects_at(body, "requests")), {})
        headers = self._headers(object_at(sample, "params"))
        content = None if body is None else msgspec.json.encode(body)
        return await self._send("GET" if body is None else "POST", path, headers, content)

    def _url(self, path: str) -> str:
        return f"{self._format.root(self._base_url)}/{path}"

    async def _upload(self, path: str, file: tuple[str, bytes, str], **fields: str) -> JsonObject:
        """Return the JSON object in the response to a form with a file: its name, content, type."""
        import httpx2

        form = httpx2.Request("POST", self._url(path), data=fields, files={"file": file})
        headers = self._headers({}) | {"Content-Type": form.headers["content-type"]}
        return self._json_object(await self._send("POST", path, headers, form.read()))

    async def _send(
        self, method: str, path: str, headers: Mapping[str, str], body: bytes | None = None
    ) -> bytes:
        try:
            reply = await self._http.request(method, self._url(path), headers, body)
        except ProviderError as error:
            raise failures.provider_error(error.failure, self._secrets) from None
        failure = reply.cut
        if not reply.is_success:
            failure = failures.failure_from_reply(reply.status, reply.headers, reply.content)
        if failure is None:
            return reply.content
        raise failures.provider_error(failure, self._secrets)

    def _id(self, response: JsonObject) -> str:
        identity = text_at(response, self.api.id_field)
        if identity and identity.isprintable():
            return identity
        raise self._error("the server sent no id of a job")

    def _error(self, message: str) -> ProviderError:
        """Return the error for a reply that may be another one the next time.

        What it replies to may have been done: a job may exist.
        """
        return failures.provider_error(failures.unreadable_failure(message), self._secrets)

    def _result_lines(self, content: bytes) -> Iterator[tuple[str, JsonObject]]:
        """Yield the `custom_id` and the content of each line of a file of results.

        Unreadable lines are left out. Raises ProviderError if that leaves nothing: such a page is
        no file of results.
        """
        is_readable = not content.strip()
        for line in content.split(b"\n"):
            if (result := decoded(line)) is not None:
                is_readable = True
                yield text_or_repr(value_at(result, "custom_id")), object_at(result)
        if not is_readable:
            raise self._error("the server sent no results")
