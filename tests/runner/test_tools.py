"""Runs with a calculator: what is offered, sent, told, stored, resumed and refused."""

import json
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

from numbench.errors import BadInput
from numbench.journal.run_folder import iter_responses, read_run
from numbench.records import ToolCall
from numbench.runner.active_run import CostLimitReached
from tests.support import servers
from tests.support.case_tables import each_row
from tests.support.runs import go
from tests.support.sdk_requests import validate
from tests.support.servers import ReceivedRequest, Reply, Script, serve
from tests.support.tools import SIGNATURE, answering, calling, expression, results_of, turn_of

ROUTES: tuple[tuple[str, dict[str, Any]], ...] = (
    ("openai/gpt-5", {"reasoning": "low", "api": "chat"}),
    ("openai/gpt-5", {"reasoning": "low", "api": "responses"}),
    ("anthropic/claude-haiku-4-5", {"max_tokens": 500}),
    ("gemini/gemini-2.5-flash", {"reasoning": "0-tokens"}),
    ("litellm/openai/any", {}),
)
ONE: dict[str, Any] = {"tools": "calculator", "tasks": ["addition"], "limit": 1, "concurrency": 1}


@pytest.fixture(autouse=True)
def keys(monkeypatch: pytest.MonkeyPatch) -> None:
    for name in ("OPENAI", "ANTHROPIC", "GEMINI"):
        monkeypatch.setenv(f"{name}_API_KEY", "sk-planted-0123456789")


def call_then_answer(*calls: str, **options: Any) -> Script:
    """Return the script of a model that calls once, and then answers with the last result."""

    async def script(received: ReceivedRequest) -> Reply:
        if results := results_of(received):
            return await answering(received, f'{{"answer": {results[-1]}}}')
        return await calling(received, *calls, **options)

    return script


def only_response(out: Path) -> Any:
    (response,) = read_run(out).responses.values()
    return response


@pytest.mark.parametrize("stream", [False, True])
@pytest.mark.parametrize(("model", "options"), ROUTES)
def test_a_model_calls_the_calculator_and_answers_in_every_format(
    dataset: Path, tmp_path: Path, model: str, options: dict[str, Any], stream: bool
) -> None:
    if model.startswith("litellm") and stream:
        pytest.skip("models of litellm do not stream")
    options = options | ({} if model.startswith("litellm") else {"stream": stream})
    out = tmp_path / "run"
    with serve(call_then_answer(expression("1 + 1"))) as server:
        report = go(server, dataset, out, model=model, **ONE, **options)
    first, second = (each.body for each in server.received)
    assert (report.answered, report.input_tokens, report.generated_tokens) == (1, 20, 8)
    response = only_response(out)
    assert response.text == '{"answer": 2}'
    assert (response.usage.input, response.usage.generated, response.attempts) == (20, 8, 2)
    (turn,) = response.turns
    (call,) = turn.calls
    assert (call.name, json.loads(call.arguments)) == ("calculator", {"expression": "1 + 1"})
    assert (call.result, call.failed, call.in_text) == ("2", False, False)
    assert "calculator" in json.dumps(first["tools"]) and first["tools"] == second["tools"]
    assert "tool" not in json.dumps(first.get("messages", "")).lower()
    if model.startswith("litellm"):
        return
    sent = json.dumps(second)
    assert sent.count('"id-0"') == 2 and '"is_error"' not in sent
    # What a provider adds to its reasoning comes back, and the SDKs' types accept all bodies.
    is_chat = options.get("api") == "chat"
    assert ("hm" if is_chat else SIGNATURE) in sent
    for body in (first, second):
        if is_chat:
            # An extension of many servers, which repeat it to the model.
            for message in body["messages"]:
                message.pop("reasoning_content", None)
        validate({"model": model, "api": options.get("api", "chat"), "body": body})
    lines = list(iter_responses(out))
    assert [(line.turn, line.turns, len(line.calls)) for line in lines] == [(0, (), 1), (1, (), 0)]
    info = read_run(out).info
    assert info.settings["tools"] == "calculator" and info.prompt.name == "calculator"


