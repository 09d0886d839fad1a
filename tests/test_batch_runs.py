"""Runs by batch jobs: nothing paid for is lost or asked twice, wherever the run is cut off."""

from __future__ import annotations

import asyncio
import json
import os
import signal
import subprocess
import sys
import threading
from collections import Counter
from collections.abc import Callable, Iterator
from dataclasses import dataclass, field
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from bench.errors import BadInput, NumbenchError
from bench.journal import read_jobs, read_run
from bench.runner import CostReached, Interrupted, TimeReached
from bench.runner import running as runner
from bench.runner.drive import Pace
from bench.runner.planning import plan
from bench.runner.progress import Progress
from bench.runner.spec import RunSpec
from tests import servers
from tests.models.batch_servers import GeminiJobs, OpenAIJobs
from tests.servers import Asked, Reply, serve
from tests.test_runner import KEY, MODEL, ROOT, dataset, go, small_dataset

__all__ = ["dataset"]

Answer = Callable[[dict[str, Any], int], dict[str, Any] | None]
"""The result line for a request, by the request and the number of times that it was asked."""


def good(request: dict[str, Any], number: int) -> dict[str, Any]:
    usage = {"prompt_tokens": 10, "completion_tokens": 4}
    choice = {"index": 0, "finish_reason": "stop", "message": {"content": '{"answer": 1}'}}
    return {"status_code": 200, "body": {"choices": [choice], "usage": usage}}


@dataclass
class Provider(OpenAIJobs):
    """A provider that answers a job as soon as it is asked about for the `polls`-th time."""

    answer: Answer = good
    polls: int = 1
    asked: Counter[str] = field(default_factory=Counter)
    seen: Counter[str] = field(default_factory=Counter)
    before: Callable[[str, list[str]], None] = lambda method, parts: None
    refuse: list[Callable[[], Reply]] = field(default_factory=list)

    async def __call__(self, asked: Asked) -> Reply:
        method, parts = asked.request.method, asked.path.strip("/").split("/")
        self.before(method, parts)
        if self.refuse and (method, parts) == ("POST", ["batches"]):
            return self.refuse.pop(0)()
        if method == "GET" and parts[0] == "batches" and len(parts) == 2:
            self.seen[parts[1]] += 1
            if self.seen[parts[1]] == self.polls:
                self._finish(parts[1])
        return await super().__call__(asked)

    def requests(self, name: str) -> list[dict[str, Any]]:
        """The requests of a job."""
        content = self.files[self._job(name)["input_file_id"]]
        return [json.loads(line) for line in content.splitlines()]

    def _finish(self, name: str) -> None:
        job = self._job(name)
        if job["status"] in ("failed", "completed"):
            return
        results = []
        for request in reversed(self.requests(name)):
            self.asked[request["custom_id"]] += 1
            response = self.answer(request, self.asked[request["custom_id"]])
            if response is not None:
                line = {"custom_id": request["custom_id"], "response": response, "error": None}
                results.append(json.dumps(line))
        self.files[f"{name}-out"] = "\n".join(results).encode()
        job |= {"status": "completed", "output_file_id": f"{name}-out"}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("OPENAI_API_KEY", KEY)
    quick = {"backoff": 0.01, "first_poll": 0.01, "longest_poll": 0.02, "grace": 0.5}
    quick["settling"] = 0.3
    monkeypatch.setattr(runner, "Pace", lambda **changes: Pace(**(quick | changes)))
    yield


def states(out: Path) -> list[str]:
    return [job.state for job in read_jobs(out).values()]


def test_a_batch_answers_every_item_once_and_the_journal_is_the_same(
    dataset: Path, tmp_path: Path
) -> None:
    provider = Provider(polls=3)
    with serve(provider) as server:
        report = go(server, dataset, tmp_path / "run", batch=True)
        assert (report.answered, report.errors, report.generated_tokens) == (10, 0, 40)
        assert go(server, dataset, tmp_path / "run", batch=True).skipped == 10
        assert go(server, dataset, tmp_path / "run").skipped == 10
    assert set(provider.asked.values()) == {1}
    assert len(provider.jobs) == 1
    assert states(tmp_path / "run") == ["collected"]
    recorded = read_run(tmp_path / "run")
    assert len(recorded.responses) == 10
    response = next(iter(recorded.responses.values()))
    assert (response.text, response.attempts) == ('{"answer": 1}', 1)
    assert response.extra["batch_job"] == "batch-0"
    body = provider.requests("batch-0")[0]["body"]
    assert body["messages"][0]["role"] == "system"


