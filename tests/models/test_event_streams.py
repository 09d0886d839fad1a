"""Streams as servers really send them: odd events, line ends and endings."""

from __future__ import annotations

import asyncio
import json
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.models import Message, RequestSettings, open_model
from numbench.models.event_streams import (
    IncompleteStream,
    is_event_stream,
    merge_chat_events,
    merge_gemini_events,
    merge_response_events,
)
from numbench.models.openai_chat import parse_completion as parse_chat
from numbench.models.openai_responses import parse_completion as parse_response
from numbench.records import Completion
from tests import servers
from tests.models.adapter_calls import CHAT_MODEL, call_adapter
from tests.servers import ReceivedRequest, Reply, serve

USAGE = {"prompt_tokens": 9, "completion_tokens": 30}
DONE = b"data: [DONE]\n\n"


def event(body: object) -> bytes:
    return b"data: " + json.dumps(body).encode() + b"\n\n"


def delta(text: str, finish: str | None = None) -> dict[str, Any]:
    return {"choices": [{"index": 0, "delta": {"content": text}, "finish_reason": finish}]}


def chat_answer(events: Sequence[bytes]) -> Completion:
    content = b"".join(events)
    assert is_event_stream(content)
    return parse_chat(merge_chat_events(content))


ANSWER = (event(delta("4")), event(delta("2", "stop")))


def ask(script: servers.Script, count: int) -> tuple[list[Completion], list[bool]]:
    """The completions of requests one after another, and whether each asked for a stream."""

    async def call(url: str) -> list[Completion]:
        model = open_model(CHAT_MODEL, None, url).model
        message = [Message("user", "?")]
        completions = [await model.answer(message, RequestSettings()) for _ in range(count)]
        await model.close()
        return completions

    with serve(script) as server:
        completions = asyncio.run(call(server.url))
        return completions, [servers.is_streamed(each) for each in server.received]


def test_an_end_marker_without_a_finish_reason_is_no_complete_answer() -> None:
    """A proxy that loses its upstream server ends the stream as usual."""

    async def script(received: ReceivedRequest) -> Reply:
        return await servers.send_events(received, [event(delta('{"answer": 4')), DONE])

    completion, _ = call_adapter(script)
    assert completion.text == ""
    assert completion.error is not None
    assert (completion.error.kind, completion.error.possibly_billed) == ("transient", True)
    assert "the stream ended without a finish reason" in completion.error.message


def test_a_server_that_never_sends_a_finish_reason_is_asked_without_a_stream() -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if servers.is_streamed(received):
            return await servers.send_events(received, [event(delta("42")), DONE])
        return servers.chat("42", finish=None)

    completions, streamed = ask(script, 3)
    assert streamed == [True, False, False]
    assert [each.error is None for each in completions] == [False, True, True]
    assert (completions[1].text, completions[1].finish_reason) == ("42", None)


def test_one_answer_that_was_cut_off_does_not_end_streaming() -> None:
    async def script(received: ReceivedRequest) -> Reply:
        whole = (*ANSWER, event({"choices": [], "usage": USAGE}))
        return await servers.send_events(
            received, [event(delta("4")), DONE] if received.number == 1 else [*whole, DONE]
        )

    completions, streamed = ask(script, 3)
    assert streamed == [True] * 3
    assert [each.error is None for each in completions] == [True, False, True]


@pytest.mark.parametrize("data", ['{"message": "overloaded", "code": 529}', "overloaded", "{}", ""])
@pytest.mark.parametrize("merge", [merge_chat_events, merge_response_events, merge_gemini_events])
def test_an_event_of_the_type_error_is_an_error(data: str, merge: Any) -> None:
    body = merge(b"event: error\n" + (f"data: {data}\n\n" if data else "\n").encode())
    completion = (parse_response if merge is merge_response_events else parse_chat)(body)
    assert completion.error is not None
    assert completion.error.kind == "transient"
    assert completion.error.message == (
        "overloaded" if "overloaded" in data else "the server reported an error"
    )


def test_an_error_event_after_an_answer_is_no_answer() -> None:
    error = b'event: error\ndata: {"message": "lost"}\n\n'
    completion = chat_answer([*ANSWER, error, DONE])
    assert completion.error is not None and completion.error.message == "lost"


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


def text_deltas(kind: str, *texts: str, **fields: int) -> list[dict[str, Any]]:
    return [{"type": f"response.{kind}.delta", "delta": text, **fields} for text in texts]


PIECES = [
    *text_deltas("reasoning_summary_text", "h", "m", output_index=0, summary_index=0),
    *text_deltas("output_text", "4", "2", output_index=1, content_index=0),
]
ITEMS = [{"type": "response.output_item.done", "item": item} for item in (THOUGHT, MESSAGE)]


@pytest.mark.parametrize("streamed", [PIECES, ITEMS, [*PIECES, *ITEMS]])
@pytest.mark.parametrize(
    "output", [[], None, [THOUGHT], [{"type": "message", "content": []}], [THOUGHT, MESSAGE]]
)
def test_what_the_last_event_lacks_is_in_the_events_before(
    streamed: list[dict[str, Any]], output: object
) -> None:
    usage = {"input_tokens": 9, "output_tokens": 30}
    response = {"status": "completed", "output": output, "usage": usage}
    events = [*streamed, {"type": "response.completed", "response": response}]
    completion = parse_response(merge_response_events(b"".join(map(event, events))))
    assert (completion.text, completion.reasoning_text) == ("42", "hm")
    assert (completion.finish_reason, completion.usage.generated) == ("stop", 30)


def test_a_streamed_refusal_is_a_refusal() -> None:
    events = [
        *text_deltas("refusal", "n", "o", output_index=0, content_index=0),
        {"type": "response.completed", "response": {"status": "completed", "output": []}},
    ]
    completion = parse_response(merge_response_events(b"".join(map(event, events))))
    assert (completion.text, completion.finish_reason) == ("no", "refusal")


def test_a_responses_stream_without_its_last_event_is_no_answer() -> None:
    with pytest.raises(IncompleteStream):
        merge_response_events(b"".join(map(event, [*PIECES, *ITEMS])) + DONE)
