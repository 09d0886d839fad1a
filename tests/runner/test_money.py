"""What a provider may have billed is stored or counted, and a limit closes no more than it must."""

import asyncio
import os
import re
import signal
import sys
import threading
from collections.abc import Sequence
from pathlib import Path
from typing import Any

import pytest

from numbench.errors import NumbenchError
from numbench.journal.run_folder import JOBS, iter_responses, lost_requests
from numbench.models.base import Message, RequestSettings
from numbench.models.failures import connection_failure, failed_completion
from numbench.models.hosted_model import HostedModel
from numbench.records import Completion
from numbench.runner.active_run import CostLimitReached, RunInterrupted
from numbench.runner.progress import RunProgress, RunReport
from numbench.runner.spec import RunSpec
from numbench.runner.suite import plan_suite, run_suite
from tests.runner.batch_provider import (
    CLAUDE,
    EVERY,
    AnthropicProvider,
    Provider,
    Providers,
    states,
    submit_only,
)
from tests.support import servers
from tests.support.runs import MODEL, QUICK, Moment, go, good, set_prices, small_dataset, stopping
from tests.support.servers import ReceivedRequest, Reply, Server, serve

pytestmark = pytest.mark.usefixtures("short_waits")

ROUTER = "openrouter/some"


def lost(out: Path) -> int:
    return sum(each.possibly_billed_attempts for each in iter_responses(out))


def answers(out: Path) -> int:
    return sum(response.error is None for response in iter_responses(out))


@pytest.mark.parametrize(
    ("status", "fields"), [(401, {}), (404, {}), (429, {"code": "billing_not_active"}), (402, {})]
)
def test_a_refusal_in_the_first_reply_waits_for_the_answers_in_flight(
    dataset: Path, tmp_path: Path, status: int, fields: dict[str, Any]
) -> None:
    refused = stopping()

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) == 1:
            while len(server.received) < 10:
                await asyncio.sleep(0.01)
            return servers.error(status, "refused", **fields)
        await refused.reached()
        return await good(received)

    with serve(script) as server:
        with pytest.raises(
            NumbenchError, match=r"refused; .*9 answered now, 1 still open"
        ) as error:
            go(server, dataset, tmp_path / "run", model=ROUTER, on_progress=refused)
        assert "the same command continues" in str(error.value)
    assert (answers(tmp_path / "run"), lost(tmp_path / "run")) == (9, 0)


def test_what_an_interrupt_cuts_off_after_a_refusal_is_counted(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    notes: set[str] = set()

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) == 10:
            return servers.error(401, "refused")
        await asyncio.sleep(servers.FOR_EVER)
        return servers.chat()

    def watch(progress: RunProgress) -> None:
        if progress.note and progress.in_flight == 9 and not notes:
            notes.add(progress.note)
            os.kill(os.getpid(), signal.SIGINT)

    with serve(script) as server, pytest.raises(NumbenchError, match="9 lost answers may be bil"):
        go(server, dataset, tmp_path / "run", on_progress=watch, policy={"interrupt_grace": 0.05})
    assert notes == {"stopping: waiting for requests in flight"}
    assert lost(tmp_path / "run") == 9


