"""Horizon measurements against a scripted server, also killed ones."""

import random
import threading
from collections import Counter
from collections.abc import Sequence
from pathlib import Path
from typing import Any

from numbench.horizon.estimate import SizeOutcome
from numbench.journal.run_folder import iter_responses, read_rounds
from numbench.runner.progress import RunReport
from numbench.runner.spec import HorizonSpec
from numbench.scoring import is_correct, score_run
from numbench.scoring.horizon_outcomes import read_horizons, read_measurements
from numbench.tasks.prompts import load_prompt_set
from tests.horizon.scripted_model import reply
from tests.support import servers
from tests.support.command_line import start
from tests.support.runs import MODEL, run_with
from tests.support.servers import ReceivedRequest, Reply, serve

TASKS = ("long_addition", "long_max", "copy")


QUICK: dict[str, Any] = {"precision": 0.4, "max_items": 60, "max_size": 64}


PREFIX = len(load_prompt_set().system_prompt("copy"))


async def model(received: ReceivedRequest) -> Reply:
    return reply(received, 9.0)


def measure(server: servers.Server, out: Path, **changes: Any) -> RunReport:
    options: dict[str, Any] = {"tasks": TASKS, "model": MODEL, "base_url": server.url, "out": out}
    if "dataset" not in changes:
        options |= QUICK | {"kind": HorizonSpec}
    return run_with(judge=is_correct, **(options | changes))


def rounds(folder: Path) -> dict[str, list[tuple[str, ...]]]:
    by_task: dict[str, list[tuple[str, ...]]] = {}
    for each in read_rounds(folder):
        by_task.setdefault(each.task, []).append(each.items)
    return by_task


def read_outcomes(folder: Path) -> dict[str, list[SizeOutcome]]:
    return {task: each.answered for task, each in read_measurements(folder).items()}


def assert_same_measurement(folder: Path, other: Path) -> None:
    assert rounds(folder) == rounds(other)
    assert read_outcomes(folder) == read_outcomes(other)
    assert read_horizons(folder) == read_horizons(other)


def kill_often(
    out: Path,
    kills: int,
    longest: int,
    rng: random.Random,
    spec: dict[str, Any],
    tasks: Sequence[str],
) -> servers.Server:
    """Kill a measurement after 1 … `longest` further requests, each time, then let it end."""
    options = " ".join(f"--{name.replace('_', '-')} {value}" for name, value in spec.items())
    command = f"horizon --model openai/some --tasks {','.join(tasks)} {options}"
    enough = threading.Event()
    next_kill = rng.randrange(1, longest)

    async def script(received: ReceivedRequest) -> Reply:
        if len(server.received) >= next_kill:
            enough.set()
        return reply(received, 9.0)

    with serve(script) as server:
        for _ in range(kills):
            process = start(server, command, out)
            while not enough.wait(0.05):
                if process.poll() is not None:
                    break
            process.kill()
            process.communicate()
            next_kill = len(server.received) + rng.randrange(1, longest)
            enough.clear()
        process = start(server, command, out)
        _, errors = process.communicate(timeout=300)
        assert process.returncode == 0, errors
    return server


def assert_nothing_was_asked_twice(server: servers.Server, out: Path) -> None:
    """Check the server's ledger: what was asked more than once had no answer that was stored."""
    responses = list(iter_responses(out))
    answers = Counter(response.item_id for response in responses if response.error is None)
    assert set(answers.values()) == {1}
    prompt_of = {
        row.item.id: row.item.prompt for rows in score_run(out).rows.values() for row in rows
    }
    lost: Counter[str] = Counter()
    for response in responses:
        lost[prompt_of[response.item_id]] += response.possibly_billed_attempts
    for prompt in prompt_of.values():
        assert server.counts[prompt] <= 1 + lost[prompt]
