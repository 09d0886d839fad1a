"""Malformed and hostile bodies: no answer is lost, nothing crashes, messages are printable."""

from __future__ import annotations

import json
from collections.abc import Callable

import msgspec
import pytest
from aiohttp import web

from numbench.jsonl import encode
from numbench.models import Api
from numbench.records import Completion
from tests.models.adapter_calls import ANTHROPIC_MODEL, CHAT_MODEL, GEMINI_MODEL, KEY, call_adapter
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply

LITELLM = "litellm/openai/some"
DEEP = b"[" * 100_000
PLANTED = "hf_Planted0123456789"

ROUTES: list[tuple[str, Api]] = [
    (CHAT_MODEL, "chat"),
    (CHAT_MODEL, "responses"),
    (GEMINI_MODEL, "chat"),
    (ANTHROPIC_MODEL, "chat"),
    (LITELLM, "chat"),
]
everywhere = pytest.mark.parametrize(("model", "api"), ROUTES)


def answer(model: str, api: Api, change: Callable[[bytes], bytes], text: str = "4") -> Completion:
    """Return the completion for a valid response whose body was changed."""

    async def script(received: ReceivedRequest) -> Reply:
        replies: dict[str, Callable[[], Reply]] = {
            "responses": lambda: servers.responses(text),
            "gemini": lambda: servers.gemini(text, thought=text),
            "anthropic": lambda: servers.anthropic(text, thought=text, id=text),
            "chat": lambda: servers.chat(text, system_fingerprint=text),
        }
        reply = replies[servers.api_of(received)]()
        assert isinstance(reply, web.Response)
        assert isinstance(reply.body, bytes)
        body = change(reply.body)
        return web.Response(body=body, content_type="application/json")

    return call_adapter(script, model, api=api)[0]


def refusal(model: str, api: Api, message: object, **more: object) -> str:
    """Return the message of the failure for an error response."""

    async def script(received: ReceivedRequest) -> Reply:
        return web.json_response({"error": {"message": message} | more}, status=500)

    error = call_adapter(script, model, api=api)[0].error
    assert error is not None
    return error.message


@everywhere
def test_a_lone_surrogate_in_an_answer_is_replaced(model: str, api: Api) -> None:
    completion = answer(model, api, lambda body: body, text="4 \ud800 \U0001f600")
    assert (completion.text, completion.error) == ("4 \ufffd \U0001f600", None)
    assert msgspec.json.decode(encode(completion), type=Completion) == completion


@everywhere
def test_a_lone_surrogate_in_an_error_is_replaced(model: str, api: Api) -> None:
    assert "oh \ufffd no" in refusal(model, api, "oh \ud800 no")


@pytest.mark.parametrize(("model", "api"), ROUTES[:4])
def test_a_byte_that_is_not_utf8_loses_no_answer(model: str, api: Api) -> None:
    completion = answer(model, api, lambda body: body.replace(b"4", b"4\xff"))
    assert completion.text == "4\ufffd"


@pytest.mark.parametrize(("model", "api"), ROUTES[:4])
def test_a_header_that_is_not_ascii_loses_no_answer(model: str, api: Api) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        reply = servers.plain(received, "4")
        reply.headers["x-where"] = "Z\u00fcrich"
        return reply

    assert call_adapter(script, model, api=api)[0].text == "4"


@everywhere
@pytest.mark.parametrize("status", [200, 500])
@pytest.mark.parametrize(
    "start", [b"", b'{"error": ', b'{"candidates": ', b'{"content": ', b'{"error": {"message": ']
)
def test_a_deeply_nested_body_is_a_failure(model: str, api: Api, status: int, start: bytes) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return web.Response(body=start + DEEP, status=status, content_type="application/json")

    assert call_adapter(script, model, api=api)[0].error is not None


