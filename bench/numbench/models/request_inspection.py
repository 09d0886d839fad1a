"""Inspecting requests as they are sent: their bodies, after every SDK has changed them.

A transport calls `inspect_request` with the body of a request before it is sent. Within
`inspecting`, that calls a function, which may stop the request.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator
from contextlib import contextmanager
from contextvars import ContextVar

Inspector = Callable[[bytes], None]

_inspector: ContextVar[Inspector | None] = ContextVar("inspector", default=None)


class RequestStopped(Exception):
    """An inspector has stopped a request: nothing was sent. Transports raise a connection error."""


@contextmanager
def inspecting(inspector: Inspector) -> Iterator[None]:
    """Call `inspector` with the body of every request that this task sends in the context."""
    token = _inspector.set(inspector)
    try:
        yield
    finally:
        _inspector.reset(token)


def inspect_request(body: bytes) -> None:
    """Pass the body of a request that is about to be sent to the inspector, if there is one.

    Raises RequestStopped if the request must not be sent.
    """
    if inspector := _inspector.get():
        inspector(body)
