"""Complete runs at a provider with a ledger: the journal has what it generated and what it lost."""

import asyncio
from collections.abc import Awaitable, Callable
from dataclasses import dataclass
from inspect import isawaitable
from pathlib import Path
from typing import Any

import pytest
from aiohttp import web

from numbench.journal.run_folder import read_run
from tests.support import servers
from tests.support.run_fixtures import keys
from tests.support.runs import go, set_prices, small_dataset
from tests.support.servers import ReceivedRequest, Reply, serve

__all__ = ["keys"]

pytestmark = pytest.mark.slow

WIRES = {
    "chat": "openai/some",
    "responses": "openai/some",
    "gemini": "gemini/some",
    "anthropic": "anthropic/some",
}
INPUT, OUTPUT = 10, 7
COST = (INPUT * 1000 + OUTPUT * 3000) / 1e6


@dataclass
class Ledger:
    """What the provider generated: answers, tokens in answers, dollars in replies, replies lost."""

    answers: int = 0
    tokens: int = 0
    cost: float = 0.0
    lost: int = 0


def reply(
    received: ReceivedRequest, ending: str = "", text: str = "4", usage: bool = True
) -> Reply:
    """Return a reply with usage in the API of the request."""
    wire = servers.api_of(received)
    names: dict[str, Any] = {
        "chat": ("prompt_tokens", "completion_tokens", servers.chat, "finish", "stop"),
        "responses": ("input_tokens", "output_tokens", servers.responses, "status", "completed"),
        "gemini": ("promptTokenCount", "candidatesTokenCount", servers.gemini, "finish", "STOP"),
        "anthropic": ("input_tokens", "output_tokens", servers.anthropic, "stop", "end_turn"),
    }
    first, second, make, field, good = names[wire]
    counts = {first: INPUT, second: OUTPUT}
    counts |= {"totalTokenCount": INPUT + OUTPUT} if wire == "gemini" else {}
    if wire == "responses" and ending:
        ending = "failed"
    made: Reply = make(text, usage=counts if usage else None, **{field: ending or good})
    return made


async def send(received: ReceivedRequest, made: Reply) -> Reply:
    """Send a reply as the request asks for it."""
    if servers.is_streamed(received):
        return await servers.send_events(received, servers.events(made))
    return made


def ends_with(ending: str, **more: Any) -> Callable[[ReceivedRequest], Awaitable[Reply]]:
    return lambda received: send(received, reply(received, ending, **more))


def fails_with(status: int, **more: Any) -> Callable[[ReceivedRequest], Awaitable[Reply]]:
    return lambda _: servers.error(status, "oh no", **more)


def breaks_off(error: dict[str, Any] | None, after: int) -> Any:
    """Stream some events, then an error, or nothing."""

    async def script(received: ReceivedRequest) -> Reply:
        sent = servers.events(reply(received, text="12345678"))[:after]
        last = [] if error is None else [servers.event({"type": "error", "error": error})]
        return await servers.send_events(received, sent + last)

    return script


async def cut_off(received: ReceivedRequest) -> Reply:
    made = reply(received)
    assert isinstance(made, web.Response) and isinstance(made.body, bytes)
    return web.Response(body=made.body[:-9], content_type="application/json")


LIMITED = {"code": 429, "type": "rate_limit_error", "message": "slow down"}
OVERLOADED = {"code": 529, "type": "overloaded_error", "message": "overloaded"}
BROKEN = {"message": "upstream died"}

FREE = {
    "limited": fails_with(429, headers={"Retry-After": "0"}),
    "too early": fails_with(425),
    "overloaded": fails_with(503),
}
LOST = {
    "server error": fails_with(500),
    "gateway": lambda _: web.Response(status=502, text="<html>oh", content_type="text/html"),
    "torn": servers.torn,
    "cut off": cut_off,
    "given up": ends_with("insufficient_system_resource", usage=False),
    "unknown ending": ends_with("a new one", usage=False),
}
REPORTED = {"given up with usage": ends_with("error"), "empty with tokens": ends_with("", text="")}
FREE_STREAMS = {"limited at once": breaks_off(LIMITED, 0), "overloaded": breaks_off(OVERLOADED, 0)}
LOST_STREAMS = {
    "limited after content": breaks_off(LIMITED, 6),
    "overloaded after content": breaks_off(OVERLOADED, 6),
    "broken after content": breaks_off(BROKEN, 6),
    "ended after content": breaks_off(None, 6),
    "ended at once": breaks_off(None, 0),
}
FAULTS = [
    *((False, "free", FREE), (False, "lost", LOST), (False, "reported", REPORTED)),
    *((True, "free", FREE_STREAMS), (True, "lost", LOST_STREAMS)),
]


@pytest.mark.parametrize("wire", WIRES)
@pytest.mark.parametrize(
    ("stream", "fate", "fault"),
    [
        pytest.param(stream, fate, fault, id=f"{name}-{'streamed' if stream else 'whole'}")
        for only_streams, fate, faults in FAULTS
        for name, fault in faults.items()
        for stream in ([True] if only_streams else [False, True])
    ],
)
def test_the_journal_equals_the_ledger_of_the_provider(
    tmp_path: Path,
    monkeypatch: pytest.MonkeyPatch,
    wire: str,
    stream: bool,
    fate: str,
    fault: Callable[[ReceivedRequest], Awaitable[Reply]],
) -> None:
    """Each question of one task meets the fault once, those of the other always."""
    ledger = Ledger()

    async def script(received: ReceivedRequest) -> Reply:
        await asyncio.sleep(0)
        if received.number and "minimum" not in received.prompt:
            ledger.answers += 1
            ledger.tokens += OUTPUT
            ledger.cost += COST
            return await send(received, reply(received, text='{"answer": 1}'))
        ledger.lost += fate == "lost"
        ledger.cost += COST if fate == "reported" else 0.0
        made = fault(received)
        return await made if isawaitable(made) else made

    set_prices(monkeypatch, tmp_path, {WIRES[wire]: (1000, 3000)})
    api = {"api": "responses"} if wire == "responses" else {}
    data = small_dataset(tmp_path / "data", 2)
    with serve(script) as server:
        arguments: dict[str, Any] = {"stream": stream, "policy": {"max_attempts": 3}} | api
        report = go(server, data, tmp_path / "run", model=WIRES[wire], **arguments)
    responses = read_run(tmp_path / "run").responses.values()
    answers = [each for each in responses if each.error is None]
    assert len(answers) == ledger.answers == 2
    assert sum(each.usage.generated or 0 for each in answers) == ledger.tokens
    assert sum(each.cost or 0.0 for each in responses) == pytest.approx(ledger.cost)
    lost = sum(each.possibly_billed_attempts for each in responses)
    assert lost == ledger.lost == report.possibly_billed_attempts
