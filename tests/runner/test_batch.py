"""Batch jobs: what is sent and collected, and that nothing is paid twice wherever a run is cut."""

import asyncio
import os
import signal
import subprocess
import sys
import threading
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from numbench.errors import BadInput, NumbenchError
from numbench.journal.run_folder import iter_responses, read_jobs, read_run
from numbench.models.batch_services import AnthropicBatchService, OpenAIBatchService
from numbench.runner.active_run import CostLimitReached, TimeLimitReached
from numbench.runner.planning import plan
from numbench.runner.progress import RunProgress
from numbench.runner.spec import RunSpec
from tests.runner.batch_provider import (
    CLAUDE,
    EVERY,
    AnthropicProvider,
    Provider,
    Providers,
    good,
    states,
    submit_only,
)
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.runs import KEY, MODEL, ROOT, go, set_prices, small_dataset
from tests.support.servers import ReceivedRequest, Reply, serve


@EVERY
def test_a_batch_answers_every_item_once_and_fills_the_same_journal(
    dataset: Path, tmp_path: Path, model: str, provider_of: Providers
) -> None:
    provider = provider_of(polls=3)
    with serve(provider) as server:
        report = go(server, dataset, tmp_path / "run", model=model, batch=True)
        assert (report.answered, report.errors, report.generated_tokens) == (10, 0, 40)
        assert go(server, dataset, tmp_path / "run", model=model, batch=True).skipped == 10
        assert go(server, dataset, tmp_path / "run", model=model).skipped == 10
    assert set(provider.received.values()) == {1}
    assert len(provider.jobs) == 1
    assert states(tmp_path / "run") == ["collected"]
    recorded = read_run(tmp_path / "run")
    assert len(recorded.responses) == 10
    response = next(iter(recorded.responses.values()))
    assert (response.text, response.attempts) == ('{"answer": 1}', 1)
    assert response.batch_job == provider.jobs[0]["id"]