def test_only_what_failed_is_submitted_again_and_lost_for_good_after_three_jobs(
    dataset: Path, tmp_path: Path
) -> None:
    def answer(request: dict[str, Any], number: int) -> dict[str, Any] | None:
        prompt = request["body"]["messages"][-1]["content"]
        if "1" in prompt and number == 1:
            return {"status_code": 500, "body": {"error": {"message": "later"}}}
        if prompt.startswith("What is 2"):
            return None
        if prompt.startswith("What is 3"):
            refusal = {"message": "content filter", "code": "content_filter"}
            return {"status_code": 400, "body": {"error": refusal}}
        return good(request, number)

    provider = Provider(answer=answer)
    with serve(provider) as server:
        report = go(server, dataset, tmp_path / "run", batch=True)
        assert (report.answered, report.errors) == (8, 2)
        errors = {
            prompt: response.error.kind
            for response in read_run(tmp_path / "run").responses.values()
            if response.error
            for prompt in [response.item_id]
        }
        assert sorted(errors.values()) == ["item", "transient"]
        assert len(provider.jobs) == 3
        assert max(provider.asked.values()) == 3
        # What may have passed is asked again by the next call, what is final is not.
        provider.answer = good
        assert go(server, dataset, tmp_path / "run", batch=True).asked == 1
        assert go(server, dataset, tmp_path / "run", batch=True, retry_errors=True).asked == 1


