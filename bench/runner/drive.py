"""Driving items through a model: workers, retries, and what ends a run early."""

from __future__ import annotations

import asyncio
import time
from collections.abc import Awaitable, Callable, Iterable
from dataclasses import dataclass
from datetime import UTC, datetime
from typing import Any

from msgspec.structs import replace
from tenacity import (
    AsyncRetrying,
    RetryCallState,
    retry_if_result,
    wait_random_exponential,
)

from bench.errors import NumbenchError
from bench.journal import Journal
from bench.models.base import TIMEOUT, Model, Request
from bench.records import Completion, Failure, Item, Response
from bench.runner.budget import Budget
from bench.runner.flow import Throttle
from bench.runner.progress import Progress, Watch
from bench.runner.tally import Tally

_HOPELESS = 10
"""Items lost in a row, each after all its attempts, at which a run gives up."""

_SEVERAL = 3
"""Items that fail, with none answered in between, from which on the provider is held to be out."""

_RATE_LIMITED = 4
"""Times as many attempts for who is told to come back later: the provider is there."""

_BEAT = 1.0
"""Seconds after which `watch` hears of the run even where nothing changes."""

_LAST_WORDS = 0.5
"""Seconds in which requests under way may still end once the run is lost."""


@dataclass(frozen=True)
class Pace:
    """How hard a provider is asked, and how patiently. Times in seconds.

    backoff, longest_backoff: scale and bound of the waits where the provider names none.
    patience: the longest wait that a Retry-After may impose.
    grace: how long requests under way may take to end after an interrupt.
    outage: how long everybody may fail before the run gives up, once there were answers.
    timeout: how long one request may take. time_limit: when nothing new is asked any more.
    settling: how long a batch job that was being submitted may take to show at the provider.
    first_poll, longest_poll: waits between questions after a batch job. batch_attempts: jobs that
    may ask for an item.
    """

    concurrency: int = 16
    max_attempts: int = 6
    backoff: float = 1.0
    longest_backoff: float = 60.0
    patience: float = 3600.0
    grace: float = 20.0
    outage: float = 600.0
    timeout: float = TIMEOUT
    time_limit: float | None = None
    settling: float = 60.0
    first_poll: float = 5.0
    longest_poll: float = 60.0
    batch_attempts: int = 3


class _Stopped(Exception):
    """The run ends; a wait for the next attempt is pointless."""


