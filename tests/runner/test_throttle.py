"""Adaptive concurrency: halving, pauses, recovery, no deadlock."""

from __future__ import annotations

import asyncio
import random
from collections.abc import Coroutine
from typing import Any

import pytest

from numbench.records import Completion, Failure
from numbench.runner.throttle import Throttle

FINE = Completion(text="x")


def limited(retry_after: float | None = None) -> Completion:
    return Completion(error=Failure(kind="rate_limit", message="slow", retry_after=retry_after))


async def enter(throttle: Throttle) -> None:
    async with throttle.slot():
        await asyncio.sleep(0.01)


def run(main: Coroutine[Any, Any, None]) -> None:
    asyncio.run(asyncio.wait_for(main, 20))


def test_the_number_in_flight_is_limited_and_all_requests_complete() -> None:
    async def main() -> None:
        throttle, flying, most, done = Throttle(5), 0, 0, 0

        async def one() -> None:
            nonlocal flying, most, done
            async with throttle.slot() as began:
                flying += 1
                most = max(most, flying)
                await asyncio.sleep(0.001)
                throttle.record(FINE, began)
                flying -= 1
                done += 1

        await asyncio.gather(*(one() for _ in range(100)))
        assert (most, done, throttle.limit) == (5, 100, 5)

    run(main())


def test_rate_limits_of_concurrent_requests_halve_the_limit_once() -> None:
    async def main() -> None:
        throttle = Throttle(16)
        async with throttle.slot() as first, throttle.slot() as second:
            throttle.record(limited(), first)
            throttle.record(limited(), second)
        assert throttle.limit == 8
        async with throttle.slot() as later:
            throttle.record(limited(), later)
        assert throttle.limit == 4

    run(main())


def test_the_limit_stays_above_zero_and_grows_back() -> None:
    async def main() -> None:
        throttle = Throttle(4)
        for _ in range(9):
            async with throttle.slot() as began:
                throttle.record(limited(), began)
        assert throttle.limit == 1
        for _ in range(40):
            async with throttle.slot() as began:
                throttle.record(FINE, began)
        assert throttle.limit == 4

    run(main())


def test_the_limit_grows_by_one_per_round_of_answers() -> None:
    async def main() -> None:
        throttle = Throttle(40)
        for _ in range(2):
            async with throttle.slot() as began:
                throttle.record(limited(), began)
        limits = []
        for _ in range(11):
            async with throttle.slot() as began:
                throttle.record(FINE, began)
            limits.append(throttle.limit)
        assert limits == [10] * 10 + [11]

    run(main())


@pytest.mark.parametrize("admitted", [True, False], ids=["admitted", "waiting"])
def test_a_cancelled_request_frees_its_own_slot_and_no_other(admitted: bool) -> None:
    async def main() -> None:
        throttle = Throttle(1)
        async with throttle.slot():
            cancelled, next_one = (asyncio.create_task(enter(throttle)) for _ in range(2))
            await asyncio.sleep(0)
            if not admitted:
                cancelled.cancel()
                await asyncio.wait([cancelled])
                assert throttle.in_flight == 1 and not next_one.done()
        cancelled.cancel()
        await next_one
        assert cancelled.cancelled() and throttle.in_flight == 0

    run(main())


@pytest.mark.parametrize("refused", [True, False])
def test_a_requested_pause_delays_all_requests(refused: bool) -> None:
    """A rate-limit error or the headers of a good answer may request the pause."""
    warned = Completion(text="1", extra={"hold_back": 0.2})

    async def main() -> None:
        loop, throttle, starts = asyncio.get_running_loop(), Throttle(8), []

        async def one() -> None:
            async with throttle.slot() as began:
                starts.append(began.start)

        async with throttle.slot() as began:
            throttle.record(limited(0.2) if refused else warned, began)
        told = loop.time()
        assert throttle.limit == (4 if refused else 8)
        await asyncio.gather(*(one() for _ in range(20)))
        assert len(starts) == 20
        assert min(starts) >= told + 0.2 - 0.02

    run(main())


@pytest.mark.parametrize("seed", range(5))
def test_faults_and_cancellations_leave_all_slots_free(seed: int) -> None:
    async def main() -> None:
        chance, throttle, done = random.Random(seed), Throttle(7), 0

        async def one() -> None:
            nonlocal done
            async with throttle.slot() as began:
                await asyncio.sleep(chance.random() / 500)
                answer = FINE if chance.random() < 0.7 else limited(chance.random() / 100)
                throttle.record(answer, began)
            done += 1

        tasks = [asyncio.create_task(one()) for _ in range(300)]
        for task in chance.sample(tasks, 60):
            asyncio.get_running_loop().call_later(chance.random() / 20, task.cancel)
        await asyncio.gather(*tasks, return_exceptions=True)
        assert done + sum(task.cancelled() for task in tasks) == 300
        # All slots are free: as many requests as the limit allows are admitted.
        await asyncio.gather(*(one() for _ in range(throttle.limit)))

    run(main())


def test_release_admits_every_waiting_request() -> None:
    async def main() -> None:
        throttle = Throttle(1)
        async with throttle.slot() as began:
            throttle.record(limited(1000), began)
            waiting = [asyncio.create_task(enter(throttle)) for _ in range(10)]
            await asyncio.sleep(0.01)
            throttle.release()
            await asyncio.gather(*waiting)
        await enter(throttle)

    run(main())
