"""Caps on the requests and tokens per minute that a run sends (`--rpm`, `--tpm`)."""

from __future__ import annotations

import math
from collections import deque

from numbench.errors import BadInput
from numbench.records import Completion

WINDOW_SECONDS = 60.5
"""How long a request counts: a minute, and the time by which two may arrive closer together."""

_BURST_SECONDS = 1.0
"""How far requests may be ahead of an even distribution over the minute."""


class Booking:
    """The tokens that count for one request, and the time from which they do."""

    def __init__(self, tokens: int, time: float) -> None:
        self.tokens, self.time = tokens, time
        self.is_counted = True


class RateCaps:
    """The requests and tokens of the last minute, and how long to wait for room for more.

    In no minute are more than `rpm` requests sent. They are spread over it, so that a cap is not
    used up in its first seconds.

    A request counts with its expected tokens when it is sent. Once it is answered, tokens that it
    did not take are given back, and those that it took beyond the expectation count from then on. A
    request that is expected to take `tpm` or more is sent when nothing else counts. So no minute
    has more than `tpm` tokens except for what requests took beyond their expectation.

    Times are in seconds of one clock. Runs may share the caps.
    """

    def __init__(self, rpm: int | None = None, tpm: int | None = None) -> None:
        """None: no cap. Raises BadInput for a cap below 1."""
        for name, cap in (("--rpm", rpm), ("--tpm", tpm)):
            if cap is not None and cap < 1:
                raise BadInput(f"{name} {cap}: give 1 or more")
        self._rpm, self._tpm = rpm, tpm
        self._sent: deque[float] = deque(maxlen=rpm or 0)
        self._earliest = -math.inf
        self._bookings: deque[Booking] = deque()
        self._booked_tokens = 0

    def seconds_until(self, expected_tokens: float | None, now: float) -> float:
        """Return how long a request must wait for room. None: its tokens are unknown."""
        return max(0.0, self._request_wait(now), self._token_wait(expected_tokens, now))

    def book(self, expected_tokens: float | None, now: float) -> Booking:
        """Count a request as sent; one of unknown tokens counts as much as the whole cap."""
        if self._rpm:
            self._sent.append(now)
            interval = WINDOW_SECONDS / self._rpm
            self._earliest = max(self._earliest, now - _BURST_SECONDS) + interval
        return self._count_tokens(self._reserved(expected_tokens), now)

    def correct(self, booking: Booking, completion: Completion, now: float) -> None:
        """Replace the expected tokens of a request by those that it took, if they are known."""
        usage = completion.usage
        if usage.input is None or usage.generated is None:
            return
        excess = usage.input + usage.generated - booking.tokens
        if excess > 0:
            self._count_tokens(excess, now)
        elif booking.is_counted:
            booking.tokens += excess
            self._booked_tokens += excess

    def _count_tokens(self, tokens: int, now: float) -> Booking:
        booking = Booking(tokens, now)
        if self._tpm:
            self._bookings.append(booking)
            self._booked_tokens += tokens
        return booking

    def _reserved(self, expected_tokens: float | None) -> int:
        cap = self._tpm or 0
        return cap if expected_tokens is None else min(math.ceil(expected_tokens), cap)

    def _request_wait(self, now: float) -> float:
        if not self._rpm:
            return 0.0
        window_wait = self._sent[0] + WINDOW_SECONDS - now if len(self._sent) == self._rpm else 0.0
        return max(window_wait, self._earliest - now)

    def _token_wait(self, expected_tokens: float | None, now: float) -> float:
        """Return the seconds until enough bookings have left the window."""
        if not self._tpm:
            return 0.0
        while self._bookings and self._bookings[0].time + WINDOW_SECONDS <= now:
            left = self._bookings.popleft()
            left.is_counted = False
            self._booked_tokens -= left.tokens
        excess = self._booked_tokens + self._reserved(expected_tokens) - self._tpm
        wait = 0.0
        for booking in self._bookings:
            if excess <= 0:
                break
            excess -= booking.tokens
            wait = booking.time + WINDOW_SECONDS - now
        return wait
