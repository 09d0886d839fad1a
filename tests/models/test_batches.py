"""The batch APIs of all providers: requests, results that belong to them, states, lost jobs."""

from __future__ import annotations

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple, TypeVar

import pytest
from aiohttp import web

from numbench.errors import BadInput
from numbench.models import Api, Server, open_batch, open_model
from numbench.models.base import BatchRequest, BatchStatus
from numbench.models.batch_client import BatchService
from numbench.models.failures import ProviderError
from numbench.records import Completion
from tests.models.adapter_calls import KEY
from tests.models.batch_calls import batch_requests, collect, run_at
from tests.models.batch_servers import (
    IDS,
    AnthropicJobs,
    GeminiJobs,
    OpenAIJobs,
    json_line,
    planned,
    submitted,
)
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply, Script, serve

T = TypeVar("T")
Result = dict[str, Any]


class Provider(NamedTuple):
    """A batch API. answer, failure: make a result for a request. end: ends the newest job."""

    model: tuple[str, str]
    jobs: Callable[[], Any]
    answer: Callable[[str, str], Result]
    failure: Callable[[str, str], Result]
    end: Callable[[Any, list[Result]], None]


def openai_answer(identity: str, text: str) -> Result:
    choice = {"finish_reason": "stop", "message": {"content": text}}
    return openai_result(identity, {"choices": [choice]})


def openai_result(identity: str, body: Any, status: int = 200) -> Result:
    response = {"status_code": status, "request_id": "r", "body": body}
    return {"custom_id": identity, "response": response, "error": None}


def openai_error(identity: str, code: str) -> Result:
    return {"custom_id": identity, "response": None, "error": {"code": code, "message": "why"}}


def gemini_answer(identity: str | None, text: str) -> Result:
    candidate = {"content": {"parts": [{"text": text}]}, "finishReason": "STOP"}
    named = {"metadata": {"key": identity}} if identity else {}
    return named | {"response": {"candidates": [candidate]}}


def gemini_failure(identity: str, message: str, code: int = 13) -> Result:
    return {"metadata": {"key": identity}, "error": {"code": code, "message": message}}


def claude_answer(identity: str, text: str, key: str = "key") -> Result:
    message = {"content": [{"type": "text", "text": text}], "stop_reason": "end_turn"}
    return claude_result(identity, "succeeded", key, message=message)


def claude_result(identity: str, kind: str, key: str = "key", **fields: Any) -> Result:
    position = IDS.index(identity) if identity in IDS else 9
    return {"custom_id": f"{key}-{position}", "result": {"type": kind} | fields}


def claude_failure(identity: str, message: str, kind: str = "api_error") -> Result:
    error = {"error": servers.anthropic_error_body(kind, message)}
    return claude_result(identity, "errored", **error)


def lines(results: list[Result]) -> bytes:
    return b"".join(map(json_line, results))


OPENAI = Provider(
    ("gpt-5", "low"),
    OpenAIJobs,
    openai_answer,
    lambda identity, message: openai_result(identity, {"error": {"message": message}}, 500),
    lambda jobs, results: jobs.end(lines(results)),
)
GEMINI = Provider(
    ("gemini-2.5-pro", "minimal"),
    GeminiJobs,
    gemini_answer,
    gemini_failure,
    lambda jobs, results: jobs.end(results),
)
CLAUDE = Provider(
    ("anthropic/claude-opus-5", "low"),
    AnthropicJobs,
    claude_answer,
    claude_failure,
    lambda jobs, results: jobs.end(jobs.jobs[0]["id"], results),
)
PROVIDERS = (OPENAI, GEMINI, CLAUDE)
EVERY = pytest.mark.parametrize("provider", PROVIDERS, ids=["openai", "gemini", "claude"])


def at(provider: Provider, script: Script, work: Callable[[BatchService], Awaitable[T]]) -> T:
    return run_at(script, work, *provider.model)


def requests(provider: Provider, question: str = "What is {}?", **more: Any) -> list[BatchRequest]:
    return batch_requests(*provider.model, question, **more)


def results_of(
    provider: Provider, results: list[Result], end: Callable[[Any], None] | None = None
) -> dict[str, Completion]:
    """Return the results of a job that ended with these; no id comes twice."""
    jobs = provider.jobs()

    async def work(service: BatchService) -> list[tuple[str, Completion]]:
        name = await service.submit(requests(provider), "key")
        end(jobs) if end else provider.end(jobs, results)
        return await collect(service, name)

    completions = at(provider, jobs, work)
    assert len(completions) == len(dict(completions))
    return dict(completions)


