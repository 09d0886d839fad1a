"""Caps on requests and tokens per minute, on a simulated clock and in whole runs."""

from __future__ import annotations

import asyncio
import bisect
import math
from collections import Counter
from pathlib import Path
from typing import NamedTuple

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.errors import BadInput
from numbench.records import Completion, Failure, Usage
from numbench.runner.rate_caps import WINDOW_SECONDS, RateCaps
from numbench.runner.spec import RunSpec
from numbench.runner.suite import plan_suite, run_suite
from numbench.runner.throttle import Throttle
from tests import servers
from tests.runner.test_run import _quick, dataset, go, run_with, small_dataset
from tests.servers import ReceivedRequest, Reply, serve
from tests.simulated_time import run_simulated
from tests.test_cli import numbench

__all__ = ["_quick", "dataset"]

MINUTE = 60.0


class Request(NamedTuple):
    """A request to simulate: when it arrives, how long it takes, and its tokens.

    expected: before it is sent, None if unknown; taken: as reported, None if unknown.
    """

    arrival: float
    seconds: float
    expected: float | None
    taken: int | None
    failure: str | None


class Sent(NamedTuple):
    """A request as it was sent."""

    start: float
    end: float
    request: Request


def simulate(
    requests: list[Request], rpm: int | None, tpm: int | None, concurrency: int
) -> list[Sent]:
    """Send requests through a throttle with caps; return them in the order of their start."""
    sent: list[Sent] = []

    async def send(throttle: Throttle, request: Request) -> None:
        loop = asyncio.get_running_loop()
        await asyncio.sleep(request.arrival)
        async with throttle.slot(lambda: request.expected) as slot:
            assert slot.start == loop.time()
            await asyncio.sleep(request.seconds)
            usage = Usage()
            if request.taken is not None:
                usage = Usage(
                    input=request.taken // 3, generated=request.taken - request.taken // 3
                )
            error = Failure(kind=request.failure, message="") if request.failure else None  # type: ignore[arg-type]
            throttle.record(Completion(usage=usage, error=error), slot)
            sent.append(Sent(slot.start, loop.time(), request))

    async def main() -> None:
        throttle = Throttle(concurrency, caps=RateCaps(rpm, tpm))
        async with asyncio.TaskGroup() as group:
            for request in requests:
                group.create_task(send(throttle, request))

    run_simulated(main())
    return sorted(sent, key=lambda each: each.start)


def most_in_a_minute(events: list[tuple[float, float]]) -> float:
    """The largest sum of the amounts of events, each at a time, in a closed window of a minute."""
    events = sorted(events)
    times = [time for time, _ in events]
    sums = [0.0]
    for _, amount in events:
        sums.append(sums[-1] + amount)
    ends = [bisect.bisect_right(times, time + MINUTE) for time in times]
    return max((sums[end] - sums[i] for i, end in enumerate(ends)), default=0.0)


seconds = st.floats(0, 200) | st.floats(0, 2) | st.just(0.0)
failures = st.sampled_from([None, None, None, "rate_limit", "transient"])
tokens = st.integers(0, 3000)


@given(
    st.lists(st.builds(Request, seconds, seconds, st.none(), st.none(), failures), max_size=60),
    st.integers(1, 40),
    st.integers(1, 30),
)
def test_no_minute_has_more_requests_than_the_cap(
    requests: list[Request], rpm: int, concurrency: int
) -> None:
    sent = simulate(requests, rpm, None, concurrency)
    assert len(sent) == len(requests)
    assert most_in_a_minute([(each.start, 1) for each in sent]) <= rpm


@given(
    st.lists(
        st.builds(
            Request, seconds, seconds, st.none() | st.floats(0, 3000), st.none() | tokens, failures
        ),
        max_size=60,
    ),
    st.integers(1, 5000),
    st.none() | st.integers(1, 40),
    st.integers(1, 30),
)
def test_no_minute_has_more_tokens_than_the_cap_except_for_the_unexpected_ones(
    requests: list[Request], tpm: int, rpm: int | None, concurrency: int
) -> None:
    """Worked out from what was sent and reported alone, for the tokens of the requests sent."""
    sent = simulate(requests, rpm, tpm, concurrency)
    assert len(sent) == len(requests)
    known: list[tuple[float, float]] = []
    excess: list[tuple[float, float]] = []
    for start, end, request in sent:
        reserved = tpm if request.expected is None else min(math.ceil(request.expected), tpm)
        taken = reserved if request.taken is None else request.taken
        known.append((start, min(taken, reserved)))
        excess.append((end, max(taken - reserved, 0)))
    assert most_in_a_minute(known) <= tpm
    # A request starts only if it fits together with what earlier ones took unexpectedly.
    for start, _, request in sent:
        reserved = tpm if request.expected is None else min(math.ceil(request.expected), tpm)
        before = [(time, amount) for time, amount in (*known, *excess) if time < start]
        in_window = sum(amount for time, amount in before if time >= start - MINUTE)
        assert in_window + reserved <= tpm or in_window == 0
    if rpm is not None:
        assert most_in_a_minute([(each.start, 1) for each in sent]) <= rpm


@pytest.mark.parametrize(("rpm", "tpm"), [(120, None), (None, 12_000), (120, 12_000)])
def test_a_cap_is_used_to_the_full(rpm: int | None, tpm: int | None) -> None:
    """600 requests of 100 tokens at 120 per minute take five minutes, evenly."""
    sent = simulate([Request(0, 20.0, 100, 100, None)] * 600, rpm, tpm, 64)
    assert 4 * WINDOW_SECONDS <= sent[-1].start <= 5 * WINDOW_SECONDS
    if rpm:
        halves = [sum(i * 30 <= each.start < (i + 1) * 30 for each in sent) for i in range(9)]
        assert min(halves) >= 57
        assert max(halves) <= 63


