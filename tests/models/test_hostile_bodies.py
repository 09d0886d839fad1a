"""Bodies that no server should send: none is lost, none crashes, none reaches the terminal raw."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
from aiohttp import web

from bench.jsonl import encode
from bench.models import Api
from bench.models.failures import fault, transient
from bench.models.secrets import secrets
from bench.records import Completion
from tests import servers
from tests.models.asking import KEY, LOCAL_CHAT, LOCAL_GEMINI, ask
from tests.servers import Asked, Reply

LITELLM = "litellm/openai/some"
DEEP = b"[" * 100_000
PLANTED = "hf_Planted0123456789"

ROUTES: list[tuple[str, Api]] = [
    (LOCAL_CHAT, "chat"),
    (LOCAL_CHAT, "responses"),
    (LOCAL_GEMINI, "chat"),
    (LITELLM, "chat"),
]
everywhere = pytest.mark.parametrize(("model", "api"), ROUTES)


def answer(model: str, api: Api, change: Callable[[bytes], bytes], text: str = "4") -> Completion:
    """What the adapter makes of a good answer whose body was changed."""

    async def script(asked: Asked) -> Reply:
        reply = (
            servers.responses(text)
            if "input" in asked.body
            else servers.gemini(text, thought=text)
            if "contents" in asked.body
            else servers.chat(text, system_fingerprint=text)
        )
        assert isinstance(reply, web.Response)
        assert isinstance(reply.body, bytes)
        body = change(reply.body)
        return web.Response(body=body, content_type="application/json")

    return ask(script, model, api=api)[0]


def refusal(model: str, api: Api, message: object, **more: object) -> str:
    """The message of the failure that the adapter makes of an error."""

    async def script(asked: Asked) -> Reply:
        return web.json_response({"error": {"message": message} | more}, status=500)

    error = ask(script, model, api=api)[0].error
    assert error is not None
    return error.message


@everywhere
def test_a_lone_surrogate_is_replaced_and_the_answer_kept(model: str, api: Api) -> None:
    completion = answer(model, api, lambda body: body, text="4 \ud800 \U0001f600")
    assert (completion.text, completion.error) == ("4 \ufffd \U0001f600", None)
    assert msgspec.json.decode(encode(completion), type=Completion) == completion


@everywhere
def test_a_lone_surrogate_in_an_error_is_replaced(model: str, api: Api) -> None:
    assert "oh \ufffd no" in refusal(model, api, "oh \ud800 no")


@pytest.mark.parametrize(("model", "api"), ROUTES[:3])
def test_a_byte_that_is_not_utf8_costs_no_answer(model: str, api: Api) -> None:
    completion = answer(model, api, lambda body: body.replace(b"4", b"4\xff"))
    assert completion.text == "4\ufffd"


@pytest.mark.parametrize(("model", "api"), ROUTES[:3])
def test_a_header_that_is_not_ascii_costs_no_answer(model: str, api: Api) -> None:
    async def script(asked: Asked) -> Reply:
        reply = (
            servers.responses("4")
            if "input" in asked.body
            else servers.gemini("4")
            if "contents" in asked.body
            else servers.chat("4")
        )
        reply.headers["x-where"] = "Z\u00fcrich"
        return reply

    assert ask(script, model, api=api)[0].text == "4"


@everywhere
@pytest.mark.parametrize("status", [200, 400, 500])
@pytest.mark.parametrize(
    "start", [b"", b'{"error": ', b'{"candidates": ', b'{"error": {"message": ']
)
def test_a_deeply_nested_body_is_a_failure(model: str, api: Api, status: int, start: bytes) -> None:
    async def script(asked: Asked) -> Reply:
        return web.Response(body=start + DEEP, status=status, content_type="application/json")

    assert ask(script, model, api=api)[0].error is not None


@pytest.mark.parametrize(
    "body",
    [
        {"candidates": [{"content": {"parts": [{"functionCall": 3}]}, "index": "x"}]},
        {"candidates": [{"content": "x", "finishReason": {"a": 1}}]},
        {"candidates": [[]], "usageMetadata": [], "promptFeedback": 3},
    ],
)
def test_gemini_bodies_of_another_form_are_empty_answers(body: object) -> None:
    async def script(asked: Asked) -> Reply:
        return web.json_response(body)

    completion, _ = ask(script, LOCAL_GEMINI)
    assert (completion.text, completion.error) == ("", None)


def test_a_fault_of_ours_before_a_request_is_no_failure_of_the_servers() -> None:
    async def script(asked: Asked) -> Reply:
        raise AssertionError("nothing is asked")

    for model, shape in ((LOCAL_GEMINI, {"temperature": {}}), (LOCAL_CHAT, {"request": None})):
        with pytest.raises((ValueError, TypeError)):
            ask(script, model, **shape)


@everywhere
@pytest.mark.parametrize("before", range(270, 320, 3))
def test_no_part_of_a_key_is_left_where_a_message_is_cut(model: str, api: Api, before: int) -> None:
    message = refusal(model, api, "x" * before + KEY + "y" * 99)
    assert len(message) <= 301
    assert KEY[:4] not in message


def test_a_fault_masks_before_it_cuts() -> None:
    for before in range(280, 300):
        raised = fault(transient("x" * before + KEY), secrets(KEY))
        assert KEY[:3] not in str(raised)


@everywhere
@pytest.mark.parametrize(
    "variable",
    ["HF_TOKEN", "TOGETHER_AI_TOKEN", "AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MY_SECRET"],
)
def test_every_secret_of_the_environment_is_masked(
    monkeypatch: pytest.MonkeyPatch, model: str, api: Api, variable: str
) -> None:
    monkeypatch.setenv(variable, PLANTED)
    assert answer(model, api, lambda body: body, text=f"is it {PLANTED}?").text == "is it [key]?"
    message = refusal(model, api, f"{PLANTED} and {KEY}")
    assert PLANTED not in message
    assert "[key]" in message


def test_what_is_no_secret_does_not_mutilate_answers(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, value in enumerate(("123456789", "1.2345e+10", "disabled", "short1")):
        monkeypatch.setenv(f"TEST{number}_TOKEN", value)
    monkeypatch.setenv("OPENAI_API_KEY", "12345678")
    text = "123456789 1.2345e+10 disabled short1 12345678"
    assert answer(LOCAL_CHAT, "chat", lambda body: body, text=text).text == text


def test_a_secret_is_found_in_every_way_it_may_be_written(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "a+b/c'd\\e\"f0123456789"
    monkeypatch.setenv("MY_SECRET", secret)
    for written in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        text = answer(LOCAL_CHAT, "chat", lambda body: body, text=f"<{written}>").text
        assert text == "<[key]>"


def test_a_secret_that_is_no_text_is_masked_and_costs_nothing(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_SECRET", "planted\udcff0123456789")
    assert answer(LOCAL_CHAT, "chat", lambda body: body, text="4").text == "4"


@everywhere
def test_no_warning_repeats_what_a_server_said(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder, model: str, api: Api
) -> None:
    async def script(asked: Asked) -> Reply:
        body = {
            "promptFeedback": {"blockReason": KEY},
            "candidates": [{"finishReason": KEY, "content": {"parts": [{"text": "1"}]}}],
            "choices": [{"finish_reason": KEY, "message": {"content": "1", "role": KEY}}],
            "output": [{"type": KEY}],
            "status": "completed",
        }
        return web.json_response(body)

    ask(script, model, api=api)
    out, err = capfd.readouterr()
    assert KEY not in out + err
    assert not [warning for warning in recwarn if KEY in str(warning.message)]


@everywhere
def test_a_message_cannot_steer_the_terminal(model: str, api: Api) -> None:
    message = refusal(model, api, "a\x1b[2Jb\x1b]0;t\x07c\x9bd\u202ee\nf\u2028g")
    assert message.isprintable()
    assert r"a\x1b[2Jb\x1b]0;t\x07c\x9bd\u202ee f g" in message
