"""The batch APIs of all providers: requests, results that belong to them, states, lost jobs."""

import asyncio
from collections.abc import Awaitable, Callable
from datetime import UTC, datetime, timedelta
from typing import Any, NamedTuple

import pytest
from aiohttp import web

from numbench.errors import BadInput
from numbench.models import Api, Server, open_batch, open_model
from numbench.models.base import BatchRequest
from numbench.models.batch_client import BatchService
from numbench.models.failures import ProviderError
from numbench.records import Completion
from tests.models.adapter_calls import KEY, check
from tests.models.batch_servers import (
    IDS,
    AnthropicJobs,
    GeminiJobs,
    OpenAIJobs,
    T,
    batch_requests,
    collect,
    json_line,
    planned,
    run_at,
    submitted,
)
from tests.support import servers
from tests.support.case_tables import each_case
from tests.support.servers import ReceivedRequest, Reply, Script, serve


class Provider(NamedTuple):
    """A batch API: a model and its level, a test server, and the header with the key."""

    model: tuple[str, str]
    jobs: Callable[[], Any]
    key_header: str

    def at(self, script: Script, work: Callable[[BatchService], Awaitable[T]]) -> T:
        """Return the result of `work` with this API at a server that follows `script`."""
        return run_at(script, work, *self.model)

    def requests(self, question: str = "What is {}?", **settings: Any) -> list[BatchRequest]:
        """Return a request for each of `IDS`."""
        return batch_requests(*self.model, question, **settings)

    def error(self, script: Script, work: Callable[[BatchService], Awaitable[Any]]) -> str:
        """Return kind and message of the error that a call raises."""
        with pytest.raises(ProviderError) as caught:
            self.at(script, work)
        return f"{caught.value.failure.kind}: {caught.value}"


OPENAI = Provider(("gpt-5", "low"), OpenAIJobs, "authorization")
GEMINI = Provider(("gemini-2.5-pro", "minimal"), GeminiJobs, "X-Goog-Api-Key")
CLAUDE = Provider(("anthropic/claude-opus-5-5", "low"), AnthropicJobs, "X-Api-Key")
PROVIDERS = {"openai": OPENAI, "gemini": GEMINI, "claude": CLAUDE}
EVERY = pytest.mark.parametrize("provider", PROVIDERS.values(), ids=PROVIDERS)


def file_of(lines: list[Any]) -> bytes:
    """Return a file of results, in which texts are lines that are not JSON."""
    return b"".join(
        line.encode("utf-8", "surrogateescape") + b"\n"
        if isinstance(line, str)
        else json_line(line)
        for line in lines
    )


def end_job(jobs: Any, results: list[Any] | None, errors: list[Any] | None, **more: Any) -> None:
    """End the newest job of a server with results in the form of its provider."""
    if isinstance(jobs, GeminiJobs):
        jobs.end(results, **more)
    elif isinstance(jobs, AnthropicJobs):
        jobs.end("msgbatch_0", file_of(results or []))
    else:
        files = (None if each is None else file_of(each) for each in (results, errors))
        jobs.end(*files, **more)


@each_case(__file__, "batch_results")
def test_results_belong_to_their_own_requests(case: Any) -> None:
    provider = PROVIDERS[case["provider"]]
    jobs = provider.jobs()

    async def work(service: BatchService) -> list[tuple[str, Completion]]:
        name = await service.submit(provider.requests(), "key")
        end_job(jobs, case["results"], case.get("errors"), **case.get("end", {}))
        return await collect(service, name)

    results = provider.at(jobs, work)
    completions = dict(results)
    assert len(results) == len(completions)
    assert completions.keys() == case["records"].keys()
    for identity, record in case["records"].items():
        check(completions[identity], record)


@each_case(__file__, "batch_states")
def test_the_state_of_a_job(case: Any) -> None:
    status = PROVIDERS[case["provider"]].at(
        lambda _: web.json_response(case["job"]), lambda service: service.status("batches/0")
    )
    assert (status.is_finished, status.done) == (case["finished"], case["done"])
    assert status.state == case.get("state", status.state)
    assert (status.error and status.error.kind) == case.get("kind")
    assert KEY[:3] not in str(status)


def sent(provider: Provider, jobs: Any, received: ReceivedRequest) -> list[Any]:
    """Return the bodies of the requests of the first job."""
    if provider is OPENAI:
        return [request["body"] for request in jobs.lines()]
    if provider is CLAUDE:
        return [request["params"] for request in jobs.submitted["msgbatch_0"]]
    inner = received.body["batch"]["inputConfig"]["requests"]["requests"]
    assert [request["metadata"] for request in inner] == [{"key": identity} for identity in IDS]
    return [request["request"] for request in inner]