def test_a_request_of_unknown_length_goes_first_and_its_answer_makes_room() -> None:
    requests = [Request(0, 5.0, None, 100, None), *[Request(1, 1.0, 100, 100, None)] * 8]
    starts = [each.start for each in simulate(requests, None, 1000, 64)]
    assert starts == [0.0] + [5.0] * 8


def test_requests_that_waited_while_nothing_was_known_do_not_each_take_the_whole_cap() -> None:
    known: list[float] = []
    starts: list[float] = []

    async def send(throttle: Throttle) -> None:
        async with throttle.slot(lambda: max(known, default=None)) as slot:
            starts.append(slot.start)
            await asyncio.sleep(5)
            throttle.record(Completion(usage=Usage(input=50, generated=50)), slot)
            known.append(100)

    async def main() -> None:
        throttle = Throttle(64, caps=RateCaps(tpm=1000))
        async with asyncio.TaskGroup() as group:
            for _ in range(10):
                group.create_task(send(throttle))

    run_simulated(main())
    assert starts == [0.0] + [5.0] * 9


def test_tokens_that_are_given_back_shorten_a_wait() -> None:
    first, second = Request(0, 1, 400, 400, None), Request(20, 10, 600, 300, None)
    sent = simulate([first, second, Request(21, 1, 600, 600, None)], None, 1000, 9)
    assert [each.start for each in sent] == [0.0, 20.0, WINDOW_SECONDS]


def test_a_request_larger_than_the_cap_is_sent_alone() -> None:
    starts = [each.start for each in simulate([Request(0, 1, 5000, 5000, None)] * 3, None, 1000, 9)]
    # What it took beyond the cap counts from its answer on.
    assert starts == pytest.approx([0.0, 1 + WINDOW_SECONDS, 2 + 2 * WINDOW_SECONDS])


def test_the_end_of_a_run_releases_requests_without_counting_them() -> None:
    async def main() -> None:
        caps = RateCaps(rpm=1)
        throttle = Throttle(5, caps=caps)
        async with throttle.slot():
            waiting = [asyncio.create_task(_enter(throttle)) for _ in range(3)]
            await asyncio.sleep(0)
            assert throttle.cap_seconds == WINDOW_SECONDS
            throttle.release()
            await asyncio.gather(*waiting)
        assert throttle.cap_seconds == 0.0
        assert caps.seconds_until(None, WINDOW_SECONDS) == 0.0

    run_simulated(main())


async def _enter(throttle: Throttle) -> None:
    async with throttle.slot() as slot:
        assert slot.booking is None


def test_a_cap_below_one_and_caps_of_a_batch_are_refused(dataset: Path) -> None:
    for option in ("rpm", "tpm"):
        with pytest.raises(BadInput, match=f"--{option} 0: give 1 or more"):
            run_with(model="openai/some", dataset=dataset, **{option: 0})
    result = numbench("run", "--model", "openai/some", "--rpm", "5", "--batch")
    assert (result.returncode, "omit them with --batch" in result.stderr) == (2, True)


async def _either(received: ReceivedRequest) -> Reply:
    return servers.gemini() if "contents" in received.body else servers.chat()


def test_the_runs_of_one_provider_in_a_suite_share_their_caps(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    used: list[RateCaps] = []
    book = RateCaps.book

    def record(self: RateCaps, expected_tokens: float | None, now: float) -> object:
        used.append(self)
        return book(self, expected_tokens, now)

    monkeypatch.setattr(RateCaps, "book", record)
    with serve(_either) as server:
        spec = RunSpec("", dataset=dataset, limit=1, out=tmp_path / "runs", base_url=server.url)
        members = plan_suite(spec)
        run_suite(members, rpm=1_000_000)
    providers = Counter(str(each.description.route).partition("/")[0] for each in members)
    assert sorted(Counter(map(id, used)).values()) == sorted(2 * n for n in providers.values())


async def _thousand_tokens(received: ReceivedRequest) -> Reply:
    return servers.chat(usage={"prompt_tokens": 100, "completion_tokens": 900})


def test_a_whole_run_obeys_its_caps(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """With windows of a fifth of a second: the server sees the requests and tokens of each."""
    window = 0.2
    monkeypatch.setattr("numbench.runner.rate_caps.WINDOW_SECONDS", window)
    monkeypatch.setattr("numbench.runner.rate_caps._BURST_SECONDS", 0.0)
    data = small_dataset(tmp_path / "data", 10)
    booked: list[float] = []
    book = RateCaps.book

    def record(self: RateCaps, expected_tokens: float | None, now: float) -> object:
        booked.append(now)
        return book(self, expected_tokens, now)

    monkeypatch.setattr(RateCaps, "book", record)
    with serve(_thousand_tokens) as server:
        report = go(server, data, tmp_path / "rpm", rpm=8, concurrency=16)
        assert report.answered == 20
        assert len(booked) == len(server.received) == 20
        assert all(b - a >= window for a, b in zip(booked, booked[8:], strict=False))
        booked.clear()
        assert go(server, data, tmp_path / "tpm", tpm=5500, concurrency=16).answered == 20
        # The first one goes alone, as nothing is known of its tokens; then five fit.
        assert all(b - a >= window for a, b in zip(booked, booked[5:], strict=False))
