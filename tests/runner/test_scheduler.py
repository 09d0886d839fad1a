"""How fast requests are sent, how long failures are waited for, and how a run ends."""

import asyncio
import bisect
import signal
from collections import Counter
from collections.abc import Callable
from pathlib import Path

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.errors import NumbenchError
from numbench.journal.run_folder import read_run
from numbench.records import Completion, Failure
from numbench.runner.active_run import RunInterrupted, TimeLimitReached
from numbench.runner.progress import RunProgress
from numbench.runner.retrying import RATE_LIMIT_ATTEMPTS_FACTOR
from numbench.runner.suite import paper_suite, plan_suite, run_suite
from numbench.runner.throttle import RequestPacer, Throttle
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.runs import QUICK, Moment, go, good, small_dataset, stopping
from tests.support.servers import ReceivedRequest, Reply, Script, google_quota, serve

FINE = Completion(text="x")


def limited(retry_after: float | None = None) -> Completion:
    return Completion(error=Failure(kind="rate_limit", message="slow", retry_after=retry_after))


@each_row(__file__, "throttle_limits")
def test_the_limit_is_halved_by_rate_limits_and_grows_by_one_per_round(
    limit: int, results: str, expected: int
) -> None:
    """A rate limit is -, an answer +."""
    throttle = Throttle(limit)
    for now, result in enumerate(results):
        throttle.start(now)
        throttle.end(FINE if result == "+" else limited(), now, now)
    assert (throttle.limit, throttle.in_flight) == (expected, 0)


def test_rate_limits_of_concurrent_requests_count_once_and_the_longest_pause_holds() -> None:
    throttle = Throttle(16, max_pause=100.0)
    for _ in range(3):
        throttle.start(0.0)
    for result in (limited(2.0), limited(1000.0), None):
        throttle.end(result, 0.0, 1.0)
    assert (throttle.limit, throttle.in_flight) == (8, 0)
    assert [throttle.pause_seconds(now) for now in (1.0, 51.0, 101.0)] == [100.0, 50.0, 0.0]


def test_requests_wait_for_the_first_result_and_for_room_and_no_longer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("numbench.runner.throttle._FIRST_REPLY_SECONDS", servers.FOR_EVER)

    async def main() -> None:
        throttle, started = Throttle(2), list[int]()
        waiting = [asyncio.create_task(throttle.acquire()) for _ in range(4)]
        for _ in range(3):
            for _ in range(20):
                await asyncio.sleep(0)
            started.append(sum(task.done() for task in waiting))
            throttle.end(FINE, 0.0, 0.0)
        assert started == [1, 3, 4]

    asyncio.run(main())


@given(
    st.lists(st.floats(0, 200) | st.floats(0, 2) | st.just(0.0), max_size=100), st.integers(1, 40)
)
def test_no_minute_has_more_requests_than_the_cap(arrivals: list[float], rpm: int) -> None:
    pacer, starts, now = RequestPacer(rpm), list[float](), 0.0
    for arrival in sorted(arrivals):
        now = max(now, arrival)
        now += pacer.seconds_until(now)
        pacer.count(now)
        starts.append(now)
    ends = [bisect.bisect_right(starts, start + 60.0) for start in starts]
    assert all(end - index <= rpm for index, end in enumerate(ends))


def test_a_whole_minute_is_used() -> None:
    pacer, now = RequestPacer(30), 0.0
    for _ in range(91):
        now += pacer.seconds_until(now)
        pacer.count(now)
    assert now < 3.2 * 61


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
    with serve(servers.plain) as server:
        members = plan_suite(list(paper_suite({}, common | {"base_url": server.url})))
        run_suite(members, policy=QUICK)
    providers = Counter(str(each.prepared.description.route).partition("/")[0] for each in members)
    assert sorted(Counter(map(id, used)).values()) == sorted(2 * n for n in providers.values())


def quota() -> Reply:
    """A limit per minute in words that also speak of billing."""
    return google_quota("RequestsPerMinutePerModel", delay="0.01s")


def no_room() -> Reply:
    return servers.error(503, "no room")


@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "first", "last", "fault"),
    [
        ("openai/some", 5, 100, no_room),
        ("openai/some", 0, 150, no_room),
        ("openai/some", 0, 150, lambda: servers.error(529, "no room")),
        *[(f"{name}/some", n, 150, quota) for name in ("openai", "gemini") for n in (0, 5)],
    ],
)
def test_outages_and_rate_limits_are_waited_out_without_failed_items(
    dataset: Path, tmp_path: Path, model: str, first: int, last: int, fault: Callable[[], Reply]
) -> None:
    policy = {"max_backoff": 0.02, "outage_timeout": 60.0}
    states: list[RunProgress] = []
    with serve(
        lambda received: (
            fault() if first < len(server.received) <= last else servers.plain(received)
        )
    ) as server:
        out = tmp_path / "run"
        changes = {"concurrency": 4, "model": model, "on_progress": states.append}
        report = go(server, dataset, out, policy=policy, **changes)
    assert (report.answered, report.errors, report.retries) == (10, 0, last - first)
    # While it waits, the progress says why.
    failures = {state.last_failure for state in states}
    assert any(each.startswith("HTTP ") for each in failures) and states[-1].last_failure == ""


