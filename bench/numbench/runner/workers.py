"""Send the items of a run to a model: workers that wait for their turn, retries, early ends."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import Iterator
from contextlib import contextmanager
from dataclasses import dataclass, field
from typing import Any

from msgspec.structs import replace

from numbench.core.texts import Sentences
from numbench.errors import NumbenchError
from numbench.models.base import Model
from numbench.models.failures import transient_failure
from numbench.records import Completion, Failure, ItemSample
from numbench.runner.active_run import ActiveRun, Refusal, explain_refusal, make_response
from numbench.runner.estimates import has_unlimited_answers
from numbench.runner.retrying import Attempts, Health, retrying
from numbench.runner.throttle import RequestPacer, Throttle

_text = Sentences(__file__)

MAX_CONSECUTIVE_FAILURES = 10
"""Requests that may fail in a row, each after all its attempts, before a run gives up."""

MAX_REJECTED_REQUESTS = 120
"""Requests that may be rejected for their content or length before any other is answered.

A horizon measurement has twelve tasks, of which a model may answer one late.
"""

LONG_ANSWER_SECONDS = 120.0
"""Seconds after which an answer in flight is shown as one that may not end by itself."""

PROGRESS_INTERVAL_SECONDS = 1.0
"""Seconds between two progress reports while nothing changes."""

SHUTDOWN_GRACE_SECONDS = 0.5
"""Seconds that requests in flight get to finish once the disk refuses their answers."""


@dataclass(kw_only=True, eq=False)
class Workers(ActiveRun):
    """`concurrency` workers, each of which sends one item at a time until it is completed.

    A worker takes a request, waits until the cost limit covers it and the provider accepts one
    more, sends it, and again after a failure, stores the result, and counts it. A response is on
    disk before it is counted. Once the run stops, no worker waits for its turn any more, and what
    is in flight is waited for. pacer: the limit on requests per minute.
    """

    client: Model
    concurrency: int
    pacer: RequestPacer = field(default_factory=RequestPacer)

    def __post_init__(self) -> None:
        self._new = deque(self.requests)
        self._begun = 0
        self._has_new = asyncio.Event()
        self._waiting_tasks: set[asyncio.Task[Any]] = set()
        self._stop, self._stopped_by_user = asyncio.Event(), asyncio.Event()
        self._error: Exception | None = None
        self._throttle = Throttle(self.concurrency, self.policy.max_retry_after, self.pacer)
        self._sent_at: dict[str, float] = {}
        self._consecutive_failures = 0
        self._health = Health(was_reached=self.state.was_reached)
        self._retrying = retrying(self._health, self.policy, _now, self._pause)

    async def send_all(self) -> None:
        """Send all items, or until interrupted. Raises NumbenchError if none can be answered."""
        self._health.start = _now()
        async with asyncio.TaskGroup() as group:
            workers = [group.create_task(self._work()) for _ in range(self.concurrency)]
            heartbeat = group.create_task(self._report_periodically())
            try:
                await self._wait_for_end(asyncio.gather(*workers, return_exceptions=True))
            finally:
                for task in (heartbeat, *workers):
                    task.cancel()
        if isinstance(self._error, Refusal):
            has_answers = self.state.was_reached or self._health.last_answer is not None
            raise explain_refusal(self._error, self.prepared.description, has_answers)
        if self._error is not None:
            raise self._error
        if self.journal.is_full and self.source.open_count:
            raise NumbenchError(_text("full", path=self.journal.path))

    def stop(self) -> None:
        """Send nothing more, and wait a limited time for the requests in flight."""
        self._stopped_by_user.set()
        self._send_no_more()

    def progress_fields(self) -> dict[str, Any]:
        """Return what is in flight, and what is waited for."""
        in_flight, now, note = self._throttle.in_flight, _now(), ""
        seconds = self.pacer.seconds_until(now) if self._begun else 0.0
        if self._stop.is_set() and in_flight:
            note = _text("stopping")
        elif seconds >= PROGRESS_INTERVAL_SECONDS:
            note = _text("paced", seconds=seconds)
        elif waiting := [now - sent for sent in self._sent_at.values()]:
            count = sum(seconds >= LONG_ANSWER_SECONDS for seconds in waiting)
            if count and has_unlimited_answers(self.prepared):
                note = _text("pending", count=count, minutes=max(waiting) / 60)
        return {
            "in_flight": in_flight,
            "concurrency_limit": self._throttle.limit,
            "pause_seconds": 0.0 if self._stop.is_set() else self._throttle.pause_seconds(now),
            "note": note,
            "last_failure": self._health.last_failure,
        }

    async def _work(self) -> None:
        """Complete one request after another, until none is open."""
        while (requested := await self._take()) is not None:
            self._begun += 1
            try:
                with self._noting_errors():
                    await self._complete(Attempts(requested))
            finally:
                self._begun -= 1
                if self._new or not self._begun:
                    self._has_new.set()

    async def _take(self) -> ItemSample | None:
        """Return the next request, perhaps one that another's answer unlocks; None at the end."""
        while not self._new:
            if not self._begun:
                return None
            self._has_new.clear()
            with self._waiting():
                await self._has_new.wait()
        return None if self._stop.is_set() else self._new.popleft()

    async def _complete(self, attempts: Attempts) -> None:
        """Send a request until it is answered or has failed, and store the result.

        It stays open if the cost limit does not cover it.
        """
        requested = attempts.requested
        try:
            if await self._admit(requested):
                completion: Completion = await self._retrying.copy()(self._send, attempts)
                await self._finish(attempts, completion)
        except _NotCovered:
            return
        finally:
            try:
                await self._store_abandoned(attempts)
            finally:
                self.state.costs.release(requested.id)

    async def _admit(self, requested: ItemSample) -> bool:
        """Wait until the cost limit covers a request; return False if it never will."""
        with self._waiting():
            return await self.state.costs.admit(requested)

    async def _send(self, attempts: Attempts) -> Completion:
        """Return the result of one attempt, with its cost.

        Raises _NotCovered if the cost limit will never cover another attempt.
        """
        requested = attempts.requested
        if attempts.number and not self.state.costs.budget.covers_requests_in_flight:
            self.state.costs.release(requested.id)
            if not await self._admit(requested):
                raise _NotCovered
        completion: Completion | None = None
        with self._waiting():
            start = await self._throttle.acquire()
        try:
            self.journal.record_sent(requested)
            self._sent_at[requested.id] = start
            attempts.number += 1
            attempts.is_in_flight = True
            request = self.prepared.request(requested)
            completion = await self.client.answer(*request)
        finally:
            self._sent_at.pop(requested.id, None)
            self._throttle.end(completion, start, _now())
        attempts.is_in_flight = False
        if completion.latency is None:
            completion = replace(completion, latency=round(_now() - start, 6))
        completion = self.prepared.with_cost(completion)
        self._health.count(requested.id, completion.error, _now())
        if completion.error is not None:
            self._count_failure(attempts, completion, completion.error)
        return completion

    def _count_failure(self, attempts: Attempts, completion: Completion, error: Failure) -> None:
        """Count what a failed attempt has cost, or may have."""
        if completion.cost or error.possibly_billed:
            attempts.lost_responses += error.status is None
        if completion.cost is not None:
            attempts.failed_cost += completion.cost
            self.state.costs.add_cost(attempts.requested.task, completion.cost)
        elif error.possibly_billed:
            self._count_possibly_billed(attempts)
        else:
            self.journal.record_unbilled(attempts.requested)

    async def _pause(self, seconds: float) -> None:
        """Wait before a request is sent again."""
        self.stats.report.retries += 1
        self.report_progress()
        with self._waiting():
            await asyncio.sleep(seconds)

    async def _finish(self, attempts: Attempts, completion: Completion) -> None:
        """Store and count the result of a request. Raises NumbenchError if the run cannot go on."""
        requested, error = attempts.requested, completion.error
        if error is not None and (error.kind == "run" or self._health.is_out_of_reach(error)):
            raise Refusal(self.client.name, error)
        stored = await self.store(attempts, completion)
        if self.journal.is_full:
            self._send_no_more()
        unlocked = self.record(requested, stored)
        # A conversation is completed before another one begins.
        (self._new.extendleft if stored.is_continued else self._new.extend)(unlocked)
        self.report_progress()
        if error is None:
            self._consecutive_failures = 0
            return
        about = {"model": self.client.name, "reason": error.message}
        self._consecutive_failures += error.kind != "item"
        if self._consecutive_failures >= MAX_CONSECUTIVE_FAILURES:
            raise NumbenchError(_text("failing", count=MAX_CONSECUTIVE_FAILURES, **about))
        is_enough = self.stats.report.permanent_errors >= MAX_REJECTED_REQUESTS
        if is_enough and not self.stats.progress().overall.answered:
            raise NumbenchError(_text("rejected", count=self.stats.report.errors, **about))

    def _count_possibly_billed(self, attempts: Attempts) -> None:
        attempts.possibly_billed_attempts += 1
        self.state.costs.add_possibly_billed(attempts.requested.task)

    async def _store_abandoned(self, attempts: Attempts) -> None:
        """Store what a request without a result has cost, or may have."""
        if attempts.is_in_flight:
            self._count_possibly_billed(attempts)
        may_cost = attempts.possibly_billed_attempts or attempts.failed_cost
        if attempts.is_stored or not may_cost or self.journal.failed:
            return
        awaited = "the answer arrived" if attempts.is_in_flight else "the request was sent again"
        failure = transient_failure(f"the run ended before {awaited}", possibly_billed=True)
        response = make_response(attempts, Completion(error=failure))
        self.stats.count_cost(response)
        await self.journal.append(response)

    @contextmanager
    def _noting_errors(self) -> Iterator[None]:
        """Stop the run at an error, before any other request is sent; `send_all` raises it."""
        try:
            yield
        except BaseException as error:
            self._send_no_more()
            if not isinstance(error, Exception):
                raise
            self._error = self._error or error

    @contextmanager
    def _waiting(self) -> Iterator[None]:
        """Let the worker end here if the run has stopped, or stops meanwhile."""
        task = asyncio.current_task()
        if self._stop.is_set() or task is None:
            raise asyncio.CancelledError
        self._waiting_tasks.add(task)
        try:
            yield
        finally:
            self._waiting_tasks.discard(task)

    def _send_no_more(self) -> None:
        self._stop.set()
        for task in list(self._waiting_tasks):
            task.cancel()

    async def _wait_for_end(self, workers: asyncio.Future[Any]) -> None:
        """Wait for the workers, and for requests in flight, which may have been paid for."""
        stopped = asyncio.ensure_future(self._stop.wait())
        interrupted = asyncio.ensure_future(self._stopped_by_user.wait())

        async def wait(other: asyncio.Future[Any], seconds: float | None) -> None:
            await asyncio.wait(
                (workers, other), timeout=seconds, return_when=asyncio.FIRST_COMPLETED
            )

        try:
            await wait(stopped, self.time_limit)
            if not workers.done() and not stopped.done():
                self.reached_time_limit = True
                self._send_no_more()
            timeout = self.prepared.settings.timeout
            await wait(interrupted, SHUTDOWN_GRACE_SECONDS if self.journal.failed else timeout)
            await asyncio.wait((workers,), timeout=self.policy.interrupt_grace)
        finally:
            stopped.cancel()
            interrupted.cancel()

    async def _report_periodically(self) -> None:
        with self._noting_errors():
            while True:
                self.report_progress()
                await asyncio.sleep(PROGRESS_INTERVAL_SECONDS)


class _NotCovered(Exception):
    """The cost limit does not cover another attempt at a request."""


def _now() -> float:
    """Return the time of the event loop, in seconds."""
    return asyncio.get_running_loop().time()