def texts(completions: dict[str, Completion]) -> dict[str, str]:
    return {identity: completion.text for identity, completion in completions.items()}


def sent(provider: Provider, jobs: Any, received: ReceivedRequest) -> list[Any]:
    """Return the bodies of the requests of the first job."""
    if provider is OPENAI:
        return [request["body"] for request in jobs.lines()]
    if provider is CLAUDE:
        return [request["params"] for request in jobs.submitted["msgbatch_0"]]
    inner = received.body["batch"]["inputConfig"]["requests"]["requests"]
    assert [request["metadata"] for request in inner] == [{"key": identity} for identity in IDS]
    return [request["request"] for request in inner]


@EVERY
@pytest.mark.parametrize("api", ["chat", "responses"])
def test_a_job_has_the_bodies_of_single_requests(provider: Provider, api: Api) -> None:
    if api == "responses" and provider is not OPENAI:
        return
    jobs, first = provider.jobs(), list[ReceivedRequest]()

    async def script(received: ReceivedRequest) -> Reply:
        first.append(received)
        return await jobs(received)

    async def submit(service: BatchService) -> str:
        return await service.submit(requests(provider), "run-7")

    async def send_single_requests(url: str) -> None:
        opened = open_model(*provider.model, Server(url, api, stream=False))
        for request in requests(provider):
            await opened.model.answer(request.messages, request.settings)
        await opened.model.close()

    names = {"gpt-5": "batch-0", "gemini-2.5-pro": "batches/job0"}
    assert run_at(script, submit, *provider.model, api) == names.get(
        provider.model[0], "msgbatch_0"
    )
    key = first[0].headers
    assert KEY in (
        key.get("authorization", "")[7:],
        key.get("x-goog-api-key"),
        key.get("x-api-key"),
    )
    with serve(lambda received: _plain(received)) as server:
        asyncio.run(send_single_requests(server.url))
        single = [received.body for received in server.received]
    if provider is GEMINI:
        for body in single:
            # The SDK may write some fields in snake case.
            thinking = {"include_thoughts": True, "thinking_budget": 128}
            body["generationConfig"]["thinkingConfig"] = thinking
        assert first[0].body["batch"]["displayName"] == "run-7"
        assert first[0].path == "/v1beta/models/gemini-2.5-pro:batchGenerateContent"
    if provider is OPENAI:
        path = f"/v1{server.received[0].path}"
        assert jobs.uploads == [{"purpose": "batch", "filename": "run-7.jsonl"}]
        assert jobs.jobs[0]["metadata"] == {"numbench": "run-7"}
        assert (jobs.jobs[0]["endpoint"], jobs.jobs[0]["completion_window"]) == (path, "24h")
        assert [request["custom_id"] for request in jobs.lines()] == list(IDS)
        assert {(r["method"], r["url"]) for r in jobs.lines()} == {("POST", path)}
    assert sent(provider, jobs, first[0]) == single


async def _plain(received: ReceivedRequest) -> Reply:
    return servers.plain(received)


def test_a_job_of_claude_names_its_version_and_its_requests() -> None:
    """Anthropic allows ids of 64 letters, digits, - and _; keys are the 32 digits of a UUID."""
    jobs = AnthropicJobs()
    for settings in ({}, {"temperature": 0.0}):
        many = requests(CLAUDE, **settings)
        at(CLAUDE, jobs, lambda service, many=many: service.submit(many, "f" * 32))
    assert jobs.versions == ["2026-10-21", "2023-06-01"]
    for entry in jobs.submitted["msgbatch_0"]:
        assert len(entry["custom_id"]) + len("99999") <= 64
        assert entry["custom_id"].startswith("f" * 32)


@EVERY
@pytest.mark.parametrize(
    "text", ["What is it?", 'é½漢\n"quoted"\\', "😀" * 50], ids=["ascii", "escapes", "emoji"]
)
def test_the_size_of_a_job_is_at_most_the_sum_of_its_requests(
    provider: Provider, text: str
) -> None:
    jobs = provider.jobs()
    # Enough requests that the part of the job that is not a request is small.
    first = requests(provider, "{}: " + text)[0]
    many = [first._replace(id=f"{first.id}{number}") for number in range(12)]

    async def work(service: BatchService) -> int:
        await service.submit(many, "key")
        return sum(map(service.size, many))

    bound = at(provider, jobs, work)
    size = len(jobs.files["file-0"]) if provider is OPENAI else jobs.sizes[0]
    assert size <= bound <= 4 * size


