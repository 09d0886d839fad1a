"""Send the items of a run to a model: concurrency, retries, and early ends."""

from __future__ import annotations

import asyncio
import heapq
import random
from collections import deque
from dataclasses import dataclass
from typing import Any

from msgspec.structs import replace

from numbench.errors import NumbenchError
from numbench.models.base import Model
from numbench.models.failures import connection_error
from numbench.records import POSSIBLY_BILLED, Completion, Failure, ItemSample
from numbench.runner.refusal import Refusal
from numbench.runner.scheduling import Scheduler, is_retryable, make_response
from numbench.runner.throttle import Throttle

MAX_CONSECUTIVE_FAILURES = 10
"""Items that may fail in a row, each after all its attempts, before a run gives up."""

MAX_REJECTIONS = 120
"""Items that may be rejected for their content or length before any other is answered.

A horizon measurement has twelve tasks, of which a model may answer one late.
"""

MAX_LOST_RESPONSES = 3
"""How often a request is sent whose response does not arrive: each of them may be billed."""

OUTAGE_THRESHOLD = 3
"""Number of items that fail, with no answer in between, from which an outage is assumed."""

FIRST_CONNECTION_ATTEMPTS = 3
"""Attempts to connect to a server that has not replied to any request of the run."""

RATE_LIMIT_ATTEMPTS_FACTOR = 4
"""How many times more attempts a rate-limited item gets: the provider is up and will answer."""

OVERLOADED = (503, 529)
"""HTTP statuses of an overload, which is waited for like a rate limit until the first answer."""

PROGRESS_INTERVAL_SECONDS = 1.0
"""Seconds between two progress reports while nothing changes."""

SHUTDOWN_GRACE_SECONDS = 0.5
"""Seconds that requests in flight get to finish once the disk refuses their answers."""


@dataclass
class _Attempts:
    """The attempts at one request.

    number: attempts so far. failed_cost: US dollars that failed attempts cost. possibly_billed:
    failed attempts of unknown cost that the provider may have processed, such as timeouts.
    lost_responses: those of them without any response.
    """

    requested: ItemSample
    number: int = 0
    failed_cost: float = 0.0
    possibly_billed: int = 0
    lost_responses: int = 0
    is_in_flight: bool = False

    def final(self, completion: Completion) -> Completion:
        """Return the last completion with what all attempts cost and may have cost."""
        cost, extra = completion.cost, dict(completion.extra)
        if completion.error is not None:
            cost = self.failed_cost or cost
        elif self.failed_cost:
            cost = None if cost is None else cost + self.failed_cost
            extra["cost_of_failed_attempts"] = self.failed_cost
        if self.possibly_billed:
            extra[POSSIBLY_BILLED] = self.possibly_billed
        return replace(completion, cost=cost, extra=extra)