def test_large_runs_are_cut_into_jobs_of_the_size_that_the_provider_takes(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from bench.models.openai_batch import OpenAIBatches

    monkeypatch.setattr(OpenAIBatches, "most_requests", 4)
    provider = Provider()
    with serve(provider) as server:
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10
    assert [len(provider.requests(job["id"])) for job in provider.jobs] == [2, 4, 4]


def test_a_job_refused_for_its_size_is_tried_smaller_and_alone(
    dataset: Path, tmp_path: Path
) -> None:
    provider = Provider()
    taken: list[int] = []

    def finish(name: str) -> None:
        size = len(provider.requests(name))
        taken.append(size)
        if size <= 3:
            Provider._finish(provider, name)
            return
        error = {"code": "token_limit_exceeded", "message": "enqueued token limit reached"}
        provider._job(name).update(status="failed", errors={"data": [error]})

    provider._finish = finish  # type: ignore[method-assign]
    with serve(provider) as server:
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10
    assert taken == [10, 5, 2, 2, 2, 2, 2]


def test_a_job_that_fails_as_a_whole_ends_the_run_with_the_provider_s_words(
    dataset: Path, tmp_path: Path
) -> None:
    provider = Provider()

    def finish(name: str) -> None:
        error = {"code": "invalid_url_mismatch", "message": "the url does not match"}
        provider._job(name).update(status="failed", errors={"data": [error]})

    provider._finish = finish  # type: ignore[method-assign]
    with serve(provider) as server:
        with pytest.raises(NumbenchError, match=r"batch-0 failed: the url does not match"):
            go(server, dataset, tmp_path / "run", batch=True)
        assert read_run(tmp_path / "run").responses == {}
        del provider._finish  # type: ignore[method-assign]
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10


def test_a_job_whose_id_was_never_heard_is_found_again_by_its_key(
    dataset: Path, tmp_path: Path
) -> None:
    provider = Provider()

    async def script(asked: Asked) -> Reply:
        reply = await provider(asked)
        if (asked.request.method, asked.path) == ("POST", "/batches") and len(provider.jobs) == 1:
            # The job exists; its id is lost on the way.
            return servers.error(502)
        return reply

    with serve(script) as server:
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10
    assert len(provider.jobs) == 1
    assert set(provider.asked.values()) == {1}


@pytest.mark.parametrize("polls", [2, 10**9])
def test_a_job_that_shows_late_is_not_submitted_twice(
    dataset: Path, tmp_path: Path, polls: int
) -> None:
    """Cut off while the provider was still at it: at first it lists no such job."""
    provider, lists = Provider(), 0

    async def script(asked: Asked) -> Reply:
        nonlocal lists
        if (asked.request.method, asked.path) == ("POST", "/batches") and not provider.jobs:
            await provider(asked)
            return servers.error(401)
        if (asked.request.method, asked.path) == ("GET", "/batches"):
            lists += 1
            if lists < polls:
                return web.json_response({"data": [], "has_more": False})
        return await provider(asked)

    with serve(script) as server:
        with pytest.raises(NumbenchError, match="401"):
            go(server, dataset, tmp_path / "run", batch=True)
        assert states(tmp_path / "run") == ["planned"]
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10
        if polls == 2:
            assert len(provider.jobs) == 1
            return
        # It was given up, and asked in another job; the next call still takes it up.
        assert states(tmp_path / "run") == ["lost", "collected"]
        polls = 0
        go(server, dataset, tmp_path / "run", batch=True)
    assert states(tmp_path / "run") == ["collected", "collected"]


def test_while_a_job_is_under_way_nothing_is_asked_in_another_way(
    dataset: Path, tmp_path: Path
) -> None:
    provider = Provider(polls=10**9)
    spec = RunSpec(MODEL, dataset=dataset, out=tmp_path / "run")
    with serve(provider) as server:
        with pytest.raises(TimeReached, match=r"10 still open; the jobs go on at the provider"):
            go(server, dataset, tmp_path / "run", batch=True, time_limit=0.3)
        assert states(tmp_path / "run") == ["submitted"]
        with pytest.raises(BadInput, match="--batch collects its answers"):
            go(server, dataset, tmp_path / "run")
        planned = plan(RunSpec(**(vars(spec) | {"base_url": server.url})), batch=True)
        assert (planned.requests, planned.in_jobs) == (0, 10)
        provider.polls = provider.seen["batch-0"] + 1
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10
    assert len(provider.jobs) == 1


def test_an_interrupt_leaves_the_job_at_the_provider(dataset: Path, tmp_path: Path) -> None:
    provider = Provider(polls=10**9)

    def interrupt(method: str, parts: list[str]) -> None:
        if method == "GET" and provider.seen["batch-0"] == 3:
            os.kill(os.getpid(), signal.SIGINT)

    provider.before = interrupt
    with serve(provider) as server:
        with pytest.raises(Interrupted):
            go(server, dataset, tmp_path / "run", batch=True)
        provider.before = lambda method, parts: None
        provider.polls = provider.seen["batch-0"] + 1
        assert go(server, dataset, tmp_path / "run", batch=True).answered == 10
    assert len(provider.jobs) == 1


CALL = (
    "import sys; from pathlib import Path; from bench.runner import running as runner\n"
    "from bench.runner.drive import Pace\n"
    "from bench.runner.spec import RunSpec\n"
    "runner.Pace = lambda **changes: Pace(first_poll=0.01, **changes)\n"
    "url, data, out = sys.argv[1:]\n"
    "spec = RunSpec('openai/some', dataset=data, out=Path(out), base_url=url)\n"
    "runner.run(spec, batch=True)\n"
)


@pytest.mark.parametrize(
    ("method", "path"),
    [
        ("POST", ["files"]),
        ("POST", ["batches"]),
        ("GET", ["batches", "batch-0"]),
        ("GET", ["files", "batch-0-out", "content"]),
    ],
)
@pytest.mark.parametrize("moment", ["before", "behind"])
def test_killed_at_any_step_the_same_command_pays_for_nothing_twice(
    tmp_path: Path, method: str, path: list[str], moment: str
) -> None:
    dataset, out = small_dataset(tmp_path / "data", 100), tmp_path / "run"
    provider, killed = Provider(), threading.Event()
    processes: list[subprocess.Popen[bytes]] = []

    async def script(asked: Asked) -> Reply:
        step = (asked.request.method, asked.path.strip("/").split("/")) == (method, path)
        if step and not killed.is_set():
            if moment == "behind":
                await provider(asked)
            killed.set()
            processes[0].send_signal(signal.SIGKILL)
            await asyncio.sleep(servers.FOR_EVER)
        return await provider(asked)

    with serve(script) as server:
        command = [sys.executable, "-c", CALL, server.url, str(dataset), str(out)]
        environment = os.environ | {"OPENAI_API_KEY": KEY}
        processes.append(subprocess.Popen(command, cwd=ROOT, env=environment))
        assert processes[0].wait() == -signal.SIGKILL
        assert go(server, dataset, out, batch=True).answered == 200
    assert len(provider.jobs) == 1
    assert set(provider.asked.values()) == {1}
    assert len(read_run(out).responses) == 200
    assert KEY.encode() not in b"".join(
        file.read_bytes() for file in out.rglob("*") if file.is_file()
    )


def test_results_journalled_before_a_kill_are_not_taken_twice(
    dataset: Path, tmp_path: Path
) -> None:
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


def prices(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """10 tokens in and 4 out cost five dollars; half by batch."""
    path = folder / "prices.toml"
    path.write_text(f'[[price]]\nroute = "{MODEL}"\ninput = 1e5\noutput = 1e6\ndate = "2025-03"\n')
    monkeypatch.setenv("NUMBENCH_PRICES", str(path))


def test_a_batch_is_billed_at_its_discount(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices(tmp_path, monkeypatch)
    with serve(Provider()) as server:
        assert go(server, dataset, tmp_path / "run", batch=True).cost == pytest.approx(25.0)
    response = next(iter(read_run(tmp_path / "run").responses.values()))
    assert response.extra["cost_source"] == "price table (2025-03), batch"


def test_a_limit_on_the_cost_holds_for_batches(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices(tmp_path, monkeypatch)
    provider = Provider()

    async def either(asked: Asked) -> Reply:
        if asked.path == "/chat/completions":
            return servers.chat(usage={"prompt_tokens": 10, "completion_tokens": 4})
        return await provider(asked)

    with serve(either) as server:
        with pytest.raises(BadInput, match="nobody knows what a question of minmax, addition"):
            go(server, dataset, tmp_path / "new", batch=True, max_cost=5)
        # Two answers at the full price tell what one may cost: 10 dollars, then 5 by batch each.
        go(server, dataset, tmp_path / "run", limit=1)
        with pytest.raises(CostReached, match=r"\$20.0000 spent, 4 answered now, 4 still open"):
            go(server, dataset, tmp_path / "run", batch=True, max_cost=24)
        with pytest.raises(CostReached, match="0 answered now, 4 still open"):
            go(server, dataset, tmp_path / "run", batch=True, max_cost=24)
        assert go(server, dataset, tmp_path / "run", batch=True, max_cost=40).answered == 4


def test_a_suite_or_a_model_without_batches_is_refused(dataset: Path, tmp_path: Path) -> None:
    with serve(Provider()) as server:
        for model in ("openrouter/some", "litellm/openai/some"):
            with pytest.raises(BadInput, match="has no batch API"):
                go(server, dataset, tmp_path / "run", model=model, batch=True)
        with pytest.raises(BadInput, match="leave out --batch"):
            go(server, dataset, tmp_path / "run", model="baseline/float64", batch=True)
    assert not (tmp_path / "run").exists()


def test_gemini_s_jobs_run_as_well(dataset: Path, tmp_path: Path) -> None:
    jobs = GeminiJobs()

    async def script(asked: Asked) -> Reply:
        if asked.request.method == "GET" and asked.path.endswith("job0"):
            count = len(jobs.jobs[0]["asked"])
            answer = {"content": {"parts": [{"text": '{"answer": 2}'}]}, "finishReason": "STOP"}
            jobs.end([{"response": {"candidates": [answer]}} for _ in range(count)])
        reply = await jobs(asked)
        if asked.path.endswith(":batchGenerateContent"):
            requests = asked.body["batch"]["inputConfig"]["requests"]["requests"]
            jobs.jobs[-1]["asked"] = requests
        return reply

    with serve(script) as server:
        of_gemini = {"model": "gemini-2.5-pro", "reasoning": "minimal", "batch": True}
        assert go(server, dataset, tmp_path / "run", **of_gemini).answered == 10
    assert {r.text for r in read_run(tmp_path / "run").responses.values()} == {'{"answer": 2}'}


def test_the_jobs_say_where_they_stand(dataset: Path, tmp_path: Path) -> None:
    provider, notes = Provider(polls=4), set()

    def counts(method: str, parts: list[str]) -> None:
        if provider.jobs:
            counted = {"completed": 3, "failed": 1, "total": 10}
            provider.jobs[0] |= {"request_counts": counted}

    provider.before = counts
    with serve(provider) as server:
        watch: Callable[[Progress], None] = lambda now: notes.add(now.note)  # noqa: E731
        go(server, dataset, tmp_path / "run", batch=True, on_progress=watch)
    assert "1 batch job at the provider (submitted): 0 of 10 done there" in notes
    assert "1 batch job at the provider (validating): 4 of 10 done there" in notes