@pytest.mark.parametrize(
    ("provider", "api", "name"),
    [
        (OPENAI, "chat", "batch-0"),
        (OPENAI, "responses", "batch-0"),
        (GEMINI, "chat", "batches/job0"),
        (CLAUDE, "chat", "msgbatch_0"),
    ],
)
def test_a_job_has_the_bodies_of_single_requests(provider: Provider, api: Api, name: str) -> None:
    jobs, first = provider.jobs(), list[ReceivedRequest]()

    async def script(received: ReceivedRequest) -> Reply:
        first.append(received)
        return await jobs(received)

    async def submit(service: BatchService) -> str:
        return await service.submit(provider.requests(), "run-7")

    async def send_single_requests(url: str) -> None:
        opened = open_model(*provider.model, Server(url, api, stream=False))
        for request in provider.requests():
            await opened.model.answer(request.messages, request.settings)
        await opened.model.close()

    assert run_at(script, submit, *provider.model, api) == name
    assert first[0].headers[provider.key_header.lower()].removeprefix("Bearer ") == KEY
    with serve(servers.plain) as server:
        asyncio.run(send_single_requests(server.url))
        single = [received.body for received in server.received]
    if provider is GEMINI:
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


def test_a_job_of_claude_names_its_version_and_its_requests() -> None:
    """Anthropic allows ids of 64 letters, digits, - and _; keys are the 32 digits of a UUID."""
    jobs = AnthropicJobs()
    for settings in ({}, {"temperature": 0.0}):
        many = CLAUDE.requests(**settings)
        CLAUDE.at(jobs, lambda service, many=many: service.submit(many, "f" * 32))
    assert jobs.versions == ["2026-10-21", "2023-06-01"]
    for entry in jobs.submitted["msgbatch_0"]:
        assert len(entry["custom_id"]) + len("99999") <= 64
        assert entry["custom_id"].startswith("f" * 32)


@EVERY
@pytest.mark.parametrize("text", ["What is it?", 'é½漢\n"quoted"\\', "😀" * 50])
def test_the_size_of_a_job_is_at_most_the_sum_of_its_requests(
    provider: Provider, text: str
) -> None:
    jobs = provider.jobs()
    # Enough requests that the part of the job that is not a request is small.
    first = provider.requests("{}: " + text)[0]
    many = [first._replace(id=f"{first.id}{number}") for number in range(12)]

    async def work(service: BatchService) -> int:
        await service.submit(many, "key")
        return sum(map(service.size, many))

    bound = provider.at(jobs, work)
    size = len(jobs.files["file-0"]) if provider is OPENAI else jobs.sizes[0]
    assert size <= bound <= 4 * size


def test_the_results_of_one_file_are_yielded_before_the_other_fails() -> None:
    jobs, results = OpenAIJobs(), list[str]()

    async def work(service: BatchService) -> None:
        name = await service.submit(OPENAI.requests(), "key")
        end_job(jobs, [{"custom_id": "a", "response": None}], [])
        del jobs.files["error_file_id"]
        async for identity, _ in service.results(submitted(name)):
            results.append(identity)

    assert OPENAI.error(jobs, work).startswith("run: ")
    assert results == ["a"]


@pytest.mark.parametrize("provider", [OPENAI, GEMINI])
def test_a_job_is_found_by_its_key(provider: Provider) -> None:
    async def work(service: BatchService) -> None:
        assert await service.find(planned("key-1")) is None
        keys = [f"key-{number}" for number in (0, 1, 1, 2, 3, 4)]
        names = [await service.submit(provider.requests(), key) for key in keys]
        newest = dict(zip(keys, names, strict=True))
        for key in (*keys, "key-5", "key"):
            assert await service.find(planned(key)) == newest.get(key)

    provider.at(provider.jobs(), work)


def test_a_job_of_claude_shows_its_key_when_it_has_ended() -> None:
    jobs, now = AnthropicJobs(), datetime.now(UTC)

    def end(name: str, key: str) -> None:
        jobs.end(name, [{"custom_id": f"{key}-0", "result": {"type": "expired"}}])

    async def work(service: BatchService) -> None:
        many = CLAUDE.requests()
        for number in range(5):
            end(await service.submit(many, f"key-{number}"), f"key-{number}")
        found = [await service.find(planned(f"key-{n}")) for n in (0, 4, 5)]
        assert found == ["msgbatch_0", "msgbatch_4", None]
        # The only unfinished job of its size is the one, unless it is another job of the run.
        await service.submit(many[:2], "smaller")
        assert await service.find(planned("key")) is None
        mine = await service.submit(many, "key")
        # A plan from the future says that the clock was wrong.
        for moment in (now, now - timedelta(days=2), now + timedelta(days=2)):
            assert await service.find(planned("key", moment.isoformat())) == mine
        assert await service.find(planned("key"), [mine]) is None
        # Jobs from before the plan are not looked at.
        jobs.jobs[0]["created_at"] = (now - timedelta(hours=3)).isoformat()
        assert await service.find(planned("key", now.isoformat())) is None
        other = await service.submit(many, "other")
        with pytest.raises(ProviderError, match=f"{other}, {mine}; run the same command") as caught:
            await service.find(planned("key"))
        assert caught.value.failure.kind == "run"
        end(mine, "key")
        assert await service.find(planned("key")) == mine

    CLAUDE.at(jobs, work)


