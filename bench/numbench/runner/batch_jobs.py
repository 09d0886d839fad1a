"""Send the items of a run in batch jobs: submit, poll, collect, and resubmit what failed."""

from __future__ import annotations

import asyncio
import time
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Mapping, Sequence
from dataclasses import dataclass
from functools import partial
from typing import TYPE_CHECKING, Any, TypeVar

from msgspec.structs import replace
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from numbench.core.texts import Sentences
from numbench.errors import NumbenchError
from numbench.journal.run_folder import JOBS, read_jobs, timestamp
from numbench.models.base import BatchRequest, BatchStatus
from numbench.models.failures import ProviderError, transient_failure
from numbench.records import Completion, Failure, ItemSample, Job, JobState, parse_request_id
from numbench.runner.active_run import ActiveRun
from numbench.runner.retrying import Attempts, is_retryable

if TYPE_CHECKING:
    from numbench.models.batch_client import BatchService

_T = TypeVar("_T")
_text = Sentences(__file__)

MAX_PROVIDER_RETRIES = 20
"""How often a provider may fail to report on a job before the run gives up."""

MAX_QUEUE_REFUSALS = 20
"""Jobs in a row for which the provider's queue may be full before the run gives up."""


@dataclass(kw_only=True, eq=False)
class BatchJobs(ActiveRun):
    """Sends the items of a run in batch jobs.

    A job is recorded before it is submitted, under its own key, so that it is found again
    after any crash. Every response is on disk before its job counts as collected. Jobs of earlier
    calls are read from the run folder.
    """

    client: BatchService

    def __post_init__(self) -> None:
        self._open = {requested.id: requested for requested in self.requests}
        self._jobs_with: Counter[str] = Counter()
        self._active_jobs: dict[str, Job] = {}
        self._status: dict[str, BatchStatus] = {}
        self._finished: dict[str, float] = {}
        self._submitting: set[str] = set()
        self._one_job_at_a_time = False
        self._queue_refusals = 0
        self._queue_note = ""
        self._max_requests_per_job = self.client.max_requests

    async def send_all(self) -> None:
        """Complete all items, or until interrupted. Raises NumbenchError if a provider refuses."""
        try:
            async with asyncio.timeout(self.time_limit) as limit:
                await self._complete_all()
        except TimeoutError:
            if not limit.expired():
                raise
            self.reached_time_limit = True
        finally:
            jobs = (job.items for job in self._active_jobs.values())
            self.state.costs.end(self._submitting.union(*jobs))

    def stop(self) -> None:
        """Stop waiting. The jobs continue at the provider."""
        if self._task is not None:
            self._task.cancel()

    async def _complete_all(self) -> None:
        self.report_progress()
        await self._resume_jobs()
        await self._submit_open()
        while self._active_jobs:
            await self._collect(*await self._wait_for_one())
            await self._wait_for_queue()
            await self._submit_open()

    async def _resume_jobs(self) -> None:
        """Resume the jobs of earlier calls, including those whose submission was cut off."""
        for job in read_jobs(self.journal.folder).values():
            if job.state in ("planned", "lost"):
                job_id = await self._find(job, job.state == "planned")
                if job_id is not None:
                    job = self._record(job, "submitted", job_id)
                elif job.state == "planned":
                    self._record(job, "lost")
            if job.state == "submitted":
                self._track(job)

    def _record(self, job: Job, state: JobState, job_id: str | None = None) -> Job:
        """Return a job in a new state, which is on disk."""
        self.journal.record(Job(key=job.key, state=state, id=job_id, at=timestamp()))
        return replace(job, state=state, id=job_id)

    async def _find(self, job: Job, may_appear: bool) -> str | None:
        """Return the id of a job whose submission was cut off, None if the provider has none.

        may_appear: the provider may still be processing the submission, so the job is looked up
        repeatedly.
        """
        end = time.monotonic() + self.policy.job_lookup_timeout
        while True:
            job_id = await self._with_retries(partial(self.client.find, job, self._recorded_ids()))
            if job_id is not None or not may_appear or time.monotonic() >= end:
                return job_id
            await asyncio.sleep(self.policy.poll_interval)

    async def _submit_open(self) -> None:
        """Submit every open request that is in no active job, as far as limits allow."""
        if self._one_job_at_a_time and self._active_jobs:
            return
        submitted = {request_id for job in self._active_jobs.values() for request_id in job.items}
        waiting = [r for request_id, r in self._open.items() if request_id not in submitted]
        affordable = [r for r in waiting if self.state.costs.try_admit(r)]
        if not affordable and not self._active_jobs:
            # What other runs have in flight may leave room for the rest.
            for requested in waiting:
                if await self.state.costs.admit(requested):
                    affordable = [r for r in waiting if self.state.costs.try_admit(r)]
                    break
        for requests in self._split_into_jobs(affordable):
            job = Job(
                key=uuid.uuid4().hex,
                state="planned",
                items=tuple(request.id for request in requests),
                at=timestamp(),
                max_tokens=self.prepared.retry_token_limit,
            )
            self.journal.record(job)
            self.state.uncollected[job.key] = set(job.items)
            job_id = await self._submit(requests, job)
            self._track(self._record(job, "submitted", job_id))
            self._submitting = set()
            if self._one_job_at_a_time:
                return

    async def _submit(self, requests: Sequence[BatchRequest], job: Job) -> str:
        """Submit a job and return its id. A failed submission may still have created the job."""
        is_retry = may_exist = False
        self._submitting = set(job.items)

        async def submit_once() -> str:
            nonlocal is_retry, may_exist
            existing = await self._find(job, may_exist) if is_retry else None
            is_retry = True
            try:
                return existing or await self.client.submit(requests, job.key)
            except ProviderError as error:
                may_exist |= error.failure.possibly_billed
                raise

        try:
            return await self._with_retries(submit_once, self.policy.max_attempts)
        except NumbenchError:
            if not may_exist:
                self._submitting = set()
            raise

    def _recorded_ids(self) -> set[str]:
        return {job.id for job in read_jobs(self.journal.folder).values() if job.id}

    def _track(self, job: Job) -> None:
        self._active_jobs[job.key] = job
        self._jobs_with.update(job.items)
        for request_id in self.state.uncollected[job.key]:
            if (requested := self._requested(request_id)) is not None:
                self.state.costs.reserve(requested)
        self.report_progress()

    def _requested(self, request_id: str) -> ItemSample | None:
        """Return an open request, or one that only an earlier call of the run has submitted."""
        item_id, sample = parse_request_id(request_id)
        item = self.prepared.dataset.by_id.get(item_id)
        return self._open.get(request_id) or (ItemSample(item, sample) if item else None)

    async def _wait_for_one(self) -> tuple[Job, dict[str, Completion]]:
        """Return the first active job that has finished, with its results."""
        pause = self.policy.poll_interval
        while True:
            for job in list(self._active_jobs.values()):
                status = await self._with_retries(partial(self.client.status, str(job.id)))
                self._status[job.key] = status
                self.report_progress()
                if status.is_finished:
                    results = await self._with_retries(partial(self._results, job))
                    if not self._awaits_results(job, results):
                        return job, results
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, self.policy.max_poll_interval)

    def _awaits_results(self, job: Job, results: Mapping[str, Completion]) -> bool:
        """Return whether a finished job may get the rest of its results, which some add later."""
        status, policy = self._status[job.key], self.policy
        expected = len(job.items) if status.answers is None else min(status.done, len(job.items))
        waited = time.monotonic() - self._finished.setdefault(job.key, time.monotonic())
        lacks_answers = self._lacks_answers(job, results)
        patience = policy.outage_timeout if lacks_answers else policy.job_lookup_timeout
        return status.error is None and len(results) < expected and waited < patience

    def _lacks_answers(self, job: Job, results: Mapping[str, Completion]) -> bool:
        """Return whether results lack answers that the provider counts, and so may bill."""
        status, found = self._status[job.key], sum(not each.error for each in results.values())
        if status.error is not None or status.answers is None:
            return False
        return len(results) < status.done and found < status.answers

    async def _collect(self, job: Job, results: Mapping[str, Completion]) -> None:
        """Store the results of a finished job, also of requests that this call does not make."""
        error = self._status[job.key].error
        if results:
            self._queue_refusals = 0
        if not results and error is not None and error.kind == "rate_limit":
            self._reduce_load(job, error)
        elif not results and error is not None and error.kind != "transient":
            self._close(job)
            raise NumbenchError(_text("failed", job=job.id, reason=error.message))
        may_be_billed = self._lacks_answers(job, results)
        for request_id in job.items:
            if request_id in self.state.uncollected[job.key]:
                await self._complete(request_id, results.get(request_id), job, may_be_billed)
        self._close(job)

    def _reduce_load(self, job: Job, error: Failure) -> None:
        """Submit one job at a time, then smaller ones: the provider's queue limit was exceeded.

        Raises NumbenchError if the queue stays full, perhaps of other jobs of the account.
        """
        self._queue_refusals += 1
        if self._queue_refusals > MAX_QUEUE_REFUSALS:
            self._close(job)
            raise NumbenchError(_text("stays_full", reason=error.message))
        if self._one_job_at_a_time or len(self._active_jobs) == 1:
            self._max_requests_per_job = max(1, len(job.items) // 2)
        self._one_job_at_a_time = True
        self._jobs_with.subtract(job.items)

    async def _wait_for_queue(self) -> None:
        """Wait longer each time that the provider's queue was full."""
        if self._queue_refusals and not self._active_jobs:
            pause = self.policy.poll_interval * 2 ** (self._queue_refusals - 1)
            pause = min(pause, 10 * self.policy.max_poll_interval)
            self._queue_note = _text("full", seconds=pause)
            self.report_progress()
            await asyncio.sleep(pause)
            self._queue_note = ""

    async def _results(self, job: Job) -> dict[str, Completion]:
        return {request_id: completion async for request_id, completion in self.client.results(job)}

    def _close(self, job: Job) -> None:
        self._record(job, "collected", job.id)
        del self._active_jobs[job.key]
        for request_id in job.items:
            self.state.costs.release(request_id)

    async def _complete(
        self, request_id: str, result: Completion | None, job: Job, may_be_billed: bool
    ) -> None:
        """Store the result of a request, unless it is to be submitted again and was free.

        may_be_billed: whether a request without a result may have been billed.
        """
        is_open, requested = request_id in self._open, self._requested(request_id)
        if requested is None or (result is None and not (is_open or may_be_billed)):
            return
        attempts = Attempts(requested, number=self._jobs_with[request_id])
        if result is None:
            message = "the batch job ended without a result for this question"
            result = Completion(error=transient_failure(message, may_be_billed))
        completion = self.prepared.with_cost(result, is_batch=True)
        error = result.error
        if error and error.possibly_billed and error.status is None and completion.cost is None:
            # Neither a result of the server's errors, which are free, nor one of known cost.
            attempts.possibly_billed_attempts = 1
            self.state.costs.add_possibly_billed(requested.task)
        is_last = attempts.number >= self.policy.max_batch_attempts
        is_repeated = is_open and is_retryable(result.error) and not is_last
        self.stats.report.retries += is_repeated
        if is_repeated and completion.cost is None and not attempts.possibly_billed_attempts:
            return
        response = await self.store(attempts, completion, job)
        if is_open and not is_repeated:
            del self._open[request_id]
            self.record(requested, response)
        else:
            self.stats.count_cost(response)
        self.report_progress()

    def _split_into_jobs(self, unsent: Iterable[ItemSample]) -> Iterator[list[BatchRequest]]:
        """Yield the requests in lists that respect the provider's limits per job."""
        requests: list[BatchRequest] = []
        total_bytes = 0
        for requested in unsent:
            request = BatchRequest(requested.id, *self.prepared.request(requested))
            request_bytes = self.client.size(request)
            is_full = len(requests) == self._max_requests_per_job
            if requests and (is_full or total_bytes + request_bytes > self.client.max_bytes):
                yield requests
                requests, total_bytes = [], 0
            requests.append(request)
            total_bytes += request_bytes
        if requests:
            yield requests

    async def _with_retries(
        self, call: Callable[[], Awaitable[_T]], max_attempts: int = MAX_PROVIDER_RETRIES
    ) -> _T:
        """Return the result of `call`, retried after temporary errors of the provider."""
        retrying = AsyncRetrying(
            stop=stop_after_attempt(max_attempts),
            wait=wait_random_exponential(
                multiplier=self.policy.backoff, max=self.policy.max_backoff
            ),
            retry=retry_if_exception(
                lambda error: isinstance(error, ProviderError) and is_retryable(error.failure)
            ),
            reraise=True,
        )
        try:
            return await retrying(call)
        except ProviderError as error:
            raise NumbenchError(self._with_way_out(error)) from error

    def _with_way_out(self, error: ProviderError) -> str:
        """Return the message of an error, and what to do about it."""
        status = error.failure.status
        if self._active_jobs:
            name = "other_key" if status == 404 else "continues"
            return _text(name, error=error, jobs=self.journal.folder / JOBS)
        return _text("no_batch_api", error=error) if status in (404, 405, 501) else str(error)

    def progress_fields(self) -> dict[str, Any]:
        """Return the state of the active jobs, as the provider counts."""
        if not self._active_jobs:
            return {"note": self._queue_note}
        known = [self._status[key] for key in self._active_jobs if key in self._status]
        requests = sum(len(job.items) for job in self._active_jobs.values())
        done = sum(status.done for status in known)
        states = ", ".join(sorted({status.state for status in known})) or "submitted"
        count = len(self._active_jobs)
        jobs = f"{count} batch job{'s' if count > 1 else ''}"
        return {"note": _text("state", jobs=jobs, states=states, done=done, requests=requests)}
