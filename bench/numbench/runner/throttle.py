"""Adaptive concurrency: fewer requests in flight while a provider is rate limiting, and `--rpm`."""

from __future__ import annotations

import asyncio
import math
from collections import deque
from contextlib import suppress

from numbench.records import Completion

WINDOW_SECONDS = 60.5
"""How long a request counts: a minute, and the time by which two may arrive closer together."""

_BURST_SECONDS = 1.0
"""How far requests may be ahead of an even distribution over the minute."""


_FIRST_REPLY_SECONDS = 1.0
"""How long the others wait for the result of the first request, which may be refused as all are."""


class RequestPacer:
    """A cap on the requests per minute (`--rpm`), which runs may share.

    In no minute are more than `rpm` requests sent. They are spread over it, so that a cap is not
    used up in its first seconds. Times are in seconds of one clock.
    """

    def __init__(self, rpm: int | None = None) -> None:
        """Without a cap, no request waits."""
        self._interval = WINDOW_SECONDS / rpm if rpm else 0.0
        self._sent: deque[float] = deque(maxlen=rpm or 0)
        self._earliest = -math.inf

    def seconds_until(self, now: float) -> float:
        """Return how long the next request must wait."""
        is_full = 0 < len(self._sent) == self._sent.maxlen
        free_at = self._sent[0] + WINDOW_SECONDS if is_full else -math.inf
        return max(0.0, self._earliest - now, free_at - now)

    def count(self, now: float) -> None:
        """Count a request as sent."""
        self._sent.append(now)
        self._earliest = max(self._earliest, now - _BURST_SECONDS) + self._interval


class Throttle:
    """Additive increase, multiplicative decrease (Chiu and Jain, 1989), with a shared pause.

    The limit starts at `max_in_flight`. A rate-limit error halves it, once for all requests that
    were in flight at that time, and blocks new requests for as long as the provider asks. Each full
    round of answers raises the limit by one, up to `max_in_flight`. It is at least one. The first
    request is sent alone, and the others a second later if it has no result by then.

    max_pause: longest pause, in seconds, that a provider may impose. Times are in seconds of one
    clock.
    """

    def __init__(
        self, max_in_flight: int, max_pause: float = 3600.0, pacer: RequestPacer | None = None
    ) -> None:
        self.in_flight = 0
        self._max_in_flight, self._max_pause = max_in_flight, max_pause
        self._pacer = pacer or RequestPacer()
        self._limit = float(max_in_flight)
        self._paused_until = self._last_decrease = -math.inf
        self._first_start: float | None = None
        self._has_result = False
        self._gate, self._has_room = asyncio.Lock(), asyncio.Event()

    async def acquire(self) -> float:
        """Wait until one more request may be sent, in the order of the calls; return the time.

        `end` has to follow.
        """
        clock = asyncio.get_running_loop().time
        async with self._gate:
            while True:
                now = clock()
                pause = max(self.pause_seconds(now), self._pacer.seconds_until(now))
                wait = max(pause, self._first_reply_seconds(now))
                if not self.is_full and not wait:
                    self.start(now)
                    return now
                self._has_room.clear()
                with suppress(TimeoutError):
                    async with asyncio.timeout(None if self.is_full else wait):
                        await self._has_room.wait()

    @property
    def limit(self) -> int:
        """Number of requests that may be in flight now."""
        return int(self._limit)

    @property
    def is_full(self) -> bool:
        """Whether as many requests are in flight as may be."""
        return self.in_flight >= self.limit

    def pause_seconds(self, now: float) -> float:
        """Return for how long the provider still accepts no requests."""
        return max(0.0, self._paused_until - now)

    def _first_reply_seconds(self, now: float) -> float:
        if self._first_start is None or self._has_result:
            return 0.0
        return max(0.0, self._first_start + _FIRST_REPLY_SECONDS - now)

    def start(self, now: float) -> None:
        """Count a request as sent."""
        self._first_start = now if self._first_start is None else self._first_start
        self.in_flight += 1
        self._pacer.count(now)

    def end(self, completion: Completion | None, start: float, now: float) -> None:
        """Adapt to the result of a request that was sent at `start`; None if it was cut off."""
        self.in_flight -= 1
        self._has_result = True
        self._has_room.set()
        if completion is None:
            return
        if completion.error is None:
            self._limit = min(self._max_in_flight, self._limit + 1 / self._limit)
        elif completion.error.kind == "rate_limit":
            if start >= self._last_decrease:
                self._limit, self._last_decrease = max(1.0, self._limit / 2), now
            if completion.error.retry_after is not None:
                pause = min(completion.error.retry_after, self._max_pause)
                self._paused_until = max(self._paused_until, now + pause)