@pytest.mark.parametrize(
    "body",
    [
        {"candidates": [{"content": {"parts": [{"functionCall": 3}]}, "index": "x"}]},
        {"candidates": [{"content": "x", "finishReason": {"a": 1}}]},
        {"candidates": [[]], "usageMetadata": [], "promptFeedback": 3},
    ],
)
def test_malformed_gemini_bodies_are_no_answers(body: object) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return web.json_response(body)

    completion, _ = call_adapter(script, GEMINI_MODEL)
    assert completion.error is not None and completion.error.kind == "transient"


@everywhere
@pytest.mark.parametrize("before", [271, 280, 290, 297])
def test_a_truncated_message_contains_no_part_of_a_key(model: str, api: Api, before: int) -> None:
    message = refusal(model, api, "x" * before + KEY + "y" * 99)
    assert len(message) <= 301
    assert KEY[:4] not in message


@pytest.mark.parametrize(
    ("model", "api", "variable"),
    [
        *((*route, "HF_TOKEN") for route in ROUTES),
        *((*ROUTES[0], name) for name in ("AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MY_SECRET")),
    ],
)
def test_every_secret_of_the_environment_is_masked(
    monkeypatch: pytest.MonkeyPatch, model: str, api: Api, variable: str
) -> None:
    monkeypatch.setenv(variable, PLANTED)
    assert answer(model, api, lambda body: body, text=f"is it {PLANTED}?").text == "is it [key]?"
    message = refusal(model, api, f"{PLANTED} and {KEY}")
    assert PLANTED not in message
    assert "[key]" in message


def test_numbers_and_short_words_are_not_masked(monkeypatch: pytest.MonkeyPatch) -> None:
    for number, value in enumerate(("123456789", "1.2345e+10", "disabled", "short1")):
        monkeypatch.setenv(f"TEST{number}_TOKEN", value)
    monkeypatch.setenv("OPENAI_API_KEY", "12345678")
    text = "123456789 1.2345e+10 disabled short1 12345678"
    assert answer(CHAT_MODEL, "chat", lambda body: body, text=text).text == text


def test_a_secret_is_masked_in_each_of_its_encodings(monkeypatch: pytest.MonkeyPatch) -> None:
    secret = "a+b/c'd\\e\"f0123456789"
    monkeypatch.setenv("MY_SECRET", secret)
    for written in (secret, json.dumps(secret)[1:-1], repr(secret)[1:-1]):
        text = answer(CHAT_MODEL, "chat", lambda body: body, text=f"<{written}>").text
        assert text == "<[key]>"


def test_a_secret_that_is_not_utf8_loses_no_answer(
    monkeypatch: pytest.MonkeyPatch,
) -> None:
    monkeypatch.setenv("MY_SECRET", "planted\udcff0123456789")
    assert answer(CHAT_MODEL, "chat", lambda body: body, text="4").text == "4"


@everywhere
def test_no_warning_quotes_the_server(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder, model: str, api: Api
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        body = {
            "promptFeedback": {"blockReason": KEY},
            "candidates": [{"finishReason": KEY, "content": {"parts": [{"text": "1"}]}}],
            "choices": [{"finish_reason": KEY, "message": {"content": "1", "role": KEY}}],
            "output": [{"type": KEY}],
            "status": "completed",
            "content": [{"type": KEY, "text": "1"}, {"type": "text", "text": KEY}],
            "stop_reason": KEY,
        }
        return web.json_response(body)

    call_adapter(script, model, api=api)
    out, err = capfd.readouterr()
    assert KEY not in out + err
    assert not [warning for warning in recwarn if KEY in str(warning.message)]


@everywhere
def test_a_message_contains_no_control_characters(model: str, api: Api) -> None:
    message = refusal(model, api, "a\x1b[2Jb\x1b]0;t\x07c\x9bd\u202ee\nf\u2028g")
    assert message.isprintable()
    assert r"a\x1b[2Jb\x1b]0;t\x07c\x9bd\u202ee f g" in message
