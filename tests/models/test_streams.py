"""Streams as servers really send them: odd events, line ends and endings; nothing is lost."""

import json
import tracemalloc
from collections.abc import Sequence
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.models.formats import FORMATS
from numbench.models.json_fields import InvalidJson, is_event_stream
from numbench.records import Completion, Usage
from tests.models.adapter_calls import ANTHROPIC, EVERY_FORMAT, call_adapter, check
from tests.support import servers
from tests.support.case_tables import each_case
from tests.support.servers import ReceivedRequest, Reply

REPLIES: dict[str, Any] = {
    "chat": servers.chat,
    "responses": servers.responses,
    "gemini": servers.gemini,
    "messages": servers.anthropic,
}
ANSWER = (
    b'data: {"choices": [{"delta": {"content": "4"}}]}\n\n',
    b'data: {"choices": [{"delta": {"content": "2"}, "finish_reason": "stop"}]}\n\n',
)
DONE = b"data: [DONE]\n\n"


def read(wire: str, events: Sequence[bytes]) -> Completion:
    """Return the completion in a stream of events."""
    content = b"".join(events)
    assert is_event_stream(content)
    return FORMATS[wire].parse(FORMATS[wire].decode(content))


@each_case(__file__, "streams")
def test_a_stream_gives_the_expected_record(case: Any) -> None:
    """`events`: the data of each, or parts of the stream as they are."""
    events = [
        each.encode() if isinstance(each, str) else servers.event(each) for each in case["events"]
    ]
    if "invalid" in case:
        with pytest.raises(InvalidJson, match=case["invalid"]):
            read(case["wire"], events)
        return
    completion = read(case["wire"], events)
    check(completion, case.get("record", {}))
    if "calls" in case:
        assert [[each.id, each.name, each.arguments] for each in completion.calls] == case["calls"]


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
    usage = {"choices": [], "usage": {"prompt_tokens": 9, "completion_tokens": 30}}
    for body in (*(json.loads(each[6:]) for each in ANSWER), usage):
        data = json.dumps(body, indent=indent).splitlines()
        lines += [*comments, *(f"data:{space}{line}" for line in data), *comments, ""]
        lines += [": OPENROUTER PROCESSING", ""]
    completion = read("chat", [line_end.join((*lines, "data: [DONE]", "", "")).encode()])
    check(completion, {"text": "42", "finish_reason": "stop", "generated": 30})


@pytest.mark.parametrize("blanks", [b"\n" * 9_000_000, b"\r\n" * 9_000_000, b":\n" * 9_000_000])
def test_megabytes_of_blank_lines_are_skipped(blanks: bytes) -> None:
    """One by one they would take minutes, and gigabytes."""
    tracemalloc.start()
    completion = read("chat", [ANSWER[0], blanks, ANSWER[1], DONE])
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
        completion = read(wire, servers.events(reply, cuts))
        expected = {"text": text, "reasoning_text": thought or None, "served_model": "served"}
        check(completion, expected | {"finish_reason": "stop"})


@pytest.mark.parametrize("wire", FORMATS)
@pytest.mark.parametrize("code", [402, 429, 503, 529])
def test_an_error_after_the_first_content_may_be_billed(wire: str, code: int) -> None:
    words = {402: "billing_error", 429: "rate_limit_error"}.get(code, "overloaded_error")
    error = {"type": "error", "error": {"type": words, "code": code, "message": "slow down"}}
    usage = {"usage": {"input_tokens": 3}} if wire == "messages" else {}
    events = servers.events(REPLIES[wire](**usage))[:5]
    for before, is_begun in (([], False), (events, True)):
        completion = read(wire, [*before, servers.event(error)])
        failure = completion.error
        assert failure is not None and failure.message == "slow down"
        assert failure.kind == {402: "run", 429: "rate_limit"}.get(code, "transient")
        # With a status it would count as an overload, which is free and waited for.
        assert (failure.possibly_billed, failure.status is None) == (is_begun, is_begun)
        # The counts at the start of a stream are not those of what was generated.
        assert (completion.text, completion.usage) == ("", Usage())


@EVERY_FORMAT
@pytest.mark.parametrize("status", [400, 404, 422])
def test_a_server_that_refuses_to_stream_ends_the_run_with_advice(model: str, status: int) -> None:
    """An error of another server on the way is no refusal to stream."""
    refusal = "you must be verified to stream this model"
    others = ("Upstream error: oh no", "no downstream", "not streamable")
    for message, stream in ((refusal, True), (refusal, False), *((each, True) for each in others)):

        async def script(received: ReceivedRequest, message: str = message) -> Reply:
            return servers.error(status, message)

        error = call_adapter(script, model, stream=stream)[0].error
        assert error is not None and error.kind == "run"
        assert ("add --no-stream" in error.message) == (stream and message == refusal)


@EVERY_FORMAT
@pytest.mark.parametrize(("stream", "expected"), [(None, False), (False, False), (True, True)])
def test_other_servers_stream_only_on_request(
    model: str, stream: bool | None, expected: bool
) -> None:
    completion, received = call_adapter(servers.plain, model, stream=stream)
    assert completion.error is None
    assert servers.is_streamed(received) is expected


@pytest.mark.parametrize("suffix", ["", "/", "/v1", "/v1/"])
def test_the_base_url_of_claude_may_end_in_v1(suffix: str) -> None:
    assert call_adapter(servers.plain, ANTHROPIC, path=suffix)[1].path == "/v1/messages"