@EVERY
def test_results_in_any_order_belong_to_their_own_requests(provider: Provider) -> None:
    pairs = {"c": "third \ud800", "a": "first", "b": "second"}
    results = results_of(provider, [provider.answer(*pair) for pair in pairs.items()])
    assert texts(results) == {"a": "first", "b": "second", "c": "third \ufffd"}
    assert all((each.finish_reason, each.error) == ("stop", None) for each in results.values())


@EVERY
def test_of_two_results_for_one_request_the_answer_takes_precedence(provider: Provider) -> None:
    failed = provider.failure("a", "oops")
    answers = [provider.answer("a", text) for text in ("first", "second")]
    stranger = provider.answer("stranger", "9")
    results = results_of(provider, [failed, *answers, failed, stranger])
    assert texts(results) == {"a": "first"}
    assert results["a"].error is None


@EVERY
def test_the_failure_of_a_request_has_its_kind_and_no_key(provider: Provider) -> None:
    results = results_of(
        provider, [provider.failure("a", f"oops {KEY}"), provider.answer("b", "4")]
    )
    error = results["a"].error
    assert error is not None and (error.kind, error.message) == ("transient", "oops [key]")
    assert results["b"].error is None and "c" not in results


@pytest.mark.parametrize(
    ("provider", "result", "kind"),
    [
        (
            OPENAI,
            openai_result("a", {"error": {"message": "context_length_exceeded"}}, 400),
            "item",
        ),
        (OPENAI, openai_result("a", {"error": {"message": "oh \ud800"}}, 500), "transient"),
        (OPENAI, openai_error("a", "batch_expired"), "transient"),
        (OPENAI, openai_error("a", "server_error"), "transient"),
        (OPENAI, openai_error("a", "content_filter"), "item"),
        (OPENAI, {"custom_id": "a", "response": "text"}, "transient"),
        (OPENAI, openai_result("a", [1]), "transient"),
        (GEMINI, gemini_failure("a", "the prompt is too long", 3), "item"),
        (GEMINI, gemini_failure("a", "exhausted", 8), "rate_limit"),
        (GEMINI, gemini_failure("a", "cancelled", 1), "transient"),
        (GEMINI, {"metadata": {"key": "a"}, "response": {"candidates": 7}}, "transient"),
        (CLAUDE, claude_failure("a", "prompt is too long", "invalid_request_error"), "item"),
        (CLAUDE, claude_result("a", "expired"), "transient"),
        (CLAUDE, claude_result("a", "canceled"), "transient"),
        (CLAUDE, claude_result("a", "errored", error="x"), "transient"),
        (CLAUDE, claude_result("a", "a new one"), "transient"),
        (CLAUDE, claude_result("a", "succeeded", message="text"), "transient"),
    ],
)
def test_a_request_without_an_answer_affects_no_other(
    provider: Provider, result: Result, kind: str
) -> None:
    results = results_of(provider, [result, provider.answer("b", "4")])
    error = results["a"].error
    assert error is not None and error.kind == kind
    assert texts(results) == {"a": "", "b": "4"}
    if provider is CLAUDE and "message" not in result["result"]:
        assert not error.possibly_billed


@pytest.mark.parametrize("provider", [OPENAI, CLAUDE])
def test_unreadable_lines_affect_no_other_line(provider: Provider) -> None:
    junk = b'{"custom_id": "b", "resp\n\n[]\n7\n\xff\xfe\n' + b"[" * 100_000 + b"\n{}\n"
    content = junk + json_line(provider.answer("a", "first"))

    def end(jobs: Any) -> None:
        jobs.end(content) if provider is OPENAI else jobs.end("msgbatch_0", content)

    assert texts(results_of(provider, [], end)) == {"a": "first"}
    other = [claude_answer("a", "4", key="other"), {"custom_id": 3}]
    assert results_of(CLAUDE, other) == {}


def test_a_job_that_did_not_succeed_has_its_results_so_far() -> None:
    for status in ("expired", "cancelled", "failed"):
        files = lines([openai_answer("a", "first")]), lines([openai_error("b", "batch_expired")])
        results = results_of(OPENAI, [], lambda jobs, f=files, s=status: jobs.end(*f, status=s))
        assert results["a"].error is None and results["b"].error is not None and "c" not in results
        assert results_of(OPENAI, [], lambda jobs, s=status: jobs.end(None, status=s)) == {}
        state = status.upper()
        results = results_of(
            GEMINI, [], lambda jobs, s=state: jobs.end([gemini_answer("a", "first")], s)
        )
        assert texts(results) == {"a": "first"}
        assert results_of(GEMINI, [], lambda jobs, s=state: jobs.end(None, s)) == {}


