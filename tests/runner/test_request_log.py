"""What is sent is what is recorded: bodies, their identity, and routes that change them."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest
from hypothesis import given
from hypothesis import strategies as st

from numbench.errors import BadInput, NumbenchError
from numbench.journal import read_run
from numbench.models import Message
from numbench.runner.planning import plan
from numbench.runner.request_log import REQUESTS, read_requests
from numbench.runner.request_shape import (
    QUESTION,
    message_changes,
    request_shape,
    shape_differences,
    shape_sha256,
)
from numbench.runner.spec import RunSpec
from tests import servers
from tests.runner.test_routes import anthropic, question_of
from tests.runner.test_run import KEY, _quick, dataset, go, good, questions
from tests.servers import ReceivedRequest, Reply, Server, serve
from tests.test_cli import numbench

pytestmark = pytest.mark.slow

__all__ = ["_quick", "dataset"]

CLAUDE = {"model": "litellm/anthropic/claude-sonnet-4-5", "reasoning": "high"}
MAGISTRAL = {"model": "litellm/mistral/magistral-medium-latest", "reasoning": "high"}
BUDGET_VARIABLE = "DEFAULT_REASONING_EFFORT_HIGH_THINKING_BUDGET"


@pytest.fixture(autouse=True)
def _litellm_keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for provider in ("ANTHROPIC", "MISTRAL", "XAI"):
        monkeypatch.setenv(f"{provider}_API_KEY", KEY)


async def claude(received: ReceivedRequest) -> Reply:
    return anthropic('{"answer": 1}', False)


def test_one_request_per_task_is_recorded_as_it_was_sent(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out, tasks=["addition"])
        assert [each.task for each in read_requests(out)] == ["addition"]
        go(server, dataset, out, seed=None)
        sent = [each.body for each in server.received]
    recorded = read_requests(out)
    assert [each.task for each in recorded] == ["addition", "minmax"]
    assert {each.item_id for each in recorded} == {items[0].id for items in questions(5).values()}
    assert all(each.body in sent for each in recorded)
    assert read_run(out).info.requests == {each.task: each.sha256 for each in recorded}


def test_claude_through_litellm_gets_the_models_own_limit(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(claude) as server:
        go(server, dataset, out, **CLAUDE)
        sent = [each.body for each in server.received]
    assert {body["max_tokens"] for body in sent} == {64000}
    thinking = {"type": "enabled", "budget_tokens": 4096}
    assert all(body["thinking"] == thinking for body in sent)
    assert all(each.body in sent for each in read_requests(out))


def test_a_variable_that_changes_requests_does_not_change_a_run(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    out = tmp_path / "run"
    arguments = ("run", "--dataset", str(dataset), "--out", str(out), "--concurrency", "2")
    arguments += ("--model", CLAUDE["model"], "--reasoning", "high")
    with serve(claude) as server:
        first = numbench(*arguments, "--base-url", server.url, "--tasks", "addition", cwd=tmp_path)
        assert (first.returncode, len(server.received)) == (0, 5), first.stderr
        monkeypatch.setenv(BUDGET_VARIABLE, "2048")
        for more in ((), ("--dry-run",)):
            second = numbench(*arguments, "--base-url", server.url, *more, cwd=tmp_path)
            assert second.returncode == 2
            assert "thinking.budget_tokens 4096 → 2048; choose another --out" in second.stderr
        assert len(server.received) == 5


def test_a_route_that_adds_a_system_prompt_is_refused_unless_allowed(
    dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    spec = RunSpec(**MAGISTRAL, dataset=dataset, out=out, base_url="http://127.0.0.1:9")
    with serve(good) as server:
        with pytest.raises(BadInput, match=r"changes the messages: it adds .*SYSTEM_PROMPT"):
            go(server, dataset, out, **MAGISTRAL)
        with pytest.raises(BadInput, match="--allow-altered-messages"):
            plan(spec)
        assert (server.received, out.exists()) == ([], False)
        assert go(server, dataset, out, **MAGISTRAL, allow_altered_messages=True).answered == 10
        sent = [each.body for each in server.received]
    assert read_run(out).info.settings["altered_messages"] is True
    for request in read_requests(out):
        assert request.body in sent
        assert "SYSTEM_PROMPT" in str(request.body["messages"])


def test_a_level_that_litellm_refuses_is_an_error_before_any_request(
    dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        with pytest.raises(BadInput, match="xai does not support parameters"):
            go(server, dataset, out, model="litellm/xai/grok-4", reasoning="high")
        assert (server.received, out.exists()) == ([], False)


def test_a_request_of_another_shape_is_not_sent(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Something changes the requests while a run is in progress."""
    out = tmp_path / "run"
    limits = [None, None, 17]

    async def script(received: ReceivedRequest) -> Reply:
        import litellm

        litellm.AnthropicConfig.max_tokens = limits[min(len(server.received), 2)]
        return await claude(received)

    import litellm

    monkeypatch.setattr(litellm.AnthropicConfig, "max_tokens", None)
    changed = {"model": "litellm/anthropic/claude-unknown"}
    with serve(script) as server, pytest.raises(NumbenchError, match="more than its question"):
        go(server, dataset, out, **changed, concurrency=1)
    assert len(server.received) == 2
    assert len(read_run(out).responses) == 2


def test_older_runs_without_recorded_requests_are_resumed(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out, tasks=["addition"])
        info = json.loads((out / "run.json").read_text())
        del info["requests"]
        (out / "run.json").write_text(json.dumps(info))
        (out / REQUESTS).unlink()
        assert go(server, dataset, out).answered == 5
    assert set(read_run(out).info.requests) == {"addition", "minmax"}