def results(*told: str) -> Callable[[Any], None]:
    """Return a check of what the model was told in the first turn."""

    def check(response: Any) -> None:
        assert tuple(call.result for call in response.turns[0].calls) == told

    return check


def ended(text: str, calls: int, turns: int) -> Callable[[Any], None]:
    """Return a check of a conversation that calls ended: none of the last was carried out."""

    def check(response: Any) -> None:
        assert (response.text, len(response.calls), len(response.turns)) == (text, calls, turns)
        assert all(call.result is None for call in response.calls)

    return check


async def always(received: ReceivedRequest) -> Reply:
    return await calling(received, expression(f"{turn_of(received)} + 1"), text="Hm.")


async def truncated(received: ReceivedRequest) -> Reply:
    call = {"id": "1", "function": {"name": "calculator", "arguments": '{"expres'}}
    return servers.chat(finish="length", message={"content": None, "tool_calls": [call]})


def in_text(text: str) -> Script:
    return lambda received: servers.chat('{"answer": 2}' if results_of(received) else text)


CALL = '{"name": "calculator", "arguments": {"expression": "1+1"}}'
CASES: dict[str, tuple[Script, dict[str, Any], Callable[[Any], None]]] = {
    "several calls": (
        call_then_answer(expression("2^10"), expression("1/3")), {},
        results("1024", "0.333333333333333"),
    ),
    "text beside a call": (
        call_then_answer(expression("1+1"), text="Let me see."), {},
        lambda response: response.turns[0].text == "Let me see." or pytest.fail(),
    ),
    "an unknown function": (
        call_then_answer(expression("1"), name="python"), {},
        results("error: no function 'python'; use calculator"),
    ),
    "malformed arguments": (
        call_then_answer("{", "[]", '{"expression": 2}', '{"expression": "2 +"}'), {},
        results(
            "error: the arguments are not valid JSON",
            *['error: the arguments must be {"expression": "..."}'] * 2,
            "error: the expression is incomplete",
        ),
    ),
    "a call after the last turn": (always, {"max_turns": 3}, ended("Hm.", 1, 2)),
    "one turn": (always, {"max_turns": 1}, ended("Hm.", 1, 0)),
    "too many calls": (call_then_answer(*[expression("1")] * 17), {}, ended("", 17, 0)),
    "a call that is cut off": (truncated, {}, ended("", 1, 0)),
    "a call as text": (in_text(CALL), {}, results("2")),
    "calls as text, in tags": (
        in_text(f"<think>hm</think>\n<tool_call>\n{CALL}\n</tool_call>\n<tool_call>{CALL}</tool_call>"),
        {}, results("2", "2"),
    ),
    "a call in a code block": (in_text(f"```json\n{CALL}\n```"), {}, results("2")),
    "words around a call": (in_text(f"I call {CALL}"), {}, ended(f"I call {CALL}", 0, 0)),
    "another function as text": (
        in_text('{"name": "mean", "arguments": {"expression": "1"}}'), {},
        results("error: no function 'mean'; use calculator"),
    ),
    "an answer": (in_text('{"answer": 2}'), {}, ended('{"answer": 2}', 0, 0)),
    "a wrong digit": (
        call_then_answer(expression("1234.5 * 2")), {"tools": "calculator:faulty=1"},
        lambda response: check_changed(response.turns[0].calls[0]),
    ),
}  # fmt: skip


def check_changed(call: ToolCall) -> None:
    assert call.correct_result == "2469" and call.result and call.changed_digit
    changed = [
        n for n, pair in enumerate(zip("2469", call.result, strict=True), 1) if len({*pair}) > 1
    ]
    assert changed == [call.changed_digit]


@pytest.mark.parametrize("name", CASES)
def test_every_kind_of_call_is_defined(dataset: Path, tmp_path: Path, name: str) -> None:
    script, options, check = CASES[name]
    with serve(script) as server:
        report = go(server, dataset, tmp_path / "run", **(ONE | options))
    assert report.answered == 1
    check(only_response(tmp_path / "run"))


