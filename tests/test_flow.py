"""Flow control: halve when told to, wait as long as told, grow again, never deadlock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from bench.records import Completion, Failure
from bench.runner.flow import Throttle

FINE = Completion(text="x")


def limited(retry_after: float | None = None) -> Completion:
    return Completion(error=Failure(kind="rate_limit", message="slow", retry_after=retry_after))


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 20))


def test_never_more_in_flight_than_allowed_and_all_get_through() -> None:
    async def main() -> None:
        throttle, flying, most, done = Throttle(5), 0, 0, 0

        async def one() -> None:
            nonlocal flying, most, done
            async with throttle.slot() as began:
                flying += 1
                most = max(most, flying)
                await asyncio.sleep(0.001)
                throttle.note(FINE, began)
                flying -= 1
                done += 1

        await asyncio.gather(*(one() for _ in range(100)))
        assert (most, done, throttle.limit) == (5, 100, 5)

    run(main())


def test_one_burst_of_rate_limits_halves_once() -> None:
    async def main() -> None:
        throttle = Throttle(16)
        async with throttle.slot() as first, throttle.slot() as second:
            throttle.note(limited(), first)
            throttle.note(limited(), second)
        assert throttle.limit == 8
        async with throttle.slot() as later:
            throttle.note(limited(), later)
        assert throttle.limit == 4

    run(main())


def test_it_never_falls_below_one_and_grows_back_to_the_most() -> None:
    async def main() -> None:
        throttle = Throttle(4)
        for _ in range(9):
            async with throttle.slot() as began:
                throttle.note(limited(), began)
        assert throttle.limit == 1
        for _ in range(40):
            async with throttle.slot() as began:
                throttle.note(FINE, began)
        assert throttle.limit == 4

    run(main())


@pytest.mark.parametrize("refused", [True, False])
def test_a_requested_pause_holds_everybody_back(refused: bool) -> None:
    """Asked for with a refusal, or in the headers of a good answer that was the last allowed."""
    warned = Completion(text="1", extra={"hold_back": 0.2})

    async def main() -> None:
        loop, throttle, starts = asyncio.get_running_loop(), Throttle(8), []

        async def one() -> None:
            async with throttle.slot() as began:
                starts.append(began)

        async with throttle.slot() as began:
            throttle.note(limited(0.2) if refused else warned, began)
        told = loop.time()
        assert throttle.limit == (4 if refused else 8)
        await asyncio.gather(*(one() for _ in range(20)))
        assert len(starts) == 20
        assert min(starts) >= told + 0.2 - 0.02

    run(main())


@pytest.mark.parametrize("seed", range(5))
def test_it_survives_any_mix_of_faults_and_cancellations(seed: int) -> None:
    async def main() -> None:
        chance, throttle, done = random.Random(seed), Throttle(7), 0

        async def one() -> None:
            nonlocal done
            async with throttle.slot() as began:
                await asyncio.sleep(chance.random() / 500)
                answer = FINE if chance.random() < 0.7 else limited(chance.random() / 100)
                throttle.note(answer, began)
            done += 1

        tasks = [asyncio.create_task(one()) for _ in range(300)]
        for task in chance.sample(tasks, 60):
            asyncio.get_running_loop().call_later(chance.random() / 20, task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert done + sum(task.cancelled() for task in tasks) == 300
        # Nobody is left inside: as many as are allowed can enter at once.
        await asyncio.gather(*(one() for _ in range(throttle.limit)))

    run(main())


def test_release_ends_every_wait() -> None:
    async def main() -> None:
        throttle = Throttle(1)
        async with throttle.slot() as began:
            throttle.note(limited(1000), began)
            waiting = [asyncio.create_task(enter(throttle)) for _ in range(10)]
            await asyncio.sleep(0.01)
            throttle.release()
            await asyncio.gather(*waiting)
        await enter(throttle)

    async def enter(throttle: Throttle) -> None:
        async with throttle.slot():
            await asyncio.sleep(0.01)

    run(main())
