"""What the wire formats read from the bodies of answers, as tables in `cases`."""

import json
from typing import Any

import pytest

from numbench.models import Message, RequestSettings
from numbench.models.formats import FORMATS
from numbench.models.json_fields import decode_json
from numbench.records import Completion
from tests.models.adapter_calls import MESSAGES, check
from tests.support.case_tables import each_case, each_row

EMPTY: dict[str, dict[str, Any]] = {
    "chat": {"choices": [{"message": {}, "finish_reason": "stop"}]},
    "responses": {"output": [], "status": "completed"},
    "messages": {"content": [], "stop_reason": "end_turn"},
    "gemini": {"candidates": [{"finishReason": "STOP"}]},
}
"""The body of an empty answer in each format."""


@each_case(__file__, "usage")
def test_usage_and_cost_have_one_meaning(case: Any) -> None:
    """The same in an answer and beside an error: what was generated before it is billed."""
    wire = case["wire"]
    usage = {"usageMetadata" if wire == "gemini" else "usage": case["usage"]}
    for body in (EMPTY[wire] | usage, {"error": {"message": "oops"}} | usage):
        completion = FORMATS[wire].parse(decode_json(json.dumps(body).encode()))
        check(completion, {"usage": case["counts"]})
        assert completion.cost == pytest.approx(case.get("cost"))


@each_case(__file__, "bodies")
def test_a_body_gives_the_expected_record(case: Any) -> None:
    check(FORMATS[case["wire"]].parse(case["body"], case.get("limit")), case["record"])


def ended(wire: str, word: Any) -> Completion:
    """Return the completion of an answer with a text and this finish reason."""
    reasons = ("max_output_tokens", "content_filter", "a new one")
    incomplete = {"status": "incomplete", "incomplete_details": {"reason": word}}
    status = incomplete if word in reasons else {"status": word}
    fields: dict[str, dict[str, Any]] = {
        "chat": {"choices": [{"finish_reason": word, "message": {"content": "4"}}]},
        "responses": {"output": [{"type": "message", "content": [{"text": "4"}]}], **status},
        "messages": {"content": [{"type": "text", "text": "4"}], "stop_reason": word},
        "gemini": {"candidates": [{"content": {"parts": [{"text": "4"}]}, "finishReason": word}]},
    }
    return FORMATS[wire].parse(fields[wire])


@each_case(__file__, "endings")
def test_a_good_ending_has_one_of_four_reasons(case: Any) -> None:
    for word in case["words"].split():
        extra = {"finish_reason": word} if case["finish"] == "other" else {}
        expected = {"finish_reason": case["finish"], "text": "4", "error": None, "extra": extra}
        check(ended(case["wire"], word), expected)


@pytest.mark.parametrize("wire", FORMATS)
def test_an_answer_without_a_known_good_ending_is_not_the_models(wire: str) -> None:
    words = "error abort insufficient_system_resource network_error OTHER MALFORMED_RESPONSE failed"
    for word in (*words.split(), "in_progress", "", "null", "a new one", False, 0, {}):
        lost = {"kind": "transient", "possibly_billed": True, "status": None, "message": str(word)}
        check(ended(wire, word), lost)
    # A disabled account ends the run.
    check(ended(wire, "PUP_LIMITED_DISABLED"), {"kind": "run"})


@each_case(__file__, "codes")
def test_the_code_of_an_error_in_a_successful_response_counts_as_a_status(case: Any) -> None:
    error = {name: case[name] for name in ("code", "message")}
    for wire, body in (
        *((wire, {"error": error}) for wire in ("chat", "responses", "gemini")),
        ("chat", {"choices": [{"message": {}, "error": error}]}),
        ("chat", [{"error": error}]),
        ("chat", {"object": "error"} | error),
    ):
        check(FORMATS[wire].parse(body), {"kind": case["kind"], "status": case["status"]})


def test_claude_gets_examples_as_turns_and_system_prompts_joined() -> None:
    turns = [Message("user", "1"), Message("assistant", "2"), Message("user", "3")]
    messages = (Message("system", "a"), *turns[:2], Message("system", "b"), turns[2])
    build = FORMATS["messages"].body
    body = build("c", messages, RequestSettings(max_tokens=7), "max_tokens")
    assert (body["system"], body["max_tokens"]) == ("a\n\nb", 7)
    assert body["messages"] == [turn._asdict() for turn in turns]
    assert "system" not in build("c", turns, RequestSettings(), "max_tokens")


@each_row(__file__, "sampling_versions")
def test_a_request_with_a_parameter_of_sampling_names_the_last_version_that_has_them(
    settings: dict[str, Any], version: str
) -> None:
    body = FORMATS["messages"].body("c", MESSAGES, RequestSettings(**settings), "max_tokens")
    assert FORMATS["messages"].headers("k", body)["anthropic-version"] == version