def test_a_run_without_tools_does_not_carry_out_calls(dataset: Path, tmp_path: Path) -> None:
    with serve(always) as server:
        go(server, dataset, tmp_path / "run", tasks=["addition"], limit=1)
    assert len(server.received) == 1 and "tools" not in server.received[0].body
    ended("Hm.", 1, 0)(only_response(tmp_path / "run"))


def test_the_faulty_share_depends_on_question_and_seed_only(dataset: Path, tmp_path: Path) -> None:
    told: dict[str, list[str | None]] = {}
    for name, tools in (("a", "faulty=0.5"), ("b", "faulty=0.5"), ("c", "faulty=0.5,seed=1")):
        with serve(call_then_answer(expression("1234567 * 2"))) as server:
            go(server, dataset, tmp_path / name, tools=f"calculator:{tools}")
        responses = sorted(read_run(tmp_path / name).responses.values(), key=lambda r: r.item_id)
        told[name] = [each.turns[0].calls[0].result for each in responses]
    assert told["a"] == told["b"] != told["c"]
    assert 0 < sum(each == "2469134" for each in told["a"]) < len(told["a"])


def test_a_failed_turn_is_sent_again_and_answered_turns_are_not(
    dataset: Path, tmp_path: Path
) -> None:
    """Retries within a call and in the next call both continue the conversation."""
    failures, out = 2, tmp_path / "run"

    async def script(received: ReceivedRequest) -> Reply:
        nonlocal failures
        if turn_of(received) == 1 and failures:
            failures -= 1
            return servers.error(429, headers={"Retry-After": "0"})
        if turn_of(received) == 1 and broken:
            return servers.error(500)
        return await always(received) if turn_of(received) < 2 else await answering(received)

    with serve(script) as server:
        broken = True
        report = go(server, dataset, out, **ONE)
        assert (report.answered, report.errors, report.cost) == (0, 1, 0.5)
        turns = [turn_of(each) for each in server.received]
        assert turns[0] == 0 and set(turns[1:]) == {1}
        response = only_response(out)
        assert response.error.kind == "transient" and len(response.turns) == 1
        broken, before = False, len(server.received)
        report = go(server, dataset, out, **ONE)
        assert [turn_of(each) for each in server.received[before:]] == [1, 2]
    assert (report.answered, report.cost) == (1, 1.0)
    whole = only_response(out)
    assert (whole.cost, len(whole.turns), whole.error) == (1.5, 2, None)


def test_the_cost_limit_holds_between_the_turns(dataset: Path, tmp_path: Path) -> None:
    """Each reply costs 0.5; the limit covers five, and the paid turns are kept."""
    out, options = tmp_path / "run", ONE | {"limit": 2, "model": "openrouter/some"}
    with serve(always) as server:
        with pytest.raises(CostLimitReached, match=r"stopped before exceeding --max-cost 2\.5"):
            go(server, dataset, out, max_cost=2.5, max_turns=4, **options)
        assert len(server.received) == 5
        assert sum(line.cost or 0.0 for line in iter_responses(out)) == 2.5
        go(server, dataset, out, max_cost=9, max_turns=4, **options)
        assert len(server.received) == 8
    whole = read_run(out).responses.values()
    assert [(each.cost, len(each.turns)) for each in whole] == [(2.0, 3)] * 2


@each_row(__file__, "refused_tools")
def test_what_has_no_tools_is_refused_in_one_line(
    dataset: Path, tmp_path: Path, options: dict[str, Any], message: str
) -> None:
    with serve(always) as server, pytest.raises(BadInput) as error:
        base = {} if "baseline" in options.get("model", "") else {"base_url": server.url}
        go(server, dataset, tmp_path / "run", **(ONE | {"base_url": None} | base | options))
    assert message in str(error.value) and "\n" not in str(error.value)
    assert not server.received


def test_another_tool_is_another_run(dataset: Path, tmp_path: Path) -> None:
    with serve(call_then_answer(expression("1"))) as server:
        go(server, dataset, tmp_path / "run", **ONE)
        for change in ({"tools": "calculator:faulty=0.1"}, {"tools": None}, {"max_turns": 2}):
            with pytest.raises(BadInput, match="choose another --out"):
                go(server, dataset, tmp_path / "run", **(ONE | change))
