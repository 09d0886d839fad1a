"""What rejected requests mean: kinds of failures, messages, waiting times, what may be billed."""

import json
import time
from datetime import UTC, datetime, timedelta
from email.utils import format_datetime
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.models.failures import failure_from_reply, failure_in_answer, retry_after
from numbench.models.formats import FORMATS
from tests.support import servers
from tests.support.case_tables import each_case


@each_case(__file__, "rejections")
def test_a_rejected_request_has_its_kind_of_failure(case: Any) -> None:
    """A body with a `page` is that page; the message of an error counts `anywhere`."""
    body = case["body"]
    is_page = isinstance(body, dict) and "page" in body
    content = body["page"].encode() if is_page else json.dumps(body).encode()
    failure = failure_from_reply(case["status"], case.get("headers", {}), content)
    expected = case["failure"]
    assert {name: getattr(failure, name) for name in expected} == pytest.approx(expected)
    if case.get("anywhere"):
        error = FORMATS["chat"].parse({"choices": []} | body).error
        assert error is not None and error.message == expected["message"]


@each_case(__file__, "claude_errors")
def test_an_error_of_claude_is_the_same_in_a_response_a_stream_and_a_job(case: Any) -> None:
    body = servers.anthropic_error_body(case["code"], "why")
    response = failure_from_reply(case["status"], {}, json.dumps(body).encode())
    streamed = FORMATS["messages"].decode(servers.named_event(body))
    for failure in (response, FORMATS["messages"].parse(streamed).error):
        assert failure is not None and failure.message == "why"
        for name in ("kind", "status", "possibly_billed"):
            assert getattr(failure, name) == case[name]
    assert failure_in_answer({"type": case["code"], "message": "why"}).kind == case["kind"]


def test_points_in_time_become_waiting_times() -> None:
    then = datetime.now(UTC) + timedelta(seconds=10_000)
    milliseconds = str(int(1000 * (time.time() + 10_000)))
    for moment in (
        {"retry-after": format_datetime(then, usegmt=True)},
        {"anthropic-ratelimit-requests-reset": then.isoformat()},
        {"anthropic-ratelimit-input-tokens-reset": f"{then:%Y-%m-%dT%H:%M:%SZ}"},
        {"X-RateLimit-Reset": milliseconds},
        {"X-RateLimit-Reset": milliseconds, "X-RateLimit-Remaining": "0"},
    ):
        assert retry_after(moment) == pytest.approx(10_000, abs=120), moment
        # OpenRouter repeats the headers of the provider behind it.
        body = {"error": {"message": "slow", "metadata": {"headers": moment}}}
        upstream = failure_from_reply(429, {}, json.dumps(body).encode())
        assert upstream.retry_after == pytest.approx(10_000, abs=120)
    assert retry_after({"X-RateLimit-Reset": milliseconds, "X-RateLimit-Remaining": "9"}) is None


@given(st.sampled_from(["retry-after", "x-ratelimit-reset", "retry-after-ms"]), st.text())
def test_no_header_raises(name: str, value: str) -> None:
    wait = retry_after({name: value})
    assert wait is None or 0 <= wait < float("inf")
