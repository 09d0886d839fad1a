"""Adaptive concurrency: fewer requests in flight while a provider is rate limiting; rate caps."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator, Callable
from contextlib import asynccontextmanager
from typing import NamedTuple

from numbench.records import Completion, Scalar
from numbench.runner.rate_caps import Booking, RateCaps


class Slot(NamedTuple):
    """The permission to send a request: since when, in loop time, and its booking in the caps."""

    start: float
    booking: Booking | None


ExpectedTokens = Callable[[], float | None]
"""Returns the tokens that a request is expected to take, None if unknown: other answers tell."""


class _Waiter(NamedTuple):
    """A request that waits for a slot."""

    admitted: asyncio.Future[Slot]
    expected_tokens: ExpectedTokens


class Throttle:
    """Additive increase, multiplicative decrease (Chiu and Jain, 1989), with a shared pause.

    The limit starts at `max_in_flight`. A rate-limit error halves it, once for all requests that
    were in flight at that time, and blocks new requests for as long as the provider asks. Each full
    round of answers raises the limit by one, up to `max_in_flight`. It is at least one.

    Requests are admitted in the order of their arrival, each as soon as the `caps` have room.
    """

    def __init__(
        self, max_in_flight: int, max_pause: float = 3600.0, caps: RateCaps | None = None
    ) -> None:
        """`max_pause`: longest pause, in seconds, that a provider may impose."""
        self._max_in_flight, self._max_pause = max_in_flight, max_pause
        self._caps = caps
        self._limit = float(max_in_flight)
        self._released = False
        self._in_flight = 0
        self._waiting: deque[_Waiter] = deque()
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

    @property
    def cap_seconds(self) -> float:
        """Seconds until the caps have room for the next request."""
        if self._caps is None or self._released or not self._waiting:
            return 0.0
        now = asyncio.get_running_loop().time()
        return self._caps.seconds_until(self._waiting[0].expected_tokens(), now)

    @asynccontextmanager
    async def slot(self, expected_tokens: ExpectedTokens = lambda: None) -> AsyncIterator[Slot]:
        """Wait for a free slot, and yield it. expected_tokens: of the request, for the caps."""
        slot = await self._acquire(expected_tokens)
        try:
            yield slot
        finally:
            self._in_flight -= 1
            self._admit()

    def record(self, completion: Completion, slot: Slot) -> None:
        """Adapt to the result of the request that was sent in `slot`."""
        if self._caps is not None and slot.booking is not None:
            now = asyncio.get_running_loop().time()
            self._caps.correct(slot.booking, completion, now)
        if completion.error is None:
            self._limit = min(self._max_in_flight, self._limit + 1 / self._limit)
            self._pause(completion.extra.get("hold_back"))
            self._admit()
        elif completion.error.kind == "rate_limit":
            if slot.start >= self._last_decrease:
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

    async def _acquire(self, expected_tokens: ExpectedTokens) -> Slot:
        admitted: asyncio.Future[Slot] = asyncio.get_running_loop().create_future()
        self._waiting.append(_Waiter(admitted, expected_tokens))
        self._admit()
        try:
            return await admitted
        except asyncio.CancelledError:
            if admitted.done() and not admitted.cancelled():
                # Admitted and cancelled in the same iteration of the loop: free the slot.
                self._in_flight -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        """Admit waiting requests up to the limit, or schedule that for when there may be room."""
        now = asyncio.get_running_loop().time()
        while self._waiting and (self._released or self._in_flight < self.limit):
            waiter = self._waiting[0]
            if not waiter.admitted.done():
                wait = 0.0 if self._released else self._seconds_until(waiter, now)
                if wait > 0:
                    self._schedule(now + wait)
                    return
                self._in_flight += 1
                waiter.admitted.set_result(Slot(now, self._book(waiter, now)))
            self._waiting.popleft()

    def _seconds_until(self, waiter: _Waiter, now: float) -> float:
        """Return how long a request must wait for the provider's pause and for the caps."""
        wait = self._paused_until - now
        if self._caps is not None:
            wait = max(wait, self._caps.seconds_until(waiter.expected_tokens(), now))
        return wait

    def _book(self, waiter: _Waiter, now: float) -> Booking | None:
        # At the end of a run nothing more is sent.
        if self._caps is None or self._released:
            return None
        return self._caps.book(waiter.expected_tokens(), now)

    def _schedule(self, time: float) -> None:
        """Look for waiting requests again at this loop time, or earlier."""
        if self._timer is not None:
            if self._timer.when() <= time:
                return
            self._timer.cancel()
        self._timer = asyncio.get_running_loop().call_at(time, self._on_timer)

    def _on_timer(self) -> None:
        self._timer = None
        self._admit()
