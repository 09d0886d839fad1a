"""Driving items through batch jobs: submit, wait, collect, submit again what failed."""

from __future__ import annotations

import asyncio
import math
import uuid
from collections import Counter
from collections.abc import Awaitable, Callable, Iterable, Iterator, Sequence
from datetime import UTC, datetime
from functools import partial
from typing import TypeVar

from msgspec.structs import replace
from tenacity import AsyncRetrying, retry_if_exception, stop_after_attempt, wait_random_exponential

from bench.errors import NumbenchError
from bench.journal import JOBS, Journal, read_jobs
from bench.models.base import BatchRequest, BatchService, BatchStatus, Request
from bench.models.failures import ProviderFault, transient
from bench.records import Completion, Item, Job, Response
from bench.runner.budget import Budget
from bench.runner.drive import Pace
from bench.runner.progress import Progress, Watch
from bench.runner.tally import Tally

_T = TypeVar("_T")

_PATIENCE = 20
"""Times that a provider may fail to say where a job stands before the run ends."""


class BatchDrive:
    """One pass over the items of a run by batch jobs.

    A job is noted before it is submitted, under a key of ours, so that it is found again whatever
    happens in between; every answer is on disk before the job counts as collected.
    """

    def __init__(
        self,
        service: BatchService,
        items: Iterable[Item],
        ask: Callable[[Item], Request],
        journal: Journal,
        pace: Pace,
        watch: Watch,
        bill: Callable[[Completion], Completion],
        budget: Budget | None,
        tally: Tally,
    ) -> None:
        """As for `Drive`. Jobs of earlier calls are taken from the journal's folder."""
        self.out_of_time = False
        self.tally = tally
        self.retries = 0
        self._service, self._ask, self._journal = service, ask, journal
        self._pace, self._watch, self._bill, self._budget = pace, watch, bill, budget
        self._open = {item.id: item for item in items}
        self._attempts: Counter[str] = Counter()
        self._under_way: dict[str, Job] = {}
        self._status: dict[str, BatchStatus] = {}
        self._stop = asyncio.Event()
        self._crowded = False
        self._largest = service.most_requests

    async def run(self) -> None:
        """Answer all items, or go on until interrupted. NumbenchError where a provider refuses."""
        work = asyncio.create_task(self._work())
        stopped = asyncio.create_task(self._stop.wait())
        try:
            await asyncio.wait(
                (work, stopped),
                timeout=self._pace.time_limit,
                return_when=asyncio.FIRST_COMPLETED,
            )
            self.out_of_time = not work.done() and not self._stop.is_set()
        finally:
            stopped.cancel()
            if not work.done():
                work.cancel()
            await asyncio.gather(work, stopped, return_exceptions=True)
        if not work.cancelled():
            work.result()

    def interrupt(self) -> None:
        """Stop waiting. The jobs go on at the provider."""
        self._stop.set()

    @property
    def now(self) -> Progress:
        """Where the run stands."""
        return self.tally.now(retries=self.retries, note=self._note())

    async def _work(self) -> None:
        self._tell()
        await self._take_up()
        await self._submit_open()
        while self._under_way:
            ended = await self._wait_for_one()
            await self._collect(ended)
            await self._submit_open()

    async def _take_up(self) -> None:
        """Go on with the jobs of earlier calls, also those that were never heard of again."""
        for job in read_jobs(self._journal.folder).values():
            if job.state in ("planned", "lost"):
                identity = await self._find(job)
                if identity is None:
                    if job.state == "planned":
                        self._journal.note_job(Job(key=job.key, state="lost", at=_now()))
                    continue
                job = self._submitted(job, identity)
            if job.state == "submitted":
                self._watch_over(job)

    async def _find(self, job: Job) -> str | None:
        """The id of a job that was to be submitted, None where it never was.

        The provider may still be at it when we were cut off: a young job is waited for.
        """
        pause = self._pace.first_poll
        while True:
            identity = await self._patiently(partial(self._service.find, job.key))
            if identity is not None or job.state == "lost" or _age(job) > self._pace.settling:
                return identity
            await asyncio.sleep(pause)

    async def _submit_open(self) -> None:
        """Submit every open item that no job asks yet and for which there is room."""
        if self._crowded and self._under_way:
            return
        taken = {identity for job in self._under_way.values() for identity in job.items}
        waiting = [item for identity, item in self._open.items() if identity not in taken]
        affordable = [item for item in waiting if self._budget is None or self._fits(item)]
        if self._budget is not None and not affordable and waiting and not self._under_way:
            self._budget.exhausted = True
        for requests in self._jobs(affordable):
            ids = tuple(request.id for request in requests)
            job = Job(key=uuid.uuid4().hex, state="planned", items=ids, at=_now())
            self._journal.note_job(job)
            self._watch_over(self._submitted(job, await self._submit(requests, job.key)))
            if self._crowded:
                return

    def _fits(self, item: Item) -> bool:
        return self._budget is not None and self._budget.try_admit(item)

    async def _submit(self, requests: Sequence[BatchRequest], key: str) -> str:
        """The id of a new job. After a failure it may exist all the same."""

        async def once() -> str:
            found = None if first else await self._service.find(key)
            first.clear()
            return found or await self._service.submit(requests, key)

        first = [True]
        return await self._patiently(once, self._pace.max_attempts)

    def _submitted(self, job: Job, identity: str) -> Job:
        self._journal.note_job(Job(key=job.key, state="submitted", id=identity, at=_now()))
        return replace(job, state="submitted", id=identity)

    def _watch_over(self, job: Job) -> None:
        self._under_way[job.key] = job
        for identity in job.items:
            self._attempts[identity] += 1
            if self._budget is not None and identity in self._open:
                self._budget.reserve(self._open[identity])
        self._tell()

    async def _wait_for_one(self) -> Job:
        """The first job that has ended."""
        pause = self._pace.first_poll
        while True:
            for job in list(self._under_way.values()):
                status = await self._patiently(partial(self._service.status, _id(job)))
                self._status[job.key] = status
                self._tell()
                if status.ended:
                    return job
            await asyncio.sleep(pause)
            pause = min(1.5 * pause, self._pace.longest_poll)

    async def _collect(self, job: Job) -> None:
        """Put every result of an ended job on disk."""
        results = await self._patiently(partial(self._results, job))
        error = self._status[job.key].error
        if not results and error is not None and error.kind == "rate_limit":
            self._make_room(job)
        elif not results and error is not None and error.kind != "transient":
            self._close(job)
            raise NumbenchError(f"the batch job {_id(job)} failed: {error.message}")
        for identity in job.items:
            if identity in self._open:
                await self._settle(identity, results.get(identity), job)
        self._close(job)

    def _make_room(self, job: Job) -> None:
        """The provider took on too much at once: from now on one job at a time, or smaller ones."""
        if self._crowded or len(self._under_way) == 1:
            self._largest = max(1, len(job.items) // 2)
        self._crowded = True
        self._attempts.subtract(job.items)

    async def _results(self, job: Job) -> dict[str, Completion]:
        return {key: value async for key, value in self._service.results(_id(job), job.items)}

    def _close(self, job: Job) -> None:
        self._journal.note_job(Job(key=job.key, state="collected", id=job.id, at=_now()))
        del self._under_way[job.key]
        if self._budget is not None:
            for identity in job.items:
                self._budget.release(identity)

    async def _settle(self, identity: str, result: Completion | None, job: Job) -> None:
        """Journal what came of an item, unless it is to be asked once more."""
        if result is None:
            result = Completion(error=transient("the batch job ended without a result for it"))
        passing = result.error is not None and result.error.kind in ("transient", "rate_limit")
        if passing and self._attempts[identity] < self._pace.batch_attempts:
            self.retries += 1
            return
        item = self._open[identity]
        completion = self._bill(result)
        fields = {name: getattr(completion, name) for name in Completion.__struct_fields__}
        fields["extra"] = completion.extra | {"batch_job": _id(job)}
        attempts = self._attempts[identity]
        await self._journal.append(
            Response(item_id=identity, attempts=attempts, at=_now(), **fields)
        )
        del self._open[identity]
        if self._budget is not None:
            self._budget.count(item, completion)
        self.tally.count(item, completion)
        self._tell()

    def _jobs(self, items: Iterable[Item]) -> Iterator[list[BatchRequest]]:
        """The requests of `items`, cut where the provider's limits for one job are reached."""
        requests: list[BatchRequest] = []
        size = 0
        for item in items:
            request = BatchRequest(item.id, *self._ask(item))
            bytes_ = self._service.size(request)
            full = len(requests) == self._largest
            if requests and (full or size + bytes_ > self._service.most_bytes):
                yield requests
                requests, size = [], 0
            requests.append(request)
            size += bytes_
        if requests:
            yield requests

    async def _patiently(self, call: Callable[[], Awaitable[_T]], most: int = _PATIENCE) -> _T:
        """What `call` gives, repeated where the provider's fault may pass."""
        retrying = AsyncRetrying(
            stop=stop_after_attempt(most),
            wait=wait_random_exponential(
                multiplier=self._pace.backoff, max=self._pace.longest_backoff
            ),
            retry=retry_if_exception(_may_pass),
            reraise=True,
        )
        try:
            return await retrying(call)
        except ProviderFault as fault:
            raise NumbenchError(f"{fault}{self._what_now(fault)}") from fault

    def _what_now(self, fault: ProviderFault) -> str:
        if not self._under_way:
            return ""
        if fault.failure.status == 404:
            return (
                "; only the key that submitted a job can collect it. To give its answers up, "
                f"remove its lines from {self._journal.folder / JOBS}"
            )
        return "; the jobs go on at the provider, and the same command collects them"

    def _note(self) -> str:
        """The jobs under way, in the provider's own counts."""
        if not self._under_way:
            return ""
        known = [self._status[key] for key in self._under_way if key in self._status]
        asked = sum(len(job.items) for job in self._under_way.values())
        done = sum((status.done or 0) + (status.failed or 0) for status in known)
        states = ", ".join(sorted({status.state for status in known})) or "submitted"
        count = len(self._under_way)
        return (
            f"{count} batch job{'s' if count > 1 else ''} at the provider ({states}): "
            f"{done:,} of {asked:,} done there"
        )

    def _tell(self) -> None:
        self._watch(self.now)


def _may_pass(error: BaseException) -> bool:
    return isinstance(error, ProviderFault) and error.failure.kind in ("transient", "rate_limit")


def _age(job: Job) -> float:
    """Seconds since the last word of a job."""
    if job.at is None:
        return math.inf
    return (datetime.now(UTC) - datetime.fromisoformat(job.at)).total_seconds()


def _id(job: Job) -> str:
    if job.id is None:
        raise AssertionError("a job that is under way has an id")
    return job.id


def _now() -> str:
    return datetime.now(UTC).isoformat(timespec="milliseconds")
