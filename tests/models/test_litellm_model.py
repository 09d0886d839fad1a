"""Models through litellm: only counts that the provider reported are kept."""

import asyncio
import json
import os
import subprocess
import sys
from typing import Any

import pytest
from aiohttp import web

from numbench.errors import BadInput
from numbench.models import Server, open_model
from numbench.models.litellm_model import charges_in
from numbench.records import Completion
from tests.models.adapter_calls import KEY, MESSAGES, call_adapter, check
from tests.models.adapter_calls import LITELLM as CHAT
from tests.support import servers
from tests.support.case_tables import each_case
from tests.support.servers import Reply

pytestmark = pytest.mark.slow

OLLAMA = "litellm/ollama_chat/x"
CLAUDE = "litellm/anthropic/claude-x"
# litellm counts the reasoning itself: seven, which may equal the input's count.
THOUGHT = "one two three four five six seven"


def reply_with(model: str, counts: dict[str, Any] | None) -> Reply:
    """Return an answer in the format of a provider behind litellm, with these counts."""
    if model == OLLAMA:
        message = {"role": "assistant", "content": "4"}
        return web.json_response({"model": "x", "message": message, "done": True} | (counts or {}))
    if model == CLAUDE:
        return servers.anthropic("4", usage=counts, thought=THOUGHT)
    return (
        servers.gemini("4", usage=counts) if "gemini" in model else servers.chat("4", usage=counts)
    )


@each_case(__file__, "litellm_usage")
def test_only_counts_that_a_server_reports_are_known(
    monkeypatch: pytest.MonkeyPatch, case: Any
) -> None:
    monkeypatch.setenv("ANTHROPIC_API_KEY", KEY)
    thought = THOUGHT if case["model"] == CLAUDE else None
    completion, _ = call_adapter(lambda _: reply_with(case["model"], case["counts"]), case["model"])
    check(completion, {"text": "4", "usage": case["usage"], "reasoning_text": thought})


@each_case(__file__, "litellm_bodies")
def test_counts_are_read_in_the_form_of_each_provider(case: Any) -> None:
    body = case["body"]
    usage, dollars = charges_in(body if isinstance(body, str) else json.dumps(body))
    assert ([usage.input, usage.generated], dollars) == (case["counts"], case["cost"])


def test_failures_have_their_kind() -> None:
    completion, received = call_adapter(
        lambda _: servers.error(429, "slow", headers={"Retry-After": "3"}), CHAT, "low"
    )
    check(completion, {"kind": "rate_limit", "retry_after": 3.0})
    assert received.body["reasoning_effort"] == "low"
    check(call_adapter(lambda _: servers.error(401, f"bad key {KEY}"), CHAT)[0], {"kind": "run"})


@pytest.mark.parametrize(
    "error",
    [{"message": {"a": [1]}, "code": {"b": 1}}, {"message": None, "code": [[]]}, ["x"], "x"],
)
@pytest.mark.parametrize("status", [200, 400, 500])
def test_an_error_of_any_form_is_a_failure(error: object, status: int) -> None:
    assert (
        call_adapter(lambda _: web.json_response({"error": error}, status=status), CHAT)[0].error
        is not None
    )


def test_what_is_missing_is_said_in_one_line(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.delenv("ANTHROPIC_API_KEY")
    missing = {"litellm/anthropic/claude-x": "ANTHROPIC_API_KEY", "litellm/nobody": "PROVIDER/NAME"}
    for model, message in missing.items():
        with pytest.raises(BadInput, match=rf"\A.*{message}.*\Z"):
            open_model(model)


def test_importing_litellm_uses_no_network_and_prints_nothing() -> None:
    code = (
        "import socket\n"
        "def connect(*_):\n"
        "    raise AssertionError('a connection was opened')\n"
        "socket.socket.connect = connect\n"
        "socket.getaddrinfo = connect\n"
        "import numbench.models as models\n"
        "models.open_model('litellm/ollama_chat/x', None, models.Server('http://127.0.0.1:1'))\n"
        "import litellm\n"
        "assert litellm.model_cost\n"
    )
    environment = {k: v for k, v in os.environ.items() if not k.startswith("LITELLM")}
    done = subprocess.run(
        [sys.executable, "-c", code], capture_output=True, text=True, env=environment
    )
    assert (done.returncode, done.stdout, done.stderr) == (0, "", "")


def test_the_record_says_that_litellm_may_rewrite_requests() -> None:
    description = open_model(CHAT, "low", Server("http://127.0.0.1:1")).description
    assert description.identity["note"] == "litellm may rewrite messages and parameters"
    assert description.provider.sdk == "litellm"


def test_a_request_that_was_never_sent_is_not_billed() -> None:
    async def once() -> Completion:
        opened = open_model(CHAT, None, Server("http://127.0.0.1:9"))
        completion = await opened.model.answer(MESSAGES, opened.description.settings)
        await opened.model.close()
        return completion

    error = asyncio.run(once()).error
    assert error is not None and not error.possibly_billed
    assert error.message.startswith("connection failed: ")
