"""Complete runs with Claude against a scripted server that speaks Anthropic's API."""

from __future__ import annotations

import json
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from msgspec.structs import replace

from numbench.errors import BadInput, NumbenchError
from numbench.journal import read_run
from numbench.records import Response, Usage, possibly_billed_attempts
from numbench.runner import CostLimitReached
from numbench.runner.run_context import RetryPolicy
from tests import servers
from tests.runner.test_run import KEY, QUICK, RUN_MODULE, dataset, go, small_dataset
from tests.servers import ReceivedRequest, Reply, Script, serve

__all__ = ["dataset"]

MODEL = "anthropic/claude-haiku-4-5"
USAGE = {
    "input_tokens": 10,
    "cache_creation_input_tokens": 0,
    "cache_read_input_tokens": 0,
    "output_tokens": 30,
    "output_tokens_details": {"thinking_tokens": 20},
}


@pytest.fixture(autouse=True)
def _quick(monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    monkeypatch.setattr(
        RUN_MODULE, "RetryPolicy", lambda **changes: RetryPolicy(**(QUICK | changes))
    )
    yield


async def reply_with(received: ReceivedRequest, reply: Reply) -> Reply:
    """Send a good response, as a stream if the request asks for one."""
    if not servers.is_streamed(received):
        return reply
    return await servers.send_events(received, servers.events(reply))


async def good(received: ReceivedRequest) -> Reply:
    return await reply_with(received, servers.anthropic(usage=USAGE, thought="one and one"))


def prices(folder: Path, monkeypatch: pytest.MonkeyPatch, output: float) -> None:
    path = folder / "prices.toml"
    row = f'[[price]]\nroute = "{MODEL}"\ninput = 0.0\noutput = {output}\ndate = "2026-11"\n'
    path.write_text(row)
    monkeypatch.setenv("NUMBENCH_CATALOGUE", str(path))


def run_of(
    tmp_path: Path, script: Script, data: Path, **changes: Any
) -> tuple[list[Response], servers.Server]:
    """Return the responses of a run at the level `low`, and the server."""
    with serve(script) as server:
        arguments = {"model": MODEL, "reasoning": "low"} | changes
        go(server, data, tmp_path / "run", **arguments)
    return list(read_run(tmp_path / "run").responses.values()), server


def test_a_streamed_run_has_the_same_journal(dataset: Path, tmp_path: Path) -> None:
    journals = []
    for stream in (True, False):
        responses, server = run_of(tmp_path / str(stream), good, dataset, stream=stream)
        assert {servers.is_streamed(each) for each in server.received} == {stream}
        journals.append({r.item_id: replace(r, latency=None, at=None) for r in responses})
    assert journals[0] == journals[1]
    response = next(iter(journals[0].values()))
    assert (response.text, response.reasoning_text) == ('{"answer": 1}', "one and one")
    assert response.usage == Usage(
        input=10, generated=30, reasoning=20, visible=10, source="reported"
    )
    assert (response.served_model, response.provider) == ("served", "anthropic")


def test_what_is_sent_is_what_is_recorded(dataset: Path, tmp_path: Path) -> None:
    _, server = run_of(tmp_path, good, dataset, max_tokens=9000, few_shot=1)
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert settings["route"] == MODEL
    assert (settings["max_tokens"], settings["temperature"], settings["seed"]) == (9000, None, None)
    assert settings["structured"] is True
    for received in server.received:
        assert received.body["max_tokens"] == 9000
        assert received.body["thinking"] == settings["request"]["thinking"]
        assert [m["role"] for m in received.body["messages"]] == ["user", "assistant", "user"]
        assert not {"temperature", "seed", "cache_control"} & received.body.keys()
    files = [file for file in (tmp_path / "run").rglob("*") if file.is_file()]
    assert not [file for file in files if KEY.encode() in file.read_bytes()]


def test_the_models_own_token_limit_is_recorded(dataset: Path, tmp_path: Path) -> None:
    _, server = run_of(tmp_path, good, dataset, reasoning="max")
    settings = json.loads((tmp_path / "run" / "run.json").read_text())["settings"]
    assert settings["max_tokens"] == server.received[0].body["max_tokens"] == 64_000


def test_refused_and_truncated_answers_can_be_requested_again(
    dataset: Path, tmp_path: Path
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        stop = "end_turn" if received.number else "refusal"
        if "minimum" in received.prompt:
            stop = "max_tokens" if received.body["max_tokens"] < 9000 else "end_turn"
        return await reply_with(received, servers.anthropic(usage=USAGE, stop=stop))

    with serve(script) as server:
        arguments: dict[str, Any] = {"model": MODEL, "reasoning": "low", "max_tokens": 8000}
        go(server, dataset, tmp_path / "run", **arguments)
        reasons = [r.finish_reason for r in read_run(tmp_path / "run").responses.values()]
        assert sorted(map(str, reasons)) == 5 * ["length"] + 5 * ["refusal"]
        assert go(server, dataset, tmp_path / "run", **arguments).skipped == 10
        go(server, dataset, tmp_path / "run", **arguments, retry=("refused",))
        arguments["max_tokens"] = 9000
        go(server, dataset, tmp_path / "run", **arguments, retry=("truncated",))
    reasons = [r.finish_reason for r in read_run(tmp_path / "run").responses.values()]
    assert set(reasons) == {"stop"}


def test_an_overload_within_an_answer_is_retried_and_counts_as_possibly_billed(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    prices(tmp_path, monkeypatch, output=1000.0)

    async def script(received: ReceivedRequest) -> Reply:
        if received.number:
            return await good(received)
        events = servers.events(servers.anthropic(usage=USAGE))
        error = servers.named_event(servers.anthropic_error_body("overloaded_error", "Overloaded"))
        return await servers.send_events(received, [*events[:4], error])

    responses, server = run_of(tmp_path, script, dataset, concurrency=1, stream=True)
    assert set(server.counts.values()) == {2}
    assert {(r.error, r.attempts, possibly_billed_attempts(r)) for r in responses} == {(None, 2, 1)}
    # The cost is that of the answer; what the lost ones cost is unknown.
    assert {round(r.cost or 0.0, 6) for r in responses} == {0.03}


def test_a_rate_limit_is_waited_for(dataset: Path, tmp_path: Path) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if received.number:
            return await good(received)
        headers = {"retry-after": "0", "anthropic-ratelimit-requests-remaining": "0"}
        return servers.anthropic_error(429, "rate_limit_error", "slow down", headers)

    responses, _ = run_of(tmp_path, script, dataset)
    assert {(r.error, r.attempts, possibly_billed_attempts(r)) for r in responses} == {(None, 2, 0)}


@pytest.mark.parametrize(
    ("status", "kind", "fields", "message"),
    [
        (401, "authentication_error", {}, f"invalid x-api-key {KEY}"),
        (404, "not_found_error", {}, "model: claude-haiku-4-5"),
        (400, "invalid_request_error", {}, "Your credit balance is too low"),
        (
            429,
            "rate_limit_error",
            {"details": {"error_code": "enforced_spend_limit_reached"}},
            "You have reached your API usage limits",
        ),
    ],
)
def test_an_account_that_cannot_be_used_ends_the_run_at_once(
    tmp_path: Path, status: int, kind: str, fields: dict[str, Any], message: str
) -> None:
    from aiohttp import web

    async def script(received: ReceivedRequest) -> Reply:
        return web.json_response(
            servers.anthropic_error_body(kind, message, **fields), status=status
        )

    data = small_dataset(tmp_path / "data", 100)
    with serve(script) as server:
        with pytest.raises(NumbenchError, match=f"{MODEL}: HTTP {status}: ") as caught:
            go(server, data, tmp_path / "run", model=MODEL, concurrency=4)
        assert len(server.received) <= 4
    assert KEY not in str(caught.value)
    assert not (tmp_path / "run").exists()


def test_a_cost_limit_is_never_exceeded(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """Each answer costs the most that it can: $0.64 for 64,000 tokens at $10 per million."""
    prices(tmp_path, monkeypatch, output=10.0)
    data = small_dataset(tmp_path / "data", 50)
    billed = 0.0

    async def script(received: ReceivedRequest) -> Reply:
        nonlocal billed
        billed += 0.64
        usage = {"input_tokens": 10, "output_tokens": 64_000}
        return await reply_with(received, servers.anthropic(usage=usage, stop="max_tokens"))

    with serve(script) as server, pytest.raises(CostLimitReached):
        arguments = {"model": MODEL, "reasoning": "max", "max_cost": 5.0}
        go(server, data, tmp_path / "run", **arguments)
    assert billed == pytest.approx(7 * 0.64)


def test_settings_that_the_api_lacks_are_refused(dataset: Path, tmp_path: Path) -> None:
    with serve(good) as server:
        for options, message in (
            ({"seed": 3}, "takes no seed in this API: omit --seed"),
            ({"temperature": 0.5}, "accepts no temperature: omit --temperature"),
            ({"reasoning": "xhigh"}, "possible: none, minimal, low, medium, high, max"),
            ({"api": "responses"}, "--api responses is available from openai only"),
        ):
            arguments = {"model": MODEL, "reasoning": "low"} | options
            with pytest.raises(BadInput, match=message):
                go(server, dataset, tmp_path / "run", **arguments)
        assert not server.received


def test_a_token_limit_within_the_thinking_budget_is_refused_before_anything_is_sent(
    dataset: Path, tmp_path: Path
) -> None:
    with serve(good) as server:
        with pytest.raises(BadInput, match=r"limit of 2,000 .* budget of 32,768 .*--max-tokens"):
            go(server, dataset, tmp_path / "run", model=MODEL, reasoning="high", max_tokens=2000)
        assert not server.received
