"""The taskset of `verifiers`: training questions, and the rewards of its own evaluation command.

Run in an environment with `pip install -e '.[dev,verifiers]'`.
"""

import asyncio
import json
import os
import subprocess
import sys
from pathlib import Path
from types import SimpleNamespace

import pytest

pytest.importorskip(
    "verifiers.v1", reason="verifiers is not installed: pip install -e '.[dev,verifiers]'"
)

from examples.numbench_rl import NumbenchConfig, NumbenchTaskset
from tests.support import servers

REPOSITORY = Path(__file__).parents[2]


def test_the_tasks_take_turns_and_the_difficulty_rises() -> None:
    config = NumbenchConfig(tasks=["addition", "interval"], difficulty=2, highest=3, per_level=2)
    tasks = list(NumbenchTaskset(config).take(6))
    items = [task.question().item for task in tasks]
    assert [item.task for item in items] == ["addition", "interval"] * 3
    assert [task.data.idx for task in tasks] == list(range(6))
    assert len({task.key for task in tasks}) == 6


@pytest.mark.parametrize("name", ["minmax", "interval", "sorting", "addition", "std"])
def test_the_exact_answer_is_valid_and_a_wrong_one_is_not_rewarded(name: str) -> None:
    (task,) = NumbenchTaskset(NumbenchConfig(tasks=[name], reward="exact")).take(1)
    assert asyncio.run(task.validate(None))
    assert asyncio.run(task.numbench(SimpleNamespace(last_reply="I do not know."))) == 0


def test_vf_eval_rewards_the_answers_of_a_model(tmp_path: Path) -> None:
    async def always_the_maximum(received: servers.ReceivedRequest) -> servers.Reply:
        return await servers.send_events(received, completion_events(largest(received.prompt)))

    with servers.serve(always_the_maximum) as server:
        traces = evaluate(server.url, tmp_path)
    assert len(traces) == 12
    for trace in traces:
        assert not trace["errors"]
        right = "maximum" in trace["task"]["data"]["prompt"]
        assert trace["rewards"] == {"numbench": {"score": float(right), "weight": 1.0}}
    assert {trace["rewards"]["numbench"]["score"] for trace in traces} == {0.0, 1.0}


def completion_events(answer: float) -> list[bytes]:
    """Return the stream of a chat completion with an answer, as OpenAI sends it."""
    head = {"id": "chat-1", "object": "chat.completion.chunk", "created": 1, "model": "scripted"}
    delta = {"role": "assistant", "content": json.dumps({"answer": answer})}
    usage = {"prompt_tokens": 9, "completion_tokens": 3, "total_tokens": 12}
    chunks = [
        head | {"choices": [{"index": 0, "delta": delta, "finish_reason": None}]},
        head | {"choices": [{"index": 0, "delta": {}, "finish_reason": "stop"}]},
        head | {"choices": [], "usage": usage},
    ]
    return [b"data: " + json.dumps(chunk).encode() + b"\n\n" for chunk in chunks] + [
        b"data: [DONE]\n\n"
    ]


def largest(prompt: str) -> float:
    """Return the largest element of the list in a question."""
    return max(map(float, prompt.partition("[")[2].partition("]")[0].split(",")))


def evaluate(url: str, out: Path) -> list[dict]:  # type: ignore[type-arg]
    """Return the traces of `vf-eval` with 12 questions to the server. Nothing is uploaded."""
    command = [Path(sys.executable).with_name("vf-eval"), "numbench-rl", "--no-push", "--no-rich"]
    command += [
        "--env.taskset.tasks",
        json.dumps(["minmax"]),
        "-m",
        "scripted",
        "--client.base-url",
        f"{url}/v1",
    ]
    command += ["--client.api-key-var", "SCRIPTED_KEY", "-n", "12", "-o", str(out)]
    command += ["--env.agent.harness.id", "null", "--env.agent.runtime.type", "subprocess"]
    path = os.pathsep.join(str(REPOSITORY / part) for part in ("bench", "examples"))
    variables = {"PYTHONPATH": path, "SCRIPTED_KEY": "x", "PRIME_RUNS_MODE": "disabled"}
    done = subprocess.run(
        command, env=os.environ | variables, capture_output=True, text=True, check=False
    )
    assert done.returncode == 0, done.stdout + done.stderr
    (file,) = out.rglob("traces.jsonl")
    return [trace for line in file.read_text().splitlines() for trace in json.loads(line)["traces"]]
