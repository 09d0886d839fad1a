"""Real servers with a real small model: what a run gets from each, and what it says if it does not.

`matrix.json` has the results that docs/running.md shows; `make peers RECORD=1` writes them.
"""

import json
import os
import re
import subprocess
import time
import urllib.request
from collections.abc import Callable, Iterator
from datetime import UTC, datetime
from itertools import pairwise
from pathlib import Path
from typing import Any

import pytest

from numbench.errors import NumbenchError
from numbench.journal.run_folder import read_run
from numbench.records import Response
from numbench.runner.progress import RunReport
from numbench.tasks import CONTEXT_TASKS, FORM_TASKS
from tests.peers.matrix import FEATURES, MATRIX, write
from tests.peers.processes import BIN, free_port, numbench_run
from tests.peers.servers import CONTEXT, NAME, QUICK, SERVERS, Peer, llama_cpp
from tests.peers.setup import CODER
from tests.support.runs import run_with

pytestmark = pytest.mark.peers

MAX_TOKENS = 24
IGNORED = "ignored, with a warning"


def ask(peer: Peer, out: Path, **options: Any) -> RunReport:
    """Run a few short questions; `options` replace those of the run."""
    defaults: dict[str, Any] = {
        "model": f"openai/{peer.model}",
        "base_url": peer.url,
        "dataset": "v1",
        "tasks": ["addition"],
        "limit": 2,
        "prompts": "minimal",
        "max_tokens": MAX_TOKENS,
        "concurrency": 2,
        "out": out,
    }
    return run_with(**(defaults | options))


def answers(out: Path, count: int = 2, limit: int = MAX_TOKENS) -> list[Response]:
    """Return the answers of a run, after checks of what all of them have."""
    responses = list(read_run(out).responses.values())
    assert len(responses) == count
    for response in responses:
        assert (response.error, response.attempts) == (None, 1)
        assert response.usage.source == "reported"
        assert response.usage.input and response.usage.generated
        is_cut_off = response.usage.generated >= limit
        assert (response.finish_reason == "length") is is_cut_off, response
    return responses


def plain(peer: Peer, out: Path, **options: Any) -> str:
    before = generated_tokens(peer)
    assert ask(peer, out, **options).warnings == ()
    total = sum(response.usage.generated or 0 for response in answers(out))
    if before is not None:
        assert generated_tokens(peer) == before + total
    return "yes"


def generated_tokens(peer: Peer) -> int | None:
    """Return how many tokens a server says that it has generated, None if it does not."""
    if peer.generated_tokens is None:
        return None
    with urllib.request.urlopen(peer.url.removesuffix("/v1") + "/metrics", timeout=20) as reply:
        text = reply.read().decode()
    found = re.findall(rf"^{peer.generated_tokens}(?:{{.*}})? ([0-9.e+]+)$", text, re.M)
    return round(sum(map(float, found)))


def structured(peer: Peer, out: Path, **options: Any) -> str:
    tasks = ["addition", "interval", "sorting"]
    report = ask(peer, out, tasks=tasks, structured=True, max_tokens=64, **options)
    finished = [each for each in answers(out, 6, 64) if each.finish_reason == "stop"]
    if any("not the JSON objects" in warning for warning in report.warnings):
        return IGNORED
    assert report.warnings == () and finished
    for response in finished:
        task, answer = response.item_id.partition("-")[0], json.loads(response.text)["answer"]
        # The schema names the letters.
        assert answer in tuple("ABCDEFGH") if task == "interval" else True
        assert isinstance(answer, {"interval": str, "sorting": list}.get(task, int | float))
    return "yes"


def samples(peer: Peer, out: Path) -> str:
    report = ask(peer, out, samples=3, temperature=0.7, seed=7)
    texts = {response.text for response in answers(out, 6)}
    if any("may ignore the temperature" in warning for warning in report.warnings):
        return IGNORED
    assert report.warnings == () and len(texts) > 2
    return "yes"


def reasoning(peer: Peer, out: Path) -> str:
    (warning,) = ask(peer, out, reasoning="low").warnings
    assert warning.startswith("none of 2 answers shows reasoning")
    return "no effect on this model, with a warning"


