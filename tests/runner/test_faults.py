"""Complete runs against every fault of a server, with the APIs of OpenAI, Google and Anthropic.

Questions of one task meet the fault once and then get a good answer; those of the other task always
meet the fault.
"""

import asyncio
import gzip
import json
from collections import Counter
from itertools import cycle, product
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from numbench.errors import NumbenchError
from numbench.journal.run_folder import read_run
from numbench.records import Response, Usage
from numbench.runner.progress import RunReport
from tests.support import servers
from tests.support.runs import KEY, go, questions, small_dataset
from tests.support.servers import ReceivedRequest, Reply, Script, serve

pytestmark = pytest.mark.usefixtures("short_waits")

CHAT, *_ = MODELS = "openai/some", "gemini/some", "anthropic/some"
EVERY = pytest.mark.parametrize("model", MODELS)
ATTEMPTS = 3
PROMPTS = {item.id: item.prompt for items in questions(100).values() for item in items}
TASKS = {item.id: item.task for items in questions(100).values() for item in items}


def plain(received: ReceivedRequest, text: str = '{"answer": 1}') -> dict[str, Any]:
    """Return the body of a good answer in the API of the request."""
    reply = servers.plain(received, text)
    assert isinstance(reply, web.Response)
    assert isinstance(reply.body, bytes)
    body: dict[str, Any] = json.loads(reply.body)
    return body


def hang_up(received: ReceivedRequest) -> None:
    """Drop the connection; it is reset if there are unread bytes."""
    assert received.request.transport is not None
    received.request.transport.abort()


async def reset_in_a_chunk(received: ReceivedRequest) -> Reply:
    reply = web.StreamResponse(headers={"Content-Type": "application/json"})
    reply.enable_chunked_encoding()
    await reply.prepare(received.request)
    await reply.write(b'{"cho')
    hang_up(received)
    return reply


async def reset_before_the_headers(received: ReceivedRequest) -> Reply:
    hang_up(received)
    return web.Response()


def too_long(received: ReceivedRequest) -> Reply:
    return servers.error(400, "maximum context length is 8 tokens")


EMPTY = {"body": b"", "content_type": "application/json"}
NOT_GZIP = {"body": b"{}", "headers": {"Content-Encoding": "gzip"}}
FAULTS: dict[str, tuple[Script, str, str, int | None]] = {
    "limited": (lambda _: servers.error(429, "slow down"), "rate_limit", "slow down", 429),
    "broken": (lambda _: servers.error(500, "oops"), "transient", "oops", 500),
    "reset in the body": (servers.torn, "transient", "connection failed", None),
    "reset in a chunk": (reset_in_a_chunk, "transient", "connection failed", None),
    "reset before": (reset_before_the_headers, "transient", "connection failed", None),
    "nothing": (lambda _: web.Response(**EMPTY), "transient", "", None),
    "not gzip": (lambda _: web.Response(**NOT_GZIP), "transient", "", None),
    "too long": (too_long, "item", "maximum context length", 400),
}
"""What a server does; kind, part of the message and status of the failure if it always does it.

An item is sent once after a failure of the kind `item`."""


@pytest.mark.parametrize(
    ("fault", "model"), [*product(FAULTS, (CHAT,)), *zip(FAULTS, cycle(MODELS[1:]))]
)
def test_a_fault_costs_an_attempt_and_a_permanent_one_is_recorded(
    tmp_path: Path, fault: str, model: str
) -> None:
    script, kind, message, status = FAULTS[fault]
    report, responses, counts = whole_run(
        tmp_path,
        lambda r: script(r) if r.number == 0 or "minimum" in r.prompt else servers.plain(r),
        model,
    )
    lost = {item for item in responses if TASKS[item] == "minmax" or kind == "item"}
    needed = 1 if kind == "item" else 2
    lasting = 1 if kind == "item" else ATTEMPTS
    assert (report.answered, report.errors) == (4 - len(lost), len(lost))
    for item, response in responses.items():
        assert response.attempts == counts[PROMPTS[item]]
        if item not in lost:
            assert (response.text, response.error) == ('{"answer": 1}', None)
            assert response.attempts == needed
            continue
        if kind == "rate_limit":
            # A limited server is given more attempts.
            assert lasting <= response.attempts <= 4 * lasting
        else:
            assert response.attempts == lasting
        assert response.error is not None
        assert (response.error.kind, response.error.status) == (kind, status)
        assert message in response.error.message
        assert 0 < len(response.error.message) < 400
        assert "\n" not in response.error.message
        assert (response.text, response.usage) == ("", Usage())