@dataclass(kw_only=True, eq=False)
class RequestScheduler(Scheduler):
    """Sends the items of a run one request each. A response is on disk before it is counted.

    An item is begun when there is room for it, and then sent again until it is answered or has
    failed. At most `concurrency` items are begun, and requests in flight, at any time.
    """

    client: Model

    def __post_init__(self) -> None:
        self._new = deque(self.requests)
        self._begun: dict[str, _Attempts] = {}
        self._due: list[tuple[float, str, _Attempts]] = []
        self._attempt_tasks: set[asyncio.Task[None]] = set()
        self._timer: asyncio.TimerHandle | None = None
        self._stop, self._stopped_by_user = asyncio.Event(), asyncio.Event()
        self._error: Exception | None = None
        self._throttle = Throttle(self.policy.concurrency, self.policy.max_retry_after, self.pacer)
        self._consecutive_failures = 0
        self._start = 0.0
        self._last_answer: float | None = None
        # A server that has replied, to this call or an earlier one, is only out of reach.
        self._was_reached = self._has_answers = not self.journal.is_empty
        self._failing: set[str] = set()
        self._last_failure = ""

    async def send_all(self) -> None:
        """Send all items, or until interrupted. Raises NumbenchError if none can be answered."""
        self._start = _now()
        heartbeat = asyncio.create_task(self._report_periodically())
        self.costs.budget.on_release.append(self._send)
        try:
            self._send()
            try:
                await asyncio.wait_for(self._stop.wait(), self.policy.time_limit)
            except TimeoutError:
                self.reached_time_limit = True
                self._stop.set()
            await self._drain()
        finally:
            self._stop.set()
            if self._timer:
                self._timer.cancel()
            self.costs.budget.on_release.remove(self._send)
            unfinished = [heartbeat, *self._attempt_tasks]
            for task in unfinished:
                task.cancel()
            await asyncio.gather(*unfinished, return_exceptions=True)
            try:
                await self._store_abandoned()
            finally:
                for request_id in self._begun:
                    self.costs.release(request_id)
        if isinstance(self._error, Refusal):
            self._error.had_answers = self._has_answers
        if self._error is not None:
            raise self._error
        if self.journal.is_full:
            raise NumbenchError(f"{self.journal.path}: No space left on device: make room")

    def stop(self) -> None:
        """Send nothing more, and wait a limited time for the requests in flight."""
        self._stop.set()
        self._stopped_by_user.set()

    def progress_fields(self) -> dict[str, Any]:
        """Return what is in flight, and what is waited for."""
        in_flight, now, note = self._throttle.in_flight, _now(), ""
        seconds = self._throttle.pacer_seconds(now) if self._new or self._due else 0.0
        if self._stop.is_set() and in_flight:
            note = "stopping: waiting for requests in flight"
        elif seconds >= PROGRESS_INTERVAL_SECONDS:
            note = f"next request in {seconds:.0f} s (--rpm)"
        return {
            "in_flight": in_flight,
            "concurrency_limit": self._throttle.limit,
            "pause_seconds": 0.0 if self._stop.is_set() else self._throttle.pause_seconds(now),
            "note": note,
            "last_failure": self._last_failure,
        }

    def _send(self) -> None:
        """Send every request that may be sent now, and come back when the next one may be."""
        if self._timer:
            self._timer.cancel()
        while not self._stop.is_set():
            if not self._begun and not self._new:
                self._stop.set()
                return
            if self._throttle.is_full:
                return
            now = _now()
            wait = max(self._throttle.pause_seconds(now), self._throttle.pacer_seconds(now))
            attempts = None if wait else self._next(now)
            if attempts is None:
                wait = max(wait, self._due[0][0] - now) if self._due else wait
                if wait:
                    self._timer = asyncio.get_running_loop().call_later(wait, self._send)
                return
            self._throttle.start(now)
            task = asyncio.create_task(self._attempt(attempts, now))
            self._attempt_tasks.add(task)
            task.add_done_callback(self._attempt_tasks.discard)

    def _next(self, now: float) -> _Attempts | None:
        """Return the next request to send; None if all have to wait.

        A new item goes first, so that `concurrency` items are begun while the provider fails.
        """
        while self._new and len(self._begun) < self.policy.concurrency:
            requested = self._new[0]
            if self.costs.admit(requested):
                self._begun[requested.id] = _Attempts(self._new.popleft())
                return self._begun[requested.id]
            if not self.costs.is_closed(requested.task):
                break
            self._new.popleft()
        if not self._begun and not self._new:
            self._stop.set()
        is_due = self._due and self._due[0][0] <= now
        return heapq.heappop(self._due)[2] if is_due else None

    async def _attempt(self, attempts: _Attempts, start: float) -> None:
        """Send a request once; then store its result, or let it be sent again later."""
        try:
            completion = await self._answer(attempts, start)
            error = completion.error if completion else None
            if completion is None:
                return
            if error is None or not self._is_repeated(attempts, completion, error):
                await self._finish(attempts, attempts.final(completion))
            elif not self._stop.is_set():
                self.stats.report.retries += 1
                due = _now() + self._wait_seconds(attempts, error)
                heapq.heappush(self._due, (due, attempts.requested.id, attempts))
                self.report_progress()
        except BaseException as error:
            # Before any other request is sent.
            self._stop.set()
            if not isinstance(error, Exception):
                raise
            self._error = self._error or error
        finally:
            self._send()

    async def _answer(self, attempts: _Attempts, start: float) -> Completion | None:
        """Return the result of one attempt, with its cost; None if the run has just stopped."""
        requested = attempts.requested
        completion: Completion | None = None
        try:
            if self._stop.is_set():
                return None
            self.journal.record_sent(requested)
            attempts.number += 1
            attempts.is_in_flight = True
            completion = await self.client.answer(
                *self.resolved.request(requested, self.policy.timeout)
            )
        finally:
            self._throttle.end(completion, start, _now())
            self._send()
        attempts.is_in_flight = False
        if completion.latency is None:
            completion = replace(completion, latency=round(_now() - start, 6))
        completion = self.resolved.with_cost(completion)
        error = completion.error
        self._was_reached |= error is None or connection_error(error) is None
        if error is None:
            self._failing.clear()
            self._last_failure = ""
            return completion
        self._failing.add(requested.id)
        self._last_failure = error.text
        if completion.cost is not None:
            attempts.failed_cost += completion.cost
            self.costs.add_cost(requested.task, completion.cost)
        elif error.possibly_billed:
            attempts.lost_responses += error.status is None
            self._count_possibly_billed(attempts)
        else:
            self.journal.record_sent(requested, -1)
        return completion

    async def _finish(self, attempts: _Attempts, completion: Completion) -> None:
        """Store the result of a request. Raises NumbenchError if the run cannot go on."""
        requested, error = attempts.requested, completion.error
        if error is not None and (error.kind == "run" or self._is_out_of_reach(error)):
            raise Refusal(self.client.name, error)
        await self.store(requested, completion, attempts.number, attempts.failed_cost)
        if self.journal.is_full:
            self._stop.set()
        del self._begun[requested.id]
        try:
            self._new.extend(self.count(requested, completion))
        finally:
            # Only now, because no item that is begun and none that is new would end the run.
            self.costs.release(requested.id)
        self.report_progress()
        if error is None:
            self._consecutive_failures = 0
            self._last_answer = _now()
            self._has_answers = True
            return
        self._consecutive_failures += error.kind != "item"
        if self._consecutive_failures >= MAX_CONSECUTIVE_FAILURES:
            raise NumbenchError(
                f"{self.client.name}: {MAX_CONSECUTIVE_FAILURES} items in a row failed, the last "
                f"with: {error.message}"
            )
        is_enough = self.stats.report.permanent_errors >= MAX_REJECTIONS
        if is_enough and not self.stats.progress().overall.answered:
            raise NumbenchError(
                f"{self.client.name}: all of the first {self.stats.report.errors} items were "
                f"rejected, the last with: {error.message}; to send them again, choose another "
                "--out, or add --retry error to numbench run"
            )

    def _is_repeated(self, attempts: _Attempts, completion: Completion, error: Failure) -> bool:
        """Return whether a failed request is sent again.

        One whose attempt cost nothing is still covered by what is reserved for it.

        Without an answer to any item for less than `outage_timeout`, the attempts are not limited
        while the item is not the cause: several items fail although some were answered before, or
        the provider limits the rate from the start.
        """
        if not is_retryable(error) or attempts.lost_responses >= MAX_LOST_RESPONSES:
            return False
        is_billed = error.possibly_billed or completion.cost is not None
        if is_billed and not self.costs.budget.covers_requests_in_flight:
            return False
        max_attempts = self.policy.max_attempts
        if self._is_out_of_reach(error):
            return attempts.number < min(FIRST_CONNECTION_ATTEMPTS, max_attempts)
        is_limited = error.kind == "rate_limit" or (
            error.status in OVERLOADED and self._last_answer is None
        )
        if is_limited:
            max_attempts *= RATE_LIMIT_ATTEMPTS_FACTOR
        if attempts.number < max_attempts:
            return True
        if self._last_answer is None:
            is_outage, since_answer = is_limited, _now() - self._start
        else:
            is_outage = len(self._failing) >= OUTAGE_THRESHOLD
            since_answer = _now() - self._last_answer
        return is_outage and since_answer < self.policy.outage_timeout

    def _wait_seconds(self, attempts: _Attempts, error: Failure) -> float:
        """Return the wait that the provider asks for, else an exponential one with jitter."""
        if error.retry_after is not None:
            return min(error.retry_after, self.policy.max_retry_after)
        # Beyond 2**32 the bound is `max_backoff` for any scale.
        longest = self.policy.backoff * 2 ** min(attempts.number - 1, 32)
        return random.uniform(0.0, min(longest, self.policy.max_backoff))

    def _is_out_of_reach(self, error: Failure) -> bool:
        """Return whether there is no connection to a server that has never replied to the run."""
        return not self._was_reached and connection_error(error) is not None

    def _count_possibly_billed(self, attempts: _Attempts) -> None:
        attempts.possibly_billed += 1
        self.costs.add_possibly_billed(attempts.requested.task)

    async def _drain(self) -> None:
        """Wait for the requests in flight: they may have been paid for."""
        journal, has_failed = self.journal, self._error is not None
        ended = asyncio.gather(*self._attempt_tasks, return_exceptions=True)
        if journal.failed:
            await asyncio.wait((ended,), timeout=SHUTDOWN_GRACE_SECONDS)
            return
        if has_failed or self.reached_time_limit or journal.is_full:
            interrupted = asyncio.ensure_future(self._stopped_by_user.wait())
            await asyncio.wait(
                (ended, interrupted),
                timeout=self.policy.timeout,
                return_when=asyncio.FIRST_COMPLETED,
            )
            interrupted.cancel()
        await asyncio.wait((ended,), timeout=self.policy.interrupt_grace)

    async def _store_abandoned(self) -> None:
        """Store what requests may have cost that the end of the run cut off."""
        failure = Failure(
            kind="transient",
            message="the run ended before the answer arrived",
            possibly_billed=True,
        )
        for attempts in self._begun.values():
            if attempts.is_in_flight:
                self._count_possibly_billed(attempts)
            may_cost = attempts.possibly_billed or attempts.failed_cost
            if may_cost and not self.journal.failed:
                completion = attempts.final(Completion(error=failure))
                self.stats.count_abandoned(completion)
                response = make_response(attempts.requested, completion, attempts.number)
                await self.journal.append(response)

    async def _report_periodically(self) -> None:
        while True:
            self.report_progress()
            await asyncio.sleep(PROGRESS_INTERVAL_SECONDS)


def _now() -> float:
    """Return the time of the event loop, in seconds."""
    return asyncio.get_running_loop().time()