def tools(peer: Peer, out: Path) -> str:
    try:
        (warning,) = ask(peer, out, tools="calculator", prompts="calculator").warnings
    except NumbenchError as error:
        assert "tool" in str(error)
        return "refused without a parser for calls"
    assert warning.startswith("none of 2 answers calls the calculator")
    return "no calls by this model, with a warning"


def forms_and_context(peer: Peer, out: Path) -> str:
    """Ask all rows of both; one of two tables is too long for the context of most servers."""
    rows: dict[str, Any] = {"prompts": None, "tasks": None, "max_tokens": 8, "concurrency": 4}
    report = ask(peer, out / "forms", dataset="forms", limit=1, **rows)
    assert (report.answered, report.warnings) == (len(FORM_TASKS), ())
    ask(peer, out / "context", dataset="context", limit=2, **rows)
    responses = read_run(out / "context").responses.values()
    assert {each.error.kind for each in responses if each.error} <= {"item"}
    answered = {each.item_id.rpartition("-")[0] for each in responses if each.text}
    assert answered == set(CONTEXT_TASKS)
    return "yes"


def plan_of_context(peer: Peer, out: Path) -> str:
    arguments = ["--model", f"openai/{peer.model}", "--base-url", peer.url, "--dry-run"]
    plan = " ".join(numbench_run(out, *arguments).stdout.split())
    assert "limited by the server's context only" in plan
    return "yes" if f"({CONTEXT:,} tokens with the prompt)" in plan else "the server does not tell"


def wrong_model(peer: Peer, out: Path) -> str:
    try:
        report = ask(peer, out, model="openai/no-such-model")
    except NumbenchError as error:
        assert "no-such-model" in str(error)
        return "refused"
    if report.failure:
        assert "500" in report.failure or "Internal Server Error" in report.failure
        return "fails as an internal error of the server"
    assert report.warnings[0].startswith("asked for openai/no-such-model, but 2 of 2 answers name")
    return "another model answers, with a warning"


def long_prompt(peer: Peer, out: Path) -> str:
    """One of two prompts does not fit the context that the server was started with."""
    report = ask(peer, out, tasks=["addition", "interval"], limit=1, few_shot=8)
    kinds = {
        response.item_id.partition("-")[0]: response.error and response.error.kind
        for response in read_run(out).responses.values()
    }
    if report.answered == 2:
        return "its context is the model's own"
    assert (report.answered, kinds) == (1, {"addition": None, "interval": "item"})
    return "recorded for its question"


def large_limit(peer: Peer, out: Path) -> str:
    """A server without a bound of its own would answer for hours."""
    options: dict[str, Any] = {"limit": 1, "max_tokens": 100_000, "timeout": 60.0}
    try:
        report = ask(peer, out, structured=True, **options)
    except NumbenchError as error:
        assert "100000" in str(error) or "tokens" in str(error)
        return "refused"
    return "does not end within a minute" if report.failure else "accepted"


CASES: dict[str, Callable[[Peer, Path], str]] = {
    "plain answers": plain,
    "`--stream`": lambda peer, out: plain(peer, out, stream=True),
    "`--few-shot`": lambda peer, out: plain(peer, out, few_shot=2),
    "`--structured`": structured,
    "`--samples`, `--temperature`, `--seed`": samples,
    "`--reasoning low`": reasoning,
    "`--api responses`": lambda peer, out: plain(peer, out, api="responses"),
    "`--api responses --structured`": lambda peer, out: structured(peer, out, api="responses"),
    "`--tools calculator`": tools,
    "`--dataset forms`, `--dataset context`": forms_and_context,
    "`--dry-run` tells the context": plan_of_context,
    "a wrong model name": wrong_model,
    "a prompt longer than the context": long_prompt,
    "`--max-tokens` above the context": large_limit,
}