@pytest.mark.slow
@pytest.mark.parametrize(("first", "fault", "concurrency"), [(5, no_room, 1), (0, quota, 16)])
def test_an_outage_or_a_rate_limit_that_lasts_ends_the_run(
    tmp_path: Path, first: int, fault: Callable[[], Reply], concurrency: int
) -> None:
    policy = {"max_backoff": 0.02, "outage_timeout": 0.5}
    data = small_dataset(tmp_path / "more", 30)

    async def script(received: ReceivedRequest) -> Reply:
        return await good(received) if len(server.received) < first else fault()

    with serve(script) as server, pytest.raises(NumbenchError, match="10 requests in a row failed"):
        go(server, data, tmp_path / "run", concurrency=concurrency, policy=policy)
    stored = read_run(tmp_path / "run").responses.values()
    assert sum(bool(response.error) for response in stored) in range(10, 10 + concurrency)


@pytest.mark.parametrize(("status", "attempts"), [(503, 2), (429, 2 * RATE_LIMIT_ATTEMPTS_FACTOR)])
def test_an_item_that_always_fails_alone_is_given_up(
    dataset: Path, tmp_path: Path, status: int, attempts: int
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return servers.error(status) if "5 + 1" in received.prompt else await good(received)

    # One at a time, so that others are answered before: until then, an overload is waited for.
    with serve(script) as server:
        report = go(server, dataset, tmp_path / "run", policy={"max_attempts": 2}, concurrency=1)
        assert (report.answered, report.errors, report.permanent_errors) == (9, 1, 0)
        assert "5 + 1" not in server.received[0].prompt
        assert max(server.counts.values()) == attempts
    assert report.last_error == "scripted"


@pytest.mark.usefixtures("short_waits")
def test_at_the_time_limit_no_new_request_is_sent_and_answers_in_flight_are_stored(
    dataset: Path, tmp_path: Path
) -> None:
    limit = stopping()

    async def slow(received: ReceivedRequest) -> Reply:
        await limit.reached()
        return servers.chat()

    with serve(slow) as server:
        stopped = "^stopped at --time-limit: 1 answered now, 9 still"
        with pytest.raises(TimeLimitReached, match=stopped):
            options = {"concurrency": 1, "time_limit": 0.1, "on_progress": limit}
            go(server, dataset, tmp_path / "run", **options)
        assert (len(server.received), len(read_run(tmp_path / "run").responses)) == (1, 1)
        assert go(server, dataset, tmp_path / "run", time_limit=60).answered == 9


@pytest.mark.parametrize("end", [TimeLimitReached, RunInterrupted])
def test_a_limit_or_an_interrupt_ends_the_wait_for_a_retry(
    dataset: Path, tmp_path: Path, end: type[BaseException]
) -> None:
    stop = Moment(lambda now: now.retries > 0, lambda: signal.raise_signal(signal.SIGTERM))
    changes = {"time_limit": 0.2} if end is TimeLimitReached else {"on_progress": stop}
    with (
        serve(lambda _: servers.error(429, headers={"Retry-After": "3600"})) as server,
        pytest.raises(end, match="10 still open"),
    ):
        go(server, dataset, tmp_path / "run", concurrency=1, **changes)
    assert read_run(tmp_path / "run").responses == {}


@pytest.mark.usefixtures("short_waits")
def test_an_interrupt_after_the_time_limit_ends_the_wait_for_answers(
    dataset: Path, tmp_path: Path
) -> None:
    async def never(received: ReceivedRequest) -> Reply:
        await asyncio.sleep(servers.FOR_EVER)
        return servers.chat()

    interrupt = stopping(lambda: signal.raise_signal(signal.SIGINT))
    with serve(never) as server, pytest.raises(RunInterrupted):
        options = {"time_limit": 0.2, "on_progress": interrupt}
        go(server, dataset, tmp_path / "run", policy={"interrupt_grace": 0.05}, **options)


async def billed(received: ReceivedRequest) -> Reply:
    return servers.chat(usage={"cost": 0.5}, error={"message": "overloaded", "code": 502})


@pytest.mark.parametrize(("fault", "cost"), [(billed, 0.5), (servers.torn, None)])
def test_what_attempts_before_a_refusal_cost_or_may_have_cost_is_recorded(
    dataset: Path, tmp_path: Path, fault: Script, cost: float | None
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) == 1:
            return await fault(received)
        return servers.error(401, "no such key")

    with serve(script) as server, pytest.raises(NumbenchError, match="no such key"):
        go(server, dataset, tmp_path / "run", concurrency=1)
    (response,) = read_run(tmp_path / "run").responses.values()
    assert response.error is not None and response.error.possibly_billed
    assert response.cost == cost