def test_a_batch_that_is_impossible_is_rejected(monkeypatch: pytest.MonkeyPatch) -> None:
    no_batch = r"no batch API \(openai, gemini and anthropic have one\)"
    monkeypatch.delenv("OPENAI_API_KEY")
    cases: list[tuple[tuple[Any, ...], str]] = [
        (("kimi-k2-0905",), no_batch),
        (("litellm/openai/x",), no_batch),
        (("baseline/float64",), "omit --batch"),
        (("gemini-2.5-pro", "minimal", Server(api="responses")), "gemini has chat only"),
        (("gpt-5", "low", Server("nowhere")), "--base-url"),
        (("gpt-5", "low"), "gpt-5 needs a key: set OPENAI_API_KEY"),
    ]
    for arguments, message in cases:
        with pytest.raises(BadInput, match=message):
            open_batch(*arguments)


def calls(provider: Provider) -> dict[str, Callable[[BatchService], Awaitable[Any]]]:
    """Return every call of a batch API."""
    return {
        "submit": lambda service: service.submit(provider.requests(), "key"),
        "find": lambda service: service.find(planned("key")),
        "status": lambda service: service.status("batches/0"),
        "collect": lambda service: collect(service, "batches/0"),
    }


@EVERY
@pytest.mark.parametrize("call", calls(OPENAI))
def test_an_error_of_the_provider_is_raised_without_retry_and_without_the_key(
    provider: Provider, call: str
) -> None:
    paths: list[str] = []

    async def limited(received: ReceivedRequest) -> Reply:
        paths.append(received.path)
        return servers.error(429, f"slow down, {KEY}", headers={"Retry-After": "7"})

    for script, message in (
        (limited, "rate_limit: HTTP 429: slow down, [key]"),
        (lambda _: servers.error(401, f"bad key {KEY}"), "run: HTTP 401: bad key [key]"),
        (
            lambda _: web.Response(
                status=502, text="<html>bad gateway</html>", content_type="text/html"
            ),
            "transient: HTTP 502",
        ),
        (servers.torn, "transient: "),
        (servers.garbage, "transient: "),
    ):
        assert provider.error(script, calls(provider)[call]).startswith(message)
    assert len(paths) == 1


@EVERY
@pytest.mark.parametrize("status", [200, 400])
def test_a_deeply_nested_body_raises_a_provider_error(provider: Provider, status: int) -> None:
    for start, call in ((b"", "submit"), (b'{"name": ', "status"), (b'{"error": ', "submit")):

        async def script(received: ReceivedRequest, start: bytes = start) -> Reply:
            body = start + b"[" * 100_000
            return web.Response(body=body, status=status, content_type="application/json")

        provider.error(script, calls(provider)[call])


@EVERY
def test_replies_that_lack_what_is_asked_for_are_transient_failures(provider: Provider) -> None:
    """Without results a job would count as collected, and its requests be sent and paid again."""
    job = {"id": "0", "name": "batches/0"}
    page = {"data": [job], "has_more": True, "operations": [job], "nextPageToken": "t"}
    cases: list[tuple[str, Any, str]] = [
        ("find", page, "the server lists the same jobs again"),
        ("submit", {}, "the server sent no id of a job"),
        ("submit", {"id": "\x1b", "name": "\x1b"}, "the server sent no id of a job"),
    ]
    for call, body, message in cases:

        async def script(received: ReceivedRequest, body: Any = body) -> Reply:
            return web.json_response(body)

        assert provider.error(script, calls(provider)[call]) == f"transient: {message}"
    if provider is CLAUDE:
        job, page = '{"results_url": "a"}', "<html>wait\na moment</html>"
        error = provider.error(
            lambda received: web.Response(text=page if "results" in received.path else job),
            calls(provider)["collect"],
        )
        assert error == "transient: the server sent no results"


@EVERY
def test_a_header_of_the_user_replaces_the_key(provider: Provider) -> None:
    seen: list[list[str]] = []

    async def script(received: ReceivedRequest) -> Reply:
        seen.append(received.request.headers.getall(provider.key_header))
        return web.json_response({"id": "file", "name": "batches/0"})

    async def once(url: str) -> None:
        headers = {provider.key_header: "own-header-0123456789"}
        service = open_batch(*provider.model, Server(url, headers=headers))
        await service.submit(provider.requests(), "key")
        await service.status("batches/0")
        await service.close()

    with serve(script) as server:
        asyncio.run(once(server.url))
    assert len(seen) >= 2 and seen == len(seen) * [["own-header-0123456789"]]
