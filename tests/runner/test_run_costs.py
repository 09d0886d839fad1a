"""Costs of runs: unreported costs from prices, and cost limits."""

import asyncio
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from numbench.errors import BadInput, NumbenchError
from numbench.journal.run_folder import iter_responses, read_run
from numbench.runner.active_run import CostLimitReached
from numbench.runner.retrying import MAX_LOST_RESPONSES
from tests.runner.cost_scenarios import HIGHEST_COST, Knowledge, share_over_limit, suites_over_limit
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.runs import MODEL, go, good, set_prices, small_dataset
from tests.support.servers import ReceivedRequest, Reply, Script, serve

pytestmark = pytest.mark.slow


async def _without_cost(received: ReceivedRequest) -> Reply:
    return servers.chat(usage={"prompt_tokens": 10, "completion_tokens": 4})


@pytest.mark.parametrize(
    ("script", "model", "has_prices", "cost", "source"),
    [
        (_without_cost, MODEL, True, 50.0, "price table (2025-03-04)"),
        (good, MODEL, True, 5.0, "provider"),
        # Bundled prices are the provider's, not those of other servers with its API.
        (_without_cost, "openai/gpt-5", False, None, None),
    ],
)
def test_a_cost_is_that_of_the_provider_or_of_the_price_table(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    script: Script,
    model: str,
    has_prices: bool,
    cost: float | None,
    source: str | None,
) -> None:
    if has_prices:
        set_prices(monkeypatch, tmp_path, {MODEL: (1e5, 1e6)})
    with serve(script) as server:
        assert go(server, dataset, tmp_path / "run", model=model).cost == cost
    for response in read_run(tmp_path / "run").responses.values():
        assert response.cost_source == source


ROUTER = "openrouter/some"


def _limited(server: servers.Server, dataset: Path, out: Path, **changes: Any) -> CostLimitReached:
    with pytest.raises(CostLimitReached) as caught:
        go(server, dataset, out, **({"model": ROUTER} | changes))
    assert caught.value.exit_code == 3
    assert "\n" not in str(caught.value)
    return caught.value


