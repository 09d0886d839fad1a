"""OpenAI's batch API: requests, and matching of results to their requests."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Awaitable, Callable
from typing import Any, TypeVar

import pytest

from numbench.errors import BadInput
from numbench.models import Api, open_batch, open_model
from numbench.models.base import BatchRequest, BatchService, BatchStatus
from numbench.models.provider_errors import ProviderError
from numbench.records import Completion, Usage
from tests import servers
from tests.models import batch_calls
from tests.models.adapter_calls import KEY
from tests.models.batch_calls import batch_requests, collect
from tests.models.batch_servers import IDS, OpenAIJobs, planned, submitted
from tests.servers import ReceivedRequest, Reply, Script, serve

T = TypeVar("T")


def run_at(
    script: Script,
    work: Callable[[BatchService], Awaitable[T]],
    model: str = "gpt-5",
    level: str = "low",
    api: Api = "chat",
) -> T:
    return batch_calls.run_at(script, work, model, level, api)


def requests(model: str = "gpt-5", level: str = "low") -> list[BatchRequest]:
    return batch_requests(model, level)


def line(identity: str, text: str = "x", status: int = 200, **fields: Any) -> bytes:
    """Return a line of an output file with a Chat response."""
    body = {
        "choices": [{"finish_reason": "stop", "message": {"content": text}}],
        "usage": {"prompt_tokens": 3, "completion_tokens": 9},
    }
    response = {"status_code": status, "request_id": "r", "body": fields.pop("body", body)}
    whole = {"id": "line", "custom_id": identity, "response": response, "error": None} | fields
    return json.dumps(whole).encode() + b"\n"


def error_line(identity: str, code: str, message: str = "why") -> bytes:
    return line(identity, response=None, error={"code": code, "message": message})


def results_of(
    output: bytes | None, errors: bytes | None = None, **job: Any
) -> dict[str, Completion]:
    """Return the results of a job that ended with these files; no id comes twice."""
    provider = OpenAIJobs()

    async def work(service: BatchService) -> list[tuple[str, Completion]]:
        name = await service.submit(requests(), "key")
        provider.end(output, errors, **job)
        return await collect(service, name)

    results = run_at(provider, work)
    assert len(results) == len(dict(results))
    return dict(results)


@pytest.mark.parametrize(
    ("api", "path"), [("chat", "/chat/completions"), ("responses", "/responses")]
)
def test_a_job_is_a_file_with_the_bodies_of_single_requests(api: Api, path: str) -> None:
    provider = OpenAIJobs()
    single: list[dict[str, Any]] = []

    async def script(received: ReceivedRequest) -> Reply:
        if received.path == path:
            # Only single requests are streamed.
            streaming = ("stream", "stream_options")
            single.append({k: v for k, v in received.body.items() if k not in streaming})
            return servers.chat()
        assert received.headers["authorization"] == f"Bearer {KEY}"
        return await provider(received)

    async def work(service: BatchService) -> str:
        sizes = [service.size(request) for request in requests()]
        job = await service.submit(requests(), "run-7")
        assert sum(sizes) == len(provider.files["file-0"])
        return job

    assert run_at(script, work, api=api) == "batch-0"
    assert provider.uploads == [{"purpose": "batch", "filename": "run-7.jsonl"}]
    job = provider.jobs[0]
    assert {key: job[key] for key in ("endpoint", "completion_window", "metadata")} == {
        "endpoint": f"/v1{path}",
        "completion_window": "24h",
        "metadata": {"numbench": "run-7"},
    }

    async def send_single_requests(url: str) -> None:
        opened = open_model("gpt-5", "low", url, api)
        for request in requests():
            await opened.model.answer(request.messages, request.settings)
        await opened.model.close()

    with serve(script) as server:
        asyncio.run(send_single_requests(server.url))
    assert [request["body"] for request in provider.lines()] == single
    assert [request["custom_id"] for request in provider.lines()] == list(IDS)
    assert {(r["method"], r["url"]) for r in provider.lines()} == {("POST", f"/v1{path}")}


def test_results_in_any_order_belong_to_their_own_requests() -> None:
    results = results_of(line("c", "third") + line("a", "first") + line("b", "second"))
    assert {identity: c.text for identity, c in results.items()} == {
        "a": "first",
        "b": "second",
        "c": "third",
    }
    assert results["a"].usage == Usage(input=3, generated=9, source="reported")


def test_results_in_the_responses_format_are_parsed() -> None:
    provider = OpenAIJobs()
    output = [{"type": "message", "content": [{"type": "output_text", "text": "4"}]}]

    async def work(service: BatchService) -> list[tuple[str, Completion]]:
        name = await service.submit(requests(), "key")
        provider.end(line("b", body={"status": "completed", "output": output}))
        return await collect(service, name)

    [(identity, completion)] = run_at(provider, work, api="responses")
    assert (identity, completion.text, completion.finish_reason) == ("b", "4", "stop")


def test_failures_of_single_requests_are_completions_with_their_kind() -> None:
    limited = {"error": {"message": "maximum context length is 8 tokens", "code": "too_long"}}
    results = results_of(
        line("a"),
        line("b", status=400, body=limited)
        + line(
            "c",
            status=500,
            body={
                "error": {"message": KEY},
                "usage": {"prompt_tokens": 3, "completion_tokens": 9},
            },
        ),
    )
    assert results["a"].error is None
    assert results["c"].usage == Usage(input=3, generated=9, source="reported")
    kinds = {i: (c.error.kind, c.error.status) for i, c in results.items() if c.error}
    assert kinds == {"b": ("item", 400), "c": ("transient", 500)}
    assert KEY not in str(results)


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("batch_expired", "transient"),
        ("batch_cancelled", "transient"),
        ("server_error", "transient"),
        ("content_filter", "item"),
    ],
)
def test_a_request_without_a_response_fails_by_its_error_code(code: str, kind: str) -> None:
    error = results_of(None, error_line("b", code))["b"].error
    assert error is not None
    assert (error.kind, error.message) == (kind, "why")


@pytest.mark.parametrize("status", ["expired", "cancelled", "failed"])
def test_a_job_that_did_not_succeed_has_its_results_so_far(status: str) -> None:
    results = results_of(line("a"), error_line("b", "batch_expired"), status=status)
    assert results["a"].error is None
    assert results["b"].error is not None
    assert "c" not in results


def test_a_job_without_files_has_no_results() -> None:
    assert results_of(None, status="failed") == {}


def test_unreadable_lines_affect_no_other_line() -> None:
    junk = b'{"custom_id": "b", "resp\n\n[]\n7\n\xff\xfe\n' + b"[" * 100_000 + b"\n{}\n"
    odd = line("b", response="text") + line("stranger") + line("c", body=[1])
    results = results_of(junk + line("a") + odd)
    assert results.keys() == {"a", "b", "c"}
    assert results["a"].error is None
    assert [e.kind for i in "bc" if (e := results[i].error)] == ["transient", "transient"]


def test_a_result_with_a_lone_surrogate_is_kept() -> None:
    assert results_of(line("a", "4 \ud800"))["a"].text == "4 \ufffd"


def test_the_error_of_a_job_is_one_line_without_the_key() -> None:
    provider = OpenAIJobs()

    async def work(service: BatchService) -> BatchStatus:
        name = await service.submit(requests(), "key")
        provider.end(None, status="failed\x1b[2J")
        error = {"code": "x", "message": "x" * 290 + KEY}
        provider.jobs[0]["errors"] = {"data": [error]}
        return await service.status(name)

    status = run_at(provider, work)
    assert status.error is not None
    assert KEY[:3] not in status.error.message
    assert status.state == r"failed\x1b[2J"


def test_of_two_results_for_one_request_the_answer_takes_precedence() -> None:
    twice = line("a", status=500) + line("a", "first") + line("a", "second") + line("a", status=500)
    results = results_of(twice, error_line("a", "batch_expired"))
    assert results["a"].text == "first"
    assert results["a"].error is None


def test_the_results_of_one_file_are_yielded_before_the_other_fails() -> None:
    provider = OpenAIJobs()

    async def work(service: BatchService) -> list[str]:
        name = await service.submit(requests(), "key")
        provider.end(line("a"), b"")
        del provider.files["error_file_id"]
        results: list[str] = []
        with pytest.raises(ProviderError) as caught:
            async for identity, _ in service.results(submitted(name)):
                results.append(identity)
        assert caught.value.failure.kind == "run"
        return results

    assert run_at(provider, work) == ["a"]


def test_a_job_is_found_by_its_key() -> None:
    provider = OpenAIJobs()

    async def work(service: BatchService) -> list[str | None]:
        assert await service.find(planned("key-1")) is None
        for number in (0, 1, 1, 2, 3, 4):
            await service.submit(requests(), f"key-{number}")
        return [
            await service.find(planned(key)) for key in ("key-0", "key-1", "key-4", "key-5", "key")
        ]

    assert run_at(provider, work) == ["batch-0", "batch-2", "batch-5", None, None]


def test_the_status_of_a_job_in_each_state() -> None:
    provider = OpenAIJobs()
    counts = {"total": 3, "completed": 1, "failed": 1}
    listed = {"data": [{"code": "invalid_json_line", "message": "line 3 is no JSON"}]}
    full = {"data": [{"code": "token_limit_exceeded", "message": "Enqueued token limit"}]}

    async def work(service: BatchService) -> None:
        name = await service.submit(requests(), "key")
        assert await service.status(name) == BatchStatus(False, None, None, None, "validating")
        provider.jobs[0] |= {"status": "in_progress", "request_counts": counts}
        assert await service.status(name) == BatchStatus(False, 1, 1, 3, "in_progress")
        await service.cancel(name)
        assert (await service.status(name)).state == "cancelling"
        for state in ("completed", "failed", "expired", "cancelled"):
            provider.jobs[0]["status"] = state
            assert (await service.status(name)).is_finished
        provider.jobs[0]["errors"] = listed
        error = (await service.status(name)).error
        assert error is not None
        assert (error.kind, error.message) == ("run", "line 3 is no JSON")
        provider.jobs[0]["errors"] = full
        error = (await service.status(name)).error
        assert error is not None
        assert error.kind == "rate_limit"

    run_at(provider, work)


def test_a_provider_without_a_batch_api_is_rejected() -> None:
    for model, level in (("kimi-k2-0905", None), ("litellm/openai/x", None)):
        with pytest.raises(
            BadInput, match=r"no batch API \(openai, gemini and anthropic have one\)"
        ):
            open_batch(model, level)
    with pytest.raises(BadInput, match="leave out --batch"):
        open_batch("baseline/float64")
    with pytest.raises(BadInput, match="--api responses is available from openai only"):
        open_batch("gemini-2.5-pro", "minimal", None, "responses")
    with pytest.raises(BadInput, match="--base-url"):
        open_batch("gpt-5", "low", "nowhere")


def test_a_batch_needs_a_key(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(BadInput, match="gpt-5 needs a key: set OPENAI_API_KEY"):
        open_batch("gpt-5", "low")
