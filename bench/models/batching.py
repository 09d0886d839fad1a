"""Concurrent calls gathered into batches for a model that answers many as fast as one."""

from __future__ import annotations

import asyncio
from collections.abc import Callable, Sequence
from typing import Generic, TypeVar

Ask = TypeVar("Ask")
Answer = TypeVar("Answer")

_GATHERING = 0.02
"""Seconds in which calls that come together may join one batch: nothing beside a batch's work."""


class Batcher(Generic[Ask, Answer]):
    """A queue: whatever waits when the previous batch is done makes up the next one.

    `work` answers a batch, in its order, in a worker thread, so that the event loop goes on; it
    never runs twice at a time. A batch holds at most `most` calls.
    """

    def __init__(self, work: Callable[[Sequence[Ask]], Sequence[Answer]], most: int) -> None:
        self.most = most
        self._work = work
        self._waiting: list[tuple[Ask, asyncio.Future[Answer]]] = []
        self._server: asyncio.Task[None] | None = None

    async def __call__(self, ask: Ask) -> Answer:
        """The answer to `ask`. Raises what `work` raised for its batch."""
        future: asyncio.Future[Answer] = asyncio.get_running_loop().create_future()
        self._waiting.append((ask, future))
        if self._server is None or self._server.done():
            self._server = asyncio.create_task(self._serve())
        return await future

    async def finish(self) -> None:
        """Wait for the batch under way; calls that still wait for one are cancelled."""
        for _, future in self._waiting:
            future.cancel()
        if self._server is not None and not self._server.done():
            await asyncio.wait([self._server])
        self._server = None

    async def _serve(self) -> None:
        while self._waiting:
            await asyncio.sleep(_GATHERING)
            if batch := self._next():
                await self._settle(batch)

    def _next(self) -> list[tuple[Ask, asyncio.Future[Answer]]]:
        """The calls that waited longest; those that were cancelled are dropped."""
        calls = [call for call in self._waiting if not call[1].done()]
        self._waiting = calls[self.most :]
        return calls[: self.most]

    async def _settle(self, batch: Sequence[tuple[Ask, asyncio.Future[Answer]]]) -> None:
        working = asyncio.to_thread(self._work, [ask for ask, _ in batch])
        (outcome,) = await asyncio.gather(working, return_exceptions=True)
        waiting = [(n, future) for n, (_, future) in enumerate(batch) if not future.done()]
        for number, future in waiting:
            if isinstance(outcome, BaseException):
                future.set_exception(outcome)
            else:
                future.set_result(outcome[number])