def test_what_failed_before_an_answer_whose_sync_is_cut_off_costs_nothing_twice(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The disk is slower than the grace after an interrupt; an attempt before has cost $0.25."""
    sync, close = os.fsync, HostedModel.close
    is_syncing, is_cut_off = threading.Event(), threading.Event()

    def slow(file: int) -> None:
        if threading.current_thread().name.startswith("journal") and not is_syncing.is_set():
            is_syncing.set()
            os.kill(os.getpid(), signal.SIGINT)
            is_cut_off.wait(5)
        sync(file)

    async def closing(self: HostedModel) -> None:
        is_cut_off.set()
        await close(self)

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) > 1:
            return await good(received)
        return servers.chat(usage={"cost": 0.25}, error={"message": "overloaded", "code": 503})

    monkeypatch.setattr(os, "fsync", slow)
    monkeypatch.setattr(HostedModel, "close", closing)
    out, seen = tmp_path / "run", list[RunProgress]()
    with serve(script) as server:
        with pytest.raises(RunInterrupted):
            go(server, dataset, out, concurrency=1, policy={"interrupt_grace": 0.05})
        assert is_cut_off.is_set() and answers(out) == 1
        assert go(server, dataset, out, on_progress=seen.append).answered == 9
    costs = [response.cost or 0.0 for response in iter_responses(out)]
    assert sum(costs) == seen[-1].overall.cost == 0.25 + 10 * 0.5


def test_an_attempt_that_was_rejected_is_not_in_flight_any_more(
    dataset: Path, tmp_path: Path
) -> None:
    """A process that is killed now leaves one attempt that may be billed, not two."""
    out, in_flight = tmp_path / "run", []

    async def script(received: ReceivedRequest) -> Reply:
        if received.number == 0:
            return servers.error(429, headers={"Retry-After": "0"})
        lost = lost_requests(out)
        in_flight.append(sum(response.attempts for response in lost))
        return servers.chat()

    with serve(script) as server:
        go(server, dataset, out, concurrency=1)
    # New items are sent first, so the others were all rejected before.
    assert in_flight == 10 * [1]


def test_a_connection_that_cannot_be_opened_forgets_no_request_on_another(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """The system has file descriptors for four connections, and no reply has come yet."""
    answer, count = HostedModel.answer, 0

    async def few(
        self: HostedModel, messages: Sequence[Message], settings: RequestSettings
    ) -> Completion:
        nonlocal count
        count += 1
        if count > 4:
            failure = connection_failure("cannot connect: Too many open files", was_sent=False)
            return failed_completion(failure)
        return await answer(self, messages, settings)

    monkeypatch.setattr(HostedModel, "answer", few)
    failed = stopping()

    async def script(received: ReceivedRequest) -> Reply:
        await failed.reached()
        return await good(received)

    with serve(script) as server:
        with pytest.raises(NumbenchError, match=r"Too many open files; .*4 answered now") as caught:
            go(server, dataset, tmp_path / "run", on_progress=failed)
        assert "no server at" not in str(caught.value)
    assert answers(tmp_path / "run") == 4


@EVERY
@pytest.mark.parametrize("narrower", [{"limit": 1}, {"tasks": ["addition"]}])
def test_a_narrower_call_stores_all_that_a_job_of_a_wider_one_answers(
    dataset: Path, tmp_path: Path, model: str, provider_of: Providers, narrower: dict[str, Any]
) -> None:
    provider, out = provider_of(polls=10**9), tmp_path / "run"
    with serve(provider) as server:
        submit_only(server, dataset, out, model=model)
        provider.polls = sum(provider.seen.values()) + 1
        go(server, dataset, out, model=model, batch=True, **narrower)
        assert states(out) == ["collected"] and answers(out) == 10
        assert go(server, dataset, out, model=model, batch=True).skipped == 10
    assert len(provider.jobs) == 1


def test_results_of_a_job_that_was_given_up_and_found_again_are_stored(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Both jobs were paid for, so both are in the journal."""
    policy = {"job_lookup_timeout": 0.0}
    provider, is_listed, out = Provider(), False, tmp_path / "run"

    async def script(received: ReceivedRequest) -> Reply:
        method, path = received.request.method, received.path
        if (method, path) == ("POST", "/batches") and not provider.jobs:
            await provider(received)
            return servers.error(401)
        if (method, path) == ("GET", "/batches") and not is_listed:
            provider_jobs, provider.jobs = provider.jobs, []
            reply = await provider(received)
            provider.jobs = provider_jobs
            return reply
        return await provider(received)

    with serve(script) as server:
        with pytest.raises(NumbenchError, match="401"):
            go(server, dataset, out, batch=True, policy=policy)
        # The clock was wrong when the first job was planned.
        jobs = (out / JOBS).read_bytes()
        (out / JOBS).write_bytes(jobs.replace(b'"at":"2', b'"at":"3'))
        go(server, dataset, out, batch=True, policy=policy, time_limit=60.0)
        assert states(out) == ["lost", "collected"]
        assert (answers(out), len(provider.jobs)) == (10, 2)
        is_listed = True
        go(server, dataset, out, batch=True, policy=policy)
    assert answers(out) == 20
    assert states(out) == ["collected", "collected"]


@pytest.mark.parametrize(("status", "billed"), [(400, 0), (401, 0), (502, 4)])
def test_only_what_a_provider_may_have_accepted_of_a_batch_counts_as_possibly_billed(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, status: int, billed: int
) -> None:
    """The first of three jobs is accepted; the second is refused, or its reply is lost."""
    monkeypatch.setattr("numbench.models.batch_services.OpenAIBatchService.max_requests", 4)
    set_prices(monkeypatch, tmp_path, {MODEL: (0, 1e6)})
    provider, count = Provider(polls=10**9), 0

    async def script(received: ReceivedRequest) -> Reply:
        nonlocal count
        if (received.request.method, received.path) == ("POST", "/batches"):
            count += 1
            if count > 1:
                return servers.error(status, "no more jobs")
        return await provider(received)

    with serve(script) as server, pytest.raises(NumbenchError) as caught:
        go(server, dataset, tmp_path / "run", batch=True, max_tokens=3, max_cost=1000)
    assert f"up to ${1.5 * (4 + billed):.4f} more may be billed" in str(caught.value)


def test_a_queue_that_stays_full_is_waited_for_ever_longer_and_then_given_up(
    dataset: Path, tmp_path: Path
) -> None:
    provider, notes = Provider(), list[str]()

    def finish(name: str) -> None:
        error = {"code": "token_limit_exceeded", "message": "enqueued token limit reached"}
        provider._job(name).update(status="failed", errors={"data": [error]})

    def watch(progress: RunProgress) -> None:
        notes.append(progress.note)

    provider.finish = finish  # type: ignore[method-assign]
    with serve(provider) as server:
        with pytest.raises(NumbenchError, match=r"stays full: enqueued token limit .*again later"):
            policy = {"poll_interval": 0.001, "max_poll_interval": 0.002}
            go(server, dataset, tmp_path / "run", batch=True, on_progress=watch, policy=policy)
        assert len(provider.jobs) == 21
        assert any("the provider's queue is full: next batch job in" in note for note in notes)
        provider.finish = Provider.finish.__get__(provider)  # type: ignore[method-assign]
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10


def suite(server: Server, dataset: Path, out: Path, models: Sequence[str], **more: Any) -> Any:
    common: dict[str, Any] = {"dataset": dataset, "base_url": server.url} | more
    return plan_suite(
        [RunSpec(name, out=out / name.replace("/", "-"), **common) for name in models]
    )


@pytest.mark.parametrize(
    ("models", "changes"),
    [((MODEL, CLAUDE), {"limit": 1, "max_cost": 16}), ((MODEL,), {"limit": 2, "max_cost": 14})],
)
def test_a_batch_waits_for_what_active_jobs_of_any_run_leave_of_the_limit(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    models: Sequence[str],
    changes: dict[str, Any],
) -> None:
    """An answer may cost $6, and costs $2."""
    monkeypatch.setattr("numbench.models.batch_services.OpenAIBatchService.max_requests", 1)
    set_prices(monkeypatch, tmp_path, {MODEL: (0, 1e6), CLAUDE: (0, 1e6)})
    one, other = Provider(), AnthropicProvider()
    with serve(lambda r: other(r) if "messages" in r.path else one(r)) as server:
        common = {"batch": True, "max_tokens": 12, "time_limit": 60} | changes
        reports = run_suite(suite(server, dataset, tmp_path, models, **common), policy=QUICK)
    assert sum(report.answered for report in reports) == 4


def test_a_run_that_is_too_expensive_for_a_limit_does_not_stop_a_cheaper_one(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    dollars = {"openai/dear": (0.0, 1e6), "openai/cheap": (0.0, 1e4)}
    set_prices(monkeypatch, tmp_path, dollars)
    usage = {"prompt_tokens": 10, "completion_tokens": 4}
    with serve(lambda _: servers.chat(usage=usage)) as server:
        members = suite(
            server, dataset, tmp_path, ["openai/dear", "openai/cheap"], max_cost=3, max_tokens=4
        )
        done: list[RunReport] = []
        with pytest.raises(CostLimitReached, match=r"^openai/dear default: stopped"):
            run_suite(members, policy=QUICK, on_done=done.append)
    assert [report.answered for report in done] == [10]
    assert len(server.received) == 10


def test_a_task_that_is_too_expensive_for_a_limit_does_not_stop_a_cheaper_one(
    dataset: Path, tmp_path: Path
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        dollars = 1.0 if "minimum" in received.prompt else 0.1
        return servers.chat(usage={"cost": dollars})

    with serve(script) as server:
        out = tmp_path / "run"
        go(server, dataset, out, model=ROUTER, limit=1)
        # The sum of the answers is 1.5 but for rounding.
        with pytest.raises(CostLimitReached, match=r"before exceeding .*4 answered now, 4 still o"):
            go(server, dataset, out, model=ROUTER, max_cost=1.5)


def test_a_rate_limit_near_the_cost_limit_fails_no_item(dataset: Path, tmp_path: Path) -> None:
    """One answer is far more expensive than any before; the other requests are limited then."""
    counted = Moment(lambda now: (now.overall.cost or 0.0) > 0.9)

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) <= 4:
            return servers.chat(usage={"cost": 0.01})
        if len(server.received) == 5:
            while len(server.received) < 8:
                await asyncio.sleep(0.01)
            return servers.chat(usage={"cost": 0.9})
        if received.number == 0:
            await counted.reached()
            return servers.error(429, "slow down", headers={"Retry-After": "0"})
        return servers.chat(usage={"cost": 0.01})

    data, out = small_dataset(tmp_path / "more", 30), tmp_path / "run"
    with serve(script) as server, pytest.raises(CostLimitReached) as caught:
        go(server, data, out, model=ROUTER, concurrency=4, max_cost=1.0, on_progress=counted)
    assert caught.value.report.errors == 0


@pytest.mark.parametrize("error", [BrokenPipeError(32, "Broken pipe"), OSError(5, "I/O error")])
def test_a_suite_goes_on_when_its_reports_cannot_be_printed(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: Any, error: OSError
) -> None:
    def fail(report: object) -> None:
        raise error

    monkeypatch.setenv("TERM", "xterm")
    monkeypatch.setattr(sys.stderr, "isatty", lambda: True)
    with serve(servers.plain) as server:
        members = suite(server, dataset, tmp_path / "out", ["openai/a", "gemini/b", "openai/c"])
        reports = run_suite(members, policy=QUICK, on_done=fail, on_failed=fail)
    assert [report.answered for report in reports] == [10, 10, 10]
    # A terminal shows one table at a time, so the progress of two providers is shown as lines.
    assert "\x1b" not in capsys.readouterr().err


def test_after_an_interrupt_no_other_run_of_a_suite_begins(dataset: Path, tmp_path: Path) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) == 1:
            os.kill(os.getpid(), signal.SIGINT)
        return servers.plain(received)

    with serve(script) as server, pytest.raises(RunInterrupted):
        members = suite(server, dataset, tmp_path, ["openai/a", "openai/b"], concurrency=1)
        run_suite(members, policy=QUICK)
    assert {received.body["model"] for received in server.received} == {"a"}


def test_an_unexpected_error_is_raised_once_the_other_runs_have_stored_their_answers(
    dataset: Path, tmp_path: Path
) -> None:
    is_raised = threading.Event()

    def fail(report: RunReport) -> None:
        is_raised.set()
        raise RuntimeError("unexpected")

    async def script(received: ReceivedRequest) -> Reply:
        while "contents" in received.body and not is_raised.is_set():
            await asyncio.sleep(0.01)
        return servers.plain(received)

    with serve(script) as server, pytest.raises(RuntimeError, match="unexpected"):
        members = suite(server, dataset, tmp_path, ["openai/a", "gemini/b"])
        run_suite(members, policy=QUICK, on_done=fail)
    assert answers(tmp_path / "gemini-b") == 10


def test_a_run_that_cannot_be_written_or_answered_has_failed_and_ends_no_other(
    dataset: Path, tmp_path: Path
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        is_bad = received.body["model"] == "bad"
        return servers.error(400, "content_filter") if is_bad else await good(received)

    failures, names = list[str](), ["openai/closed", "openai/bad", "openai/fine"]
    with serve(script) as server:
        members = suite(server, dataset, tmp_path, names, prompts="steps")
        (tmp_path / "openai-closed").mkdir()
        (tmp_path / "openai-closed/prompts").write_text("no folder")
        failed = re.escape("2 of 3 runs failed (openai/closed default, openai/bad default)")
        with pytest.raises(NumbenchError, match=failed):
            run_suite(members, policy=QUICK, on_failed=failures.append)
        assert len(server.received) == 20
    closed, failure = failures
    assert "prompts" in closed
    assert "nothing was answered; last failure: content_filter" in failure
