"""Malformed and hostile bodies: no answer is lost, nothing crashes, messages are printable."""

from typing import Any

import msgspec
import pytest
from aiohttp import web

from numbench.core.jsonl import encode
from numbench.models.error_bodies import error_code_and_message
from numbench.records import Completion
from tests.models.adapter_calls import CHAT, HOSTED, KEY, LITELLM, call_adapter
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.servers import ReceivedRequest, Reply

DEEP = b"[" * 100_000
PLANTED = "hf_Planted0123456789"
EVERYWHERE = pytest.mark.parametrize("model", (*HOSTED, LITELLM))


def answer(model: str, text: str, planted: bytes = b"") -> Completion:
    """Return the completion of an answer with this text, before whose last byte others come."""

    async def script(received: ReceivedRequest) -> Reply:
        replies: dict[str, Any] = {
            "responses": lambda: servers.responses(text),
            "gemini": lambda: servers.gemini(text, thought=text),
            "anthropic": lambda: servers.anthropic(text, thought=text, id=text),
            "chat": lambda: servers.chat(text, system_fingerprint=text),
        }
        reply = replies[servers.api_of(received)]()
        body = reply.body.replace(b"4", b"4" + planted)
        headers = {} if model == LITELLM else {"x-where": "Z\u00fcrich"}
        return web.Response(body=body, content_type="application/json", headers=headers)

    return call_adapter(script, model)[0]


def refusal(model: str, message: object) -> str:
    """Return the message of the failure for an error response."""
    error = call_adapter(
        lambda _: web.json_response({"error": {"message": message}}, status=500), model
    )[0].error
    assert error is not None
    return error.message


@EVERYWHERE
def test_no_text_is_lost_or_breaks_a_file(model: str) -> None:
    completion = answer(model, "4 \ud800 \U0001f600")
    assert (completion.text, completion.error) == ("4 \ufffd \U0001f600", None)
    assert msgspec.json.decode(encode(completion), type=Completion) == completion
    assert "oh \ufffd no" in refusal(model, "oh \ud800 no")
    assert call_adapter(lambda _: web.json_response({"x": "\ud800"}, status=500), model)[0].error
    if model != LITELLM:
        assert answer(model, "4", planted=b"\xff").text == "4\ufffd"


@EVERYWHERE
@pytest.mark.parametrize("status", [200, 500])
def test_a_deeply_nested_body_is_a_failure(model: str, status: int) -> None:
    for start in (
        b"",
        b'{"error": ',
        b'{"candidates": ',
        b'{"content": ',
        b'{"error": {"message":',
    ):

        async def script(received: ReceivedRequest, start: bytes = start) -> Reply:
            body = start + DEEP
            return web.Response(body=body, status=status, content_type="application/json")

        assert call_adapter(script, model)[0].error is not None


@pytest.mark.parametrize("text", ["no " * 100_000, "1" * 100_000], ids=["words", "digits"])
def test_a_long_message_takes_no_longer_than_its_start(text: str) -> None:
    """Some patterns would take minutes for it."""
    reply = {"error": {"message": text}}
    assert call_adapter(lambda _: web.json_response(reply, status=400), stream=True)[0].error


@pytest.mark.parametrize("model", HOSTED)
def test_no_error_of_a_reader_ends_a_run(model: str, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("numbench.models.formats.base.parse_cost", {}.__getitem__)
    error = call_adapter(servers.plain, model)[0].error
    assert error is not None and error.possibly_billed and "TypeError" in error.message


def test_the_search_for_a_message_is_bounded() -> None:
    nested: Any = {"message": "deep"}
    for _ in range(9):
        nested = {"x": nested}
    many = {"x": [{"y": 0}] * 50 + [{"message": "late"}]}
    assert error_code_and_message(nested) == error_code_and_message(many) == ("", "")


@EVERYWHERE
def test_messages_are_short_printable_lines_without_any_part_of_a_key(model: str) -> None:
    for before in (271, 280, 290, 297):
        message = refusal(model, "x" * before + KEY + "y" * 99)
        assert (len(message), message[-1]) == (301, "…") and KEY[:4] not in message
    message = refusal(model, "a\x1b[2Jb\x1b]0;t\x07c\x9bd\u202ee\nf\u2028g")
    assert message.isprintable()
    assert r"a\x1b[2Jb\x1b]0;t\x07c\x9bd\u202ee f g" in message


@pytest.mark.parametrize(
    ("model", "variable"),
    [
        *((model, "HF_TOKEN") for model in (*HOSTED, LITELLM)),
        *((CHAT, name) for name in ("AWS_SECRET_ACCESS_KEY", "DB_PASSWORD", "MY_SECRET")),
    ],
)
def test_every_secret_of_the_environment_is_masked(
    monkeypatch: pytest.MonkeyPatch, model: str, variable: str
) -> None:
    monkeypatch.setenv(variable, PLANTED)
    assert answer(model, f"is it {PLANTED}?").text == "is it [key]?"
    message = refusal(model, f"{PLANTED} and {KEY}")
    assert PLANTED not in message and "[key]" in message


@each_row(__file__, "masked_secrets")
def test_a_secret_is_masked_in_each_of_its_encodings_but_no_number_is(
    monkeypatch: pytest.MonkeyPatch, variable: str, value: str, text: str, masked: str
) -> None:
    monkeypatch.setenv(variable, value)
    assert answer(CHAT, text).text == masked


@EVERYWHERE
def test_no_warning_quotes_the_server(
    capfd: pytest.CaptureFixture[str], recwarn: pytest.WarningsRecorder, model: str
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

    call_adapter(script, model)
    out, err = capfd.readouterr()
    assert KEY not in out + err
    assert not [warning for warning in recwarn if KEY in str(warning.message)]
