from __future__ import annotations

import asyncio
import threading
from collections.abc import Sequence

import pytest

from bench.models.batching import Batcher


def doubled(numbers: Sequence[int]) -> list[int]:
    return [2 * number for number in numbers]


def test_calls_that_wait_together_make_one_batch_of_bounded_size() -> None:
    batches: list[list[int]] = []

    def work(numbers: Sequence[int]) -> list[int]:
        batches.append(list(numbers))
        return doubled(numbers)

    async def all_at_once() -> list[int]:
        ask = Batcher(work, most=3)
        return list(await asyncio.gather(*(ask(n) for n in range(8))))

    assert asyncio.run(all_at_once()) == doubled(range(8))
    assert batches == [[0, 1, 2], [3, 4, 5], [6, 7]]


def test_the_loop_goes_on_while_a_batch_is_worked_on() -> None:
    released = threading.Event()

    def work(numbers: Sequence[int]) -> list[int]:
        assert released.wait(10)
        return doubled(numbers)

    async def go() -> int:
        ask = Batcher(work, most=3)
        answer = asyncio.create_task(ask(21))
        await asyncio.sleep(0.1)
        released.set()
        return await answer

    assert asyncio.run(go()) == 42


def test_a_failed_batch_raises_for_its_own_calls_and_the_next_is_served() -> None:
    def work(numbers: Sequence[int]) -> list[int]:
        if 0 in numbers:
            raise ZeroDivisionError("nought")
        return doubled(numbers)

    async def go() -> list[int | BaseException]:
        ask = Batcher(work, most=1)
        return list(await asyncio.gather(ask(0), ask(1), return_exceptions=True))

    failure, answer = asyncio.run(go())
    assert isinstance(failure, ZeroDivisionError)
    assert answer == 2


def test_a_cancelled_call_is_not_worked_on_and_finish_leaves_nothing_waiting() -> None:
    seen: list[int] = []

    def work(numbers: Sequence[int]) -> list[int]:
        seen.extend(numbers)
        return doubled(numbers)

    async def go() -> None:
        ask = Batcher(work, most=3)
        first, second = asyncio.create_task(ask(1)), asyncio.create_task(ask(2))
        await asyncio.sleep(0)
        first.cancel()
        assert await second == 4
        last = asyncio.create_task(ask(3))
        await asyncio.sleep(0)
        await ask.finish()
        with pytest.raises(asyncio.CancelledError):
            await last

    asyncio.run(go())
    assert seen == [2]