def test_a_run_stops_before_its_limit_and_resumes_with_a_larger_one(
    dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        stopped = _limited(server, dataset, out, max_cost=2.7)
        assert (stopped.report.answered, stopped.report.cost) == (5, 2.5)
        assert str(stopped) == (
            "stopped before exceeding --max-cost 2.7: $2.5000 spent, 5 answered now, 5 still open, "
            f"saved in {out}; the same command with a larger --max-cost continues"
        )
        assert _limited(server, dataset, out, max_cost=2.7).report.completed == 0
        too_small = _limited(server, dataset, out, max_cost=1)
        assert "nothing was sent, because the run folders have cost more than" in str(too_small)
        assert _limited(server, dataset, out, max_cost=4).report.completed == 3
        assert go(server, dataset, out, model=ROUTER, max_cost=5).completed == 2
        assert len(server.received) == 10
        # Everything is answered, so no limit can be exceeded.
        assert go(server, dataset, out, model=ROUTER, max_cost=0.1).skipped == 10


@pytest.mark.parametrize("concurrency", [1, 3, 16])
def test_requests_in_flight_count_against_the_limit(
    dataset: Path, tmp_path: Path, concurrency: int
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        await asyncio.sleep(0.05)
        return await good(received)

    with serve(script) as server:
        stopped = _limited(server, dataset, tmp_path / "run", max_cost=4, concurrency=concurrency)
        assert stopped.report.cost == 4.0
        assert len(server.received) == 8
        assert server.most_in_flight <= concurrency


@pytest.mark.parametrize("fault", ["timeout", "torn", "error"])
def test_an_answer_that_is_billed_but_lost_counts_against_the_limit(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, fault: str
) -> None:
    """Every request of Add is billed but never answered."""
    billed = 0.0

    async def script(received: ReceivedRequest) -> Reply:
        nonlocal billed
        billed += 0.5
        if "minimum" in received.prompt:
            return await good(received)
        if fault == "timeout":
            await asyncio.sleep(servers.FOR_EVER)
        return await servers.torn(received) if fault == "torn" else servers.error(502)

    out = tmp_path / "run"
    with serve(script) as server:
        stopped = _limited(server, dataset, out, max_cost=4, concurrency=4, timeout=1.0)
        assert billed <= 4.0
        responses = list(iter_responses(out))
        lost = sum(each.possibly_billed_attempts for each in responses)
        assert lost == stopped.report.possibly_billed_attempts > 0
        # The journal knows of everything that was billed, and so does the next call.
        assert sum(r.cost or 0.0 for r in responses) + 0.5 * lost >= billed
        assert f"up to ${0.5 * lost:.4f} more may be billed" in str(stopped)
        _limited(server, dataset, out, max_cost=4, timeout=1.0)
        assert billed <= 4.0


def test_a_lost_answer_is_requested_only_a_few_times(dataset: Path, tmp_path: Path) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if "1 + 1" in received.prompt:
            return await servers.torn(received)
        return await good(received)

    with serve(script) as server:
        report = go(server, dataset, tmp_path / "run", concurrency=1, policy={"max_attempts": 20})
        assert (report.answered, report.errors, report.possibly_billed_attempts) == (9, 1, 3)
        assert max(server.counts.values()) == MAX_LOST_RESPONSES
    lost = [r for r in read_run(tmp_path / "run").responses.values() if r.error]
    assert [r.attempts for r in lost] == [r.possibly_billed_attempts for r in lost] == [3]


@each_row(__file__, "best_effort_limits")
def test_a_run_says_at_its_start_if_a_limit_is_best_effort(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    capsys: pytest.CaptureFixture[str],
    changes: dict[str, Any],
    missing: str,
) -> None:
    set_prices(monkeypatch, tmp_path, {MODEL: (1e5, 1e6)})
    with serve(good) as server:
        arguments = {"max_cost": 1e9, "limit": 1, "on_progress": None} | changes
        assert go(server, dataset, tmp_path / "run", **arguments).answered == 2
    message = (
        "--max-cost 1e+09 is best effort: the most that one answer can cost is unknown without"
    )
    first = capsys.readouterr().err.splitlines()[0]
    assert first == f"{message} {missing}" if missing else "best effort" not in first


def test_requests_that_a_run_cuts_off_before_its_first_answer_may_be_billed(tmp_path: Path) -> None:
    """Every request is billed, and answered after the run has given up on it."""
    billed = 0

    async def script(received: ReceivedRequest) -> Reply:
        nonlocal billed
        billed += 1
        await asyncio.sleep(servers.FOR_EVER)
        return servers.chat()

    dataset, out = small_dataset(tmp_path / "many", 20), tmp_path / "run"
    with serve(script) as server:
        for _ in range(2):
            with pytest.raises(NumbenchError, match="10 requests in a row failed"):
                go(server, dataset, out, timeout=1.0, concurrency=16)
            assert sum(each.possibly_billed_attempts for each in iter_responses(out)) >= billed > 10


def test_requests_that_were_not_processed_are_free(dataset: Path, tmp_path: Path) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if received.number < 4:
            return servers.error(503 if received.number % 2 else 429)
        return await good(received)

    with serve(script) as server:
        report = go(server, dataset, tmp_path / "run", model=ROUTER, max_cost=5)
    assert (report.answered, report.cost, report.possibly_billed_attempts) == (10, 5.0, 0)


def test_a_run_that_loses_every_answer_stops_before_any_cost_is_known(
    dataset: Path, tmp_path: Path
) -> None:
    with serve(lambda _: servers.error(502)) as server:
        stopped = _limited(server, dataset, tmp_path / "run", max_cost=4)
        assert len(server.received) == stopped.report.possibly_billed_attempts <= 6
    assert "lost answers may have been billed, and no cost is known" in str(stopped)


@pytest.mark.parametrize("knowledge", ["highest", "expected", "nothing"])
def test_a_limit_holds_whatever_providers_bill(tmp_path: Path, knowledge: Knowledge) -> None:
    """Without a bound on the cost of one answer, only an unprecedented answer can exceed it."""
    is_known = knowledge == "highest"
    most = 0.0 if is_known else HIGHEST_COST
    assert share_over_limit(range(30), tmp_path / "one", knowledge, most) <= 1 / 30
    assert suites_over_limit(range(10), tmp_path / "all", knowledge) <= (0 if is_known else 0.1)


@each_row(__file__, "counted_costs")
def test_a_request_counts_at_the_published_average_or_at_its_token_limit(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    changes: dict[str, Any],
    answered: int,
) -> None:
    """An answer costs $4; $20 (MinMax) or $21 (Add) are expected, or its limit allows $10."""
    set_prices(monkeypatch, tmp_path, {"openai/gpt-5": (0, 1e6)})
    with serve(_without_cost) as server:
        stopped = _limited(server, dataset, tmp_path / "run", **changes)
    assert (stopped.report.answered, stopped.report.cost) == (answered, 4.0 * answered)


def test_an_answer_without_a_cost_ends_a_limited_run(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(_without_cost) as server:
        stopped = _limited(server, dataset, out, max_cost=10)
        assert "the provider reported no cost for an answer" in str(stopped)
        assert len(server.received) == 1
        with pytest.raises(BadInput, match="the run contains an answer of unknown cost"):
            go(server, dataset, out, model=ROUTER, max_cost=10)
        assert len(server.received) == 1


def test_the_cost_of_failed_attempts_counts_against_the_limit(
    dataset: Path, tmp_path: Path
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if received.number < 2:
            error = {"message": "overloaded", "code": 503}
            return web.json_response({"error": error, "usage": {"cost": 0.25}})
        return await good(received)

    out = tmp_path / "run"
    with serve(script) as server:
        report = go(server, dataset, out, model="openrouter/some", limit=1)
        assert report.cost == 2.0
        response = next(iter(read_run(out).responses.values()))
        assert response.cost == 1.0
        assert response.cost_of_failed_attempts == 0.5
        with pytest.raises(CostLimitReached):
            go(server, dataset, out, model="openrouter/some", max_cost=2.6)
        assert sum(r.cost or 0 for r in read_run(out).responses.values()) <= 2.6


def test_a_failed_attempt_is_repeated_only_as_far_as_the_limit_allows(
    dataset: Path, tmp_path: Path
) -> None:
    """Every attempt fails and costs $0.5."""

    async def script(received: ReceivedRequest) -> Reply:
        error = {"message": "overloaded", "code": 503}
        return web.json_response({"error": error, "usage": {"cost": 0.5}})

    with serve(script) as server:
        stopped = _limited(server, dataset, tmp_path / "run", max_cost=1.2, concurrency=1)
        assert len(server.received) == 2
    assert (stopped.report.cost, stopped.report.errors) == (1.0, 0)