def test_large_runs_are_split_into_jobs_of_the_maximum_size(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(OpenAIBatchService, "max_requests", 4)
    provider = Provider()
    with serve(provider) as server:
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10
    assert [len(provider.requests(job["id"])) for job in provider.jobs] == [2, 4, 4]


def test_after_a_queue_limit_smaller_jobs_are_submitted_one_at_a_time(
    dataset: Path, tmp_path: Path
) -> None:
    provider = Provider()
    taken: list[int] = []

    def finish(name: str) -> None:
        size = len(provider.requests(name))
        taken.append(size)
        if size <= 3:
            Provider.finish(provider, name)
            return
        error = {"code": "token_limit_exceeded", "message": "enqueued token limit reached"}
        provider._job(name).update(status="failed", errors={"data": [error]})

    provider.finish = finish  # type: ignore[method-assign]
    with serve(provider) as server:
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10
    assert taken == [10, 5, 2, 2, 2, 2, 2]


FIVE_DOLLARS = (1e5, 1e6)
"""10 tokens in and 4 out; half by batch."""


@EVERY
def test_a_batch_costs_the_discounted_price(
    dataset: Path,
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    model: str,
    provider_of: Providers,
) -> None:
    set_prices(monkeypatch, tmp_path, {model: FIVE_DOLLARS})
    with serve(provider_of()) as server:
        report = go(server, dataset, tmp_path / "run", model=model, batch=True)
        assert report.cost == pytest.approx(25.0)
    response = next(iter(read_run(tmp_path / "run").responses.values()))
    assert response.cost_source == "price table (2025-03-04), batch"


def test_a_cost_limit_holds_for_batches(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_prices(monkeypatch, tmp_path, {MODEL: FIVE_DOLLARS})
    provider = Provider()

    async def either(received: ReceivedRequest) -> Reply:
        if received.path == "/chat/completions":
            return servers.chat(usage={"prompt_tokens": 10, "completion_tokens": 4})
        return await provider(received)

    with serve(either) as server:
        with pytest.raises(BadInput, match="the cost per item of minmax, addition is unknown"):
            go(server, dataset, tmp_path / "new", batch=True, max_cost=5)
        # Two answers at the full price, $10 together, set the expected cost of an answer.
        go(server, dataset, tmp_path / "run", limit=1)
        with pytest.raises(CostLimitReached, match=r"\$20.0000 spent, 4 answered now, 4 still"):
            go(server, dataset, tmp_path / "run", batch=True, max_cost=24)
        with pytest.raises(CostLimitReached, match="0 answered now, 4 still open"):
            go(server, dataset, tmp_path / "run", batch=True, max_cost=24)
        assert go(server, dataset, tmp_path / "run", batch=True, max_cost=60).answered == 4


def test_while_a_job_is_active_a_run_without_batch_is_refused(
    dataset: Path, tmp_path: Path
) -> None:
    provider = Provider(polls=10**9)
    spec = RunSpec(MODEL, dataset=dataset, out=tmp_path / "run")
    with serve(provider) as server:
        submit_only(server, dataset, tmp_path / "run")
        polls, seldom = provider.seen["batch-0"], {"poll_interval": 99.0}
        with pytest.raises(TimeLimitReached, match=r"jobs continue at the provider.*10 still"):
            go(server, dataset, tmp_path / "run", batch=True, time_limit=0.3, policy=seldom)
        assert provider.seen["batch-0"] <= polls + 2
        with pytest.raises(BadInput, match="with --batch to collect its answers"):
            go(server, dataset, tmp_path / "run")
        planned = plan(RunSpec(**(vars(spec) | {"base_url": server.url, "batch": True})))
        assert (planned.requests, planned.items_in_jobs) == (0, 10)
        provider.polls = provider.seen["batch-0"] + 1
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10
    assert len(provider.jobs) == 1


def test_only_failed_items_are_resubmitted_and_given_up_after_three_jobs(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    set_prices(monkeypatch, tmp_path, {MODEL: FIVE_DOLLARS})
    billed = []

    def answer(request: dict[str, Any], number: int) -> dict[str, Any] | None:
        prompt = request["body"]["messages"][-1]["content"]
        if "1" in prompt and number == 1:
            billed.append(prompt)
            return {
                "status_code": 500,
                "body": good({}, 1)["body"] | {"error": {"message": "later"}},
            }
        if prompt.startswith("What is 2"):
            return None
        if prompt.startswith("What is 3"):
            refusal = {"message": "content filter", "code": "content_filter"}
            return {"status_code": 400, "body": {"error": refusal}}
        return good(request, number)

    provider = Provider(answer=answer)
    with serve(provider) as server:
        report = go(server, dataset, tmp_path / "run", batch=True)
        assert (report.answered, report.errors, report.cost) == (8, 2, 2.5 * (8 + len(billed)))
        responses = read_run(tmp_path / "run").responses.values()
        errors = sorted(response.error.kind for response in responses if response.error)
        assert billed and errors == ["item", "transient"]
        assert len(provider.jobs) == 3
        assert max(provider.received.values()) == 3
        # The next call retries temporary failures, but not permanent ones.
        provider.answer = good
        assert go(server, dataset, tmp_path / "run", batch=True).completed == 1
        assert go(server, dataset, tmp_path / "run", batch=True, retry=("error",)).completed == 1


@each_row(__file__, "late_results")
def test_counted_results_are_awaited_and_may_be_billed_if_they_stay_away(
    dataset: Path, tmp_path: Path, looks: int, counted: int | None, jobs: int, billed: int
) -> None:
    """Without counts a result is awaited for every request."""
    provider, left = Provider(), looks

    def finish(name: str) -> None:
        Provider.finish(provider, name)
        if name == "batch-0":
            provider._job(name)["request_counts"] = counted and {"completed": counted}

    provider.finish = finish  # type: ignore[method-assign]

    async def late(received: ReceivedRequest) -> Reply:
        nonlocal left
        reply = await provider(received)
        if received.path.endswith("content") and left and len(provider.jobs) < 2:
            left -= 1
            assert isinstance(reply, web.Response) and isinstance(reply.body, bytes)
            reply = web.Response(body=reply.body[:-20])
        return reply

    out = tmp_path / "run"
    policy = {"outage_timeout": 0.5 if billed else 1000.0, "job_lookup_timeout": 99.0}
    with serve(late) as server:
        report = go(server, dataset, out, batch=True, policy=policy, time_limit=60.0)
    assert report.answered == 10 and len(provider.jobs) == jobs
    assert sum(one.possibly_billed_attempts for one in iter_responses(out)) == billed


def test_a_failed_job_ends_the_run_with_the_providers_message(
    dataset: Path, tmp_path: Path
) -> None:
    provider = Provider()

    def finish(name: str) -> None:
        error = {"code": "invalid_url_mismatch", "message": "the url does not match"}
        provider._job(name).update(status="failed", errors={"data": [error]})

    provider.finish = finish  # type: ignore[method-assign]
    with serve(provider) as server:
        with pytest.raises(NumbenchError, match=r"batch-0 failed: the url does not match"):
            go(server, dataset, tmp_path / "run", batch=True)
        assert read_run(tmp_path / "run").responses == {}
        del provider.finish  # type: ignore[method-assign]
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10


def test_results_stored_before_a_kill_are_not_stored_twice(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(Provider()) as server:
        go(server, dataset, out, batch=True)
        for name, keep in (("responses.jsonl", 4), ("jobs.jsonl", 2)):
            lines = (out / name).read_bytes().splitlines(keepends=True)
            (out / name).write_bytes(b"".join(lines[:keep]) + lines[keep][:9])
        assert states(out) == ["submitted"]
        report = go(server, dataset, out, batch=True)
        assert (report.answered, report.skipped) == (6, 4)
    assert len((out / "responses.jsonl").read_bytes().splitlines()) == 10


def test_progress_shows_the_state_of_the_jobs(dataset: Path, tmp_path: Path) -> None:
    provider, notes = Provider(polls=4), set()

    def counts(method: str, parts: list[str]) -> None:
        if provider.jobs:
            counted = {"completed": 3, "failed": 1, "total": 10}
            provider.jobs[0] |= {"request_counts": counted}

    provider.before = counts
    with serve(provider) as server:
        watch: Callable[[RunProgress], None] = lambda now: notes.add(now.note)  # noqa: E731
        go(server, dataset, tmp_path / "run", batch=True, on_progress=watch)
    assert "1 batch job at the provider (submitted): 0 of 10 requests done" in notes
    assert "1 batch job at the provider (validating): 4 of 10 requests done" in notes


def truncated(request: dict[str, Any], number: int) -> dict[str, Any]:
    result = good(request, number)
    result["body"]["choices"][0]["finish_reason"] = "length"
    return result


def test_retries_in_a_job_are_collected_by_any_later_call(dataset: Path, tmp_path: Path) -> None:
    provider, out = Provider(answer=truncated), tmp_path / "run"
    with serve(provider) as server:
        assert go(server, dataset, out, batch=True, max_tokens=50).answered == 10
        provider.polls, provider.answer = 10**9, good
        submit_only(server, dataset, out, max_tokens=500, retry=("truncated",))
        assert states(out) == ["collected", "submitted"]
        provider.polls = provider.seen["batch-1"] + 1
        # Neither --retry nor the new limit is given.
        assert go(server, dataset, out, batch=True, max_tokens=50).answered == 10
        assert go(server, dataset, out, batch=True, max_tokens=50).skipped == 10
    assert len(provider.jobs) == 2
    retries = [each for each in iter_responses(out) if each.retry_of is not None]
    notes = [(each.retry_of, each.max_tokens) for each in retries]
    assert notes == [("truncated", 500)] * 10


@EVERY
@pytest.mark.parametrize(("status", "text"), [(502, ""), (200, "{}"), (200, "<"), (401, "")])
def test_a_job_whose_id_was_lost_is_found_by_its_key_as_soon_as_it_is_listed(
    dataset: Path, tmp_path: Path, model: str, provider_of: Providers, status: int, text: str
) -> None:
    provider, looks = provider_of(), 0

    async def script(received: ReceivedRequest) -> Reply:
        nonlocal looks
        method = received.request.method if received.path.endswith("/batches") else ""
        looks += method == "GET"
        if method == "GET" and looks < 3:
            return web.json_response({"data": []})
        reply = await provider(received)
        if method == "POST":
            # The job exists; the response with its id is lost.
            return web.Response(status=status, text=text)
        return reply

    out, options = tmp_path / "run", {"batch": True, "policy": {"job_lookup_timeout": 100.0}}
    with serve(script) as server:
        if status == 401:
            with pytest.raises(NumbenchError, match="401"):
                go(server, dataset, out, model=model, **options)
            assert states(out) == ["planned"]
        report = go(server, dataset, out, model=model, **options)
    assert (report.answered, len(provider.jobs)) == (10, 1)
    assert set(provider.received.values()) == {1}


def test_a_job_without_a_visible_key_is_not_taken_for_another_job_of_its_run(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(AnthropicBatchService, "max_requests", 5)
    provider = AnthropicProvider(polls=3)

    async def script(received: ReceivedRequest) -> Reply:
        reply = await provider(received)
        if received.request.method == "POST" and len(provider.jobs) == 2:
            return servers.anthropic_error(502, "api_error")
        return reply

    with serve(script) as server:
        assert go(server, dataset, tmp_path / "run", model=CLAUDE, batch=True).answered == 10
    assert len(provider.jobs) == 2
    assert set(provider.received.values()) == {1}
    ids = [job.id for job in read_jobs(tmp_path / "run").values()]
    assert sorted(map(str, ids)) == ["msgbatch_0", "msgbatch_1"]


CALL = (
    "import sys; from pathlib import Path\n"
    "from numbench.runner.execution import run\n"
    "from numbench.runner.retrying import RetryPolicy\n"
    "from numbench.runner.spec import RunSpec\n"
    "model, url, data, out = sys.argv[1:]\n"
    "spec = RunSpec(model, dataset=data, out=Path(out), base_url=url, batch=True)\n"
    "run(spec, policy=RetryPolicy(poll_interval=0.01))\n"
)


STEPS = [
    (MODEL, Provider, "POST", "/files"),
    (MODEL, Provider, "POST", "/batches"),
    (MODEL, Provider, "GET", "/batches/batch-0"),
    (MODEL, Provider, "GET", "/files/batch-0-out/content"),
    (CLAUDE, AnthropicProvider, "POST", "/v1/messages/batches"),
    (CLAUDE, AnthropicProvider, "GET", "/v1/messages/batches/msgbatch_0"),
    (CLAUDE, AnthropicProvider, "GET", "/v1/messages/batches/msgbatch_0/results"),
]


# A provider is as before after a request that only reads.
@pytest.mark.slow
@pytest.mark.parametrize(
    ("model", "provider_of", "method", "path", "moment"),
    [(*step, "before") for step in STEPS]
    + [(*step, "behind") for step in STEPS if step[2] == "POST"],
)
def test_after_a_kill_at_any_step_nothing_is_paid_twice(
    tmp_path: Path, model: str, provider_of: Providers, method: str, path: str, moment: str
) -> None:
    dataset, out = small_dataset(tmp_path / "data", 100), tmp_path / "run"
    provider, killed = provider_of(), threading.Event()
    processes: list[subprocess.Popen[bytes]] = []

    async def script(received: ReceivedRequest) -> Reply:
        step = (received.request.method, received.path) == (method, path)
        if step and not killed.is_set():
            if moment == "behind":
                await provider(received)
            killed.set()
            processes[0].send_signal(signal.SIGKILL)
            await asyncio.sleep(servers.FOR_EVER)
        return await provider(received)

    with serve(script) as server:
        command = [sys.executable, "-c", CALL, model, server.url, str(dataset), str(out)]
        processes.append(subprocess.Popen(command, cwd=ROOT, env=os.environ))
        assert processes[0].wait() == -signal.SIGKILL
        assert go(server, dataset, out, model=model, batch=True).answered == 200
    assert len(provider.jobs) == 1
    assert set(provider.received.values()) == {1}
    assert len(read_run(out).responses) == 200
    assert KEY.encode() not in b"".join(
        file.read_bytes() for file in out.rglob("*") if file.is_file()
    )
