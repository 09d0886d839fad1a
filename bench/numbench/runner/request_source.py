"""Where a scheduler gets its requests from: a fixed list, or a measurement that goes on."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol

from numbench.records import Completion, ItemSample


class RequestSource(Protocol):
    """The requests of a run, and what becomes of them.

    needs_answers: whether it is an error if all requests were sent and none was answered.
    max_rejections: with so many rejected requests and no answer, the run stops. rejection_hint:
    what a user can do then.
    """

    needs_answers: bool
    max_rejections: int
    rejection_hint: str

    @property
    def skipped(self) -> int:
        """The number of requests that need not be sent, because earlier calls completed them."""
        ...

    @property
    def open_count(self) -> int:
        """The number of requests without a result, as far as they are known; 0 if all is done."""
        ...

    async def next(self) -> ItemSample | None:
        """Return the next request to send, None if there will be none.

        Waits while it depends on the answers to requests in flight.
        """
        ...

    def record(self, requested: ItemSample, completion: Completion) -> None:
        """Take the result of a request into account, which is on disk."""
        ...

    def release(self, requested: ItemSample) -> None:
        """Note that a request is no longer in flight, with or without a result."""
        ...

    def close(self) -> None:
        """Let all who wait for a request have none."""
        ...


MAX_REJECTIONS = 30
"""Items that may be rejected for their content or length before any other is answered."""


class FixedRequests:
    """A list of requests, in the order in which to send them."""

    needs_answers = False
    max_rejections = MAX_REJECTIONS
    rejection_hint = "add --retry error to send them again"

    def __init__(self, requests: Sequence[ItemSample], skipped: int = 0) -> None:
        self.requests, self.skipped = requests, skipped
        self._remaining = iter(requests)
        self._completed = 0

    @property
    def open_count(self) -> int:
        """The number of requests without a result in this call."""
        return len(self.requests) - self._completed

    async def next(self) -> ItemSample | None:
        """Return the next request."""
        return next(self._remaining, None)

    def record(self, requested: ItemSample, completion: Completion) -> None:
        """Count the result."""
        self._completed += 1

    def release(self, requested: ItemSample) -> None:
        """Do nothing."""

    def close(self) -> None:
        """Do nothing: nobody waits."""