def test_results_in_the_response_of_the_operation_are_read() -> None:
    inner = {"inlinedResponses": {"inlinedResponses": [gemini_answer("b", "second"), "x", None]}}
    assert texts(results_of(GEMINI, [], lambda jobs: jobs.end(None, response=inner))) == {
        "b": "second"
    }


@pytest.mark.parametrize(
    ("results", "expected"),
    [
        # As many as requests, and no id contradicts its position: matched by position.
        ([(None, "1"), (None, "2"), (None, "3")], {"a": "1", "b": "2", "c": "3"}),
        ([(None, "1"), ("b", "2"), (None, "3")], {"a": "1", "b": "2", "c": "3"}),
        # An id contradicts its position: matched by id only.
        ([(None, "1"), ("c", "2"), (None, "3")], {"c": "2"}),
        # Fewer or more than requests: it is unknown which are missing.
        ([(None, "1"), (None, "2")], {}),
        ([(None, "1"), ("b", "2")], {"b": "2"}),
        ([(None, "1"), (None, "2"), (None, "3"), (None, "4")], {}),
    ],
)
def test_a_result_without_an_id_is_matched_by_position_only_if_that_is_certain(
    results: list[tuple[str | None, str]], expected: dict[str, str]
) -> None:
    assert texts(results_of(GEMINI, [gemini_answer(*each) for each in results])) == expected


def test_the_results_of_one_file_are_yielded_before_the_other_fails() -> None:
    jobs = OpenAIJobs()

    async def work(service: BatchService) -> list[str]:
        name = await service.submit(requests(OPENAI), "key")
        jobs.end(lines([openai_answer("a", "4")]), b"")
        del jobs.files["error_file_id"]
        results: list[str] = []
        with pytest.raises(ProviderError) as caught:
            async for identity, _ in service.results(submitted(name)):
                results.append(identity)
        assert caught.value.failure.kind == "run"
        return results

    assert at(OPENAI, jobs, work) == ["a"]


@pytest.mark.parametrize("provider", [OPENAI, GEMINI])
def test_a_job_is_found_by_its_key(provider: Provider) -> None:
    async def work(service: BatchService) -> None:
        assert await service.find(planned("key-1")) is None
        keys = [f"key-{number}" for number in (0, 1, 1, 2, 3, 4)]
        names = [await service.submit(requests(provider), key) for key in keys]
        newest = dict(zip(keys, names, strict=True))
        for key in (*keys, "key-5", "key"):
            assert await service.find(planned(key)) == newest.get(key)

    at(provider, provider.jobs(), work)


def test_a_job_of_claude_shows_its_key_when_it_has_ended() -> None:
    jobs = AnthropicJobs()
    now = datetime.now(UTC)

    async def work(service: BatchService) -> None:
        many = requests(CLAUDE)
        for number in range(5):
            name = await service.submit(many, f"key-{number}")
            jobs.end(name, [claude_answer("a", "4", key=f"key-{number}")])
        found = [await service.find(planned(f"key-{n}")) for n in (0, 4, 5)]
        assert found == ["msgbatch_0", "msgbatch_4", None]
        # The only unfinished job of its size is the one.
        await service.submit(many[:2], "smaller")
        assert await service.find(planned("key")) is None
        mine = await service.submit(many, "key")
        for at_time in (now, now - timedelta(days=2)):
            assert await service.find(planned("key", at_time.isoformat())) == mine
        # Jobs from before the plan are not looked at.
        assert await service.find(planned("key", (now + timedelta(hours=3)).isoformat())) is None
        other = await service.submit(many, "other")
        with pytest.raises(ProviderError, match=f"{other}, {mine}; run the same command") as caught:
            await service.find(planned("key"))
        assert caught.value.failure.kind == "run"
        jobs.end(mine, [claude_answer("a", "4")])
        assert await service.find(planned("key")) == mine

    at(CLAUDE, jobs, work)


COUNTS = {
    "counts": {"total": 3, "completed": 1, "failed": 1},
    "google": {"requestCount": "3", "successfulRequestCount": "1", "failedRequestCount": "1"},
}


