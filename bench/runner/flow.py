"""How many requests may be in flight: as many as asked for, fewer where the provider objects."""

from __future__ import annotations

import asyncio
from collections import deque
from collections.abc import AsyncIterator
from contextlib import asynccontextmanager

from bench.records import Completion, Scalar


class Throttle:
    """Additive increase, multiplicative decrease (Chiu and Jain, 1989), with a common pause.

    It begins with `most` requests in flight. A rate limit halves the number, once for all the
    requests that were under way at the time, and holds back new ones for as long as the provider
    asks. Each full round of answers allows one more again, up to `most`; never fewer than one.
    """

    def __init__(self, most: int, patience: float = 3600.0) -> None:
        """At best `most` requests are in flight; a pause is `patience` seconds at the longest."""
        self._most, self._patience = most, patience
        self._limit = float(most)
        self._released = False
        self._flying = 0
        self._waiting: deque[asyncio.Future[None]] = deque()
        self._not_before = 0.0
        self._last_cut = 0.0
        self._wake: asyncio.TimerHandle | None = None

    @property
    def limit(self) -> int:
        """Requests that may be in flight now."""
        return int(self._limit)

    @property
    def in_flight(self) -> int:
        """Requests that are under way."""
        return self._flying

    @property
    def held(self) -> float:
        """Seconds for which the provider still wants no requests."""
        if self._released:
            return 0.0
        return max(0.0, self._not_before - asyncio.get_running_loop().time())

    @asynccontextmanager
    async def slot(self) -> AsyncIterator[float]:
        """Wait for a place among the requests in flight; gives the time at which it was had."""
        await self._enter()
        try:
            yield asyncio.get_running_loop().time()
        finally:
            self._flying -= 1
            self._admit()

    def note(self, completion: Completion, began: float) -> None:
        """Learn from what came of a request that began at `began` (the loop's time)."""
        if completion.error is None:
            self._limit = min(self._most, self._limit + 1 / self._limit)
            self._hold(completion.extra.get("hold_back"))
            self._admit()
        elif completion.error.kind == "rate_limit":
            now = asyncio.get_running_loop().time()
            if began >= self._last_cut:
                self._limit = max(1.0, self._limit / 2)
                self._last_cut = now
            self._hold(completion.error.retry_after)

    def release(self) -> None:
        """Let everybody in at once, now and from now on: the run ends, and each must hear of it."""
        self._released = True
        self._admit()

    def _hold(self, seconds: Scalar) -> None:
        """Let nobody in for `seconds`, where the provider named any."""
        if isinstance(seconds, int | float):
            pause = min(seconds, self._patience)
            until = asyncio.get_running_loop().time() + pause
            self._not_before = max(self._not_before, until)

    async def _enter(self) -> None:
        place: asyncio.Future[None] = asyncio.get_running_loop().create_future()
        self._waiting.append(place)
        self._admit()
        try:
            await place
        except asyncio.CancelledError:
            if place.done() and not place.cancelled():
                # It was let in and cancelled in the same moment: the place is free again.
                self._flying -= 1
                self._admit()
            raise

    def _admit(self) -> None:
        """Let in whoever may go; where the provider wants a pause, come back after it."""
        loop = asyncio.get_running_loop()
        left = self._not_before - loop.time()
        if left > 0 and not self._released:
            if self._waiting and (self._wake is None or self._wake.cancelled()):
                self._wake = loop.call_later(left, self._awake)
            return
        while self._waiting and (self._released or self._flying < self.limit):
            place = self._waiting.popleft()
            if not place.done():
                self._flying += 1
                place.set_result(None)

    def _awake(self) -> None:
        self._wake = None
        self._admit()