class Drive:
    """One pass over the items of a run. Every answer is on disk before it counts."""

    def __init__(
        self,
        model: Model,
        items: Iterable[Item],
        ask: Callable[[Item], Request],
        journal: Journal,
        pace: Pace,
        watch: Watch,
        bill: Callable[[Completion], Completion] = lambda completion: completion,
        budget: Budget | None = None,
        tally: Tally | None = None,
    ) -> None:
        """`ask` phrases the request of an item; `watch` hears of every change.

        `bill` adds the cost to a completion as far as it is known; `budget` limits it. `tally`
        counts a run of which `items` are the rest.
        """
        pending = list(items)
        self.tally = tally or Tally(pending)
        self.total = len(pending)
        self.retries = 0
        self.out_of_time = False
        self._stop, self._hurry = asyncio.Event(), asyncio.Event()
        self._model, self._ask, self._journal, self._bill = model, ask, journal, bill
        self._items = iter(pending)
        self._pace, self._watch, self._budget = pace, watch, budget
        self._throttle = Throttle(pace.concurrency, pace.patience)
        self._lost_in_a_row = 0
        self._last_answer: float | None = None
        self._failing: set[str] = set()
        self._backoff = wait_random_exponential(multiplier=pace.backoff, max=pace.longest_backoff)

    async def run(self) -> None:
        """Ask all items, or until interrupted. NumbenchError where no item can be answered."""
        self._tell()
        count = min(self._pace.concurrency, self.total)
        workers = [asyncio.create_task(self._work()) for _ in range(count)]
        together: asyncio.Future[list[None]] = asyncio.gather(*workers)
        together.add_done_callback(lambda done: done.cancelled() or done.exception())
        beat = asyncio.create_task(self._beat())
        try:
            await _first((together, self._stop.wait()), self._pace.time_limit)
            self.out_of_time = not together.done() and not self._stop.is_set()
            self._stop.set()
            self._throttle.release()
            await self._drain(workers, together)
        finally:
            for task in (beat, *workers):
                task.cancel()
            await asyncio.gather(beat, *workers, return_exceptions=True)
        if together.done() and not together.cancelled():
            together.result()

    def interrupt(self) -> None:
        """Ask nothing more, and give what is under way its grace."""
        self._stop.set()
        self._hurry.set()

    async def _drain(
        self, workers: list[asyncio.Task[None]], together: asyncio.Future[list[None]]
    ) -> None:
        """Wait for the requests under way: they may have been paid for."""
        if not workers or all(worker.done() for worker in workers):
            return
        if together.done():
            await asyncio.wait(workers, timeout=_LAST_WORDS)
            return
        if self.out_of_time:
            await _first((together, self._hurry.wait()), self._pace.timeout)
        await asyncio.wait(workers, timeout=self._pace.grace)

    @property
    def now(self) -> Progress:
        """Where the run stands."""
        flying = self._throttle.in_flight
        return self.tally.now(
            retries=self.retries,
            in_flight=flying,
            allowed=self._throttle.limit,
            asked_for=self._pace.concurrency,
            held=self._throttle.held,
            note="ending: waiting for requests under way" if self._stop.is_set() and flying else "",
        )

    async def _work(self) -> None:
        for item in self._items:
            if self._budget and not await self._budget.admit(item):
                return
            try:
                if self._stop.is_set():
                    return
                await self._settle(item)
            except _Stopped:
                return
            finally:
                if self._budget:
                    self._budget.release(item.id)
            if self._stop.is_set():
                return

    async def _settle(self, item: Item) -> None:
        """Ask about one item until it is answered or lost, and journal which."""
        request, sunk = self._ask(item), 0.0

        async def attempt() -> Completion:
            nonlocal sunk
            completion = self._bill(await self._attempt(request))
            if completion.error is None:
                self._failing.clear()
            else:
                self._failing.add(item.id)
            if completion.error is not None and completion.cost is not None:
                sunk += completion.cost
                if self._budget:
                    self._budget.pay(item.task, completion.cost)
            elif sunk:
                completion = _with_sunk(completion, sunk)
            return completion

        retrying = AsyncRetrying(
            sleep=self._sleep,
            stop=self._enough,
            wait=self._wait,
            retry=retry_if_result(_may_pass),
            retry_error_callback=_last_result,
            before_sleep=self._count_retry,
        )
        completion: Completion = await retrying(attempt)
        if completion.error is not None and completion.cost is not None:
            completion = replace(completion, cost=sunk)
        if completion.error is not None and completion.error.kind == "run":
            self._stop.set()
            raise NumbenchError(f"{self._model.name}: {_why(completion.error)}")
        attempts = retrying.statistics["attempt_number"]
        at = datetime.now(UTC).isoformat(timespec="milliseconds")
        fields = {name: getattr(completion, name) for name in Completion.__struct_fields__}
        await self._journal.append(Response(item_id=item.id, attempts=attempts, at=at, **fields))
        if self._budget:
            self._budget.count(item, completion, paid=sunk)
        self._count(item, completion)
        if self._lost_in_a_row >= _HOPELESS and completion.error is not None:
            self._stop.set()
            raise NumbenchError(
                f"{self._model.name}: {_HOPELESS} items in a row brought no answer, the last: "
                f"{completion.error.message}; the same command asks them again"
            )

    async def _attempt(self, request: Request) -> Completion:
        async with self._throttle.slot() as began:
            if self._stop.is_set():
                raise _Stopped
            start = time.monotonic()
            completion = await self._model.answer(request.messages, request.settings)
            self._throttle.note(completion, began)
        if completion.latency is None:
            completion = replace(completion, latency=round(time.monotonic() - start, 6))
        return completion

    def _enough(self, state: RetryCallState) -> bool:
        """Whether an item has been tried often enough.

        Not while several fail and none is answered, though some were before: that is no fault of
        the item.
        """
        if self._budget and self._budget.spent >= self._budget.limit:
            return True
        error, most = _result(state).error, self._pace.max_attempts
        if self._last_answer is None:
            return state.attempt_number >= most
        if error is not None and error.kind == "rate_limit":
            most *= _RATE_LIMITED
        silence = time.monotonic() - self._last_answer
        outage = len(self._failing) >= _SEVERAL and silence < self._pace.outage
        return state.attempt_number >= most and not outage

    def _wait(self, state: RetryCallState) -> float:
        """What the provider asks for, else exponential with jitter."""
        error = _result(state).error
        if error is not None and error.retry_after is not None:
            return min(error.retry_after, self._pace.patience)
        return self._backoff(state)

    async def _sleep(self, seconds: float) -> None:
        try:
            await asyncio.wait_for(self._stop.wait(), seconds)
        except TimeoutError:
            return
        raise _Stopped

    def _count_retry(self, state: RetryCallState) -> None:
        self.retries += 1
        self._tell()

    def _count(self, item: Item, completion: Completion) -> None:
        if completion.error is None:
            self._lost_in_a_row = 0
            self._last_answer = time.monotonic()
        else:
            self._lost_in_a_row += completion.error.kind != "item"
        self.tally.count(item, completion)
        self._tell()

    async def _beat(self) -> None:
        while True:
            await asyncio.sleep(_BEAT)
            self._tell()

    def _tell(self) -> None:
        self._watch(self.now)


async def _first(waits: tuple[Awaitable[Any], Awaitable[Any]], seconds: float | None) -> None:
    """Return when the first of `waits` is over, or after `seconds`."""
    futures = [asyncio.ensure_future(wait) for wait in waits]
    try:
        await asyncio.wait(futures, timeout=seconds, return_when=asyncio.FIRST_COMPLETED)
    finally:
        for future, wait in zip(futures, waits, strict=True):
            if future is not wait:
                future.cancel()


def _with_sunk(completion: Completion, sunk: float) -> Completion:
    """`completion` with what its failed attempts cost, in its own cost where that is known."""
    total = None if completion.cost is None else completion.cost + sunk
    extra = completion.extra | {"cost_of_failed_attempts": sunk}
    return replace(completion, cost=total, extra=extra)


def _may_pass(completion: Completion) -> bool:
    return completion.error is not None and completion.error.kind in ("rate_limit", "transient")


def _result(state: RetryCallState) -> Completion:
    if state.outcome is None:
        raise AssertionError("tenacity waits only after an attempt")
    completion: Completion = state.outcome.result()
    return completion


def _last_result(state: RetryCallState) -> Completion:
    return _result(state)


def _why(failure: Failure) -> str:
    status = f"HTTP {failure.status}: " if failure.status else ""
    return f"{status}{failure.message}; nothing more was asked"