def test_the_status_of_a_job_in_each_state() -> None:
    openai, gemini, claude = OpenAIJobs(), GeminiJobs(), AnthropicJobs()

    async def of_openai(service: BatchService) -> None:
        name = await service.submit(requests(OPENAI), "key")
        assert await service.status(name) == BatchStatus(False, 0, "validating")
        job = openai.jobs[0]
        job |= {"status": "in_progress", "request_counts": COUNTS["counts"]}
        assert await service.status(name) == BatchStatus(False, 2, "in_progress")
        for state in ("completed", "failed", "expired", "cancelled"):
            # The file with the answers may appear after the end of a job.
            job |= {"status": state, "output_file_id": None, "error_file_id": "errors"}
            assert not (await service.status(name)).is_finished
            job["output_file_id"] = "answers"
            assert (await service.status(name)).is_finished
        job |= {"request_counts": {"completed": 0, "failed": 3}, "output_file_id": None}
        assert (await service.status(name)).is_finished
        for state, is_finished in (("completed", False), ("expired", True), ("failed", True)):
            job |= {"status": state, "error_file_id": None, "request_counts": None}
            assert (await service.status(name)).is_finished == is_finished
        for code, kind in (("invalid_json_line", "run"), ("token_limit_exceeded", "rate_limit")):
            job["errors"] = {"data": [{"code": code, "message": "x" * 290 + KEY}]}
            error = (await service.status(name)).error
            assert error is not None and error.kind == kind and KEY[:3] not in error.message
        job["status"] = "failed\x1b[2J"
        assert (await service.status(name)).state == r"failed\x1b[2J"

    async def of_gemini(service: BatchService) -> None:
        name = await service.submit(requests(GEMINI), "key")
        assert await service.status(name) == BatchStatus(False, 0, "PENDING")
        job = gemini.jobs[0]
        job["metadata"] |= {"state": "BATCH_STATE_RUNNING", "batchStats": COUNTS["google"]}
        assert await service.status(name) == BatchStatus(False, 2, "RUNNING")
        for state in ("SUCCEEDED", "FAILED", "CANCELLED", "EXPIRED"):
            job["metadata"] |= {"state": f"BATCH_STATE_{state}", "output": {}}
            assert not (await service.status(name)).is_finished
            job["metadata"]["output"] = {"inlinedResponses": {"inlinedResponses": [{}]}}
            assert (await service.status(name)).is_finished
        for code, kind in ((3, "run"), (14, "transient")):
            job["error"] = {"code": code, "message": "x" * 290 + KEY}
            error = (await service.status(name)).error
            assert error is not None and error.kind == kind and KEY[:3] not in error.message
        job["metadata"] |= {"state": "X\x1b[2J", "batchStats": {"failedRequestCount": "9" * 5000}}
        assert (await service.status(name))[:3] == (False, 0, r"X\x1b[2J")

    async def of_claude(service: BatchService) -> None:
        name = await service.submit(requests(CLAUDE), "key")
        # Anthropic counts only when a job has ended.
        assert await service.status(name) == BatchStatus(False, 0, "in_progress")
        claude.end(name, [], succeeded=1, canceled=1, expired=1)
        assert await service.status(name) == BatchStatus(True, 3, "ended")
        url = claude.jobs[0].pop("results_url")
        assert not (await service.status(name)).is_finished
        claude.jobs[0]["results_url"] = url
        claude.jobs[0] |= {"processing_status": "\x1b[2J", "request_counts": {"x": -1}}
        assert await service.status(name) == BatchStatus(False, 0, r"\x1b[2J")

    at(OPENAI, openai, of_openai)
    at(GEMINI, gemini, of_gemini)
    at(CLAUDE, claude, of_claude)


def test_results_that_are_no_file_of_results_are_a_transient_failure() -> None:
    """The job would count as collected, and all its requests would be sent and paid again."""
    jobs = AnthropicJobs()

    async def script(received: ReceivedRequest) -> Reply:
        if received.path.endswith("/results"):
            return web.Response(text="<html>wait\na moment</html>")
        return await jobs(received)

    async def work(service: BatchService) -> None:
        name = await service.submit(requests(CLAUDE), "key")
        with pytest.raises(ProviderError, match="the server sent no results") as caught:
            await collect(service, name)
        assert caught.value.failure.kind == "transient"

    at(CLAUDE, script, work)


def test_a_batch_that_is_impossible_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    no_batch = r"no batch API \(openai, gemini and anthropic have one\)"
    cases: list[tuple[tuple[Any, ...], str]] = [
        (("kimi-k2-0905",), no_batch),
        (("litellm/openai/x",), no_batch),
        (("baseline/float64",), "omit --batch"),
        (("gemini-2.5-pro", "minimal", Server(api="responses")), "gemini has chat only"),
        (("gpt-5", "low", Server("nowhere")), "--base-url"),
    ]
    for arguments, message in cases:
        with pytest.raises(BadInput, match=message):
            open_batch(*arguments)
    monkeypatch.delenv("OPENAI_API_KEY")
    with pytest.raises(BadInput, match="gpt-5 needs a key: set OPENAI_API_KEY"):
        open_batch("gpt-5", "low")
