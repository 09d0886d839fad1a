"""OpenAI's background mode: requests, polling over lost connections, late and lost responses."""

from __future__ import annotations

import asyncio
from dataclasses import replace
from typing import Any

import pytest
from aiohttp import web

from numbench.errors import BadInput
from numbench.models import open_batch, open_model
from numbench.models.background_responses import ResponseTracker, tracking
from numbench.records import Completion
from tests import servers
from tests.models.adapter_calls import KEY, MESSAGES
from tests.models.background_server import BackgroundServer
from tests.servers import ReceivedRequest, Reply, Script, serve


def answer_by(
    script: Script,
    tracker: ResponseTracker | None = None,
    background: bool = True,
    **changes: Any,
) -> tuple[Completion, list[ReceivedRequest]]:
    """Return the completion of GPT-5 at a server, and the requests that it received."""

    async def once(url: str) -> Completion:
        model, description = open_model("gpt-5", "low", url, "responses", background=background)
        settings = replace(description.settings, **({"timeout": 60.0} | changes))
        with tracking(tracker or ResponseTracker()):
            completion = await model.answer(MESSAGES, settings)
        await model.close()
        return completion

    with serve(script) as server:
        return asyncio.run(once(server.url)), server.received


def test_the_record_is_that_of_an_answer_that_is_awaited() -> None:
    awaited, (direct,) = answer_by(BackgroundServer(), background=False)
    polled, (first, *polls) = answer_by(BackgroundServer(polls=3))
    assert polled == awaited
    assert polled.text == '{"answer": 1}' and polled.usage.reasoning == 49_000
    assert direct.body.pop("stream")
    assert first.body == direct.body | {"background": True, "store": True}
    assert [(each.request.method, each.path) for each in polls] == [
        ("GET", "/responses/resp-1")
    ] * 3
    assert all(each.headers["authorization"] == f"Bearer {KEY}" for each in polls)


def test_a_server_that_ignores_the_mode_is_asked_once() -> None:
    async def at_once(received: ReceivedRequest) -> Reply:
        return servers.responses()

    completion, received = answer_by(at_once)
    assert (completion.error, len(received)) == (None, 1)


def test_what_the_user_says_about_storing_is_sent() -> None:
    _, received = answer_by(BackgroundServer(), params={"store": False})
    assert received[0].body["store"] is False and received[0].body["background"] is True


@pytest.mark.parametrize(
    "hindrance",
    [
        lambda: servers.error(502),
        lambda: servers.error(429),
        lambda: servers.error(404),
        lambda: web.Response(text="<html>", content_type="text/html"),
        lambda: web.json_response({}),
        lambda: web.Response(status=200, headers={"Content-Length": "5000"}, text="x"),
    ],
)
def test_a_poll_that_fails_is_repeated_and_the_request_is_not(
    monkeypatch: pytest.MonkeyPatch, hindrance: Any
) -> None:
    monkeypatch.setattr("numbench.models.openai_background.MIN_POLL_SECONDS", 0.01)
    monkeypatch.setattr("numbench.models.openai_background.POLL_TIMEOUT_SECONDS", 0.5)
    server = BackgroundServer(polls=5, instead=lambda poll: hindrance() if poll in (2, 3) else None)
    completion, _ = answer_by(server)
    assert completion.error is None
    assert server.started.total() == 1 and server.polled.total() >= 5


@pytest.mark.parametrize(("status", "is_answer"), [("cancelled", False), ("completed", True)])
def test_a_late_response_is_cancelled_unless_it_is_complete_by_then(
    status: str, is_answer: bool
) -> None:
    server, tracker = BackgroundServer(polls=10**9, status_after_cancel=status), ResponseTracker()
    completion, _ = answer_by(server, tracker, timeout=0.3)
    assert server.cancelled == ["resp-1"]
    assert (completion.error is None) is is_answer
    # A completed response stays known until it is stored.
    assert (tracker.response_id is not None) is is_answer
    if completion.error:
        assert (completion.error.kind, completion.error.possibly_billed) == ("transient", True)


def test_a_late_response_that_cannot_be_cancelled_is_collected_by_the_next_attempt() -> None:
    server, tracker = BackgroundServer(polls=10**9), ResponseTracker()
    server.status_after_cancel = "in_progress"
    completion, _ = answer_by(server, tracker, timeout=0.3)
    assert completion.error is not None and tracker.response_id == "resp-1"
    server.polls = 1
    completion, received = answer_by(server, tracker, background=False)
    assert completion.error is None
    assert [each.request.method for each in received] == ["GET"]


def test_a_response_that_the_server_no_longer_has_may_have_been_billed(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setattr("numbench.models.openai_background.MIN_POLL_SECONDS", 0.01)
    tracker = ResponseTracker("resp-of-yesterday")
    error = answer_by(BackgroundServer(), tracker)[0].error
    assert error is not None and (error.kind, error.possibly_billed) == ("transient", True)
    assert tracker.response_id is None


def test_a_wrong_key_ends_the_run_and_leaves_the_response_where_it_is() -> None:
    tracker = ResponseTracker()
    server = BackgroundServer(instead=lambda poll: servers.error(401, "bad key"))
    error = answer_by(server, tracker)[0].error
    assert error is not None and (error.kind, error.status) == ("run", 401)
    assert tracker.response_id == "resp-1"


@pytest.mark.parametrize(
    ("code", "kind"),
    [
        ("server_error", "transient"),
        ("rate_limit_exceeded", "rate_limit"),
        ("insufficient_quota", "run"),
    ],
)
def test_a_response_that_fails_is_given_up(code: str, kind: str) -> None:
    def failed(poll: int) -> Reply:
        return servers.responses(status="failed", error={"code": code, "message": "no"}, output=[])

    tracker = ResponseTracker()
    error = answer_by(BackgroundServer(instead=failed), tracker)[0].error
    assert error is not None and error.kind == kind
    assert tracker.response_id is None


@pytest.mark.parametrize("identity", [KEY, "a\nb", "", 7])
def test_an_id_that_cannot_be_stored_is_not(identity: object) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return web.json_response({"id": identity, "status": "queued", "output": []})

    tracker = ResponseTracker()
    completion, received = answer_by(script, tracker)
    assert completion.error is not None and len(received) == 1
    assert tracker.response_id is None


def test_the_summary_of_a_collected_response_says_whether_it_was_sent() -> None:
    for summary, not_sent in ((None, "reasoning.summary"), ("auto", None)):
        reasoning = {"effort": "low", "summary": summary}

        async def script(received: ReceivedRequest, reasoning: Any = reasoning) -> Reply:
            return servers.responses(reasoning=reasoning)

        completion, _ = answer_by(script, ResponseTracker("resp-1"))
        assert completion.extra.get("not_sent") == not_sent


@pytest.mark.parametrize(
    ("arguments", "message"),
    [
        (("gpt-5", "low", None, "chat"), "--background needs --api responses, which openai has"),
        (("gemini-2.5-pro", "minimal", None, "chat"), "--background needs --api responses"),
        (("baseline/float64",), "--background needs --api responses"),
    ],
)
def test_only_the_responses_api_has_the_mode(arguments: Any, message: str) -> None:
    with pytest.raises(BadInput, match=message):
        open_model(*arguments, background=True)
    with pytest.raises(BadInput, match="omit --stream or --background"):
        open_model("gpt-5", "low", None, "responses", stream=True, background=True)
    assert open_batch("gpt-5", "low", None, "responses")
