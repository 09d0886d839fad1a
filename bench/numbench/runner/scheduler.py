"""Send the items of a run to a model: concurrency, retries, and early ends."""

from __future__ import annotations

import asyncio
import time
from collections import deque
from collections.abc import Awaitable
from contextlib import suppress
from typing import Any

from msgspec.structs import replace
from tenacity import AsyncRetrying, RetryCallState, retry_if_result, wait_random_exponential

from numbench.errors import NumbenchError
from numbench.models.base import Model, Request
from numbench.models.provider_errors import connection_error
from numbench.records import Completion, Failure, ItemSample
from numbench.runner.attempts import Attempts
from numbench.runner.live import format_duration
from numbench.runner.progress import RunProgress
from numbench.runner.refusal import Refusal
from numbench.runner.run_context import RunContext, is_retryable, make_response
from numbench.runner.throttle import Throttle

MAX_CONSECUTIVE_FAILURES = 10
"""Items that may fail in a row, each after all its attempts, before a run gives up."""

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
"""Seconds that requests in flight get to finish once the run has failed."""


class _Stopped(Exception):
    """The run is ending: no further attempt is made."""


class RequestScheduler:
    """Sends the items of a run one request each. A response is on disk before it is counted."""

    def __init__(self, model: Model, context: RunContext) -> None:
        self.stats = context.stats
        self.retries = 0
        self.reached_time_limit = False
        self._model, self._context = model, context
        self._policy, self._budget = context.policy, context.budget
        self._requests = context.requests
        self._queue: deque[ItemSample] = deque()
        self._active = 0
        self._changed = asyncio.Event()
        self._in_progress: dict[str, tuple[ItemSample, Attempts]] = {}
        self._stop, self._interrupted = asyncio.Event(), asyncio.Event()
        self._throttle = Throttle(
            self._policy.concurrency, self._policy.max_retry_after, context.pacer
        )
        self._consecutive_failures = 0
        self._last_answer: float | None = None
        # A server that has replied, to this call or an earlier one, is only out of reach.
        self._was_reached = not context.journal.is_empty
        self._has_answers = self._was_reached
        self._disconnected: tuple[str, float] | None = None
        self._start = time.monotonic()
        self._failing: set[str] = set()
        self._last_failure = ""
        self._backoff = wait_random_exponential(
            multiplier=self._policy.backoff, max=self._policy.max_backoff
        )

    async def run(self) -> None:
        """Send all items, or until interrupted. Raises NumbenchError if none can be answered."""
        self._queue.extend(self._requests.start())
        self._report_progress()
        workers = [asyncio.create_task(self._work()) for _ in range(self._policy.concurrency)]
        all_workers: asyncio.Future[list[None]] = asyncio.gather(*workers)
        # Marks an exception as retrieved.
        all_workers.add_done_callback(lambda done: done.cancelled() or done.exception())
        heartbeat = asyncio.create_task(self._report_periodically())
        try:
            await _wait_for_first((all_workers, self._stop.wait()), self._policy.time_limit)
            self.reached_time_limit = not all_workers.done() and not self._stop.is_set()
            self._stop.set()
            self._wake()
            self._throttle.release()
            await self._drain(workers, all_workers)
        finally:
            for task in (heartbeat, *workers):
                task.cancel()
            await asyncio.gather(heartbeat, *workers, return_exceptions=True)
            error = _failure(all_workers)
            # A provider that refuses everything bills nothing for what it was still sent.
            is_refused = isinstance(error, Refusal) and self._last_answer is None
            await self._record_abandoned(not is_refused)
        if error is not None:
            raise error
        if self._context.journal.is_full:
            raise NumbenchError(f"{self._context.journal.path}: No space left on device: make room")

    def interrupt(self) -> None:
        """Send nothing more, and wait a limited time for the requests in flight."""
        self._stop.set()
        self._interrupted.set()
        self._wake()

    @property
    def progress(self) -> RunProgress:
        """The progress of the run."""
        in_flight = self._throttle.in_flight
        ending = self._stop.is_set() and in_flight
        note = "stopping: waiting for requests in flight" if ending else ""
        # A request in flight may have found the server again.
        if not note and self._disconnected and not in_flight:
            reason, since = self._disconnected
            note = f"waiting: {reason} ({format_duration(time.monotonic() - since)})"
        if not note and (seconds := self._throttle.pacer_seconds) >= PROGRESS_INTERVAL_SECONDS:
            note = f"next request in {seconds:.0f} s (--rpm)"
        return self.stats.progress(
            retries=self.retries,
            in_flight=in_flight,
            concurrency_limit=self._throttle.limit,
            max_concurrency=self._policy.concurrency,
            pause_seconds=self._throttle.pause_seconds,
            note=note,
            last_failure=self._last_failure,
        )

    async def _drain(
        self, workers: list[asyncio.Task[None]], all_workers: asyncio.Future[list[None]]
    ) -> None:
        """Wait for the requests in flight: they may have been paid for."""
        if not workers or all(worker.done() for worker in workers):
            return
        journal = self._context.journal
        has_failed = all_workers.done()
        if has_failed and (self._last_answer is None or journal.failed):
            await asyncio.wait(workers, timeout=SHUTDOWN_GRACE_SECONDS)
            return
        if has_failed or self.reached_time_limit or journal.is_full:
            rest = asyncio.gather(*workers, return_exceptions=True)
            await _wait_for_first((rest, self._interrupted.wait()), self._policy.timeout)
        await asyncio.wait(workers, timeout=self._policy.interrupt_grace)

    async def _record_abandoned(self, bills_requests_in_flight: bool) -> None:
        """Store what requests may have cost that the end of the run cut off."""
        for requested, attempts in self._in_progress.values():
            completion = attempts.abandoned(bills_requests_in_flight)
            if completion and not self._context.journal.failed:
                self.stats.count_abandoned(completion)
                await self._context.journal.append(
                    make_response(requested, completion, attempts.number)
                )

    async def _work(self) -> None:
        """Send requests until there are none left or the run stops."""
        while (requested := await self._next()) is not None:
            try:
                if self._budget and not await self._budget.admit(requested):
                    return
                if self._stop.is_set():
                    return
                await self._complete(requested)
            except _Stopped:
                return
            except Exception:
                # Before another worker takes its next item.
                self._stop.set()
                raise
            finally:
                if self._budget:
                    self._budget.release(requested.id)
                self._active -= 1
                self._wake()
            if self._stop.is_set():
                return

    async def _next(self) -> ItemSample | None:
        """Return the next request, maybe one that an answer unlocks; None if there will be none."""
        while not self._stop.is_set():
            if self._queue:
                self._active += 1
                return self._queue.popleft()
            if not (self._active and self._requests.needs_answers):
                return None
            await self._changed.wait()
        return None

    def _wake(self) -> None:
        """Let workers look again whether there are requests left."""
        self._changed.set()
        self._changed = asyncio.Event()

    async def _complete(self, requested: ItemSample) -> None:
        """Request a sample until it is answered or has failed, and store the result."""
        attempts = Attempts(requested, self._budget)
        self._in_progress[requested.id] = requested, attempts
        completion = await self._request(requested, attempts)
        error = completion.error
        if error is not None and (error.kind == "run" or self._is_out_of_reach(error)):
            raise Refusal(self._model.name, error, had_answers=self._has_answers)
        notes = self._context.notes_on_retry(requested, None)
        response = make_response(requested, completion, attempts.number, **notes)
        await self._context.journal.append(response)
        if self._context.journal.is_full:
            self._stop.set()
        del self._in_progress[requested.id]
        if self._budget:
            self._budget.count(requested, completion, paid=attempts.failed_cost)
        self._count(requested, completion)
        if completion.error is not None and self._consecutive_failures >= MAX_CONSECUTIVE_FAILURES:
            raise NumbenchError(
                f"{self._model.name}: {MAX_CONSECUTIVE_FAILURES} items in a row failed, the last "
                f"with: {completion.error.message}"
            )
        if completion.error is not None and self._is_rejecting_everything:
            raise NumbenchError(
                f"{self._model.name}: all of the first {self.stats.errors} items were rejected, "
                f"the last with: {completion.error.message}; {self._requests.rejection_hint}"
            )

    @property
    def _is_rejecting_everything(self) -> bool:
        """Whether many items were permanently rejected, and none was answered in any call."""
        is_enough = self.stats.permanent_errors >= self._requests.max_rejections
        is_over = self._requests.needs_answers and not self._requests.open_count
        return (is_enough or is_over) and not self.stats.progress().overall.answered

    async def _request(self, requested: ItemSample, attempts: Attempts) -> Completion:
        """Return the completion of a request."""
        request = self._context.build_request(requested)

        async def attempt() -> Completion:
            completion = self._context.with_cost(await self._attempt(requested, request, attempts))
            if not attempts.record(completion):
                self._context.journal.record_not_billed(requested)
            self._note_connection(completion)
            if completion.error is None:
                self._failing.clear()
                self._last_failure = ""
            else:
                self._failing.add(requested.id)
                status = f"HTTP {completion.error.status}: " if completion.error.status else ""
                self._last_failure = f"{status}{completion.error.message}"
            return completion

        retrying = AsyncRetrying(
            sleep=self._sleep,
            stop=lambda state: attempts.has_lost_too_many or self._should_stop_retrying(state),
            wait=self._wait_seconds,
            retry=retry_if_result(lambda completion: is_retryable(completion.error)),
            retry_error_callback=_last_completion,
            before_sleep=self._count_retry,
        )
        completion: Completion = await retrying(attempt)
        return attempts.final(completion)

    def _note_connection(self, completion: Completion) -> None:
        """Record whether the server could be reached, and since when it could not."""
        reason = connection_error(completion.error) if completion.error else None
        if reason is None:
            self._was_reached, self._disconnected = True, None
        elif self._disconnected is None:
            server = reason.rpartition(": ")[0] or reason
            self._disconnected = server, time.monotonic()

    def _is_out_of_reach(self, error: Failure) -> bool:
        """Return whether there is no connection to a server that has never replied to the run."""
        return not self._was_reached and connection_error(error) is not None

    async def _attempt(
        self,
        requested: ItemSample,
        request: Request,
        attempts: Attempts,
    ) -> Completion:
        async with self._throttle.slot() as slot:
            if self._stop.is_set():
                raise _Stopped
            self._context.journal.record_sent(requested)
            start = time.monotonic()
            attempts.start()
            completion = await self._model.answer(request.messages, request.settings)
            self._throttle.record(completion, slot)
        if completion.latency is None:
            completion = replace(completion, latency=round(time.monotonic() - start, 6))
        return completion

    def _should_stop_retrying(self, state: RetryCallState) -> bool:
        """Return whether an item has had enough attempts.

        Without an answer to any item for less than `outage_timeout`, the attempts are not limited
        while the item is not the cause: several items fail although some were answered before, or
        the provider limits the rate from the start.
        """
        if self._budget and not self._budget.covers_requests_in_flight:
            return True
        error, max_attempts = _last_completion(state).error, self._policy.max_attempts
        if error is not None and self._is_out_of_reach(error):
            return state.attempt_number >= min(FIRST_CONNECTION_ATTEMPTS, max_attempts)
        is_limited = error is not None and (
            error.kind == "rate_limit" or (error.status in OVERLOADED and self._last_answer is None)
        )
        if is_limited:
            max_attempts *= RATE_LIMIT_ATTEMPTS_FACTOR
        if state.attempt_number < max_attempts:
            return False
        if self._last_answer is None:
            is_outage, since_answer = is_limited, time.monotonic() - self._start
        else:
            is_outage = len(self._failing) >= OUTAGE_THRESHOLD
            since_answer = time.monotonic() - self._last_answer
        return not is_outage or since_answer >= self._policy.outage_timeout

    def _wait_seconds(self, state: RetryCallState) -> float:
        """Return the wait that the provider asks for, else an exponential one with jitter."""
        error = _last_completion(state).error
        if error is not None and error.retry_after is not None:
            return min(error.retry_after, self._policy.max_retry_after)
        return self._backoff(state)

    async def _sleep(self, seconds: float) -> None:
        """Wait before the next attempt, which is not made once the run stops."""
        with suppress(TimeoutError):
            await asyncio.wait_for(self._stop.wait(), seconds)

    def _count_retry(self, state: RetryCallState) -> None:
        self.retries += 1
        self._report_progress()

    def _count(self, requested: ItemSample, completion: Completion) -> None:
        if completion.error is None:
            self._consecutive_failures = 0
            self._last_answer = time.monotonic()
            self._has_answers = True
        else:
            self._consecutive_failures += completion.error.kind != "item"
        self._queue.extend(self._requests.record(requested, completion))
        self._wake()
        self._context.served.count(completion)
        self.stats.count(requested.item, completion)
        self._report_progress()

    async def _report_periodically(self) -> None:
        while True:
            await asyncio.sleep(PROGRESS_INTERVAL_SECONDS)
            self._report_progress()

    def _report_progress(self) -> None:
        self._context.on_progress(self.progress)


def _failure(work: asyncio.Future[list[None]]) -> BaseException | None:
    """Return the error that ended the work, None if it was cancelled or has none."""
    error = work.exception() if work.done() and not work.cancelled() else None
    # If one worker is cancelled, so that the work ends, that is the exception of the whole.
    return None if isinstance(error, asyncio.CancelledError) else error


async def _wait_for_first(
    awaitables: tuple[Awaitable[Any], Awaitable[Any]], timeout_seconds: float | None
) -> None:
    """Return when the first of `awaitables` is done, or after `timeout_seconds`."""
    futures = [asyncio.ensure_future(awaitable) for awaitable in awaitables]
    try:
        await asyncio.wait(futures, timeout=timeout_seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future, awaitable in zip(futures, awaitables, strict=True):
            if future is not awaitable:
                future.cancel()


def _last_completion(state: RetryCallState) -> Completion:
    if state.outcome is None:
        raise AssertionError("tenacity calls back only after an attempt")
    completion: Completion = state.outcome.result()
    return completion