@pytest.fixture(
    scope="module",
    params=[
        name if name == QUICK else pytest.param(name, marks=pytest.mark.slow) for name in SERVERS
    ],
)
def served(
    request: pytest.FixtureRequest, tmp_path_factory: pytest.TempPathFactory
) -> Iterator[tuple[str, Peer, dict[str, str]]]:
    """Yield the name of a server, the server, and a place for results."""
    results: dict[str, str] = {}
    with SERVERS[request.param](tmp_path_factory.mktemp("server")) as peer:
        yield request.param, peer, results
    if os.environ.get("NUMBENCH_PEERS_RECORD"):
        matrix = json.loads(MATRIX.read_text()) if MATRIX.exists() else {}
        today = datetime.now(UTC).date().isoformat()
        features = matrix.get(request.param, {}).get("features", {}) | results
        matrix[request.param] = {"version": peer.version, "date": today, "features": features}
        matrix = {name: matrix[name] for name in SERVERS if name in matrix}
        MATRIX.write_text(json.dumps(matrix, indent=2) + "\n")
        write()


@pytest.mark.parametrize("feature", FEATURES)
def test_a_feature_works_or_the_run_says_that_it_does_not(
    served: tuple[str, Peer, dict[str, str]], tmp_path: Path, feature: str
) -> None:
    name, peer, results = served
    results[feature] = CASES[feature](peer, tmp_path / "run")
    known = json.loads(MATRIX.read_text()).get(name, {}).get("features", {})
    if feature in known and not os.environ.get("NUMBENCH_PEERS_RECORD"):
        assert results[feature] == known[feature]


@pytest.mark.slow
def test_a_model_calls_the_calculator_and_reads_its_result(tmp_path: Path) -> None:
    prompts, out = tmp_path / "calls", tmp_path / "run"
    (prompts / "system").mkdir(parents=True)
    (prompts / "questions.toml").write_text('questions = "paper"\ntools = true\n')
    for name in ("arithmetic", "interval", "minmax", "sorting"):
        (prompts / "system" / f"{name}.txt").write_text(
            "Call the function calculator with one expression, such as 2.5 * 4. When the result "
            "has arrived, state it as a JSON object with the one key answer."
        )
    with llama_cpp(tmp_path, weights=CODER, model="qwen2.5-coder-0.5b") as peer:
        options = {"tools": "calculator", "max_turns": 3, "limit": 4, "max_tokens": 96}
        assert ask(peer, out, prompts=str(prompts), **options).warnings == ()
    replies = [[*each.turns, each] for each in read_run(out).responses.values()]
    assert all(call.in_text for turns in replies for turn in turns for call in turn.calls)
    # The model was sent what it had the function compute: it repeats that in its next reply.
    assert any(
        str(call.result) in after.text
        for turns in replies
        for turn, after in pairwise(turns)
        for call in turn.calls
        if not call.failed
    )


def test_no_answer_is_lost_or_repeated_when_either_side_is_killed(tmp_path: Path) -> None:
    port, out = free_port(), tmp_path / "run"
    arguments = ["--model", f"openai/{NAME}", "--base-url", f"http://127.0.0.1:{port}/v1"]
    arguments += ["--tasks", "addition", "--limit", "12", "--prompts", "minimal"]
    arguments += ["--max-tokens", "16", "--concurrency", "1"]
    command = [BIN / "numbench", "run", "--dataset", "v1", "--out", out, *arguments]

    def stored(count: int) -> list[str]:
        """Return the lines of the journal once there are `count`, or the run has ended."""
        path = out / "responses.jsonl"
        while True:
            lines = path.read_text().splitlines() if path.exists() else []
            if len(lines) >= count or process.poll() is not None:
                return lines
            time.sleep(0.05)

    for name in ("first", "second"):
        (tmp_path / name).mkdir()
    with llama_cpp(tmp_path / "first", port):
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        stored(2)
        process.kill()
        process.communicate()
        # The server ends while the next call waits for an answer.
        process = subprocess.Popen(command, stderr=subprocess.PIPE, text=True)
        before = stored(5)
    with llama_cpp(tmp_path / "second", port):
        error = process.communicate()[1]
        done = numbench_run(out, *arguments)
    assert done.returncode == 0, (error, done.stderr)
    assert (out / "responses.jsonl").read_text().splitlines()[: len(before)] == before
    responses = [json.loads(line) for line in (out / "responses.jsonl").read_text().splitlines()]
    answered = [each["item_id"] for each in responses if not each["error"]]
    assert len(answered) == len(set(answered)) == 12