def whole_run(
    tmp_path: Path, script: Script, model: str, **changes: Any
) -> tuple[RunReport, dict[str, Response], Counter[str]]:
    """Run two questions of two tasks; return report, responses and requests per prompt."""
    dataset = small_dataset(tmp_path / "data", 2)
    with serve(script) as server:
        arguments = {"model": model, "policy": {"max_attempts": ATTEMPTS}} | changes
        report = go(server, dataset, tmp_path / "run", **arguments)
        counts = server.counts
    responses = read_run(tmp_path / "run").responses
    assert len(responses) == 4
    assert not [file for file in (tmp_path / "run").rglob("*") if KEY in file.read_text()]
    return report, responses, counts


@EVERY
@pytest.mark.parametrize("way", ["stall", "trickle"])
def test_a_response_that_never_ends_times_out(tmp_path: Path, model: str, way: str) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if way == "stall":
            await asyncio.sleep(servers.FOR_EVER)
        reply = web.StreamResponse(headers={"Content-Type": "application/json"})
        await reply.prepare(received.request)
        while True:
            await reply.write(b" ")
            await asyncio.sleep(0.02)

    report, responses, counts = whole_run(
        tmp_path, script, model, policy={"max_attempts": 2}, timeout=0.3
    )
    assert (report.answered, report.errors, report.retries) == (0, 4, 4)
    # On a busy machine a request may time out before it reaches the server.
    assert len(counts) <= 4 and max(counts.values()) <= 2
    for response in responses.values():
        assert response.attempts == 2
        assert response.error is not None
        assert response.error.kind == "transient"
        assert response.error.message == "no answer within 0.3 s"


async def compressed(received: ReceivedRequest) -> Reply:
    body = gzip.compress(json.dumps(plain(received)).encode())
    return web.Response(
        body=body, content_type="application/json", headers={"Content-Encoding": "gzip"}
    )


HUGE = "9" * 5_000_000


async def huge(received: ReceivedRequest) -> Reply:
    return servers.plain(received, HUGE)


@EVERY
@pytest.mark.parametrize(("script", "text"), [(compressed, '{"answer": 1}'), (huge, HUGE)])
def test_an_unusual_response_is_one_answer_and_missing_usage_is_unknown(
    tmp_path: Path, model: str, script: Script, text: str
) -> None:
    report, responses, counts = whole_run(tmp_path, script, model)
    assert (report.answered, report.errors, report.retries) == (4, 0, 0)
    assert (report.input_tokens, report.generated_tokens, report.cost) == (None, None, None)
    assert set(counts.values()) == {1}
    for response in responses.values():
        assert response.text == text
        assert (response.attempts, response.error, response.finish_reason) == (1, None, "stop")
        assert (response.usage, response.cost) == (Usage(), None)


@EVERY
def test_a_redirect_ends_the_run_and_gets_no_key(tmp_path: Path, model: str) -> None:
    dataset = small_dataset(tmp_path / "data", 10)
    with serve(servers.plain) as other:

        async def script(received: ReceivedRequest) -> Reply:
            return web.Response(status=307, headers={"Location": other.url + received.path})

        with serve(script) as server, pytest.raises(NumbenchError) as caught:
            go(server, dataset, tmp_path / "run", model=model, concurrency=8)
        assert not other.received and len(server.received) <= 8
    message = "HTTP 307: the server redirects to another URL"
    assert message in str(caught.value) and "check --base-url" in str(caught.value)


def test_a_server_that_rejects_every_item_ends_the_run(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path / "data", 70)
    with serve(too_long) as server:
        with pytest.raises(NumbenchError, match=r"all of the first 12. requests were rejected"):
            go(server, dataset, tmp_path / "run", model=CHAT, concurrency=4)
        assert len(server.received) < 120 + 8

    async def some(received: ReceivedRequest) -> Reply:
        return servers.plain(received) if "minimum" in received.prompt else too_long(received)

    with serve(some) as server:
        report = go(server, dataset, tmp_path / "some", model=CHAT)
    assert (report.answered, report.errors) == (70, 70)


def test_an_unreachable_server_ends_the_run_with_one_line(tmp_path: Path) -> None:
    dataset = small_dataset(tmp_path / "data", 20)
    with serve(servers.plain) as gone:
        go(gone, dataset, tmp_path / "run", limit=1)
    with pytest.raises(NumbenchError, match="10 requests in a row failed") as caught:
        go(gone, dataset, tmp_path / "run")
    assert "connection failed" in str(caught.value)
    assert "the same command continues" in str(caught.value)
    assert "\n" not in str(caught.value)
    responses = read_run(tmp_path / "run").responses.values()
    lost = [response for response in responses if response.error]
    assert 10 <= len(lost) < 10 + 16
    assert {(r.error.kind, r.attempts) for r in lost if r.error} == {("transient", 6)}
    with serve(servers.plain) as back:
        # A server's address is one of the settings that no later call may change.
        recorded = tmp_path / "run" / "run.json"
        recorded.write_text(recorded.read_text().replace(gone.url, back.url))
        report = go(back, dataset, tmp_path / "run")
    assert (report.answered, report.errors) == (38, 0)
