"""Streams as servers really send them: odd events, line ends and endings; nothing is lost."""

from __future__ import annotations

import json
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.models import Api
from numbench.models.formats import FORMATS
from numbench.models.json_fields import IncompleteStream, InvalidJson, is_event_stream
from numbench.records import Completion, Usage
from tests.models.adapter_calls import ANTHROPIC_MODEL, CHAT_MODEL, GEMINI_MODEL, call_adapter
from tests.support import servers
from tests.support.servers import ReceivedRequest, Reply

CHAT, RESPONSES = FORMATS["chat"], FORMATS["responses"]
USAGE = {"prompt_tokens": 9, "completion_tokens": 30}
DONE = b"data: [DONE]\n\n"
ROUTES: list[tuple[str, Api]] = [
    (CHAT_MODEL, "chat"),
    (CHAT_MODEL, "responses"),
    (GEMINI_MODEL, "chat"),
    (ANTHROPIC_MODEL, "chat"),
]
EVERY_ROUTE = pytest.mark.parametrize(("model", "api"), ROUTES)


def event(body: object) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def delta(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def chat_answer(events: Sequence[bytes]) -> Completion:
    content = b"".join(events)
    assert is_event_stream(content)
    return CHAT.parse(CHAT.decode(content))


ANSWER = (event(delta("4")), event(delta("2", "stop")))


@pytest.mark.parametrize("data", ['{"message": "overloaded", "code": 529}', "overloaded", "{}", ""])
@pytest.mark.parametrize("wire", ["chat", "responses", "gemini", "messages"])
def test_an_event_of_the_type_error_is_an_error(data: str, wire: str) -> None:
    content = b"event: error\n" + (f"data: {data}\n\n" if data else "\n").encode()
    completion = FORMATS[wire].parse(FORMATS[wire].decode(content))
    assert completion.error is not None
    assert completion.error.kind == "transient"
    assert completion.error.message == (
        "overloaded" if "overloaded" in data else "the server reported an error"
    )


def test_a_byte_order_mark_before_the_first_event_is_skipped() -> None:
    assert chat_answer([b"\xef\xbb\xbf" + ANSWER[0], ANSWER[1], DONE]).text == "42"


def test_chunks_without_choices_are_no_answers_and_may_hold_the_usage() -> None:
    for choices in (None, []):
        usage = event({"choices": choices, "usage": USAGE})
        completion = chat_answer(
            [event({"choices": choices}), *ANSWER, event({"usage": None}), usage]
        )
        assert (completion.text, completion.usage.generated) == ("42", 30)


@given(
    line_end=st.sampled_from(["\n", "\r\n", "\r"]),
    indent=st.sampled_from([None, 2]),
    comments=st.lists(
        st.sampled_from([": keep-alive", ":", "id: 3", "retry: 10", "event: message"])
    ),
    space=st.sampled_from(["", " "]),
)
def test_any_legal_form_of_a_stream_is_read(
    line_end: str, indent: int | None, comments: list[str], space: str
) -> None:
    """Any line end, JSON over several lines of data, comments and other fields anywhere."""
    lines = []
    for body in (delta("4"), delta("2", "stop"), {"choices": [], "usage": USAGE}):
        data = json.dumps(body, indent=indent).splitlines()
        lines += [*comments, *(f"data:{space}{line}" for line in data), *comments, ""]
        lines += [": OPENROUTER PROCESSING", ""]
    completion = chat_answer([line_end.join((*lines, "data: [DONE]", "", "")).encode()])
    assert (completion.text, completion.finish_reason) == ("42", "stop")
    assert completion.usage.generated == 30


MESSAGE = {"type": "message", "content": [{"type": "output_text", "text": "42"}]}
THOUGHT = {"type": "reasoning", "summary": [{"type": "summary_text", "text": "hm"}]}


def part(name: str, **fields: Any) -> dict[str, Any]:
    return {"type": f"response.{name}", "output_index": 1, "content_index": 0} | fields


TEXT_EVENTS = {
    "items": [{"type": "response.output_item.done", "item": item} for item in (THOUGHT, MESSAGE)],
    "deltas": [
        part("reasoning_summary_text.delta", output_index=0, delta="h"),
        part("reasoning_summary_text.delta", output_index=0, delta="m"),
        part("output_text.delta", delta="4"),
        part("output_text.delta", delta="2"),
    ],
    "ends": [
        part("reasoning_text.done", output_index=0, text="hm"),
        part("output_text.delta", delta="4"),
        part("output_text.done", text="42"),
    ],
    "parts": [
        part("reasoning_summary_part.done", part={"type": "summary_text", "text": "hm"}),
        part("content_part.done", part={"type": "output_text", "text": "42"}),
    ],
}


@pytest.mark.parametrize("output", [[], None, [THOUGHT], [MESSAGE], [THOUGHT, MESSAGE]])
@pytest.mark.parametrize("events", TEXT_EVENTS.values(), ids=list(TEXT_EVENTS))
def test_a_text_comes_from_whichever_events_carry_it(events: list[Any], output: object) -> None:
    response = {"status": "completed", "output": output, "usage": {"output_tokens": 30}}
    content = [*events, {"type": "response.completed", "response": response}]
    completion = RESPONSES.parse(RESPONSES.decode(b"".join(map(event, content))))
    assert (completion.text, completion.reasoning_text) == ("42", "hm")
    assert (completion.finish_reason, completion.usage.generated) == ("stop", 30)


def test_a_whole_message_at_the_end_of_a_stream_repeats_no_text() -> None:
    whole = {"choices": [{"index": 0, "delta": {}, "message": {"content": "42"}}]}
    assert chat_answer([*ANSWER, event(whole), DONE]).text == "42"
    assert chat_answer([event(whole), event(delta("", "stop")), DONE]).text == "42"


def test_a_responses_stream_without_its_last_event_is_no_answer() -> None:
    with pytest.raises(IncompleteStream):
        RESPONSES.decode(b"".join(map(event, TEXT_EVENTS["items"])) + DONE)


@pytest.mark.parametrize(
    ("model", "api", "last"),
    [
        (
            CHAT_MODEL,
            "chat",
            {"choices": [], "usage": {"prompt_tokens": 0, "completion_tokens": 0}},
        ),
        (ANTHROPIC_MODEL, "chat", {"type": "message_delta", "usage": {"input_tokens": 0}}),
        (GEMINI_MODEL, "chat", {"usageMetadata": {"promptTokenCount": 0, "totalTokenCount": 0}}),
    ],
)
def test_a_later_zero_overwrites_no_known_count(model: str, api: Api, last: Any) -> None:
    usages = {
        CHAT_MODEL: servers.chat(usage={"prompt_tokens": 812, "completion_tokens": 9}),
        ANTHROPIC_MODEL: servers.anthropic(usage={"input_tokens": 812, "output_tokens": 9}),
        GEMINI_MODEL: servers.gemini(usage={"promptTokenCount": 812, "totalTokenCount": 821}),
    }

    async def script(received: ReceivedRequest) -> Reply:
        events = [*servers.events(usages[model]), event(last)]
        return await servers.send_events(received, events)

    completion, _ = call_adapter(script, model, api=api, stream=True)
    assert (completion.error, completion.usage.input, completion.usage.generated) == (None, 812, 9)


@pytest.mark.parametrize("blanks", [b"\n" * 60_000_000, b"\r\n" * 9_000_000, b":\n" * 9_000_000])
def test_megabytes_of_blank_lines_are_skipped(blanks: bytes) -> None:
    """One by one they would take minutes, and gigabytes."""
    tracemalloc.start()
    completion = chat_answer([ANSWER[0], blanks, ANSWER[1], DONE])
    _, peak = tracemalloc.get_traced_memory()
    tracemalloc.stop()
    # The stream itself is put together and decoded here.
    assert completion.text == "42" and peak < 2 * len(blanks)


TEXTS = st.text(max_size=30)


@given(text=TEXTS, thought=TEXTS, size=st.integers(1, 7))
def test_any_text_cut_anywhere_is_put_together_again(text: str, thought: str, size: int) -> None:
    def cuts(whole: str) -> list[str]:
        return [whole[at : at + size] for at in range(0, len(whole), size)]

    for wire, reply in (
        ("chat", servers.chat(text, message={"reasoning": thought})),
        ("gemini", servers.gemini(text, thought=thought)),
        ("messages", servers.anthropic(text, thought=thought)),
    ):
        completion = FORMATS[wire].parse(
            FORMATS[wire].decode(b"".join(servers.events(reply, cuts)))
        )
        assert (completion.text, completion.reasoning_text or "") == (text, thought)
        assert (completion.finish_reason, completion.served_model) == ("stop", "served")


@EVERY_ROUTE
@pytest.mark.parametrize("code", [402, 429, 503, 529])
@pytest.mark.parametrize("is_begun", [True, False])
def test_an_error_after_the_first_content_may_be_billed(
    model: str, api: Api, code: int, is_begun: bool
) -> None:
    words = {402: "billing_error", 429: "rate_limit_error"}.get(code, "overloaded_error")
    error = {"type": "error", "error": {"type": words, "code": code, "message": "slow down"}}

    async def script(received: ReceivedRequest) -> Reply:
        usage = {"usage": {"input_tokens": 3}} if model == ANTHROPIC_MODEL else {}
        reply = servers.anthropic(**usage) if usage else servers.plain(received)
        events = servers.events(reply)[: 5 if is_begun else 0]
        return await servers.send_events(received, [*events, servers._event(error)])

    completion, _ = call_adapter(script, model, api=api, stream=True)
    failure = completion.error
    assert failure is not None and failure.message == "slow down"
    assert failure.kind == {402: "run", 429: "rate_limit"}.get(code, "transient")
    # With a status it would count as an overload, which is free and waited for.
    assert (failure.possibly_billed, failure.status is None) == (is_begun, is_begun)
    # The counts at the start of a stream are not those of what was generated.
    assert (completion.text, completion.usage) == ("", Usage())


@EVERY_ROUTE
@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_server_that_refuses_to_stream_ends_the_run_with_advice(
    model: str, api: Api, status: int
) -> None:
    """An error of another server on the way is no refusal to stream."""
    refusal = "you must be verified to stream this model"
    others = [
        (other, True) for other in ("Upstream error: oh no", "no downstream", "not streamable")
    ]
    for message, stream in ((refusal, True), (refusal, False), *others):

        async def script(received: ReceivedRequest, message: str = message) -> Reply:
            return servers.error(status, message)

        error = call_adapter(script, model, api=api, stream=stream)[0].error
        assert error is not None and error.kind == "run"
        assert ("add --no-stream" in error.message) == (stream and message == refusal)


@pytest.mark.parametrize("finish", [None, ""])
def test_a_stream_without_a_finish_reason_is_no_answer_and_says_what_to_do(
    finish: str | None,
) -> None:
    """A proxy that loses its upstream server ends the stream as usual."""

    async def script(received: ReceivedRequest) -> Reply:
        return await servers.send_events(received, [event(delta('{"answer": 4', finish)), DONE])

    completion, _ = call_adapter(script, stream=True)
    assert completion.text == ""
    assert completion.error is not None
    assert (completion.error.kind, completion.error.possibly_billed) == ("transient", True)
    assert "without a finish reason; if every one does, add --no-stream" in completion.error.message


@EVERY_ROUTE
@pytest.mark.parametrize(("stream", "expected"), [(None, False), (False, False), (True, True)])
def test_other_servers_stream_only_on_request(
    model: str, api: Api, stream: bool | None, expected: bool
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return servers.plain(received)

    completion, received = call_adapter(script, model, api=api, stream=stream)
    assert completion.error is None
    assert servers.is_streamed(received) is expected


def test_a_text_that_is_streamed_both_in_parts_and_as_text_is_whole() -> None:
    contents = [[{"type": "thinking", "thinking": []}, {"type": "text", "text": "4"}], "2"]
    chunks = [{"choices": [{"index": 0, "delta": {"content": each}}]} for each in contents]
    end = {"choices": [{"index": 0, "delta": {"content": ""}, "finish_reason": "stop"}]}
    assert chat_answer([servers._event(chunk) for chunk in (*chunks, end)]).text == "42"


@pytest.mark.parametrize("model", [CHAT_MODEL, ANTHROPIC_MODEL])
def test_events_may_be_separated_by_one_line_end(model: str) -> None:
    reply = servers.chat("42") if model == CHAT_MODEL else servers.anthropic("42")
    content = b"".join(servers.events(reply)).replace(b"\n\n", b"\n")
    wire = FORMATS["chat" if model == CHAT_MODEL else "messages"]
    assert wire.parse(wire.decode(content)).text == "42"


def test_a_broken_event_is_no_answer() -> None:
    for content in (b"data: {", b"data: 3\n\n", b"event: ping\n\n"):
        with pytest.raises(InvalidJson):
            CHAT.decode(content)
