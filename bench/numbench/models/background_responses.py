"""Responses that a provider generates in the background, and who remembers their ids.

The runner puts a tracker around a request. An adapter that has started a response tells it the id,
so that the response can be collected later, also by another process.
"""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager
from contextvars import ContextVar


class ResponseTracker:
    """The response in progress to one request. This one remembers it for one attempt only."""

    def __init__(self, response_id: str | None = None) -> None:
        self.response_id = response_id

    def start(self, response_id: str) -> None:
        """Remember a response that the provider has started to generate."""
        self.response_id = response_id

    def end(self) -> None:
        """Forget a response that has failed, or that the provider no longer has."""
        self.response_id = None


_tracker: ContextVar[ResponseTracker | None] = ContextVar("tracker", default=None)


@contextmanager
def tracking(tracker: ResponseTracker) -> Iterator[None]:
    """Let the requests that this task sends in the context use `tracker`."""
    token = _tracker.set(tracker)
    try:
        yield
    finally:
        _tracker.reset(token)


def current_tracker() -> ResponseTracker:
    """Return the tracker of the context, or one for a single attempt."""
    return _tracker.get() or ResponseTracker()
