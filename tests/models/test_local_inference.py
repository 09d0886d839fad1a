"""Batching of concurrent calls."""

from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from numbench.models.local_inference import Batcher


def doubled(numbers: Sequence[int]) -> list[int]:
    return [2 * number for number in numbers]


def test_concurrent_calls_make_batches_of_limited_size() -> None:
    batches: list[list[int]] = []

    def work(numbers: Sequence[int]) -> list[int]:
        batches.append(list(numbers))
        return doubled(numbers)

    async def all_at_once() -> list[int]:
        batcher = Batcher(work, max_batch_size=3)
        return list(await asyncio.gather(*(batcher(n) for n in range(8))))

    assert asyncio.run(all_at_once()) == doubled(range(8))
    assert batches == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_a_running_batch_does_not_block_the_event_loop() -> None:
    begun, released = threading.Event(), threading.Event()

    def work(numbers: Sequence[int]) -> list[int]:
        begun.set()
        assert released.wait(120)
        return doubled(numbers)

    async def go() -> int:
        batcher = Batcher(work, max_batch_size=3)
        answer = asyncio.create_task(batcher(21))
        while not begun.is_set():
            await asyncio.sleep(0.01)
        released.set()
        return await answer

    assert asyncio.run(go()) == 42


def test_a_failed_batch_raises_for_its_own_calls_only() -> None:
    def work(numbers: Sequence[int]) -> list[int]:
        if 0 in numbers:
            raise ZeroDivisionError("zero")
        return doubled(numbers)

    async def go() -> list[int | BaseException]:
        batcher = Batcher(work, max_batch_size=1)
        return list(await asyncio.gather(batcher(0), batcher(1), return_exceptions=True))

    failure, answer = asyncio.run(go())
    assert isinstance(failure, ZeroDivisionError)
    assert answer == 2


def test_cancelled_calls_are_dropped_and_finish_cancels_waiting_calls() -> None:
    seen: list[int] = []

    def work(numbers: Sequence[int]) -> list[int]:
        seen.extend(numbers)
        return doubled(numbers)

    async def go() -> None:
        batcher = Batcher(work, max_batch_size=3)
        first, second = asyncio.create_task(batcher(1)), asyncio.create_task(batcher(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == 4
        last = asyncio.create_task(batcher(3))
        await asyncio.sleep(0)
        await batcher.finish()
        with pytest.raises(asyncio.CancelledError):
            await last

    asyncio.run(go())
    assert seen == [2]
