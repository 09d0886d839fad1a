"""Adaptive concurrency: halving, pauses, recovery, no deadlock."""

from __future__ import annotations

import asyncio
import bisect
import random
from collections import Counter
from collections.abc import Coroutine
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.records import Completion, Failure
from numbench.runner.suite import paper_suite, plan_suite, run_suite
from numbench.runner.throttle import RequestPacer, Throttle
from tests import servers
from tests.runner.test_run import _quick, dataset
from tests.servers import ReceivedRequest, Reply, serve
from tests.simulated_time import run_simulated

__all__ = ["_quick", "dataset"]

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


def test_a_requested_pause_delays_all_requests() -> None:
    async def main() -> None:
        loop, throttle, starts = asyncio.get_running_loop(), Throttle(8), []

        async def one() -> None:
            async with throttle.slot() as began:
                starts.append(began)

        async with throttle.slot() as began:
            throttle.record(limited(0.2), began)
        told = loop.time()
        assert throttle.limit == 4
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


SECONDS = st.floats(0, 200) | st.floats(0, 2) | st.just(0.0)


@given(
    st.lists(st.tuples(SECONDS, SECONDS, st.booleans()), max_size=60),
    st.integers(1, 40),
    st.integers(1, 30),
)
def test_no_minute_has_more_requests_than_the_cap(
    requests: list[tuple[float, float, bool]], rpm: int, concurrency: int
) -> None:
    starts: list[float] = []

    async def send(throttle: Throttle, arrival: float, seconds: float, fails: bool) -> None:
        await asyncio.sleep(arrival)
        async with throttle.slot() as start:
            starts.append(start)
            await asyncio.sleep(seconds)
            throttle.record(limited() if fails else FINE, start)

    async def main() -> None:
        throttle = Throttle(concurrency, pacer=RequestPacer(rpm))
        async with asyncio.TaskGroup() as group:
            for request in requests:
                group.create_task(send(throttle, *request))

    run_simulated(main())
    assert len(starts) == len(requests)
    starts.sort()
    ends = [bisect.bisect_right(starts, start + 60.0) for start in starts]
    assert all(end - index <= rpm for index, end in enumerate(ends))


def test_a_whole_minute_is_used() -> None:
    async def main() -> None:
        throttle = Throttle(100, pacer=RequestPacer(30))
        async with asyncio.TaskGroup() as group:
            for _ in range(91):
                group.create_task(enter(throttle))
        assert asyncio.get_running_loop().time() < 3.2 * 61

    run_simulated(main())


async def _either(received: ReceivedRequest) -> Reply:
    return servers.gemini() if "contents" in received.body else servers.chat()


def test_the_runs_of_one_provider_in_a_suite_share_their_cap(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[RequestPacer] = []
    count = RequestPacer.count

    def record(self: RequestPacer, now: float) -> None:
        used.append(self)
        count(self, now)

    monkeypatch.setattr(RequestPacer, "count", record)
    common = {"dataset": dataset, "limit": 1, "out": tmp_path, "rpm": 1_000_000}
    with serve(_either) as server:
        members = plan_suite(list(paper_suite({}, common | {"base_url": server.url})))
        run_suite(members)
    providers = Counter(str(each.resolved.description.route).partition("/")[0] for each in members)
    assert sorted(Counter(map(id, used)).values()) == sorted(2 * n for n in providers.values())
