"""Adaptive concurrency: fewer requests in flight while a provider is rate limiting."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from numbench.records import Completion, Scalar


class Throttle:
    """Additive increase, multiplicative decrease (Chiu and Jain, 1989), with a shared pause.

    The limit starts at `max_in_flight`. A rate-limit error halves it, once for all requests that
    were in flight at that time, and blocks new requests for as long as the provider asks. Each full
    round of answers raises the limit by one, up to `max_in_flight`. It is at least one.
    """

    def __init__(self, max_in_flight: int, max_pause: float = 3600.0) -> None:
        """`max_pause`: longest pause, in seconds, that a provider may impose."""
        self._max_in_flight, self._max_pause = max_in_flight, max_pause
        self._limit = float(max_in_flight)
        self._released = False
        self._in_flight = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._paused_until = 0.0
        self._last_decrease = 0.0
        self._timer: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """Number of requests that may be in flight now."""
        return int(self._limit)

    @property
    def in_flight(self) -> int:
        """Number of requests in flight."""
        return self._in_flight

    @property
    def pause_seconds(self) -> float:
        """Seconds for which the provider still accepts no requests."""
        if self._released:
            return 0.0
        return max(0.0, self._paused_until - asyncio.get_running_loop().time())

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait for a free slot, and yield the loop time at which it was acquired."""
        await self._acquire()
        try:
            yield asyncio.get_running_loop().time()
        finally:
            self._in_flight -= 1
            self._admit()

    def record(self, completion: Completion, started: float) -> None:
        """Adapt to the result of a request that was started at the loop time `started`."""
        if completion.error is None:
            self._limit = min(self._max_in_flight, self._limit + 1 / self._limit)
            self._pause(completion.extra.get("hold_back"))
            self._admit()
        elif completion.error.kind == "rate_limit":
            if started >= self._last_decrease:
                self._limit = max(1.0, self._limit / 2)
                self._last_decrease = asyncio.get_running_loop().time()
            self._pause(completion.error.retry_after)

    def release(self) -> None:
        """Admit all waiting and future requests at once, so that they notice the end of the run."""
        self._released = True
        self._admit()

    def _pause(self, seconds: Scalar) -> None:
        """Admit no request for `seconds`, if the provider gave a number."""
        if isinstance(seconds, int | float):
            until = asyncio.get_running_loop().time() + min(seconds, self._max_pause)
            self._paused_until = max(self._paused_until, until)

    async def _acquire(self) -> None:
        waiter: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(waiter)
        self._admit()
        try:
            await waiter
        except asyncio.CancelledError:
            if waiter.done() and not waiter.cancelled():
                # Admitted and cancelled in the same iteration of the loop: free the slot.
                self._in_flight -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        """Admit waiting requests up to the limit, or, during a pause, schedule that for its end."""
        loop = asyncio.get_running_loop()
        remaining = self._paused_until - loop.time()
        if remaining > 0 and not self._released:
            if self._waiting and self._timer is None:
                self._timer = loop.call_later(remaining, self._on_timer)
            return
        while self._waiting and (self._released or self._in_flight < self.limit):
            waiter = self._waiting.popleft()
            if not waiter.done():
                self._in_flight += 1
                waiter.set_result(None)

    def _on_timer(self) -> None:
        self._timer = None
        self._admit()