def test_neither_streaming_nor_seeds_of_samples_change_the_shape(
    dataset: Path, tmp_path: Path
) -> None:
    out = tmp_path / "run"
    options: dict[str, Any] = {"seed": 3, "temperature": 0.5}
    with serve(good) as server:
        go(server, dataset, out, **options)
        assert go(server, dataset, out, **options, samples=2, stream=False).answered == 10
        assert {each.body["seed"] for each in server.received} == {3, 4}


def test_a_summary_that_the_provider_refuses_does_not_change_the_shape(
    dataset: Path, tmp_path: Path
) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        if "summary" in received.body["reasoning"]:
            return servers.error(400, "verify", code="unsupported_value", param="reasoning.summary")
        return servers.responses('{"answer": 1}')

    with serve(script) as server:
        report = go(server, dataset, tmp_path / "run", reasoning="low", api="responses")
        assert report.answered == 10
        assert "summary" not in server.received[-1].body["reasoning"]


def test_a_lost_file_of_requests_does_not_lift_the_check(dataset: Path, tmp_path: Path) -> None:
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out)
        info = json.loads((out / "run.json").read_text())
        info["requests"]["addition"] = "0" * 64
        (out / "run.json").write_text(json.dumps(info))
        (out / REQUESTS).unlink()
        with pytest.raises(BadInput, match="other requests for addition"):
            go(server, dataset, out)


def test_secrets_in_parameters_are_masked(
    dataset: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("GATEWAY_TOKEN", "planted-secret-0123456789")
    out = tmp_path / "run"
    with serve(good) as server:
        go(server, dataset, out, params={"gateway": {"token": "planted-secret-0123456789"}})
        assert server.received[0].body["gateway"]["token"] == "planted-secret-0123456789"
    assert "planted-secret" not in (out / REQUESTS).read_text()
    assert read_requests(out)[0].body["gateway"] == {"token": "[key]"}


MESSAGES = (Message("system", "Answer in JSON."), Message("user", "What is 1 + 1?"))
TURNS = [{"role": m.role, "content": m.content} for m in MESSAGES]


@pytest.mark.parametrize(
    ("body", "change"),
    [
        ({"messages": TURNS, "model": "m", "temperature": 0}, None),
        ({"messages": [TURNS[0] | {"role": "developer"}, TURNS[1]]}, None),
        ({"system": [{"type": "text", "text": "Answer in JSON."}], "messages": TURNS[1:]}, None),
        ({"messages": [{"role": "system", "content": "Think."}, *TURNS]}, "adds 'Think.'"),
        ({"messages": [TURNS[0], TURNS[1] | {"content": "What is 1 + 1? Hurry."}]}, "Hurry"),
        ({"messages": TURNS[1:]}, "omits or changes 'Answer in JSON.'"),
        ({"messages": [TURNS[0] | {"role": "user"}, TURNS[1]]}, "'Answer in JSON.' as user"),
        ({"messages": [*TURNS, TURNS[1]]}, "adds 'What is 1 + 1?'"),
    ],
)
def test_changes_of_messages_are_found(body: dict[str, Any], change: str | None) -> None:
    changes = message_changes(body, MESSAGES)
    assert bool(changes) is (change is not None)
    assert change is None or change in "; ".join(changes)


def test_the_order_of_turns_counts() -> None:
    turns = (Message("user", "a"), Message("assistant", "b"), Message("user", "c"))
    sent = [{"role": turn.role, "content": turn.content} for turn in turns]
    assert message_changes({"messages": sent}, turns) == []
    assert message_changes({"messages": [sent[2], sent[1], sent[0]]}, turns) != []


VALUES = st.one_of(st.integers(-9, 9), st.booleans(), st.sampled_from(["low", "high"]))
PARAMETERS = st.dictionaries(st.sampled_from(["a", "b", "c"]), VALUES, max_size=3)


@given(first=PARAMETERS, second=PARAMETERS)
def test_shapes_are_equal_if_and_only_if_the_parameters_are(
    first: dict[str, object], second: dict[str, object]
) -> None:
    shapes = [
        request_shape({"messages": [{"content": q}], "seed": len(q)} | parameters, q)
        for q, parameters in (("What is 1?", first), ("What is 12?", second))
    ]
    same = json.dumps(first, sort_keys=True) == json.dumps(second, sort_keys=True)
    assert (shape_sha256(shapes[0]) == shape_sha256(shapes[1])) is same
    assert (shape_differences(*shapes) == []) is (first == second)
    assert QUESTION in str(shapes[0])


def test_a_question_that_is_part_of_a_prompt_is_replaced_only_as_a_question() -> None:
    shapes = [
        request_shape({"messages": ["Use 5 digits.", q], "model": "m-5"}, q) for q in ("5", "7")
    ]
    assert shapes[0] == shapes[1]


def test_the_server_of_a_preview_gets_nothing(dataset: Path, tmp_path: Path) -> None:
    async def script(received: ReceivedRequest) -> Reply:
        return servers.error(500)

    def check(server: Server, model: str) -> None:
        spec = RunSpec(model, dataset=dataset, out=tmp_path / "run", base_url=server.url)
        shown = plan(spec).request
        assert shown is not None and question_of(dict(shown) | {"x": "What is ?"})
        assert server.received == []

    with serve(script) as server:
        for model in ("openai/x", "gemini/x", "openrouter/a/b", "litellm/openai/x"):
            check(server, model)
        check(server, "anthropic/claude-opus-5")
